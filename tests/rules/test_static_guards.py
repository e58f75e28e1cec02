"""GM302: the list stands for its tensor only while nothing can have changed it."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn

from elsewhere import adjust


def grow(sizes):
    sizes.append([1, 1])


def count(sizes):
    return len(sizes) + sum(a * b for a, b in sizes)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []
        self.linear = nn.Linear(2, 2)

    def grow(self, rows):
        rows[0][0] = 7

    def grow_kept(self):
        self.kept.append([1, 1])

    def position(self, x, y=None):
        return x if y is None else x + y

    def forward(self, x: torch.Tensor, sizes: list):
        shapes = torch.as_tensor(sizes, dtype=torch.long, device=x.device)
        ...
        if (shapes[:, 0] * shapes[:, 1]).sum() != x.shape[0]:
            raise ValueError("sizes do not fit")
        return x
"""
_HANDED = """
import torch
from torch import nn


class Part(nn.Module):
    def forward(self, x, shapes, sizes):
        if (shapes[:, 0] * shapes[:, 1]).sum() != x.shape[0]:
            raise ValueError("sizes do not fit")
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def change(self, rows):
        rows.append([0, 1])

    def forward(self, x: torch.Tensor):
        sizes = [(x.shape[0], 1)]
        shapes = torch.as_tensor(sizes, dtype=torch.long)
        ...
        return self.part(x, shapes, sizes)
"""


@pytest.mark.parametrize(
    "between",
    [
        "self.grow(sizes)",
        "grow(sizes)",
        "adjust(sizes)",
        "adjust(*sizes)",
        "self.kept = sizes\nself.grow_kept()",
        "self.grow_kept()",
        "rows = sizes\nrows.append([1, 1])",
        "first = sizes[0]\nfirst[0] = 5",
        "for row in sizes:\n    row[0] = 5",
        "sizes[0][0] = 5",
        "sizes += [[1, 1]]",
        "sizes.sort()",
        "shapes.add_(1)",
        "del sizes[0]",
    ],
)
def test_a_list_that_may_have_changed_is_not_used(between: str) -> None:
    source = _MODEL.replace("...", between.replace("\n", "\n        "))
    after, _ = fixed(source)
    assert "for row in sizes)" not in after
    assert "torch._assert_async(" in after
    guard = source[source.index("        if (shapes") : source.index("        return x\n")]
    tried = (
        "        try:\n"
        + "".join(f"    {line}\n" for line in guard.splitlines())
        + "        except ValueError:\n            pass\n"
    )
    declined(source.replace(guard, tried), because="may have changed since `shapes` was built from it")


@pytest.mark.parametrize(
    "between",
    [
        "x = self.position(x)",
        "x = self.linear(x)",
        "n = count(sizes)",
        "n = len(sizes)",
        "x = torch.utils.checkpoint.checkpoint(self.linear, x, shapes)",
        "x = adjust(x)",
    ],
)
def test_a_list_that_is_only_read_is_used(between: str) -> None:
    after, _ = fixed(_MODEL.replace("...", between))
    assert "sum(int(row[0]) * int(row[1]) for row in sizes)" in after


@pytest.mark.parametrize("between", ["self.change(sizes)", "self.part.change(sizes)", "sizes.append((1, 1))"])
def test_a_list_that_a_caller_may_have_changed_is_not_used(between: str) -> None:
    assert "for row in sizes" in fixed(_HANDED.replace("        ...\n", ""))[0]
    assert "for row in sizes" not in fixed(_HANDED.replace("...", between))[0]


def test_a_list_that_is_changed_afterwards_is_used() -> None:
    source = _MODEL.replace("        ...\n", "").replace("return x\n", "sizes.append([1, 1])\n        return x\n")
    source = source.replace("from elsewhere import adjust\n", "")
    after, _ = fixed(source)
    assert "for row in sizes" in after
    behaves(source, after, ["torch.ones(10), [[2, 2], [2, 3]]"], scenarios=(Scenario(gradients="off"),))
    compiles(after, ["torch.ones(10), [[2, 2], [2, 3]]"], scenarios=(Scenario(gradients="off"),), state=False)


def test_numbers_of_a_list_become_integers_as_they_do_in_the_tensor() -> None:
    source = _MODEL.replace("        ...\n", "").replace("from elsewhere import adjust\n", "")
    after, _ = fixed(source)
    inputs = ["torch.ones(10), [[2.9, 2.0], [2, 3]]", "torch.ones(9), [[2.9, 2.0], [2, 3]]"]
    compiles(after, inputs, scenarios=(Scenario(gradients="off"),))


_PARTS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])

    def forward(self, x: torch.Tensor, *others):
        parts = [layer(x) for layer in self.layers]
        assert others, "no others"
        assert parts
        return x + parts[0] + others[0]
"""


def test_a_container_of_tensors_is_asserted_by_its_truth() -> None:
    after = fixed(_PARTS)[0]
    assert "bool(others)" in after
    assert "assert (bool(parts) if torch.compiler.is_compiling() else parts)\n" in after
    behaves(_PARTS, after, ["torch.ones(3, 2), torch.ones(3, 2)", "torch.ones(3, 2)"])
    compiles(after, ["torch.ones(3, 2), torch.ones(3, 2)"])


@pytest.mark.parametrize(
    "line",
    [
        "assert others, f'no {others}'",  # Dynamo asserts it in Python, for the message is made for it
        "others = x\n        assert others, 'zero'",  # may be a tensor
        "for others in parts:\n            assert others.shape, 'zero'\n        assert others.dim(), 'zero'",
    ],
)
def test_what_may_be_no_container_is_asserted_as_it_is(line: str) -> None:
    source = _PARTS.replace('assert others, "no others"', line).replace("        assert parts\n", "")
    assert "bool(" not in fixed(source)[0]


@pytest.mark.parametrize("sizes", ["[[4, 2], [2, 2]]", "[4, 6]", "[[[4], [2]], [[2], [2]]]"])
@pytest.mark.parametrize("total", ["shapes.sum()", "torch.sum(shapes)"])
def test_the_sum_of_a_list_of_any_depth_is_asked_of_the_tensor(total: str, sizes: str) -> None:
    source = _MODEL.replace("        ...\n", "").replace("(shapes[:, 0] * shapes[:, 1]).sum()", total)
    source = source.replace("from elsewhere import adjust\n", "")
    after, _ = fixed(source)
    behaves(source, after, [f"torch.ones(10), {sizes}"], scenarios=(Scenario(gradients="off"),))
    compiles(after, [f"torch.ones(10), {sizes}"], scenarios=(Scenario(gradients="off"),))


def test_a_product_of_columns_is_summed_by_a_function_of_torch_as_well() -> None:
    source = _MODEL.replace("        ...\n", "").replace("from elsewhere import adjust\n", "")
    source = source.replace("(shapes[:, 0] * shapes[:, 1]).sum()", "torch.sum(shapes[:, 0] * shapes[:, 1])")
    after, _ = fixed(source)
    assert "sum(int(row[0]) * int(row[1]) for row in sizes)" in after
    compiles(after, ["torch.ones(10), [[2, 2], [2, 3]]"], scenarios=(Scenario(gradients="off"),))
