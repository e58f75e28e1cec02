"""Selects make new tensors: where code asks which tensor it has, or writes into one later, there is none."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.tools.fixes import fixed

HEAD = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4))
        self.register_buffer("other", torch.ones(4))
        self.first = self.scale

    def forward(self, x: torch.Tensor):
"""


def model(body: str) -> str:
    return HEAD + "\n".join(f"        {line}" for line in dedent(body).splitlines()) + "\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("y = x * 2\nz = y\nif x.sum() > 0:\n    y = y + 1\nreturn y if y is z else y * 3", "`y is z` tells"),
        ("y = x * 2\nz = y\nif x.sum() > 0:\n    y = y + 1\nif z is not y:\n    y = y * 3\nreturn y", "`z is not y`"),
        ("y = x * 2\nz = id(y)\nif x.sum() > 0:\n    y = y + 1\nreturn y, z == id(y)", "`id(y)` tells"),
        ("if x.sum() > 0:\n    self.scale = self.other\nself.scale.mul_(2)\nreturn x", "`self.scale.mul_(2)` writes"),
        ("if x.sum() > 0:\n    self.scale = self.other\nself.other[0] = 2\nreturn x", "`self.other[0]` writes"),
        ("if x.sum() > 0:\n    self.scale = self.other\nself.other += 2\nreturn x", "`self.other += 2` writes"),
        ("if x.sum() > 0:\n    self.scale = self.other\ntorch.add(x, 1, out=self.scale)\nreturn x", "writes in place"),
        (
            "if x.sum() > 0:\n    self.scale = self.other\nreturn self.scale is self.first",
            "tells one tensor from another",
        ),
    ],
)
def test_a_select_is_refused_where_a_new_tensor_would_tell(body: str, told: str) -> None:
    source = model(body)
    after, result = fixed(source)
    assert after == source
    assert any(told in (finding.declined or "") for finding in result.remaining), result.remaining


@pytest.mark.parametrize("view", ["contiguous", "detach", "float", "positive"])
@pytest.mark.parametrize("write", ["h.add_(1.0)", "h.detach().add_(1.0)"])
def test_a_view_in_a_branch_that_is_written_through_what_it_views_is_not_selected(view: str, write: str) -> None:
    branches = f"if h.sum() > 0:\n    y = h.{view}()\nelse:\n    y = h.{view}()"
    source = model(f"h = x * 1.5\n{branches}\nwith torch.no_grad():\n    {write}\nreturn y, h")
    after, result = fixed(source)
    assert after == source
    assert any("may write in place" in (finding.declined or "") for finding in result.remaining)
    assert "torch.where" in fixed(source.replace(write, "h.add(1.0)"))[0]


@pytest.mark.parametrize(
    "body",
    [
        "y = x * 2\nif x.sum() > 0:\n    y = y + 1\nreturn y if y is not None else x",
        "if x.sum() > 0:\n    self.scale = self.other\nreturn x * self.scale",
    ],
)
def test_nothing_is_refused_where_nobody_asks(body: str) -> None:
    assert "torch.where" in fixed(model(body))[0]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("y = x * 1\ny.tag = 3\nif x.sum() > 0:\n    y = y * 2\nreturn y", "`y.tag` tells"),
        ("y = x * 1\nsetattr(y, 'tag', 3)\nif x.sum() > 0:\n    y = y * 2\nreturn y", "tells one tensor"),
        ("y = x.tanh()\nif x.sum() > 0:\n    y = y * 2\nreturn y * getattr(y, 'tag', 1)", "tells one tensor"),
        ("y = x.tanh()\nif x.sum() > 0:\n    y = y * 2\nreturn y * (2 if hasattr(y, 'tag') else 1)", "tells one"),
        ("y = x * 1\nm = y < 0\nif m.any():\n    y = y.masked_fill(m, 0.0)\nreturn y, hasattr(y, 'tag')", "tells one"),
        ("w = self.w\nif x.sum() > 0:\n    w = w * 2\nreturn x * isinstance(w, nn.Parameter)", "`isinstance(w"),
    ],
)
def test_a_select_has_no_attributes_of_its_own_and_is_no_parameter(body: str, told: str) -> None:
    source = model(body).replace("self.first =", "self.w = nn.Parameter(torch.ones(4))\n        self.first =")
    after, result = fixed(source)
    assert after == source
    assert any(told in (finding.declined or "") for finding in result.remaining), result.remaining


