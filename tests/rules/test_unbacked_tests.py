"""What numbers and rows of unknown size may decide in the graph, and what is left alone (GM802)."""

from __future__ import annotations

import pytest

from tests.rules.unbacked_models import CODE, INPUTS, NOTHING, TRAINING, model
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario


@pytest.mark.parametrize(
    "lines",
    [
        ("count = int(lengths.max())", "for i in range(count):", "    x = x + i", "return x"),
        ("count = int(lengths.max())", "return x + 1 if count > 2 else x"),
        ("self.count = int(lengths.max())", "return x"),
        ("return int(lengths.max())",),
        ("rows = x[mask]", "for row in rows:", "    x = x + row", "return x"),
        ("rows = x[mask]", "if mask is not None and len(rows):", "    x = x + rows.sum()", "return x"),
    ],
    ids=["range", "test", "kept", "returned", "rows", "length"],
)
def test_what_decides_what_runs_next_is_left_alone(lines: tuple[str, ...]) -> None:
    assert not [each for each in checked(model(*lines), **CODE).findings if each.edit is not None]


def test_a_test_for_none_or_of_the_dtype_decides_nothing() -> None:
    source = model(
        "rows = x[mask]",
        "if rows is not None and rows.dtype == x.dtype:",
        "    x = x + rows.cumsum(0).sum()",
        "return x",
    )
    compiles(fixed(source, **CODE)[0], INPUTS)


@pytest.mark.parametrize(
    "body",
    [
        "index = int(torch.empty(1).uniform_(0.0, 3.0).item())\n        return x * self.scales[index]",
        "return x * self.scales[int(x.argmax())]",
    ],
)
def test_a_number_that_looks_something_up_in_a_list_is_read_as_before(body: str) -> None:
    source = f"""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [0.5, 1.0, 2.0]

    def forward(self, x: torch.Tensor):
        {body}
"""
    declined(source, "may look the number up in a list", opaque=True)


_ASKED_IN_TRAINING = model(
    "rows = x[mask]",
    "if self.training:",
    "    if len(rows) > 1:",
    "        x = x + rows.sum()",
    "return x + rows.sum(0)",
)
_ASKED_OTHERWISE = _ASKED_IN_TRAINING.replace(
    "if self.training:", "if not self.training:\n            x = x * 2\n        else:"
)
_ASKED_OF_A_LIMIT = model(
    "rows = x[mask]",
    "if limit is not None and len(rows) > limit:",
    "    rows = rows[:limit]",
    "return x + rows.sum(0)",
).replace("lengths: torch.LongTensor", "lengths: torch.LongTensor, limit=None")


@pytest.mark.parametrize("source", [_ASKED_IN_TRAINING, _ASKED_OTHERWISE, _ASKED_OF_A_LIMIT])
def test_what_python_passes_by_decides_nothing(source: str) -> None:
    after, _ = fixed(source, **CODE)
    behaves(source, after, [*INPUTS, NOTHING], scenarios=FEW_SCENARIOS)
    compiles(after, [*INPUTS, NOTHING], scenarios=[Scenario(False, "off")])
    compiles(after, [*INPUTS, NOTHING], scenarios=[Scenario(True, "leaves")], strict=False)


def test_a_limit_that_is_given_breaks_the_graph_as_before() -> None:
    after, _ = fixed(_ASKED_OF_A_LIMIT, **CODE)
    assert "limit is None" in after
    compiles(after, [f"{each}, 1" for each in INPUTS], strict=False)


@pytest.mark.parametrize(
    "lines",
    [
        ("rows = x[mask]", "given = None if len(x) > 5 else given", "if given is not None and len(rows) > 1:"),
        ("rows = x[mask]", "self.quiet = given", "if self.quiet is None and len(rows) > 1:"),
        ("rows = x[mask]", "if given.dim() and len(rows) > 1:"),
        ("rows = x[mask]", "if len(rows) > 1 and given is None:"),
        ("rows = x[mask]", "if given is None or len(rows) > 1:"),
    ],
    ids=["bound anew", "stored", "may raise", "asked behind", "or"],
)
def test_what_may_change_before_it_is_asked_passes_nothing_by(lines: tuple[str, ...]) -> None:
    source = model(*lines, "    x = x + rows.sum()", "return x")
    assert not [each for each in checked(source, **CODE).findings if each.edit is not None]


