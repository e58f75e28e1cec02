"""GM101: branches that write elements write them in place when compiled, too; what eager mode skips stays as it is."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        out = x * 1.0
        shared = out.view(-1)
        {body}
        return out, shared
"""


def model(body: str) -> str:
    return _MODEL.format(body=body.strip().replace("\n", "\n        "))


def test_rows_of_a_loop_and_masks_are_written_under_the_test() -> None:
    source = model(
        """
for i in range(x.shape[0]):
    if x[i].sum() > 0:
        out[i] = x[i] * 2
        out[i, -1] /= 4
    elif x.sum() == 0:
        out[x > 0.5] = -1
flags = x > 0
if flags[0, 0]:
    flags[0, 0] = False
    out[0] = out[1]
    out[1] = 0.5
"""
    )
    after, result = fixed(source)
    assert not result.remaining
    inputs = ["torch.ones(2, 4)", "-torch.ones(2, 4)", "torch.eye(2, 4) - torch.eye(2, 4).flip(0)", "torch.zeros(2, 4)"]
    behaves(source, after, inputs)
    compiles(after, inputs)


def test_a_test_that_the_branch_overwrites_is_kept() -> None:
    after, _ = fixed(model("flags = x > 0\nif flags[0, 0]:\n    flags[0, 0] = False\n    out[0] = 2.0"))
    assert "condition = flags[0, 0].reshape(()).clone()" in after


def test_a_tensor_from_outside_may_not_require_gradients() -> None:
    after, _ = fixed(model("if x.sum() > 0:\n    x[0] = 2.0"))
    assert "and not (torch.is_grad_enabled() and x.requires_grad)" in after


@pytest.mark.parametrize(
    ("write", "because"),
    [
        ("out[0] = x.view(-1)[: x.numel()]", "may have a different shape"),
        ("out[0] = 1j", "neither a Tensor nor a number"),
        ("out[[0, 1]] = 1.0", "may be out of range"),
        ("out[x > 0] += 1.0", "writes in place"),
        ("row = x[0]\n    out[0] = row\n    x = out", "`x` is assigned beside elements"),
        ("index = x.argmax()\n    out[index] = 1.0", "cannot infer that `index` is a mask"),
        ("self.out[0] = 1.0", "cannot infer that `self.out`"),
        ("shared = out > 0\n    shared[0] = 1.0", "cannot infer the dtype of `shared` before the branch"),
    ],
)
def test_what_may_raise_where_eager_mode_skips_it_is_declined(write: str, because: str) -> None:
    declined(model(f"if x.sum() > 0:\n    {write}\nshared = x"), because=because)


_SAVED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        h = torch.relu(self.linear(x.float()))
        saved = (h * h).sum()
        {branch}
        return h.sum() + saved
"""


@pytest.mark.parametrize(
    "branch",
    ["if x.sum() > 100:\n            h[0] = 0.0", "mask = h > 100\n        if mask.any():\n            h[mask] = 0.0"],
)
def test_what_a_gradient_needs_is_not_written_where_eager_mode_leaves_it(branch: str) -> None:
    after, _ = fixed(_SAVED.format(branch=branch))
    assert "torch.compiler.is_compiling()" in after
    compiles(after, ["torch.ones(2, 4)"], scenarios=(Scenario(True, "leaves"),), strict=False)
    compiles(after, ["torch.ones(2, 4)"], scenarios=(Scenario(False, "off"),))


@pytest.mark.parametrize(
    ("write", "inputs"),
    [
        ("out[0] += 1", ["torch.tensor([True, True])", "torch.tensor([1, 2])", "torch.tensor([1.0, 2.0])"]),
        ("out[0] += 0.5", ["torch.tensor([1, 2])", "torch.tensor([1.0, 2.0])"]),
        ("out[0] /= 2", ["torch.tensor([4, 2])", "torch.tensor([4.0, 2.0])"]),
        ("out[0] += x.double().sum() * 1j", ["torch.tensor([4.0, 2.0])", "torch.tensor([4.0, 2.0]) * 1j"]),
    ],
)
def test_what_a_dtype_does_not_take_in_place_is_raised(write: str, inputs: list[str]) -> None:
    source = _MODEL.replace("out = x * 1.0", "out = x.clone()").format(body=f"if x.sum() != 100:\n            {write}")
    text = fixed(source, select=("GM101",))[0]
    behaves(source, text, inputs)
    compiles(text, inputs, scenarios=[Scenario()], strict=False)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool", "float32"])
def test_a_number_under_a_mask_of_sums_is_written_into_any_dtype(dtype: str) -> None:
    source = _MODEL.replace("out = x * 1.0", "out = x.clone()").format(
        body="if out.sum() == 0:\n            out[out.sum(dim=1).eq(0)] = 1"
    )
    text = fixed(source, select=("GM101",))[0]
    assert "is_floating_point()" not in text
    inputs = [f"torch.zeros(2, 3, dtype=torch.{dtype})", f"torch.ones(2, 3, dtype=torch.{dtype})"]
    behaves(source, text, inputs)
    compiles(text, inputs, scenarios=(Scenario(False, "off"),))
    compared = fixed(source.replace("= 1", "= out.mean() > 0", 1), select=("GM101",))[0]
    assert "is_compiling()" not in compared or "is_floating_point()" in compared
