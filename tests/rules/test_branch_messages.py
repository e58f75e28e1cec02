"""GM101, GM102: a branch that warns and repairs is selected without its message, which eager mode still sends."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_MODEL = """
import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def __init__(self, verbose=False):
        super().__init__()
        self.verbose = verbose
        self.seen = []

    def forward(self, x: torch.Tensor):
        {body}
        return x
"""
_INPUTS = ["torch.ones(3)", "-torch.ones(3)", "torch.tensor([1.0, -2.0])"]


@pytest.mark.parametrize(
    "body",
    [
        """if x.min() < 0:
            warnings.warn("cut off")
            x = x.clamp(min=0)""",
        """if x.min() < 0:
            if self.verbose:
                print("cut off at", x.min().item())
            logger.info("cut off")
            x = x.clamp(min=0)
        else:
            logger.debug("nothing to do")
            x = x + 1""",
        """if x.min() < 0:
            warnings.warn("cut off")
            return x.clamp(min=0)""",
        """x = x + 1
        if x.min() < 0:
            logger.warning("cut off")
            x[0] = 0.0""",
    ],
)
def test_eager_mode_still_tells_and_compiled_code_is_one_graph(body: str) -> None:
    source = _MODEL.format(body=body)
    after, _ = fixed(source)
    assert after != source
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS)


@pytest.mark.parametrize(
    ("told", "because"),
    [
        ("print(self.seen.append(1))", "may have side effects"),
        ("self.seen.append(1)", "may have side effects"),
        ("print(x, file=self.seen)", "may have side effects"),
    ],
)
def test_what_does_more_than_tell_is_a_reason_to_leave_the_branch(told: str, because: str) -> None:
    declined(_MODEL.format(body=f"if x.min() < 0:\n            {told}\n            x = x.clamp(min=0)"), because)
