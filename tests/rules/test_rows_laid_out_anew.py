"""Rows of unknown number that are laid out with another width, which Inductor computes wrongly (GM802)."""

from __future__ import annotations

import pytest
import torch

from tests.rules.unbacked_models import CODE, model
from tests.tools.fixes import declined, fixed
from tests.tools.subject import forget, load, register

GIVEN = (torch.arange(48.0).view(6, 8), torch.tensor([True, False, True, True, False, True]), torch.arange(6))


def _as_inductor_computes(source: str) -> tuple[torch.Tensor, torch.Tensor]:
    """What the model gives compiled and in eager mode."""
    registered = register(source)
    try:
        subject = load(registered).Model()
        torch._dynamo.reset()
        return torch.compile(subject)(*GIVEN), subject(*GIVEN)  # type: ignore[no-untyped-call]
    finally:
        forget(registered)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("layout", "condition"),
    [
        ("x[mask].view(-1, 2)", "x.shape[-1] == 2"),
        ("x[mask].reshape(-1, 8)", "x.shape[-1] == 8"),
        ("torch.reshape(x[mask], (-1, 2))", "x.shape[-1] == 2"),
        ("x[mask].view(-1, x.shape[-1])", None),
        ("x[mask].view(-1)", None),
    ],
)
def test_rows_keep_their_width_or_the_graph_breaks(layout: str, condition: str | None) -> None:
    after, _ = fixed(model(f"return 2 * {layout}"), **CODE)
    assert "_places_in_graph(" in after
    assert (condition is None) or condition in after
    assert torch.equal(*_as_inductor_computes(after))


@pytest.mark.parametrize(
    "lines",
    [
        ("rows = x[mask] * 2", "return rows.view(-1, 2)"),
        ("rows = x[mask]", "rows = torch.cat([rows, rows], 1)", "return rows.view(-1, 8)"),
        ("rows = x[mask]", "return rows.view(-1, 4, 2)"),
        ("n = int(lengths.max())", "return torch.zeros(n, 8).view(-1, 2) + x.sum()"),
    ],
)
def test_where_nobody_can_ask_for_the_width_nothing_is_written(lines: tuple[str, ...]) -> None:
    declined(model(*lines), "Inductor computes wrongly", select=("GM802",), opaque=True)


def test_the_first_size_may_be_how_many_there_are() -> None:
    after, _ = fixed(model("rows = x[mask]", "return rows.view(rows.shape[0], 4, 2).flatten(0, 1)"), **CODE)
    assert torch.equal(*_as_inductor_computes(after))


def test_a_function_may_lay_them_out() -> None:
    function = "def wide(rows):\n    return rows.view(-1, 2)\n\n\nclass Model"
    source = model("return wide(x[mask]).sum(1)").replace("class Model", function)
    declined(source, "`rows.view(-1, 2)` may give the rows another width", select=("GM802",), opaque=True)
    after, _ = fixed(source.replace("view(-1, 2)", "view(len(rows), 4, 2)"), **CODE)
    assert torch.equal(*_as_inductor_computes(after))


def test_one_of_so_many_is_picked_outside_of_the_graph() -> None:
    source = model("return 2 * x[mask].view(2, -1, x.size(-1))[:, -1]")
    declined(source, "picks one of so many", select=("GM802",), opaque=True)
    after, _ = fixed(source.replace("[:, -1]", "[:, :1]").replace("2 * x", "x"), **CODE)
    assert "_places_in_graph(mask)" in after
