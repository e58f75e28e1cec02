"""Vector quantizers."""

import torch

SOURCE = "pip:vector-quantize-pytorch==1.32.0"
IMPORTS = "vector_quantize_pytorch"


def vector_quantize():
    from vector_quantize_pytorch import VectorQuantize

    return VectorQuantize(8, codebook_size=16, kmeans_init=True, threshold_ema_dead_code=2), (
        torch.randn(2, 12, 8, requires_grad=True),
    )


def cosine():
    from vector_quantize_pytorch import VectorQuantize

    return VectorQuantize(8, codebook_size=16, use_cosine_sim=True, orthogonal_reg_weight=1.0), (
        torch.randn(2, 12, 8, requires_grad=True),
    )


def residual_vq():
    from vector_quantize_pytorch import ResidualVQ

    return ResidualVQ(dim=8, codebook_size=16, num_quantizers=3, quantize_dropout=True), (
        torch.randn(2, 12, 8, requires_grad=True),
    )


def fsq():
    from vector_quantize_pytorch import FSQ

    return FSQ([4, 4, 3]), (torch.randn(2, 12, 3, requires_grad=True),)


def residual_fsq():
    from vector_quantize_pytorch import ResidualFSQ

    return ResidualFSQ(dim=8, levels=[4, 4, 3], num_quantizers=2), (torch.randn(2, 12, 8, requires_grad=True),)


def lfq():
    from vector_quantize_pytorch import LFQ

    return LFQ(codebook_size=16, dim=8), (torch.randn(2, 12, 8, requires_grad=True),)


def sim_vq():
    from vector_quantize_pytorch import SimVQ

    return SimVQ(dim=8, codebook_size=16), (torch.randn(2, 12, 8, requires_grad=True),)


def random_projection():
    from vector_quantize_pytorch import RandomProjectionQuantizer

    return RandomProjectionQuantizer(dim=8, num_codebooks=2, codebook_dim=4, codebook_size=16), (torch.randn(2, 12, 8),)


def latent_quantize():
    from vector_quantize_pytorch import LatentQuantize

    return LatentQuantize(levels=[4, 4], dim=8), (torch.randn(2, 8, 4, 4, requires_grad=True),)
