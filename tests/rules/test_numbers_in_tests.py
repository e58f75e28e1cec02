"""Numbers of one element that a test compares (`t.item() < 0.5`), and numbers that a branch puts into tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.stateful_models import loaded
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import embedded, fixed
from tests.tools.observe import Scenario

_SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor):
        ...
"""
_INPUTS = [
    "torch.ones(2, 3), torch.tensor([0.1])",
    "torch.ones(2, 3), torch.tensor(0.1, dtype=torch.float64)",
    "torch.ones(2, 3), torch.tensor([[7]])",
    "-torch.ones(2, 3), torch.tensor([0.05], dtype=torch.half)",
    "torch.ones(2, 3, dtype=torch.int8), torch.tensor([True])",
    "torch.ones(2, 3, dtype=torch.uint8), torch.tensor([0.7])",
]
_BODIES = {
    "an argument": "if n.item() <= 0.1:\n    x = x * 2\nreturn x",
    "full_like": "if n.item() < 0.5:\n    x = torch.full_like(x, -100)\nreturn x",
    "masked_fill": "if n.item() < 0.5:\n    x = x.masked_fill(x > 0, -1)\nreturn x",
    "flip": "if n.item() < 0.5:\n    x = torch.flip(x, (-1, -2))\nreturn x",
}


@pytest.mark.parametrize("body", _BODIES.values(), ids=_BODIES)
def test_a_tensor_compares_as_its_number_does(body: str) -> None:
    source = embedded(body, _SOURCE)
    text = fixed(source, select=("GM101",))[0]
    assert "torch.where(" in text
    behaves(source, text, _INPUTS)
    compiles(text, _INPUTS, scenarios=[Scenario(), Scenario(False, "off")], strict=False)
    compiles(text, _INPUTS[:1], scenarios=[Scenario(False, "off")])


@pytest.mark.parametrize(
    ("test", "inputs"),
    [
        ("n.item() == k", ["torch.tensor(2**53 + 1), 2**53", "torch.tensor([3]), 3", "torch.tensor(1 + 1j), 1"]),
        ("n.item() <= k", ["torch.tensor(2**53 + 1), 2**53", "torch.tensor([0.5]), 1", "torch.tensor(1.0), 2**70"]),
        ("n.item() <= 9007199254740992", ["torch.tensor(2**53 + 1), 0", "torch.tensor(7.0), 0"]),
        ("n.item() < k.item()", ["torch.tensor(2**53), torch.tensor(2**53 + 1)", "torch.tensor(1), torch.tensor(1.5)"]),
        ("(n > 0).sum().item() > k", ["torch.ones(3), 2.5", "torch.ones(3), 3", "torch.ones(3), 2"]),
    ],
)
def test_integers_that_no_float_holds_compare_as_python_compares_them(test: str, inputs: list[str]) -> None:
    source = embedded(
        f"if {test}:\n    x = x * 2\nreturn x", _SOURCE.replace("n: torch.Tensor", "n: torch.Tensor, k=0")
    )
    text = fixed(source, select=("GM101",))[0]
    calls = [f"torch.ones(2, 3), {each}" for each in inputs if "j" not in each]
    behaves(source, text, calls)
    compiles(text, calls, scenarios=[Scenario()], strict=False)


def test_what_complex_numbers_raise_is_raised() -> None:
    text = fixed(embedded(_BODIES["an argument"], _SOURCE), select=("GM101",))[0]
    compiled: Any = torch.compile(loaded(text).Model(), backend="eager")
    with pytest.raises(TypeError):
        compiled(torch.ones(2, 3), torch.tensor(1 + 0j))


def test_what_several_elements_raise_is_raised() -> None:
    text = fixed(embedded(_BODIES["an argument"], _SOURCE), select=("GM101",))[0]
    model = loaded(text).Model()
    compiled: Any = torch.compile(model, backend="eager")
    for each in (model, compiled):
        with pytest.raises(RuntimeError):
            each(torch.ones(2, 3), torch.tensor([0.1, 0.2]))


@pytest.mark.parametrize("draw", ["torch.rand(1)", "torch.rand(())", "torch.rand((1,), device=x.device)"])
def test_draws_of_one_element(draw: str) -> None:
    source = embedded(f"if self.training and {draw}.item() < 0.5:\n    x = torch.flip(x, (-1,))\nreturn x", _SOURCE)
    text = fixed(source, select=("GM101",))[0]
    assert "torch.where(" in text
    inputs = [f"torch.arange(6.).view(2, 3) + {number}, torch.ones(1)" for number in range(4)]
    behaves(source, text, inputs)
    model = loaded(text).Model()
    compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
    x, seen = torch.arange(6.0).view(2, 3), set()
    for seed in range(8):
        torch.manual_seed(seed)
        expected = model(x, x)
        torch.manual_seed(seed)
        assert torch.equal(compiled(x, x), expected)
        seen.add(bool(expected[0, 0] > 0))
    assert seen == {True, False}


@pytest.mark.parametrize(
    "body",
    [
        "if torch.rand(2).item() < 0.5:\n    x = x * 2\nreturn x",
        "if torch.rand(1, device='mps').item() < 0.5:\n    x = x * 2\nreturn x",
    ],
)
def test_other_draws_are_left_alone(body: str) -> None:
    source = embedded(body, _SOURCE)
    assert fixed(source, select=("GM101",))[0] == source


@pytest.mark.parametrize("read", ["n.item() > k.item()", "n > k.item()", "n.item() > k.item() * 2 + 1"])
def test_what_is_no_tensor_for_certain_is_not_read_on_the_compile_path(read: str) -> None:
    source = embedded(
        f"if {read}:\n    return x * 2\nreturn x", _SOURCE.replace("n: torch.Tensor", "n: torch.Tensor, k=0")
    )
    assert fixed(source)[0] == source


@pytest.mark.parametrize(
    ("test", "asked"),
    [
        ("n.item() > k", "isinstance(k, (int, float))"),
        ("n.item() > float(k)", "isinstance(k, (int, float))"),
        ("n.item() > k * 2", "isinstance(k * 2, (int, float))"),
        ("x.sum() > n.item()", "n.dtype == x.sum().dtype"),
    ],
)
def test_a_header_asks_for_numbers_and_dtypes_and_reads_no_tensor(test: str, asked: str) -> None:
    source = embedded(
        f"if {test}:\n    x = x * 2\nreturn x", _SOURCE.replace("n: torch.Tensor", "n: torch.Tensor, k=0")
    )
    text = fixed(source)[0]
    assert f"and {asked}\n" in text
    with_tensor = ["torch.ones(2, 3), torch.tensor(0.1), torch.tensor(0.2)"]
    compiles(text, with_tensor, scenarios=[Scenario(False, "off")], strict=False)
