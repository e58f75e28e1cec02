"""Losses of rows that a mask chooses: by layers of torch, in branches in front of the loss, of parts of tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, embedded, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.classes = 5
        self.l1 = nn.L1Loss()
        self.total = nn.MSELoss(reduction="sum")
        self.bce = nn.BCEWithLogitsLoss()
        self.entropy = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.25)

    def forward(self, logits: torch.Tensor, labels, mask=None):
        loss = 0
        ...
        return loss
"""
_SHIFTED = """
if mask is not None:
    shifted_mask = mask[:, -(logits.shape[1] - 1) :].to(logits.device)
    shift_logits = logits[..., :-1, :][shifted_mask.to(logits.device) != 0].contiguous()
    shift_labels = labels[..., 1:][shifted_mask.to(labels.device) != 0].contiguous()
else:
    shift_logits = logits[..., :-1, :].contiguous()
    shift_labels = labels[..., 1:].contiguous()
loss_fct = nn.CrossEntropyLoss()
flat = shift_labels.view(-1).to(shift_logits.device)
if loss is not None:
    loss = loss_fct(shift_logits.view(-1, shift_logits.size(-1)), flat)
"""
_NAN = "torch.randn(2, 3, 5).index_fill(1, torch.tensor(0), float('nan')), torch.tensor([[1, 2, 3], [4, -100, 0]])"
_GRADIENTS = [Scenario(), Scenario(gradients="leaves")]


def _source(body: str) -> str:
    return embedded(body, _MODEL)


def _reasons(body: str) -> list[str]:
    return [each.declined or "" for each in checked(_source(body), select=("GM510",)).findings]


@pytest.mark.parametrize(
    "body",
    [
        "loss = self.l1(logits[mask], logits[mask] * 2)\n"
        "loss = loss + self.total(logits[mask.bool()], 3 * logits[mask.bool()])",
        "loss = self.bce(logits[..., 0][mask], labels[mask].float())\n"
        "loss = loss + torch.mean((logits[..., 0] * 2).masked_select(mask))",
        "flat = mask.view(-1)\nloss = self.entropy(logits.view(-1, 5)[flat], labels.view(-1)[flat])",
        "loss_fct = nn.CrossEntropyLoss(reduction='sum')\nkept = labels[mask]\nloss = loss_fct(logits[mask], kept)",
        "loss_fct = nn.CrossEntropyLoss(ignore_index=self.classes)\nloss = loss_fct(logits[mask], labels[mask])",
    ],
)
def test_a_layer_that_computes_a_loss_gets_all_rows(body: str) -> None:
    after, _ = fixed(_source(body), select=("GM510",))
    inputs = [f"{_NAN}, torch.tensor([[False, True, True], [False, False, True]])"]
    behaves(_source(body), after, inputs, scenarios=_GRADIENTS)
    compiles(after, inputs, scenarios=_GRADIENTS)


@pytest.mark.parametrize("setting", ["self.classes = 4", "self.classes -= 1", "self = copy(self)"])
def test_an_ignored_label_that_is_set_in_the_function_is_another_one(setting: str) -> None:
    made = "loss_fct = nn.CrossEntropyLoss(ignore_index=self.classes)"
    body = f"{made}\n{setting}\nloss = loss_fct(logits[mask], labels[mask])"
    assert "is_compiling" not in fixed(_source(body), select=("GM510",))[0]
    assert "is_compiling" in fixed(_source(body.replace(f"{setting}\n", "")), select=("GM510",))[0]


@pytest.mark.parametrize("labels", ["labels[mask]", "labels[mask].clamp(max=4)", "labels[mask].long()"])
def test_labels_of_a_dtype_without_the_ignored_one_run_the_original(labels: str) -> None:
    source = _source(f"loss_fct = nn.CrossEntropyLoss()\nloss = loss_fct(logits[mask], {labels})")
    after, _ = fixed(source, select=("GM510",))
    assert after != source
    given = "torch.randn(2, 3, 5), torch.tensor([[1, 2, 3], [4, 1, 0]], dtype=torch.{})"
    inputs = [f"{given.format(each)}, torch.tensor([[0, 1, 1], [0, 0, 1]]) == 1" for each in ("int64", "uint8")]
    behaves(source, after, inputs, scenarios=[Scenario()])
    compiles(after, inputs, strict=False, scenarios=[Scenario()])


