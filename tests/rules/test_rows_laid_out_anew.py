"""Rows of unknown number that are laid out with another width, which Inductor computes wrongly (GM802)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.unbacked_models import CODE, model
from tests.tools.fixes import declined, fixed
from tests.tools.subject import forget, load, register

GIVEN = (torch.arange(48.0).view(6, 8), torch.tensor([True, False, True, True, False, True]), torch.arange(6))


def _is_right_under_inductor(source: str) -> bool:
    """True if compiled results of the model and their gradients are those of eager mode."""
    registered = register(source)
    try:
        subject = load(registered).Model()
        torch._dynamo.reset()
        eager, compiled = _computed(subject), _computed(torch.compile(subject))
        return all(torch.allclose(old, new) for old, new in zip(eager, compiled, strict=True))
    finally:
        forget(registered)


def _computed(subject: Any) -> tuple[torch.Tensor, ...]:
    x = GIVEN[0].clone().requires_grad_()
    result = subject(x, *GIVEN[1:])
    weights = torch.linspace(1, 2, result.numel()).view(result.shape)
    return result.detach(), *torch.autograd.grad((result * weights).sum(), x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("layout", "flat"),
    [
        ("x[mask].view(-1, 2)", True),
        ("torch.reshape(x[mask], shape=(-1, 16))", True),
        ("x[mask].view(-1, x.shape[-1])", False),
    ],
)
def test_rows_are_one_dimension_before_they_get_another_width(layout: str, flat: bool) -> None:
    after, _ = fixed(model(f"return 2 * {layout}"), **CODE)
    assert "_places_in_graph(" in after
    assert ("_places_in_graph(mask)].flatten()" in after) == flat
    assert _is_right_under_inductor(after)


@pytest.mark.parametrize(
    "lines",
    [
        ("rows = x[mask] * 2", "return rows.view(-1, 2)"),
        ("rows = x[mask]", "rows = torch.cat([rows, rows], 1)", "return rows.view(-1, 8)"),
        ("rows = x[mask]", "wide = torch.cat([rows, rows], 1)", "return wide.view(-1, x.shape[-1])"),
        ("rows = x[mask]", "return rows.view(-1, 4, 2)"),
        ("rows = x[mask]", "n = 4 * len(rows)", "return (rows * 2).view(n, 2)"),
        ("rows = x[mask]", "wanted = (-1, 2)", "return (rows * 2).view(*wanted)"),
        ("rows = x[mask]", "return rows.t().reshape(2, -1)"),
        ("n = int(lengths.max())", "return torch.zeros(n, 8).view(-1, 2) + x.sum()"),
        ("n = int(lengths.max())", "rows = (x[:n] * 2).sin()", "return rows.view(-1, 2)"),
    ],
)
def test_where_they_have_a_name_nothing_is_written(lines: tuple[str, ...]) -> None:
    because = "Inductor computes wrongly unless `.flatten()` stands in front"
    declined(model(*lines), because, select=("GM802",), opaque=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("layout", ["rows.flatten().view(1, -1, 2)", "rows.view(-1, rows.shape[-1])"])
def test_the_way_out_is_one(layout: str) -> None:
    after, _ = fixed(model("rows = (2 * x)[mask].sin()", f"return {layout} + 1"), **CODE)
    assert "_places_in_graph(" in after
    assert _is_right_under_inductor(after)


@pytest.mark.parametrize(
    "layout", ["rows.view(*x.shape[:-1], -1, 2)", "rows.view(b * h, -1)", "rows.reshape(b * h, h, 2)"]
)
def test_sizes_that_come_out_even_are_no_obstacle(layout: str) -> None:
    lines = ("b, h = x.size(0), 4", "n = int(lengths.max())", "rows = (x[:n] * 2).sin()")
    after, _ = fixed(model(*lines, f"return {layout}"), **CODE)
    assert "_integer_in_graph(" in after or "_number_in_graph(" in after


def test_the_first_size_may_be_how_many_there_are() -> None:
    after, _ = fixed(model("rows = x[mask]", "return rows.view(rows.shape[0], 4, 2).flatten(0, 1)"), **CODE)
    assert _is_right_under_inductor(after)


def test_a_function_may_lay_them_out() -> None:
    function = "def wide(rows):\n    return rows.view(-1, 2)\n\n\nclass Model"
    source = model("return wide(x[mask]).sum(1)").replace("class Model", function)
    declined(source, "`rows.view(-1, 2)` may give the rows another width", select=("GM802",), opaque=True)
    after, _ = fixed(source.replace("view(-1, 2)", "view(len(rows), 4, 2)"), **CODE)
    assert _is_right_under_inductor(after)


def test_one_of_so_many_is_picked_outside_of_the_graph() -> None:
    source = model("return 2 * x[mask].view(2, -1, x.size(-1))[:, -1]")
    declined(source, "picks one of so many", select=("GM802",), opaque=True)
    after, _ = fixed(source.replace("[:, -1]", "[:, :1]").replace("2 * x", "x"), **CODE)
    assert "_places_in_graph(mask)" in after


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize("width", ["8", "2", "self.sizes().width"])
def test_a_name_that_holds_other_tensors_elsewhere_keeps_its_width(width: str) -> None:
    """Where it does not, the graph breaks as before."""
    test = ("rows = x * 2", "if mask is not None:", "    rows = x[mask].contiguous()", "else:")
    source = model(*test, "    rows = rows.contiguous()", f"return rows.view(-1, {width})")
    own = "    def sizes(self):\n        return self\n\n    width = 8\n\n    def forward"
    after, _ = fixed(source.replace("    def forward", own, 1), **CODE)
    assert f"x.shape[-1] == {width}" in after
    assert _is_right_under_inductor(after)
    doubled = model(*test[:3], "    rows = torch.cat([rows, rows], 1)", f"return rows.view(-1, {width})")
    declined(doubled, "Inductor computes wrongly", **CODE)