@pytest.mark.parametrize("write", ["y.add_(1)", "y += 1", "y[0] = 5.0", "torch.relu_(y)", "torch.add(y, 1, out=y)"])
@pytest.mark.parametrize("other", ["", "else:\n    self.scale = y * 2\n"])
def test_a_variable_that_a_branch_keeps_is_not_selected_where_it_is_written(write: str, other: str) -> None:
    source = model(f"y = x.detach() * 1\nif x.sum() > 0:\n    self.scale = y\n{other}{write}\nreturn self.scale + y")
    assert fixed(source)[0] == source


def test_a_parameter_stays_one() -> None:
    source = model("if x.sum() > 0:\n    self.w = self.first\nelse:\n    self.w = self.w\nreturn self.w * x")
    source = source.replace("self.first =", "self.w = nn.Parameter(torch.ones(4))\n        self.first =")
    assert fixed(source)[0] == source


@pytest.mark.parametrize(
    "body",
    [
        "m = x < 0\nwith torch.no_grad():\n    if m.any():\n        x = x.masked_fill(m, 0.0)\nreturn x",
        "m = self.scale\nwith torch.no_grad():\n    if not torch.all(m == 1):\n        x = x * m\nreturn x",
    ],
)
def test_what_a_branch_leaves_alone_keeps_its_graph(body: str) -> None:
    assert "and not x.requires_grad" in fixed(model(body))[0]


_SELECT = "y = x.tanh()\nif x.sum() > 0:\n    y = y * 2\n"


@pytest.mark.parametrize(
    "told",
    [
        "held = [y]\nreturn y * (3 if held[0] is x else 1)",
        "a, b = y, x\nreturn y * (3 if a is not b else 1)",
        "self.kept = y\nreturn y * (3 if self.kept is x else 1)",
        "return y * (3 if any(each is x for each in (y,)) else 1)",
        "held = []\nheld.append(y)\nfor each in held:\n    if each is x:\n        return y\nreturn x",
        "return y * len({x, y})",
        "known = {x: 2}\nreturn y * (2 if y in known else 1)",
        "return y * [id(each) for each in (x, y)].count(id(x))",
        "return y * (3 if is_same(y, x) else 1)",
        "return y * (3 if first_is([y], x) else 1)",
    ],
)
def test_whoever_has_it_in_a_list_or_gets_it_may_ask_which_tensor_it_is(told: str) -> None:
    asks = (
        "def is_same(a, b):\n    return a is b\n\n\ndef first_is(some, b):\n    return some[0] is b\n\n\nclass Model("
    )
    source = model(_SELECT + told).replace("class Model(", asks)
    after, result = fixed(source)
    assert after == source
    assert any("tells one tensor" in (finding.declined or "") for finding in result.remaining), result.remaining


def test_who_asks_which_tensor_something_else_is_hinders_nothing() -> None:
    told = "held = [x, y * 1]\nsame = held[0] is self.first or id(x) in {id(each) for each in (x, self.scale)}"
    assert "torch.where" in fixed(model(f"{_SELECT}{told.replace('y * 1', 'x')}\nreturn y, same"))[0]


@pytest.mark.parametrize("told", ["held = [z]\nreturn held[0] is y", "return len({y, z})"])
def test_callers_may_have_a_result_in_a_list_and_ask(told: str) -> None:
    source = model("y = x.tanh()\nz = self.part(y)\n" + told)
    part = (
        "    def part(self, y: torch.Tensor):\n        if y.sum() > 0:\n            return y * 2\n        return y\n\n"
    )
    source = source.replace("    def forward(", part + "    def forward(")
    assert fixed(source)[0] == source