def test_rows_that_a_branch_selects_get_the_label_that_the_loss_behind_it_ignores() -> None:
    after, _ = fixed(_source(_SHIFTED), select=("GM510",))
    assert "loss_fct(shift_logits.view(-1, shift_logits.size(-1)), flat)" in after
    inputs = [f"{_NAN}, torch.tensor([[0, 1, 1], [0, 0, 1]])", f"{_NAN}, torch.zeros(2, 3)", _NAN]
    behaves(_source(_SHIFTED), after, inputs, scenarios=_GRADIENTS)
    compiles(after, inputs, scenarios=_GRADIENTS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(reduction='none')"),
        ("nn.CrossEntropyLoss()", "nn.MSELoss()"),
        ("loss = loss_fct(", "loss = shift_labels.sum() + loss_fct("),
        ("loss = loss_fct(", "loss = shift_labels.min() + loss_fct("),
        ("loss = loss_fct(", "loss = len(flat) * loss_fct("),
        (", flat)", ", flat + 1)"),
        (", flat)", ", labels.view(-1))"),
        ("if loss is not None:", "if flat.shape[0] > 0:"),
        ("[shifted_mask.to(labels.device) != 0]", "[shifted_mask.to(labels.device) != 1]"),
        ("if loss is not None:", "loss = shift_logits\nif loss is not None:"),
        ("if mask is not None:", "for mask in [mask]:"),
        ("-1)), flat)", "-1)), flat) + shift_labels.float().mean()"),
        ("-1)), flat)", "-1)), flat)\n    loss = loss + (shift_labels != 2).sum()"),
        ("-1)), flat)", "-1)), flat)\n    loss = loss * shift_labels.float().max()"),
        ("if loss is not None:", "if self.classes:\n    loss_fct = nn.MSELoss()\nif loss is not None:"),
        ("shift_logits.size(-1)), flat", "self.classes), flat + self.classes"),
    ],
)
def test_rows_that_get_to_something_else_are_left_alone(old: str, new: str) -> None:
    body = _SHIFTED.replace(old, new)
    if new.startswith("for"):
        body = body.replace("else:", "if mask is None:")
    assert body != _SHIFTED
    assert "is_compiling" not in fixed(_source(body), select=("GM510",))[0]


def test_a_function_that_ignores_labels_is_one_of_those_losses() -> None:
    call = "F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), flat, ignore_index=self.classes)"
    body = _SHIFTED.replace("loss_fct(shift_logits.view(-1, shift_logits.size(-1)), flat)", call)
    after, _ = fixed(_source(body), select=("GM510",))
    assert call in after
    assert "!= 0, labels[..., 1:], self.classes).flatten()" in after
    assert "is_compiling" not in fixed(_source(body.replace(call, f"{call} + (flat > 0).sum()")), select=("GM510",))[0]


def test_a_row_of_another_size_runs_the_original() -> None:
    body = _SHIFTED.replace("shift_logits.size(-1)", "self.classes")
    after, _ = fixed(_source(body), select=("GM510",))
    assert "and logits[..., :-1, :].shape[-1] == self.classes" in after
    assert "is_compiling" not in fixed(_source(body.replace("loss_fct = nn", "self.classes = 5\nloss_fct = nn")))[0]


def test_of_a_layer_that_the_same_code_makes_nothing_is_asked() -> None:
    body = "fct = nn.BCEWithLogitsLoss()\nloss = fct(logits[mask], logits[mask])"
    assert "reduction ==" not in fixed(_source(body), select=("GM510",))[0]
    for maker in ("nn.BCEWithLogitsLoss(logits)", "nn.BCEWithLogitsLoss(pos_weight=logits)", "nn.BCELoss(None, True)"):
        changed = body.replace("nn.BCEWithLogitsLoss()", maker)
        assert fixed(_source(changed), select=("GM510",))[0] == _source(changed)
    twice = body.replace("\nloss", "\nif self.classes:\n    fct = nn.L1Loss()\nloss")
    assert fixed(_source(twice), select=("GM510",))[0] == _source(twice)


def test_a_layer_of_another_kind_runs_the_original() -> None:
    body = "loss = self.l1(logits[mask], logits[mask] * 2)"
    after, _ = fixed(_source(body), select=("GM510",))
    assert "type(self.l1) is torch.nn.L1Loss" in after
    assert 'self.l1.reduction == "mean"' in after
    assert _reasons(body.replace("self.l1(", "self.l2(")) == []
    assert "" not in _reasons(body.replace("* 2)", "* 2, None)"))


@pytest.mark.parametrize(
    "change",
    [
        "model.l1.register_forward_hook(lambda layer, given, loss: loss * given[0].shape[0])",
        "model.l1.register_forward_pre_hook(lambda layer, given: (given[0] * 2, given[1]))",
        "setattr(model.l1, 'forward', lambda first, second: first.sum() * second.shape[0])",
    ],
    ids=["hook", "hook before", "forward"],
)
def test_a_layer_of_a_loss_that_somebody_hooked_is_called_as_before(change: str) -> None:
    after, _ = fixed(_source("loss = self.l1(logits[mask], logits[mask] * 2)"))
    assert "torch.nn.functional.l1_loss" in after
    names: dict[str, Any] = {}
    exec(after, names)
    model = names["Model"]()
    exec(change, {"model": model})
    given = torch.randn(3, 3), torch.zeros(3, dtype=torch.long), torch.tensor([True, True, False])
    torch._dynamo.reset()
    compiled: Any = torch.compile(model, backend="eager")
    assert torch.equal(compiled(*given), model(*given))
