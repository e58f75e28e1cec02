"""Inputs that compile paths do not expect: subclasses of tensors, sizes of which there are none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.fixes import embedded, fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, t: torch.Tensor):
        ...
"""


class Named(torch.Tensor):
    """A subclass that changes nothing, as libraries make them to carry a name."""


def _model(body: str) -> Any:
    after, result = fixed(embedded(body, _MODEL), opaque=True)
    assert result.fixes
    names: dict[str, Any] = {"__name__": "strange"}
    exec(after, names)
    torch._dynamo.reset()
    return names["Model"]()


@pytest.mark.parametrize(
    "body",
    [
        "kept = {'n': t.item()}\nreturn x * 2, kept",
        "return torch.unique(t)",
        "return torch.bincount(t)",
        "return t.nonzero()",
        "return x.repeat_interleave(t, dim=0)",
    ],
)
def test_a_subclass_of_tensor_goes_to_no_operator(body: str) -> None:
    model = _model(body)
    x, t = torch.rand(3, 4), torch.tensor([2] if "item" in body else [1, 2, 2]).as_subclass(Named)
    compiled: Any = torch.compile(model, backend="aot_eager")
    found, expected = compiled(x, t), model(x, t)
    torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore:Dynamo does not know")
def test_sizes_of_which_there_are_none_make_a_floating_tensor() -> None:
    model = _model("s = torch.cat([torch.tensor([-1]), torch.tensor(x.shape[1:])])\nreturn x.reshape(s.tolist())")
    compiled: Any = torch.compile(model, backend="eager")
    assert compiled(torch.rand(2, 3), torch.ones(1)).shape == (2, 3)
    with pytest.raises(TypeError):
        compiled(torch.rand(2), torch.ones(1))
