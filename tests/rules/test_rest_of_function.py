"""GM102: an early return in front of a rest with branches, checks and calls, which only computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed, fixed_among
from tests.tools.observe import Scenario

_HELPERS = """
import functools

import torch
import torch.nn.functional as F
from torch import nn

calls = []


def reduced(loss, weight=None, reduction="mean", avg_factor=None):
    if weight is not None:
        loss = loss * weight
    if avg_factor is None:
        return loss.mean() if reduction == "mean" else loss.sum()
    elif reduction == "mean":
        with torch.no_grad():
            factor = avg_factor + 1e-6
        loss = loss.sum() / factor
    elif reduction != "none":
        raise ValueError("no average of a sum")
    return loss


def weighted(function):
    @functools.wraps(function)
    def wrapper(pred, target, weight=None, reduction="mean", avg_factor=None, **words):
        loss = function(pred, target, **words)
        return reduced(loss, weight, reduction, avg_factor)

    return wrapper


def counted(function):
    calls.append(function)
    return function
"""
_LOSS = """

@{decorator}
def iou_loss(pred, target, eps=1e-6):
    low = torch.max(pred[:, :2], target[:, :2])
    high = torch.min(pred[:, 2:], target[:, 2:])
    size = (high - low).clamp(min=0)
    overlap = size[:, 0] * size[:, 1]
    {inside}
    both = (pred[:, 2:] - pred[:, :2]).prod(dim=1) + (target[:, 2:] - target[:, :2]).prod(dim=1)
    return -(overlap / (both - overlap)).clamp(min=eps).log()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.eps = 1e-6
        self.reduction = "mean"
        self.scale = {scale}

    def forward(self, pred, target, weight=None, avg_factor=None, override=None, **words):
        reduction = override if override else self.reduction
        if weight is not None and not torch.any(weight > 0) and reduction != "none":
            if pred.dim() == weight.dim() + 1:
                weight = weight.unsqueeze(1)
            return (pred * weight).sum()
        assert override in (None, "none", "mean", "sum")
        if weight is not None and weight.dim() > 1:
            assert weight.shape == pred.shape
            weight = weight.mean(-1)
        {rest}
        loss = self.scale * iou_loss(
            pred, target, weight, eps=self.eps, reduction=reduction, avg_factor=avg_factor, **words
        )
        return loss
