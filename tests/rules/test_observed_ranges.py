"""Ranges that a module observes: buffers that its constructor shifts, and moving averages that begin with a batch."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario

HEAD = """
import torch
from torch import nn


class Model(nn.Module):
    low: torch.Tensor

    def __init__(self, momentum=0.5):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))
        self.low -= 1e-5
        self.high += 1e-5

    def forward(self, x: torch.Tensor):
        low, high = x.detach().min(), x.detach().max()
"""
AVERAGE = """
if self.low.min() > -1e-4 and self.high.max() < 1e-4:
    self.low = self.low + low
    self.high = self.high + high
elif self.momentum == 1:
    self.low = torch.min(self.low, low)
    self.high = torch.max(self.high, high)
else:
    self.low = self.low * self.momentum + low * (1 - self.momentum)
    self.high = self.high * self.momentum + high * (1 - self.momentum)
return (x - self.low) / (self.high - self.low)
"""
INPUTS = ["torch.randn(2, 4)", "torch.randn(2, 4) * 3 + 1"]


def model(body: str, head: str = HEAD) -> str:
    return head + "\n".join(f"        {line}" for line in dedent(body).strip().splitlines()) + "\n"


@pytest.mark.parametrize("momentum", ["0.5", "1"])
def test_a_moving_average_that_begins_with_the_first_batch_is_one_graph(momentum: str) -> None:
    source = model(AVERAGE).replace("momentum=0.5", f"momentum={momentum}")
    after, result = fixed(source)
    assert not result.remaining
    behaves(source, after, INPUTS)
    compiles(after, INPUTS)


def test_what_is_asked_is_asked_before_the_first_attribute_is_written() -> None:
    start, end = AVERAGE.index("elif"), AVERAGE.index("else:")
    source = model(AVERAGE[:start] + AVERAGE[end:])
    after, _ = fixed(source)
    asked = after.index("first = (self.low.min() > -1e-4) & (self.high.max() < 1e-4)")
    assert asked < after.index("self.low = torch.where(first, low_2, other_low)")
    # The first batch moves `low` out of the range, so that a second question would be answered otherwise.
    compiles(after, ["torch.randn(2, 4) + 5"])


def test_a_buffer_that_is_annotated_and_shifted_is_a_tensor() -> None:
    source = model("if self.low.min() > 0:\n    x = x + 1\nreturn x")
    after, result = fixed(source)
    assert not result.remaining
    assert "isinstance(self.low, torch.Tensor)" in after


@pytest.mark.parametrize(
    ("made", "annotation", "known"),
    [
        ("self.low = given.values()", "torch.Tensor", True),
        ("self.low = given", "torch.Tensor | None", True),
        ("self.low = given", "list[torch.Tensor]", False),
        ("self.low = given.values()", "object", False),
    ],
)
def test_an_annotation_of_the_class_is_the_way_out_that_findings_name(made: str, annotation: str, known: bool) -> None:
    head = HEAD.replace("momentum=0.5", "momentum, given").replace("low: torch.Tensor", f"low: {annotation}")
    head = head.replace('self.register_buffer("low", torch.zeros(1))', made).replace("self.low -= 1e-5", "pass")
    found = checked(model("if self.low.min() > 0:\n    x = x + 1\nreturn x", head)).findings
    assert ([each.code for each in found] == ["GM101"]) is known, found


def test_a_part_of_the_test_that_eager_mode_skips_is_asked_for_its_elements() -> None:
    after, _ = fixed(model("if self.low.min() > 0 and self.high.max() < 1:\n    x = x + 1\nreturn x"))
    assert "and self.high.numel() > 0" in after
    assert "and self.high.is_floating_point()" in after


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (AVERAGE.replace("self.momentum == 1", "self.momentum.item() == 1"), "cannot be asked while tracing"),
        (AVERAGE.replace("self.momentum == 1", "self.observe()"), "may have side effects"),
        (AVERAGE.replace("torch.max(self.high, high)", "self.low"), "which the branch writes"),
        (AVERAGE.replace("    self.high = torch.max(self.high, high)\n", ""), "`self.high` is written in only one"),
    ],
)
def test_arms_that_may_not_be_chosen_early_are_left(body: str, told: str) -> None:
    source = model(body)
    after, result = fixed(source)
    assert after == source
    assert any(told in (finding.declined or "") for finding in result.remaining), result.remaining


@pytest.mark.parametrize("momentum", ["None", "'a'", "torch.tensor([0.25, 1.0])", "0.5j"])
def test_what_a_skipped_arm_is_computed_of_is_asked_for(momentum: str) -> None:
    source = model(AVERAGE).replace("super().__init__()", f"super().__init__()\n        self.given = {momentum}")
    source = source.replace(
        "low, high = x", "if not self.training:\n            self.momentum = self.given\n        low, high = x"
    )
    after, _ = fixed(source)
    assert "isinstance(self.momentum, (int, float))" in after
    # The first batch is not averaged, so that nothing reads the momentum.
    compiles(after, ["torch.randn(2, 4)"], scenarios=[Scenario(False, "off")], strict=False)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (AVERAGE.replace("self.low + low", "self.low + x.detach()[2].min()"), "may raise"),
        (AVERAGE.replace("torch.min(self.low, low)", "torch.min(self.low, x.detach()[3].min())"), "may not fit"),
        (AVERAGE.replace("low * (1 - self.momentum)", "low * (1 / self.momentum)", 1), "may not fit"),
        (AVERAGE.replace("self.low + low", "low.view(1, 1)"), "may raise"),
    ],
)
def test_an_arm_that_may_raise_is_left(body: str, told: str) -> None:
    source = model(body)
    after, result = fixed(source)
    assert after == source
    assert any(told in (finding.declined or "") for finding in result.remaining), result.remaining


def test_arms_of_another_shape_are_not_computed() -> None:
    body = AVERAGE.replace("self.low = self.low + low", "self.low = low").replace(
        "self.high = self.high + high", "self.high = high"
    )
    source = model(body).replace("x.detach().min(), x.detach().max()", "x.detach().amin(0), x.detach().amax(0)")
    source = source.replace("zeros(1)", "zeros(2)")
    after, _ = fixed(source)
    assert "self.low.shape == low.shape" in after
    # Eager mode replaces two numbers by four, and never adds them.
    compiles(after, ["torch.randn(2, 4)"], scenarios=[Scenario(False, "off")], strict=False)


def test_a_tensor_that_is_kept_and_written_elsewhere_is_not_selected() -> None:
    kept = AVERAGE.replace("self.low = torch.min(self.low, low)", "self.low = self.first").replace(
        "return", "self.first.add_(1)\nreturn"
    )
    head = HEAD.replace("        self.high += 1e-5\n", "        self.first = self.low\n")
    source = model(kept, head)
    after, result = fixed(source)
    assert after == source
    assert any("writes in place" in (finding.declined or "") for finding in result.remaining), result.remaining
