"""`fix --trace --opaque`: operators that are given what is as long as the data says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluation.recorded_fixes import Recorded, calls_of, model_with, one_graph

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
_CHOSEN = """
mask = x.abs() >= 0
places = mask.nonzero()
others = (~mask).nonzero(){between}
rows = places[:, 0].unique()
parts = [torch.cat([places[places[:, 0] == row], others[others[:, 0] == row]]) for row in rows]
chosen = torch.cat(parts)
return x[chosen[:, 0], chosen[:, 1]].view(x.shape) * 2
"""


def _recorded(folder: Path, between: str = "") -> Recorded:
    source = model_with(_CHOSEN.format(between=between), init="self.seen = 0")
    return Recorded(folder, source, calls_of((3, 4), (5, 4), (7, 4)), gradients=False)


def test_what_makes_a_length_of_the_data_is_taken_in_with_what_asks_for_it(tmp_path: Path) -> None:
    """A header that asks for such a length breaks the graph; of what goes in before, the sizes are known."""
    found = _recorded(tmp_path)
    assert found.after.count("_operator_fits(") == 2, found.after  # one operator: its definition, and its header
    assert "_in_graph" not in found.after
    assert "places.shape" not in found.after
    x = torch.randn(6, 4)
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), x), found.model()(x))


def test_a_call_with_another_length_raises(tmp_path: Path) -> None:
    found = _recorded(tmp_path)
    x = torch.randn(6, 4)
    x[0] = torch.nan  # no place of this row is found by the mask
    with torch.no_grad(), pytest.raises(RuntimeError, match="in the recorded run"):
        one_graph(found.model(), x)


def test_a_length_stays_where_what_makes_it_cannot_be_taken_in(tmp_path: Path) -> None:
    found = _recorded(tmp_path, "\nself.seen = 1")
    assert "known from 3 calls of a recorded run" in found.after, found.reasons
    x = torch.randn(6, 4)
    with torch.no_grad():
        assert torch.equal(torch.compile(found.model(), backend="eager")(x), found.model()(x))


_COUNTED = """
@torch.compiler.disable
def counted(sizes):
    return torch.arange(int(sizes.sum()))
@torch.compiler.disable
def outside(x, places):
    return x * 2 + len(places)
"""


def test_what_broke_the_graph_and_gives_a_length_of_the_data_is_taken_in(tmp_path: Path) -> None:
    """No search of torch: in the graph the length would be a symbol of the first operator."""
    source = model_with("places = counted(sizes)\ny = outside(x, places)\nreturn y + 1", _COUNTED)
    source = source.replace("x, *rest)", "x, sizes)")
    calls = [(torch.ones(3, 4), torch.tensor([1, 2])), (torch.ones(5, 4), torch.tensor([2, 3]))]
    found = Recorded(tmp_path, source, lambda: calls, gradients=False)
    x, sizes = torch.randn(6, 4), torch.tensor([2, 4])
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), x, sizes), found.model()(x, sizes)), found.after


def test_a_length_that_inductor_cannot_compile_is_left_alone(tmp_path: Path) -> None:
    body = """
indices = torch.arange(sizes.max())
table = (indices.unsqueeze(0) < sizes.unsqueeze(1)).float()
return torch.matmul(table.unsqueeze(1), table.unsqueeze(2)) + x.sum()"""
    source = model_with(body).replace("x, *rest)", "x, sizes)")
    calls = [(torch.ones(2), torch.tensor([1, 2])), (torch.ones(2), torch.tensor([2, 5]))]
    found = Recorded(tmp_path, source, lambda: calls, gradients=False)
    assert found.after == found.before, found.after
    assert "Inductor cannot compile" in found.reasons, found.reasons