"""


def model(*, inside: str = "pass", rest: str = "pass", decorator: str = "weighted", scale: str = "2.0") -> str:
    return _HELPERS + _LOSS.format(inside=inside, rest=rest, decorator=decorator, scale=scale)


_BOXES = "torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0]])"
_GOALS = "torch.tensor([[0.0, 0.0, 2.0, 1.0], [5.0, 5.0, 9.0, 9.0]])"
_INPUTS = [
    f"({_BOXES}, {_GOALS}, torch.ones(2, 4))",
    f"({_BOXES}, {_GOALS}, torch.zeros(2, 4))",
    f"({_BOXES}, {_GOALS}, torch.tensor([1.0, 0.0]), 2.0)",
    f"({_BOXES} * 0, {_GOALS} * 0, torch.zeros(2))",  # 0 / 0: the gradient of what is not returned is nan
    f"({_BOXES} * 0, {_GOALS} * 0, torch.ones(2, 4))",
]


def test_the_rest_is_followed_through_functions_and_decorators() -> None:
    before = model()
    after, result = fixed(before)
    assert "_both_may_run" in after
    assert not result.remaining
    behaves(before, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=[Scenario(True, "leaves"), Scenario(True, "inner", "one nan")])
    compiles(after, _INPUTS[:2], scenarios=[Scenario(False, "off", "float16")])


@pytest.mark.parametrize(
    "call",
    [
        f"({_BOXES}[:0], {_GOALS}[:0], torch.zeros(0, 4))",  # nothing may be reduced that has no elements
        f"dict(pred={_BOXES}, target={_GOALS}, weight=torch.zeros(2, 4), override='none')",  # other shapes
        f"dict(pred={_BOXES}, target=[{_GOALS}], weight=torch.zeros(2, 4))",  # no tensor: its gradient cannot be cut
        f"dict(pred={_BOXES}.double(), target={_GOALS}, weight=torch.zeros(2, 4))",
        f"dict(pred={_BOXES}, target={_GOALS}, weight=torch.zeros(2, 4), override='median')",  # asserted behind it
        f"dict(pred={_BOXES}, target={_GOALS}, weight=torch.zeros(2, 4), unknown=1)",
    ],
)
def test_what_the_header_asks_leaves_the_rest_to_the_author(call: str) -> None:
    after, _ = fixed(model())
    compiles(after, [call], scenarios=[Scenario(True, "leaves")], strict=False)


def test_a_scale_that_takes_a_gradient_is_left_to_the_author() -> None:
    before = model(scale="nn.Parameter(torch.tensor(2.0))")
    after, _ = fixed(before)
    compiles(after, [_INPUTS[3]], scenarios=[Scenario(True, "leaves")], strict=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"inside": "calls.append(1)"},
        {"inside": "overlap[overlap > 1] = 1"},
        {"inside": "pred.clamp_(min=0)"},
        {"inside": "pred -= 1"},
        {"inside": "overlap = overlap[target[:, 0].long()]"},  # which rows there are is for the data to say
        {"inside": "overlap = F.dropout(overlap)"},
        {"inside": "overlap = overlap // size[:, 0]"},
        {"inside": "overlap = F.one_hot(target[:, 0].long())[:, 0] * overlap"},
        {"inside": "global calls; calls = None"},
        {"inside": "print(overlap)"},
        {"inside": "F.relu(pred, True)"},
        {"inside": "overlap = torch.cholesky_inverse(size) * overlap"},
        {"inside": "overlap = overlap @ size"},  # work that eager mode skips
        {"rest": "self.last = pred"},
        {"rest": "global calls\n        calls = pred"},
        {"rest": "later = pred\n        self.kept = lambda: later"},
        {"rest": "weight = self.made(weight)"},
        {"rest": "words['eps'] = 1.0"},
        {"rest": "weight = weight * self.given_later"},  # eager mode returns before it may not be there
        {"decorator": "counted"},
        {"decorator": "functools.lru_cache(None)"},
    ],
)
def test_a_rest_that_does_more_than_compute_is_left_alone(changes: dict[str, str]) -> None:
    source = model(**changes)
    after, _ = fixed(source, select=("GM101", "GM102"))
    assert after == source
    assert checked(source, select=("GM101", "GM102")).findings


@pytest.mark.parametrize("result", ["loss, weight", "[loss]", "{'loss': loss}", "0"])
def test_what_is_no_tensor_is_not_selected(result: str) -> None:
    source = model().rstrip().removesuffix("return loss") + f"return {result}\n"
    assert fixed(source, select=("GM101", "GM102"))[0] == source
    early = model().replace("return (pred * weight).sum()", f"return {result.replace('loss', 'pred')}")
    assert fixed(early, select=("GM101", "GM102"))[0] == early


def test_a_function_that_calls_itself_behind_the_branch_is_left_alone() -> None:
    source = """
import torch


@torch.compile
def halved(x: torch.Tensor, deep: int = 0):
    if x.abs().max() < 1:
        return x * 2
    if deep > 3:
        x = x - 1
    return halved(x / 2, deep + 1)
"""
    after, _ = fixed(source)
    assert after == source
    assert checked(source).findings


def test_functions_of_other_files_are_read(tmp_path: Path) -> None:
    source = "from helpers import F, calls, functools, nn, torch, weighted\n" + _LOSS.format(
        inside="pass", rest="pass", decorator="weighted", scale="2.0"
    )
    source = source.replace(
        "from helpers import F, calls, functools, nn, torch, weighted\n",
        "import torch\nfrom torch import nn\nfrom helpers import weighted\n",
    )
    after, _ = fixed_among(tmp_path, source, {"helpers.py": _HELPERS})
    assert "_both_may_run" in after
    replaced = "import helpers\nhelpers.reduced = print\n"
    after, _ = fixed_among(tmp_path, source, {"helpers.py": _HELPERS, "other.py": replaced})
    assert "_both_may_run" not in after
    twice = _HELPERS + "\n\ndef reduced(*given):\n    print(given)\n"
    after, _ = fixed_among(tmp_path, source, {"helpers.py": twice, "other.py": ""})
    assert "_both_may_run" not in after


_DECIDED = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor):
        c = x - y
        if torch.isinf(c).any():
            {early}
            return c * 2.0
        c = torch.zeros_like(c)
        {rest}
        d = x.masked_fill(~mask[:, None].expand(-1, 3), 0.0) * 2.0
        return torch.relu(d) + c
"""
_CHOICES = {
    "a branch": "if (c > -2).any(): return c",
    "a conditional expression": "c = c + 1.0 if (x > y).all() else c.exp()",
    "one in a call": "c = c * torch.relu(x if (x > y).all() else y)",
}


@pytest.mark.parametrize("place", ["early", "rest"])
@pytest.mark.parametrize("choice", _CHOICES.values(), ids=_CHOICES)
def test_code_in_which_a_tensor_decides_is_no_inner_function(choice: str, place: str) -> None:
    after, _ = fixed(_DECIDED.format(**{"early": "c = c + 0.0", "rest": "c = c * 0.5", place: choice}))
    assert "def early(" not in after
