"""Named entities of any kind."""

import torch

SOURCE = "pip:gliner==0.2.29"
IMPORTS = "gliner"


def _spans():
    start = torch.arange(6).repeat_interleave(3)
    end = (start + torch.arange(3).repeat(6)).clamp(max=5)
    return torch.stack([start, end], 1).expand(2, 18, 2)


def _layer(mode):
    from gliner.modeling.span_rep import SpanRepLayer

    return SpanRepLayer(8, 3, mode, dropout=0.0) if mode.startswith("marker") else SpanRepLayer(8, 3, mode)


def span_marker():
    return _layer("markerV0"), (torch.randn(2, 6, 8), _spans())


def span_query():
    return _layer("query"), (torch.randn(2, 6, 8), _spans())


def span_convolution():
    return _layer("conv_max"), (torch.randn(2, 6, 8), _spans())


def recurrent():
    from gliner.modeling.layers import LstmSeq2SeqEncoder

    class Config:
        hidden_size = 8

    return LstmSeq2SeqEncoder(Config()), (torch.randn(2, 6, 8), torch.tensor([[1] * 6, [1, 1, 1, 1, 0, 0]]))


def crossing():
    from gliner.modeling.layers import CrossFuser

    return CrossFuser(8, 8, num_heads=2, dropout=0.0), (
        torch.randn(2, 6, 8),
        torch.randn(2, 4, 8),
        torch.ones(2, 6),
        torch.ones(2, 4),
    )


def scores():
    from gliner.modeling.scorers import Scorer

    return Scorer(8, 0.0), (torch.randn(2, 6, 8), torch.randn(2, 3, 8))


class _Calls(torch.nn.Module):
    def __init__(self, function, **options):
        super().__init__()
        self.function, self.options = function, options

    def forward(self, *inputs):
        return self.function(*inputs, **self.options)


def focal():
    from gliner.modeling.loss_functions import focal_loss_with_logits

    return _Calls(focal_loss_with_logits, reduction="mean", prob_margin=0.1, label_smoothing=0.1), (
        torch.randn(4, 3, requires_grad=True),
        torch.randint(0, 2, (4, 3)).float(),
    )


def prompts():
    from gliner.modeling.utils import extract_prompt_features

    ids = torch.tensor([[1, 9, 2, 9, 3, 4], [9, 1, 2, 3, 4, 0]])
    return _Calls(extract_prompt_features), (9, torch.randn(2, 6, 8), ids, (ids > 0).long(), 2, 8, False)


def words():
    from gliner.modeling.utils import extract_word_embeddings

    mask = torch.tensor([[0, 1, 2, 0, 3, 0], [0, 1, 0, 2, 0, 0]])
    return _Calls(extract_word_embeddings), (
        torch.randn(2, 6, 8),
        mask,
        torch.ones(2, 6).long(),
        2,
        3,
        8,
        torch.tensor([[3], [2]]),
    )


def triples():
    from gliner.modeling.multitask.triples_layers import TuckERInteraction

    return TuckERInteraction(8, 8, 0.0), (torch.randn(2, 8), torch.randn(2, 8), torch.randn(2, 8))


def relations():
    from gliner.modeling.multitask.relations_layers import GATDecoder

    return GATDecoder(8, 2, 8), (torch.randn(2, 5, 8), torch.ones(2, 5))
