"""GM105: methods that compiled code calls although eager mode may skip the branch that calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, fixed_among
from tests.tools.observe import Scenario

_GROWING = """
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(3), persistent=False)
        self.longest, self.factor, self.calls = 3, 1.0, 0

    def scaled(self, length: torch.Tensor):
        {body}
        return torch.ones(3) * length, {factor}

    def forward(self, x: torch.Tensor):
        length = torch.max(x)
        if length > self.longest:
            scale, self.factor = self.scaled(length)
            self.register_buffer("scale", scale, persistent=False)
            self.longest = length
        return x * self.scale * self.factor
"""
_CACHED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(3), persistent=False)
        self.short, self.base = self.scale, 2.0

    def build(self, factor: float) -> torch.Tensor:
        {body}

    def forward(self, x: torch.Tensor):
        longest = torch.max(x)
        if longest > 3:
            if not hasattr(self, "long"):
                self.long = self.build({given})
            self.register_buffer("scale", self.long, persistent=False)
        else:
            self.register_buffer("scale", self.short, persistent=False)
        {after}
        return x * self.scale
"""
_INPUTS = ["torch.tensor([1.0, 2.0, -3.0])", "torch.tensor([1.0, 5.0, 2.0])", "torch.tensor([4.0, 1.0, 2.0])"]
_SCENARIOS = (Scenario(False, "off"), Scenario(True, "inner"))


def growing(body: str = "pass", factor: str = "1.0") -> str:
    return _GROWING.format(body=body, factor=factor)


def cached(body: str = "return torch.full((3,), factor)", given: str = "2.0", after: str = "pass") -> str:
    return _CACHED.format(body=body, given=given, after=after)


@pytest.mark.parametrize("factor", ["2.0", "self.factor + 1.0", "1", "length"])
def test_a_number_is_not_written_before_its_time(factor: str) -> None:
    before = growing(factor=factor)
    after, _ = fixed(before)
    assert "(type(factor), factor) == (type(self.factor), self.factor)" in after
    behaves(before, after, _INPUTS, scenarios=_SCENARIOS)
    compiles(after, _INPUTS, scenarios=_SCENARIOS, state=False, strict=False)


def test_a_number_that_is_not_there_yet_is_no_error() -> None:
    after, _ = fixed(growing().replace(", self.factor,", ", self.other,"))
    compiles(after, ["torch.tensor([1.0, 5.0, 2.0])"], scenarios=_SCENARIOS, state=False, strict=False)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("self.calls += 1", "changes `self.calls`"),
        ("torch.manual_seed(0)", "draws random numbers"),
        ("length = length + torch.rand([])", "draws random numbers"),
        ("assert length > 3", "assert length > 3"),
        ("length = length.item()", "length.item()"),
        ("length = length * torch.equal(length, length)", "torch.equal(length, length)"),
        ("length.add_(1)", "writes in place"),
        ("self.kept = length", "changes `self.kept`"),
    ],
)
def test_a_method_that_does_more_than_compute_is_not_called(body: str, told: str) -> None:
    after, result = fixed(growing(body))
    assert "scale, factor =" not in after
    assert any("always call `scaled`" in (each.declined or "") for each in result.remaining), result.remaining
    assert any(told in (each.declined or "") for each in result.remaining), result.remaining


@pytest.mark.parametrize("first", ["self.longest is not None", "self.factor > 0"])
def test_a_later_condition_is_not_asked_where_an_earlier_one_does_not_hold(first: str) -> None:
    source = growing().replace("if length > self.longest:", f"if {first} and length > self.longest:")
    after, result = fixed(source)
    assert "outgrown" not in after
    assert any("nest them" in (each.declined or "") for each in result.remaining), result.remaining


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("scale, self.factor =", "scale, self.parts[0] =", "`self.parts[0]` is also written"),
        (
            'self.register_buffer("scale", scale, persistent=False)\n            ',
            'self.add_module("scale", scale)\n' + " " * 12,
            "may have side effects",
        ),
        (
            "self.longest = length\n",
            "self.longest = length\n            self.last = self.longest\n",
            "is read after the branch wrote it",
        ),
    ],
)
def test_a_branch_that_writes_in_another_way_is_left(old: str, new: str, because: str) -> None:
    first, branch = growing().split("if length > self.longest:")
    assert old in branch
    declined(f"{first}if length > self.longest:{branch.replace(old, new)}", because=because)


def test_a_method_that_a_subclass_replaces_is_not_called(tmp_path: Path) -> None:
    method = "    def scaled(self, length):\n        raise ValueError(length)\n"
    other = f"import model\n\n\nclass Other(model.Model):\n{method}"
    after, _ = fixed_among(tmp_path, growing(), {"other.py": other})
    assert "scale, factor =" not in after


def test_a_cache_of_what_stays_is_computed() -> None:
    assert "long = self.build(2.0)" in fixed(cached())[0]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (cached("return torch.full((3,), self.base)", after="self.base = self.base + 1"), "writes `base`"),
        (cached(given="self.base", after="self.base = self.base + 1"), "writes `base`"),
        (cached("self.base += 1\n        return torch.full((3,), factor)"), "always call `build`"),
    ],
)
def test_a_cache_of_what_changes_is_filled_as_before(source: str, told: str) -> None:
    after, result = fixed(source)
    assert after == source
    assert any(told in (each.declined or "") for each in result.remaining), result.remaining


@pytest.mark.parametrize(
    ("other", "fills"),
    [
        ("def widen(m):\n    m.base = 5.0\n", False),  # of whatever has such an attribute
        ("class Settings:\n    def widen(self):\n        self.base['a'] = 5.0\n", False),
        ("from model import Model\n\n\ndef widen(m: Model):\n    m.base = 5.0\n", True),
        ("import model\n\n\nclass Other(model.Model):\n    def widen(self):\n        self.part.base = 5.0\n", True),
    ],
)
def test_a_file_that_names_the_class_may_change_what_a_cache_is_made_of(
    other: str, fills: bool, tmp_path: Path
) -> None:
    source = cached("return torch.full((3,), self.base)")
    after, reasons = fixed_among(tmp_path, source, {"other.py": other})
    assert (after == source) is fills
    assert any("in other.py" in reason for reason in reasons) is fills
