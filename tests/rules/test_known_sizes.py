"""GM411: results whose size the source tells, although torch reads a tensor for it."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gather = {gather}

    def others(self, n):
        return torch.ones(n, n) > 0

    def forward(self, x, parts=None):
        {body}
        return y
"""
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))
_EYE = "mask = torch.eye(x.shape[0], dtype=torch.bool, device=x.device)\n        "
_COUNTS = "counts = list(parts)\n        held = torch.tensor(counts)\n        "
_SQUARE = "x = x @ x.T\n        "


def model(body: str, *, gather: bool = False) -> str:
    return _MODEL.format(body=body, gather=gather)


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        (
            "counts = [part.shape[0] for part in parts]\n"
            "        y = x.repeat_interleave(torch.tensor(counts, device=x.device), dim=0)",
            ["torch.randn(2, 3), [torch.ones(4), torch.ones(1)]", "torch.randn(1, 3), [torch.ones(0)]"],
        ),
        (
            "counts = [part.shape[0] for part in parts]\n        held = torch.tensor(counts, device=x.device)\n"
            "        y = x.repeat_interleave(held, dim=0)",
            ["torch.randn(2, 3), [torch.ones(4), torch.ones(1)]", "torch.randn(1, 3), [torch.ones(0)]"],
        ),
        ("axes: list = torch.arange(1, len(x.shape)).tolist()\n        y = x.sum(axes)", ["torch.randn(2, 3, 4)"]),
        (
            _SQUARE + _EYE + "y = x[~mask].view(x.shape[0], -1).exp() + x[mask][:, None]",
            ["torch.randn(4, 3)", "torch.randn(2, 3)", "torch.randn(1, 3)"],
        ),
        (
            _SQUARE + "ones = torch.eye(len(x))\n        rest = (1 - ones).bool()\n"
            "        y = torch.masked_select(x, rest).sum() + x.masked_select(~rest).mul_(2).sum() + x",
            ["torch.randn(4, 3)", "torch.randn(2, 3)"],
        ),
        (
            _SQUARE + "if self.gather and len(x) > 9:\n            mask = self.others(len(x))\n"
            "        else:\n            mask = torch.eye(len(x)) == 1\n        y = x[~mask] * 2",
            ["torch.randn(4, 3)"],
        ),
    ],
)
def test_the_known_size_is_that_of_eager_mode(body: str, inputs: list[str]) -> None:
    before = model(body)
    after, _ = fixed(before)
    assert "is known without" in after
    behaves(before, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES)


def test_what_is_no_list_of_integers_is_read_as_before() -> None:
    body = "y = x.repeat_interleave(torch.as_tensor(parts), dim=0)"
    after, _ = fixed(model(body))
    assert "output_size=sum(parts)" in after
    compiles(after, ["torch.randn(2, 3), torch.tensor([2, 1])"], strict=False)
    compiles(after, ["torch.randn(2, 3), [2, 1]"])
    # A single count is that of all rows.
    compiles(after, ["torch.randn(2, 3), [2]"])
    assert "all(type(each) is int and each >= 0 for each in parts)" in after


def test_numbers_that_an_integer_of_32_bits_does_not_hold_are_read_as_before() -> None:
    after, _ = fixed(model("y = torch.arange(parts, parts + 2, dtype=torch.int32).tolist(), x"))
    assert "parts + 2 <= 2**31" in after
    compiles(after, ["torch.randn(2, 3), 2**31 - 1"], strict=False)


@pytest.mark.parametrize(
    "body",
    [
        _SQUARE + _EYE + "mask |= x > 0\n        y = x[mask]",
        _SQUARE + _EYE + "alias = mask.to(x.device)\n        alias.fill_(True)\n        y = x[mask]",
        _SQUARE + _EYE + "self.others(mask)\n        y = x[mask]",
        _SQUARE + _EYE + "self.where(mask)\n        y = x[mask]",
        _SQUARE + _EYE + "self.masked_select(mask)\n        y = x[mask]",
        "y = x.repeat_interleave(torch.tensor(parts, dtype=torch.float32), dim=0)",
        _SQUARE + _EYE + "if self.gather:\n            mask = x > 0\n        y = x[mask]",
        _SQUARE + "mask = (~torch.eye(len(x)).long()).bool()\n        y = x[mask]",
        _SQUARE + "mask = torch.eye(len(x), 2 * len(x)).bool()\n        y = torch.cat([x, x], 1)[mask]",
        "y = [x[axis] for axis in torch.arange(x.shape[0]).tolist()]",
        "y = [torch.arange(n).tolist() for n in parts]",
        "y = [x.repeat_interleave(torch.tensor(part)) for part in parts]",
        _COUNTS + "counts.append(3)\n        y = x.repeat_interleave(held, dim=0)",
        _COUNTS + "held += 1\n        y = x.repeat_interleave(held, dim=0)",
        _COUNTS + "self.hook(held)\n        y = x.repeat_interleave(held, dim=0)",
        _COUNTS + "if self.gather:\n            counts = [1, 2]\n        y = x.repeat_interleave(held, dim=0)",
    ],
)
def test_what_may_be_another_size_is_left_alone(body: str) -> None:
    assert "is known without" not in fixed(model(body))[0]


def test_the_branch_that_made_the_mask_is_asked_for() -> None:
    branch = (
        "if self.gather:\n            mask = self.others(len(x))\n"
        "        else:\n            mask = torch.eye(len(x)).bool()\n        "
    )
    source = model(_SQUARE + branch + "y = x[mask]", gather=True)
    after, _ = fixed(source)
    assert "and not self.gather" in after
    compiles(after, ["torch.randn(4, 3)"], strict=False)
    assert "is known" in fixed(model(_SQUARE + branch + "self.others(3)\n        y = x[mask]"))[0]
    late = model(_SQUARE + branch + "y = x[mask]").replace(
        "return torch.ones", "self.gather = n\n        return torch.ones"
    )
    assert "is known" in fixed(late)[0]
    assert "is known" not in fixed(late.replace("y = x[mask]", "self.others(3)\n        y = x[mask]"))[0]
