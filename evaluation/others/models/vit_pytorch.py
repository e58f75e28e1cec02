"""Vision transformers."""

import torch

SOURCE = "pip:vit-pytorch==1.26.11"
IMPORTS = "vit_pytorch"


def navit():
    from vit_pytorch.na_vit import NaViT

    return NaViT(
        image_size=16,
        patch_size=4,
        num_classes=3,
        dim=16,
        depth=1,
        heads=2,
        mlp_dim=16,
        token_dropout_prob=0.1,
        dim_head=8,
    ), ([[torch.rand(3, 8, 8), torch.rand(3, 8, 16)], [torch.rand(3, 16, 8)]],)


def cait():
    from vit_pytorch.cait import CaiT

    return CaiT(
        image_size=16, patch_size=4, num_classes=3, dim=16, depth=2, cls_depth=1, heads=2, mlp_dim=16, layer_dropout=0.3
    ), (torch.rand(2, 3, 16, 16),)


def dino():
    from vit_pytorch import Dino, ViT

    vit = ViT(image_size=16, patch_size=4, num_classes=3, dim=16, depth=1, heads=2, mlp_dim=16)
    return Dino(vit, image_size=16, projection_hidden_size=8, num_classes_K=8), (torch.rand(2, 3, 16, 16),)


def learnable_memory():
    from vit_pytorch.learnable_memory_vit import ViT

    return ViT(image_size=16, patch_size=4, num_classes=3, dim=16, depth=1, heads=2, mlp_dim=16), (
        torch.rand(2, 3, 16, 16),
    )


def patch_merger():
    from vit_pytorch.ats_vit import ViT

    return ViT(
        image_size=16,
        patch_size=4,
        num_classes=3,
        dim=16,
        depth=2,
        max_tokens_per_depth=(8, 4),
        heads=2,
        mlp_dim=16,
        dim_head=8,
    ), (torch.rand(2, 3, 16, 16),)


def distill():
    from vit_pytorch.vit_with_patch_dropout import ViT

    return ViT(image_size=16, patch_size=4, num_classes=3, dim=16, depth=1, heads=2, mlp_dim=16, patch_dropout=0.25), (
        torch.rand(2, 3, 16, 16),
    )
