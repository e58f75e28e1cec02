"""Sequence models."""

import torch

SOURCE = "github:facebookresearch/fairseq@3d262bb25690e4eb2e7d3c1309b1e9c406ca4b99"
IMPORTS = "fairseq"
STUBS = (
    "sacrebleu bitarray hydra hydra.core hydra.core.config_store hydra.core.global_hydra "
    "hydra.core.hydra_config hydra.experimental hydra.initialize fairseq.data.data_utils_fast "
    "fairseq.data.token_block_utils_fast"
)


def gumbel_vector_quantizer():
    from fairseq.modules.gumbel_vector_quantizer import GumbelVectorQuantizer

    return GumbelVectorQuantizer(8, 4, (2.0, 0.5, 0.99), 2, False, 8, True), (torch.randn(2, 5, 8),)


def kmeans_vector_quantizer():
    from fairseq.modules.kmeans_vector_quantizer import KmeansVectorQuantizer

    return KmeansVectorQuantizer(8, 4, 2, False, 8, True), (torch.randn(2, 8, 5),)


def adaptive_softmax():
    from fairseq.modules.adaptive_softmax import AdaptiveSoftmax

    return AdaptiveSoftmax(20, 8, [6, 12], 0.0), (torch.randn(2, 5, 8), torch.randint(0, 20, (2, 5)))


def adaptive_input():
    from fairseq.modules.adaptive_input import AdaptiveInput

    return AdaptiveInput(20, 0, 8, 2, 8, [6, 12]), (torch.randint(0, 20, (2, 5)),)


def transformer_encoder():
    from fairseq.modules.transformer_sentence_encoder import TransformerSentenceEncoder

    return TransformerSentenceEncoder(
        padding_idx=0,
        vocab_size=20,
        num_encoder_layers=2,
        embedding_dim=8,
        ffn_embedding_dim=8,
        num_attention_heads=2,
        layerdrop=0.2,
        max_seq_len=10,
    ), (torch.tensor([[3, 4, 5, 6, 0], [3, 4, 5, 6, 7]]),)


def dynamic_convolution():
    from fairseq.modules.dynamic_convolution import DynamicConv1dTBC

    return DynamicConv1dTBC(8, 3, num_heads=2), (torch.randn(5, 2, 8),)
