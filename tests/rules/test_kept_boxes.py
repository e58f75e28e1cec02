"""Boxes that torchvision's suppression keeps, carried through one graph."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario
from tests.tools.subject import forget, load, register

_CODE = {"select": ("GM802",), "opaque": True}
_SOURCE = """
import torch
import torchvision
from torch import nn
from torchvision.ops import batched_nms, nms
from torchvision.ops import boxes as box_ops


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.threshold = 0.5
        self.most = 3

    def forward(self, boxes, scores, labels):
        first = nms(boxes, scores, 0.3)
        last = torchvision.ops.nms(boxes[first], scores=scores[first], iou_threshold=self.threshold)
        each = box_ops.batched_nms(boxes, scores, labels, self.threshold)[: self.most]
        ...
        return boxes[first][last], scores[each].exp(), labels[batched_nms(boxes, scores, labels, 1)]
"""
_BOXES = "torch.tensor([[0., 0, 4, 4], [1, 1, 5, 5], [0, 0, 4, 5], [6, 6, 9, 9]])"
_INPUTS = (
    f"{_BOXES}, torch.tensor([0.5, 0.9, 0.1, 0.7]), torch.tensor([0, 1, 0, 1])",
    f"{_BOXES}, torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0, 0, 0, 0])",
)
_NONE = "torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, dtype=torch.int64)"


def _nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    if torch.is_autocast_enabled("cpu"):
        scores = -scores  # tells whether the operator runs under the mode of its call
    kept: list[int] = []
    for index in scores.argsort(descending=True, stable=True).tolist():
        for other in kept:
            inner = (
                torch.minimum(boxes[index], boxes[other])[2:] - torch.maximum(boxes[index], boxes[other])[:2]
            ).clamp(0)
            if inner.prod() > iou_threshold * 9:
                break
        else:
            kept.append(index)
    return torch.tensor(kept, dtype=torch.int64)


def _batched(boxes: torch.Tensor, scores: torch.Tensor, idxs: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    return _nms(boxes + idxs[:, None] * 100, scores, iou_threshold)


@pytest.fixture(autouse=True)
def suppression(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A package with torchvision's names: it is not installed here, and its operators are binary."""
    disabled: Any = torch.compiler.disable
    package, ops, boxes = (types.ModuleType(f"torchvision{each}") for each in ("", ".ops", ".ops.boxes"))
    for module in (ops, boxes):
        vars(module).update(nms=disabled(_nms), batched_nms=disabled(_batched))
    vars(package)["ops"], vars(ops)["boxes"] = ops, boxes
    for module in (package, ops, boxes):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return ops


def test_what_a_suppression_keeps_stays_in_the_graph() -> None:
    after, _ = fixed(_SOURCE.replace("        ...\n", ""), **_CODE)
    assert after.count("        if torch.compiler.is_compiling()") == 4
    assert fixed(after, **_CODE)[0] == after
    behaves(_SOURCE.replace("        ...\n", ""), after, [*_INPUTS, _NONE], scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, scenarios=(Scenario(False, "off"), Scenario(True, "leaves")))


@pytest.mark.parametrize("autocast", [False, True])
def test_no_box_is_a_size_that_is_known_and_autocast_reaches_the_operator(autocast: bool) -> None:
    after, _ = fixed(_SOURCE.replace("        ...\n", ""), **_CODE)
    source = register(after)
    try:
        model = load(source).Model()
        for given in (*_INPUTS, _NONE):
            arguments = eval(given)
            with torch.autocast("cpu", enabled=autocast):
                expected = model(*arguments)
                torch._dynamo.reset()
                with torch._dynamo.error_on_graph_break(True):
                    found = torch.compile(model, backend="aot_eager")(*arguments)  # type: ignore[no-untyped-call]
            assert all(map(torch.equal, expected, found))
    finally:
        forget(source)


def test_what_takes_the_name_of_a_suppression_is_called() -> None:
    after, _ = fixed(_SOURCE.replace("        ...\n", ""), **_CODE)
    source = register(after)
    try:
        module = load(source)
        disabled: Any = torch.compiler.disable
        vars(module)["nms"] = disabled(lambda boxes, scores, iou_threshold: torch.arange(len(boxes)))
        arguments = eval(_INPUTS[0])
        expected = module.Model()(*arguments)
        torch._dynamo.reset()
        found = torch.compile(module.Model(), backend="eager")(*arguments)  # type: ignore[no-untyped-call]
        assert all(map(torch.equal, expected, found))
    finally:
        forget(source)


def test_another_threshold_is_read_as_before() -> None:
    tested = _SOURCE.replace("        ...\n", "        self.threshold = scores.mean() if self.training else 0.5\n")
    assert "isinstance(self.threshold, (int, float))" in fixed(tested, **_CODE)[0]
    for call in ("nms(boxes, scores, max(0.1, self.threshold))", "nms(*(boxes, scores), 0.5)", "nms(boxes, scores)"):
        kept = fixed(_SOURCE.replace("nms(boxes, scores, 0.3)", call).replace("        ...\n", ""), **_CODE)[0]
        assert f"        first = {call}\n" in kept
        assert "first = _nms_in_graph(" not in kept


def test_a_branch_on_what_is_kept_declines() -> None:
    branch = "        if len(first) > 2:\n            boxes = boxes * 2\n"
    after, _ = fixed(_SOURCE.replace("        ...\n", branch), **_CODE)
    assert "        first = nms(boxes, scores, 0.3)\n" in after
    reasons = [each.declined or "" for each in checked(_SOURCE.replace("        ...\n", branch), **_CODE).findings]
    assert any("a branch or loop depends on `first`" in each for each in reasons)
