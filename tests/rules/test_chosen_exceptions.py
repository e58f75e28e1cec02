"""Checks of tensors (GM301) in whose branch Python conditions choose what is raised, or whether."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_MODEL = """
import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.strict = "error"
        self.asked = 0
        self.table = {{}}

    def ask(self):
        self.asked += 1
        return True

    def forward(self, x: torch.Tensor, mode=None):
        {body}
        return x * 2
"""
LOW = "if (x < 0).any():\n    "


def model(body: str) -> str:
    return _MODEL.format(body="\n        ".join(body.strip("\n").split("\n")))


@pytest.mark.parametrize(
    "body",
    [
        f"{LOW}if torch.is_grad_enabled():\n        raise ValueError('a')\n    else:\n        warnings.warn('b')",
        f"{LOW}if x.dtype is torch.float16:\n        raise ValueError('a')\n    else:\n        raise TypeError('b')",
        f"{LOW}if self.strict == 'none':\n        pass\n    elif mode is None:\n        raise ValueError('a')",
        f"{LOW}logger.error('bad')\n    raise ValueError('a')",
        "if mode is None and (x < 0).any():\n    if self.training:\n        raise ValueError('a')",
    ],
)
def test_the_condition_chooses_in_compiled_code_as_well(body: str) -> None:
    after, _ = fixed(model(body), select=("GM301",))
    assert "torch._assert_async(" in after, after
    behaves(model(body), after, ["torch.ones(3)", "-torch.ones(3)"], scenarios=FEW_SCENARIOS[:3])
    compiles(after, ["torch.ones(3)"])


def test_where_the_condition_wants_a_message_nothing_is_raised() -> None:
    body = f"{LOW}if self.strict == 'error':\n        warnings.warn('b')\n    else:\n        raise ValueError('a')"
    after, _ = fixed(model(body), select=("GM301",))
    assert "torch._assert_async(" in after
    compiles(after, ["-torch.ones(3)"])


@pytest.mark.parametrize(
    ("body", "because"),
    [
        (f"{LOW}if self.ask():\n        raise ValueError('a')", "would be asked twice"),
        (f"{LOW}if self.table['x'] > 3:\n        raise ValueError('a')", "may"),
        (f"{LOW}if x.max() > 3:\n        raise ValueError('a')", "reads a tensor too"),
        (f"{LOW}self.ask()\n    raise ValueError('a')", "may have side effects"),
        (
            f"{LOW}if self.training:\n        self.ask()\n    raise ValueError('a')",
            "more follows",
        ),
        (
            f"{LOW}if self.training:\n        raise ValueError('a')\n    raise TypeError('b')",
            "more follows",
        ),
    ],
)
def test_what_may_not_be_asked_or_left_out_is_a_reason(body: str, because: str) -> None:
    declined(model(body), because=because, select=("GM301",))
