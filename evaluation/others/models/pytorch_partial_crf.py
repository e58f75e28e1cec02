"""Random fields of partly labelled sequences."""

import torch

SOURCE = "pip:pytorch-partial-crf==0.2.1"
IMPORTS = "pytorch_partial_crf"

_TAGS = torch.tensor([[0, 1, 2, 1, 0], [2, 1, 0, 0, 1]])
_MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.uint8)


def _scores():
    return torch.randn(2, 5, 3)


def full():
    from pytorch_partial_crf import CRF

    return CRF(3), (_scores(), _TAGS, _MASK)


def partial():
    from pytorch_partial_crf import PartialCRF

    return PartialCRF(3), (_scores(), torch.where(_TAGS == 1, -1, _TAGS), _MASK)


def marginal():
    from pytorch_partial_crf import MarginalCRF

    return MarginalCRF(3), (_scores(), torch.rand(2, 5, 3).softmax(-1), _MASK)


def decoding():
    from pytorch_partial_crf import CRF

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.field = CRF(3)

        def forward(self, scores, mask):
            return self.field.viterbi_decode(scores, mask)

    return Decoder(), (_scores(), _MASK), {"train": False}


def marginals():
    from pytorch_partial_crf import PartialCRF

    class Marginals(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.field = PartialCRF(3)

        def forward(self, scores, mask):
            return self.field.marginal_probabilities(scores, mask)

    return Marginals(), (_scores(), _MASK), {"train": False}
