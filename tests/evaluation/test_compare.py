"""Exact and close comparison of whatever a model may return."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from graphmend_evaluation.compare import (
    Leaves,
    close_difference,
    exact_differences,
    sequence_difference,
    storages,
    take_apart,
)

Pair = namedtuple("Pair", ["left", "right"])
NAN_WITH_PAYLOAD = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)


@dataclass
class Output:
    logits: torch.Tensor
    mask: torch.Tensor | None


class Cache:
    """An object as models return it: neither container nor dataclass."""

    def __init__(self, *layers: torch.Tensor) -> None:
        self.layers = list(layers)
        self.seen = len(layers)
        self.owner = self


def differences(before: Any, after: Any) -> list[str]:
    return exact_differences(take_apart(before), take_apart(after))


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        float("nan"),
        "text",
        torch.tensor(1.5),
        torch.tensor([float("nan"), float("inf"), -0.0]),
        torch.zeros(0, 3),
        torch.ones(2, 3, dtype=torch.bfloat16).t(),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]).conj(),
        torch.eye(3).to_sparse(),
        (torch.ones(2), [None, {"a": torch.zeros(1)}]),
        Pair(torch.ones(1), 2),
        Output(torch.ones(2), None),
        OrderedDict(a=torch.ones(1), b=(1, 2)),
        Cache(torch.ones(2), torch.zeros(2)),
        {1, 2, 3},
        torch.nn.Linear(2, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_value_is_identical_to_itself(value: Any) -> None:
    assert differences(value, value) == []
    assert close_difference(take_apart(value), take_apart(value)) is None


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (torch.tensor(0.0), torch.tensor(-0.0), "0.0 became -0.0"),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0000002]), "1 of 2 elements differ, the first at flat index 1"),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), "torch.float64"),
        (torch.ones(2), torch.ones(1, 2), "(1, 2)"),
        (torch.ones(2, 2), torch.ones(2, 2).t().contiguous().t(), "stride (1, 2)"),
        (torch.ones(2), torch.ones(2, requires_grad=True), "requires_grad=True"),
        (torch.ones(2), torch.nn.Parameter(torch.ones(2)), "Parameter"),
        ((1, 2), (1, 2, 3), "tuple of 2 became tuple of 3"),
        ([1], (1,), "list of 1 became tuple of 1"),
        (None, 0, "NoneType None became int 0"),
        (1, True, "int 1 became bool True"),
        ({"a": 1}, {"b": 1}, "['a']: gone, was int 1"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "keys ['a'], ['b'] became keys ['b'], ['a']"),
        (torch.tensor([complex("nan+1j")]), torch.tensor([complex("nan+2j")]), "1 of 1 elements differ"),
        (Output(torch.ones(2), None), Output(torch.ones(2), torch.ones(2)), ".mask: NoneType None became Tensor"),
        (Cache(torch.ones(2)), Cache(torch.zeros(2)), ".layers[0]: 2 of 2 elements differ"),
        (Pair(1, 2), Pair(1, 3), ".right: int 2 became int 3"),
    ],
)
def test_difference_is_named(before: Any, after: Any, told: str) -> None:
    assert told in "\n".join(differences(before, after))


def test_nan_equals_nan_of_other_bits() -> None:
    assert differences(torch.tensor([float("nan")]), NAN_WITH_PAYLOAD) == []


def test_nan_is_not_a_number() -> None:
    (line,) = differences(torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 0.0]))
    assert "nan became 0.0" in line


def test_output_that_becomes_an_alias_of_an_input_is_told() -> None:
    x = torch.ones(2)
    known = storages(take_apart({"x": x}), "input")
    before, after = take_apart(x.clone(), known=known), take_apart(x, known=known)
    (line,) = exact_differences(before, after)
    assert "shares memory with input['x']" in line


def test_outputs_that_share_memory_with_each_other_are_told() -> None:
    x, y = torch.ones(2), torch.ones(2)
    (line,) = differences((x, y), (x, x))
    assert line.startswith("[1]: ")
    assert "shares memory with [0]" in line


def test_many_differences_are_cut() -> None:
    assert differences(list(range(20)), list(range(1, 21)))[-1] == "and more"


@pytest.mark.parametrize(
    ("dtype", "step", "close"),
    [
        (torch.float32, 1e-6, True),
        (torch.float32, 1e-4, False),
        (torch.float16, 5e-4, True),
        (torch.float16, 1e-2, True),
        (torch.float16, 5e-2, False),
        (torch.bfloat16, 0.1, True),
        (torch.bfloat16, 0.3, False),
        (torch.float64, 1e-6, False),
    ],
)
def test_tolerance_is_that_of_the_dtype(dtype: torch.dtype, step: float, close: bool) -> None:
    x = torch.full((3,), 1.0, dtype=torch.float64)
    difference = close_difference(take_apart(x.to(dtype)), take_apart((x + step).to(dtype)))
    assert (difference is None) is close


def test_strides_do_not_matter_to_a_close_comparison() -> None:
    x = torch.rand(2, 3)
    assert close_difference(take_apart(x), take_apart(x.t().contiguous().t())) is None


def test_shape_matters_to_a_close_comparison() -> None:
    assert "(1, 2)" in str(close_difference(take_apart(torch.ones(2)), take_apart(torch.ones(1, 2))))


def test_leaves_survive_a_file_that_runs_no_code(tmp_path: Path) -> None:
    leaves = take_apart((Output(torch.ones(2), None), Cache(torch.zeros(1))))
    torch.save(vars(leaves), tmp_path / "leaves.pt")
    assert exact_differences(leaves, Leaves(**torch.load(tmp_path / "leaves.pt", weights_only=True))) == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (["a"], ["a"], None),
        (["a", "b"], ["a", "c"], "message 2: b became c"),
        (["a", "b"], ["a"], "message 2 is gone: b"),
        (["a"], ["a", "b"], "message 2 is new: b"),
    ],
)
def test_first_difference_of_two_streams(before: list[str], after: list[str], told: str | None) -> None:
    assert sequence_difference(before, after, "message") == told
