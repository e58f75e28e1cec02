"""`fix --trace --opaque`: values of several kinds among the recorded calls, and of another kind in later ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.evaluation.recorded_fixes import Call, Recorded, model_with, one_graph

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]
_SCALE = """
@torch.compiler.disable
def outside(x, other):
    if isinstance(other, nn.Module):
        return x * other(x)
    return x * (2 if other is None else other)
"""
_SOMETIMES = """
if other is not None:
    k = 1
y = outside(x, other) if other is None else outside(x, k * other)
return y
"""
_WRITES = """
@torch.compiler.disable
def outside(x, other):
    return x.add_(1) * 2 if other is None else x * other
"""


class _Twice:
    """No layer, and what is asked of layers is not there."""

    def __init__(self) -> None:
        self.count = 2

    def __rmul__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.count


_LINEAR = torch.nn.Linear(4, 4, bias=False)
_ROW, _WHOLE = torch.ones(4), torch.ones(4, dtype=torch.int64)


def _recorded(folder: Path, others: list[Any], body: str = "", before: str = _SCALE, *, grad: bool = False) -> Recorded:
    forward = body or "y = outside(x, other)\nreturn y + 1"
    source = model_with(forward, before).replace("*rest", "other=None")
    return Recorded(folder, source, lambda: [*_calls(others)], gradients=grad)


def _calls(others: list[Any]) -> list[Call]:
    return [(torch.ones(3 + 2 * number, 4), other) for number, other in enumerate(others)]


def _same(found: Recorded, other: Any, *, whole: bool) -> None:
    """The compiled model gives what it gives in eager mode, in one graph or not."""
    x, model = torch.ones(4, 4), found.model()
    run = one_graph if whole else _compiled
    assert torch.equal(run(model, x, other), model(x, other))


def _compiled(model: torch.nn.Module, *call: Any) -> Any:
    """What it returns where the graph breaks, and no more than that: Dynamo does not give the function up."""
    torch.compiler.reset()
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    found = torch.compile(model, backend=backend)(*call)
    assert graphs
    return found


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("others", [[_WHOLE, _ROW], [_LINEAR, _LINEAR], [torch.nn.Tanh(), torch.nn.Tanh()]])
@pytest.mark.parametrize("later", [None, 3, 2.5, _Twice()])
def test_a_later_value_of_another_kind_takes_the_authors_path(
    tmp_path: Path, others: list[Any], later: Any, grad: bool
) -> None:
    """What the header asks of a recorded module or tensor would raise for it while tracing."""
    found = _recorded(tmp_path, others, grad=grad)
    assert "2 recorded calls" in found.reasons, found.reasons
    with torch.set_grad_enabled(grad):
        _same(found, later, whole=False)


@pytest.mark.parametrize("others", [[_ROW, None, _ROW], [_ROW, 2.5, _ROW, None], [_ROW, _ROW, torch.ones(1, 4)]])
def test_calls_of_one_kind_are_an_operator_and_others_break_as_before(tmp_path: Path, others: list[Any]) -> None:
    found = _recorded(tmp_path, others)
    assert "2 recorded calls" in found.reasons, found.reasons
    _same(found, _ROW, whole=True)
    for other in others[1:]:
        _same(found, other, whole=False)


@pytest.mark.parametrize(
    ("others", "because"),
    [
        ([_ROW, None], "`other` was constant and tensor"),
        ([_LINEAR, None, _LINEAR], "`other` was constant and object"),
        ([_ROW, None, 2.5], "`other` was constant and float and tensor"),
    ],
)
def test_too_few_calls_of_one_kind_and_objects_are_left_alone(tmp_path: Path, others: list[Any], because: str) -> None:
    """For an object the header cannot ask whether it is one as in the run."""
    found = _recorded(tmp_path, others)
    assert found.after == found.before, found.after
    assert because in found.reasons, found.reasons


@pytest.mark.parametrize(
    ("body", "before", "because"),
    [
        (_SOMETIMES, _SCALE, "`other` was constant and tensor"),
        ("y = outside(x, other)\nreturn y + 1", _WRITES, "it changed `x` in place"),
    ],
)
def test_what_calls_of_another_kind_tell_counts_for_all(tmp_path: Path, body: str, before: str, because: str) -> None:
    """The header names what it asks in each call; what one call does to its inputs, others may do as well."""
    found = _recorded(tmp_path, [_ROW, None, _ROW], body, before)
    assert found.after == found.before, found.after
    assert because in found.reasons, found.reasons


def test_a_statement_around_takes_all_calls_where_it_can(tmp_path: Path) -> None:
    body = "y = x + 0\nfor part in (None, 1.5, 2.5):\n    y = outside(y, part)\nreturn y + 1"
    found = _recorded(tmp_path, [None, None], body)
    assert "2 recorded calls" in found.reasons, found.reasons
    assert found.reasons.count("recorded calls") == 1, found.reasons
    _same(found, None, whole=True)


@pytest.mark.parametrize(("between", "taken"), [(9, True), (11, False)])
def test_a_flag_is_taken_in_with_what_stands_in_front_of_its_test(tmp_path: Path, between: int, taken: bool) -> None:
    """Twelve statements are the most of one operator: none of them is compiled."""
    lines = "\n".join(f"x = x + {number}" for number in range(between))
    body = f"flag = outside(x)\ny = x\n{lines}\nif flag:\n    y = x * 2\nreturn y + 1"
    found = _recorded(
        tmp_path, [None, None], body, "\n@torch.compiler.disable\ndef outside(x):\n    return bool(x.sum() > 0)\n"
    )
    assert (found.after != found.before) is taken, found.reasons
    if taken:
        _same(found, None, whole=True)
