"""VITS: speech from text."""

import torch

SOURCE = "github:jaywalnut310/vits@2e561ba58618d021b5b8323d3765880f7e0ecfdb"
IMPORTS = "modules"
STUBS = "monotonic_align.monotonic_align.core"


def duration_predictor():
    from models import StochasticDurationPredictor

    return StochasticDurationPredictor(8, 8, 3, 0.0, 2), (
        torch.randn(2, 8, 6),
        torch.ones(2, 1, 6),
        torch.rand(2, 1, 6) + 1.0,
    )


def coupling():
    from models import ResidualCouplingBlock

    return ResidualCouplingBlock(8, 8, 3, 1, 2), (torch.randn(2, 8, 6), torch.ones(2, 1, 6))


def text_encoder():
    from models import TextEncoder

    return TextEncoder(20, 8, 8, 16, 2, 1, 3, 0.0), (torch.randint(0, 20, (2, 6)), torch.tensor([6, 4]))


def spline_flow():
    from modules import ConvFlow

    return ConvFlow(4, 8, 3, 1), (torch.randn(2, 4, 6), torch.ones(2, 1, 6))
