"""GM113: a loop that leaves elements out of a list, and the mean of the others."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_LOSS = '''
from itertools import filterfalse

import torch
import torch.nn.functional as F
from torch import nn

seen = []


def isnan(x):
    return x != x


def mean(l, ignore_nan=False, empty=0):
    """nanmean compatible with generators."""
    l = iter(l)
    if ignore_nan:
        l = filterfalse(isnan, l)
    try:
        n = 1
        acc = next(l)
    except StopIteration:
        if empty == "raise":
            raise ValueError("Empty mean")
        return empty
    for n, v in enumerate(l, 2):
        {adds}
    if n == 1:
        return acc
    return acc / n


def slopes(labels):
    count = len(labels)
    total = labels.sum()
    inside = total - labels.float().cumsum(0)
    outside = total + (1 - labels).float().cumsum(0)
    made = 1.0 - inside / outside
    if count > 1:
        made[1:count] = made[1:count] - made[0:-1]
    return made


class Model(nn.Module):
    def forward(self, x, labels, classes="present"):
        numbers = list(range(x.size(1))) if classes in ["all", "present"] else classes
        {start}
        for c in numbers:
            here = (labels == c).float()
            if classes == "present" and here.sum() == 0:
                continue
            errors = (here - x[:, c]).abs() / here.sum().sqrt()
            errors, order = torch.sort(errors, 0, descending=True)
            order = order.data
            {work}
            losses.append({element})
        return {result}
'''
_USUAL = {
    "adds": "acc += v",
    "start": "losses = []",
    "work": "here = here[order]",
    "element": "torch.dot(errors, slopes(here))",
    "result": "mean(losses)",
}
_X = "torch.tensor([[0.25, 0.5, 0.25], [0.125, 0.75, 0.125], [0.5, 0.25, 0.25]])"
_INPUTS = [
    f"({_X}, torch.tensor([0, 1, 1]))",
    f"({_X}, torch.tensor([0, 1, 2]))",
    f"({_X}, torch.tensor([2, 2, 2]))",
]


def model(**changes: str) -> str:
    source = _LOSS
    for name, text in {**_USUAL, **changes}.items():
        source = source.replace(f"{{{name}}}", text)
    return source


def test_the_mean_of_losses_of_lovasz_is_that_of_the_classes_that_occur() -> None:
    before = model()
    after, result = fixed(before, unsafe_fixes=True)
    assert "_mean_of_kept" in after
    assert not result.remaining
    behaves(before, after, _INPUTS)
    # Without a member of its class an element is infinite, and its gradient nan.
    compiles(after, _INPUTS, scenarios=[Scenario(True, "leaves"), Scenario(True, "inner", "one nan")])
    compiles(after, _INPUTS[:1], scenarios=[Scenario(False, "off", "float16")])


@pytest.mark.parametrize(
    ("changes", "call"),
    [
        ({}, f"({_X}[:0], torch.zeros(0))"),
        ({}, f"({_X}, torch.tensor([0, 1, 1]), [0, 1])"),
        ({}, f"({_X}, [0, 1, 1])"),
        ({"element": "errors"}, _INPUTS[0]),
        ({"result": "torch.stack(losses).mean()"}, f"({_X}, torch.tensor([7, 7, 7]))"),  # an empty list raises
    ],
)
def test_what_is_asked_leaves_the_loop_to_the_author(changes: dict[str, str], call: str) -> None:
    after, _ = fixed(model(**changes), unsafe_fixes=True)
    assert "_mean_of_kept" in after
    compiles(after, [call], strict=False)


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"adds": "acc = acc - v"}, "is not returned right behind the loop"),
        ({"result": "mean(losses, True)"}, "is not returned right behind the loop"),
        ({"result": "torch.stack(losses).mean(0)"}, "is not returned right behind the loop"),
        ({"result": "torch.stack(losses + losses).mean()"}, "is not returned right behind the loop"),
        ({"start": "losses = [x.sum()]"}, "is empty before the loop"),
        ({"start": "losses = []\n        seen.append(losses)"}, "is empty before the loop"),
        ({"start": "losses = seen"}, "is empty before the loop"),
        ({"work": "here = here[labels]"}, "may do more than compute"),
        ({"work": "x.mul_(2)"}, "may do more than compute"),
        ({"work": "self.last = here"}, "may do more than compute"),
        ({"work": "labels[0] = c"}, "may do more than compute"),
        ({"work": "here = F.dropout(here)"}, "may do more than compute"),
        ({"work": "here = here * len(losses)"}, "while it fills it"),
        ({"element": "F.cross_entropy(x, labels)"}, "may do more than compute"),
        ({"start": "losses = []\n        seen.append(lambda: order)"}, "may be read by another function"),
        ({"element": "seen.pop()"}, "may do more than compute"),
    ],
)
def test_other_loops_are_left_alone(changes: dict[str, str], because: str) -> None:
    declined(model(**changes), because, select=("GM113",))
