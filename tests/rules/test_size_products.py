"""Products of sizes that a tensor computes, and that are sizes themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed, fixed_among

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        x = x + 1
        {body}
"""
_INPUTS = ["torch.ones(2, 3, 4)", "torch.ones(2, 3)", "torch.ones(0, 3, 2)"]


def _source(*body: str) -> str:
    return _MODEL.replace("{body}", "\n        ".join(body))


@pytest.mark.parametrize(
    "body",
    [
        ("n = torch.prod(torch.tensor(x.shape[1:]))", "return x.view(x.shape[0], n)"),
        ("n = torch.tensor(x.size()[1:]).prod()", "return x.reshape(len(x), n), x.new_zeros(n)"),
        ("return x.view(x.shape[0], torch.tensor(x.shape[1:]).prod())",),
        ("y = x.view(x.shape[0], torch.prod(torch.tensor(x.shape[1:])))", "return y"),
    ],
)
def test_a_product_that_is_a_size_is_computed_with_math(body: tuple[str, ...]) -> None:
    source = _source(*body)
    after, _ = fixed(source)
    assert "math.prod(" in after
    assert "[1:]) > 0" in after  # without a size, the product is 1.0
    behaves(source, after, [*_INPUTS, "torch.ones(3)"])
    compiles(after, _INPUTS)


@pytest.mark.parametrize(
    "body",
    [
        ("n = torch.prod(torch.tensor(x.shape[1:]))", "return x.view(x.shape[0], n) / n"),
        ("n = torch.prod(torch.tensor(x.shape[1:]))", "return x.view(x.shape[0], n), n"),
        ("n = torch.prod(torch.tensor(x.shape[1:]))", "m = n", "return x.view(x.shape[0], n), m"),
        ("n = torch.prod(torch.tensor(x.shape[1:]))", "return x * n"),
        ("n = torch.prod(torch.tensor(x.shape[1:], dtype=torch.float32))", "return x.view(x.shape[0], n)"),
        ("n = torch.prod(torch.tensor(x.shape[1:]), dim=0)", "return x.view(x.shape[0], n)"),
        ("return x / torch.tensor(x.shape[1:]).prod()",),
    ],
)
def test_a_product_that_is_more_than_a_size_stays_a_tensor(body: tuple[str, ...]) -> None:
    assert "math.prod(" not in fixed(_source(*body))[0]


def test_sizes_of_unknown_kind_are_asked_for_integers() -> None:
    source = _source("return x.view(x.shape[0], torch.tensor(self.sizes).prod())")
    source = source.replace("    def forward", "    sizes = [3, 4]\n\n    def forward")
    after, _ = fixed(source)
    assert "all(type(n) is int for n in self.sizes)" in after
    assert "< 2**63" in after
    behaves(source, after, _INPUTS[:1])


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")
def test_a_library_that_compiles_a_class_as_a_script_still_can(tmp_path: Path) -> None:
    source = _source("n = torch.prod(torch.tensor(x.shape[1:]))", "return x.view(x.shape[0], n)")
    marked = source.replace("class Model", '@compile_mode("script")\nclass Model')
    after, _ = fixed_among(tmp_path, f"from e3nn.util.jit import compile_mode\n{marked}", {})
    assert "torch.jit.is_scripting()" in after
    unmarked = after.replace("from e3nn.util.jit import compile_mode", "").replace('@compile_mode("script")', "")
    path = tmp_path / "scripted.py"
    path.write_text(unmarked)
    names: dict[str, type[torch.nn.Module]] = {}
    exec(compile(unmarked, str(path), "exec"), names)
    assert torch.jit.script(names["Model"]())(torch.ones(2, 3, 4)).shape == (2, 12)
