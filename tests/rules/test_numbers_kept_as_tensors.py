"""Numbers and flags that stay tensors when compiled: what has to be asked, and what is changed in place later."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("top", torch.tensor(3.0))

    def forward(self, {signature}):
        {body}
"""


def model(body: str, signature: str = "x: torch.Tensor") -> str:
    return _MODEL.format(signature=signature, body="\n        ".join(body.strip("\n").split("\n")))


@pytest.mark.parametrize(
    "change",
    [
        "top.add_(1)",
        "top += 1",
        "top[...] = 7",
        "torch.add(top, 1, out=top)",
        "view = top.view(1)\nview.mul_(2)",
        "torch.nn.functional.relu(top.neg_(), inplace=True)",
    ],
)
def test_a_number_is_what_it_was_when_its_tensor_is_changed_before_it_is_used(change: str) -> None:
    source = model(f"top = x.max().detach()\nnumber = top.item()\n{change}\nreturn x / number + top")
    after, result = fixed(source, select=("GM401",))
    assert [finding.code for fix in result.fixes for finding in fix.applied] == ["GM401"]
    assert "number = top.detach().clone()" in after or "number = top.clone()" in after
    behaves(source, after, ["torch.tensor([1.0, 4.0])"], scenarios=FEW_SCENARIOS[:2])
    compiles(after, ["torch.tensor([1.0, 4.0])"])


def test_the_largest_number_of_a_tensor_that_changes_needs_no_copy() -> None:
    after, _ = fixed(model("number = x.max().item()\nx.mul_(3)\nreturn x / number"))
    assert "number = x.max().detach()\n" in after


@pytest.mark.parametrize("given", ["numpy.array([1.0, 5.0])", "torch.tensor([1.0, 5.0])"])
def test_numpy_may_be_given_for_an_annotated_tensor(given: str) -> None:
    source = "import numpy\n" + model("number = x.max().item()\nreturn x / number")
    after, _ = fixed(source)
    assert "isinstance(x, torch.Tensor)" in after
    compiles(after, [given], strict="torch" in given)


def test_a_dtype_that_only_an_annotation_tells_is_asked_for() -> None:
    body = "number = ids.max().item()\nreturn other * number"
    after, _ = fixed(model(body, "ids: torch.LongTensor, other: torch.LongTensor"))
    assert "ids.dtype == torch.int64" in after
    assert "other.dtype == torch.int64" in after
    compiles(after, ["(torch.arange(3), torch.ones(3))", "(torch.arange(3), torch.arange(3))"], strict=False)


def test_a_dtype_that_cannot_be_asked_for_is_a_reason() -> None:
    body = "number = ids.max().item()\nother = other.cpu()\nreturn self.scaled(other) * number"
    source = model(body, "ids: torch.LongTensor, other: torch.LongTensor") + (
        "\n    def scaled(self, y) -> torch.LongTensor:\n        return y\n"
    )
    declined(source, because="may not be a Tensor")


@pytest.mark.parametrize(
    ("bound", "kept"), [("3", ""), ("-256", ".double()"), ("2.0", ""), ("0.1", ".double()"), ("y", None)]
)
def test_a_float_is_compared_with_numbers_that_its_dtype_holds(bound: str, kept: str | None) -> None:
    body = f"number = x.max().item()\nif number > {bound}:\n    raise ValueError('large')\nreturn x"
    source = model(body, "x: torch.Tensor, y: float")
    if kept is not None:
        assert f"number = x.max().detach(){kept}\n" in fixed(source)[0]
    else:
        declined(source, because="is used as a Python number")


@pytest.mark.parametrize("reader", ["f = lambda: [number]", "def f():\n    return [number]"])
def test_a_number_that_another_function_reads_stays_one(reader: str) -> None:
    source = model(f"number = x.max().item()\n{reader}\nreturn x / number, f()")
    declined(source, because="may be read by another function", select=("GM401",))


_RANGE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        start = mask.sum()
        places = torch.arange(start, start + len(x), device=x.device)
        return x * places
"""
_JOINED = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        first = torch.as_tensor(x.shape[:1], dtype=torch.long)
        shape = torch.cat([first, torch.as_tensor([-1])])
        return x.reshape(shape.tolist())
"""


def test_a_range_that_may_start_at_a_number_of_numpy_asks_for_a_tensor() -> None:
    after, _ = fixed(_RANGE)
    assert "isinstance(start, torch.Tensor)" in after
    compiles(after, ["(torch.ones(2), torch.ones(2) > 0)"])


@pytest.mark.parametrize("change", ["first.add_(1)", "first += 1", "first[0] = 4", "torch.add(first, 1, out=first)"])
def test_sizes_that_change_after_they_were_joined_are_those_of_before(change: str) -> None:
    source = _JOINED.replace("        return", f"        {change}\n        return")
    after, _ = fixed(source)
    assert "[*numbers_in_first, -1]" in after
    compiles(after, ["torch.ones(2, 3)", "torch.ones(4, 3)"])
    earlier = _JOINED.replace("        shape", f"        {change}\n        shape")
    assert "numbers_in_" not in fixed(earlier)[0]


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        ("max((x > 0).sum().item(), 1)", "(x > 0).sum().clamp(min=1)"),
        ("max(1, int((x > 0).sum()))", "(x > 0).sum().clamp(min=1)"),
        ("min((x > 0).sum().item(), 2)", "(x > 0).sum().clamp(max=2)"),
        ("max((x.float() + 1).max().item() , 1.0)", "(x.float() + 1).max().detach().clamp(min=1.0)"),
        ("max(x.float().max().item(), 1.0)", "x.float().max().detach().clamp(min=1.0)"),
    ],
)
def test_a_count_that_normalises_stays_a_tensor(number: str, kept: str) -> None:
    loss = "x.float().pow(2).sum()" if "float" in number else "x.pow(2).sum()"
    source = model(f"number = {number}\nreturn {loss} / number")
    after, _ = fixed(source, select=("GM401",))
    assert f"number = {kept}\n" in after
    compiles(after, ["torch.tensor([1.0, 4.0, -1.0])", "torch.tensor([-1.0]).half()"])


@pytest.mark.parametrize("use", ["number ** x.sum()", "5 / number", "x.sum() // number"])
def test_a_count_that_may_change_a_dtype_is_read_as_before(use: str) -> None:
    source = model(f"number = max((x > 0).sum().item(), 1)\nreturn {use}")
    assert fixed(source, select=("GM401",))[0] == source
