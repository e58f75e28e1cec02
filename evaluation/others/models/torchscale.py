"""Scaled transformers."""

import torch

SOURCE = "pip:torchscale==0.3.0"
IMPORTS = "torchscale"
STUBS = "fairscale fairscale.nn timm timm.models timm.models.layers apex xformers"


def _embedding():
    return torch.nn.Embedding(20, 16, padding_idx=1)


def encoder():
    from torchscale.architecture.config import EncoderConfig
    from torchscale.architecture.encoder import Encoder

    config = EncoderConfig(
        vocab_size=20, encoder_embed_dim=16, encoder_attention_heads=2, encoder_ffn_embed_dim=16, encoder_layers=2,
        rel_pos_buckets=8, max_rel_pos=16,
    )  # fmt: skip
    return Encoder(config, _embedding()), {"src_tokens": torch.randint(2, 20, (2, 6))}


def decoder():
    from torchscale.architecture.config import DecoderConfig
    from torchscale.architecture.decoder import Decoder

    config = DecoderConfig(
        vocab_size=20, decoder_embed_dim=16, decoder_attention_heads=2, decoder_ffn_embed_dim=16, decoder_layers=2,
    )  # fmt: skip
    return Decoder(config, _embedding()), (torch.randint(2, 20, (2, 6)),)


def retention():
    from torchscale.architecture.config import RetNetConfig
    from torchscale.architecture.retnet import RetNetDecoder

    config = RetNetConfig(
        vocab_size=20, decoder_embed_dim=16, decoder_value_embed_dim=16, decoder_retention_heads=2,
        decoder_ffn_embed_dim=16, decoder_layers=2,
    )  # fmt: skip
    return RetNetDecoder(config, _embedding()), (torch.randint(2, 20, (2, 6)),)


def retention_in_chunks():
    from torchscale.architecture.config import RetNetConfig
    from torchscale.architecture.retnet import RetNetDecoder

    config = RetNetConfig(
        vocab_size=20, decoder_embed_dim=16, decoder_value_embed_dim=16, decoder_retention_heads=2,
        decoder_ffn_embed_dim=16, decoder_layers=2, chunkwise_recurrent=True, recurrent_chunk_size=4,
    )  # fmt: skip
    return RetNetDecoder(config, _embedding()), (torch.randint(2, 20, (2, 6)),)


def positions():
    from torchscale.component.relative_position_bias import RelativePositionBias

    return RelativePositionBias(num_buckets=8, max_distance=16, n_heads=2), (2, 6, 6)


def several_ways():
    from torchscale.component.multiway_network import MultiwayNetwork

    net = MultiwayNetwork(torch.nn.Linear(8, 8))
    net.split_position = 3
    return net, (torch.randn(2, 6, 8),)
