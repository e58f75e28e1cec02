"""Code in an `except` in front of a `finally` stays as it is: Dynamo fails where that gets too long."""

from __future__ import annotations

from tests.tools.fixes import declined, fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        if torch.allclose(x, x * 2):
            x = self.other(x)
        try:
            x = x * 2
        except ValueError:
            x = x + x[mask].sum()
        finally:
            x = x + 1
        return x
"""


def test_a_handler_in_front_of_finally_gets_no_longer() -> None:
    declined(_MODEL, "an `except` in front of a `finally`")


def test_any_other_handler_does() -> None:
    source = _MODEL.replace("        finally:\n            x = x + 1\n", "")
    after, _ = fixed(source)
    assert "torch.compiler.is_compiling()" in after