def test_a_mask_in_another_layout_is_a_mask() -> None:
    source = model(
        "chosen = x > 0",
        "chosen = chosen.view(-1)",
        "rows = x.view(-1)[chosen]",
        "near = mask & (lengths > 1)",
        "both = near.clone()",
        "further = (2 * x)[both]",
        "more = []",
        "for i in range(len(x)):",
        "    more.append(x[i][(x > 1)[i]].sin().sum())",
        "return x + rows.sin().sum() + further.sin().sum() + sum(more)",
    )
    after, _ = fixed(source, **CODE)
    assert sum("_places_in_graph(" in line for line in after.splitlines()) == 4
    compiles(after, [*INPUTS, NOTHING], scenarios=TRAINING)


def test_a_name_that_also_holds_places_is_asked_while_tracing() -> None:
    source = model(
        "chosen = x[:, 0] > 0", "if x.shape[1] > 3:", "    chosen = lengths - 1", "return x[chosen].sum(0) + x"
    )
    compiles(
        fixed(source, **CODE)[0], ["torch.randn(3, 4), torch.ones(3).bool(), torch.tensor([2, 1, 3])"], strict=False
    )


def test_a_range_in_steps_between_two_numbers_is_left_alone() -> None:
    """How long it is follows from a quotient of both, and the graph breaks wherever that is asked for."""
    source = model(
        "first, last = lengths[0] - lengths[1], lengths[0] - lengths[2]",
        "places = torch.arange(first, last - 1, -2, dtype=torch.long)",
        "return x + places.sum()",
    )
    found = checked(source, **CODE).findings
    assert not [each for each in found if each.edit is not None]
    assert [each for each in checked(source, opaque=True).findings if each.declined]


@pytest.mark.parametrize(
    "lines",
    [
        ("a, b = lengths[0], lengths[1]", "return x[a : a + 1, b : b + 2].sum() + x"),
        ("a = int(lengths[0])", "b = int(lengths[1])", "return x[a : a + 1, b:].sum() + x"),
    ],
)
def test_a_part_that_begins_at_several_numbers_is_left_alone(lines: tuple[str, ...]) -> None:
    """torch 2.13 ends compilation with an error there, where one such number or several ends are fine."""
    result = checked(model(*lines), **CODE)
    assert not any(each.edit for each in result.findings)
    ends = tuple(
        line.replace("a : a + 1, b : b + 2", ": a, : b").replace("a : a + 1, b:", ": a, : b") for line in lines
    )
    after, ended = fixed(model(*ends), **CODE)
    assert ended.fixes
    compiles(after, INPUTS, scenarios=[Scenario(False, "off")])


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        (("rows = self.made()[mask]", "return rows.cumsum(0).sum() + x"), "its gradient cannot be compiled"),
        (("rows = x[x > 0]", "return torch.logsumexp(rows, 0) + x"), "the graph breaks there"),
        (("a, b = x[x > 0].chunk(2)", "return a.sum() + b.sum() + x"), "the graph breaks there"),
    ],
)
def test_what_asks_how_many_rows_there_are_is_left_alone(lines: tuple[str, ...], because: str) -> None:
    findings = checked(model(*lines), **CODE).findings
    assert [each for each in findings if because in (each.declined or "")], findings


@pytest.mark.parametrize(
    "line",
    [
        "rows.exp().std()",
        "rows.prod()",
        "rows.cumsum(0).sum()",
        "rows.mean().prod()",
        "torch.norm(rows)",
        "rows.chunk(2, dim=1)[0].norm()",
    ],
)
def test_a_gradient_that_cannot_be_compiled_is_asked_for(line: str) -> None:
    source = model("rows = x[x[:, 0] > 0]", f"return {line} + x")
    after, _ = fixed(source, **CODE)
    asks = "not (torch.is_grad_enabled() and x.requires_grad)" in after
    assert asks is ("mean" not in line and "norm" not in line)
    compiles(after, INPUTS)
    both, _ = fixed(source, opaque=True, select=("GM8",))
    assert ("_places_in_graph" in both) is not asks  # an operator has a gradient


_LISTED = """
import torch
from torch import nn


def total(rows):
    found = 0
    for each in rows.tolist():
        found = found + each
    return found


class Part(nn.Module):
    def forward(self, x, rows):
        return x + total(rows)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        rows = mask.nonzero()[:, 0]
        {}
"""


@pytest.mark.parametrize(
    "last",
    [
        "found = (rows[1:] - rows[:-1]).tolist()\n        return x + 1 if found[0] > 3 else x",
        "return x + total(rows)",
        "return self.part(x, rows=rows)",
    ],
)
def test_rows_that_are_listed_are_left_alone(last: str) -> None:
    """Dynamo does not break the graph at such a list of whole numbers: compiled code ended with an error."""
    source = _LISTED.format(last)
    found = checked(source, **CODE).findings
    assert not [each for each in found if each.edit is not None and "nonzero" in each.message], found
    assert any("torch.compile ends with an error there" in (each.declined or "") for each in found), found
