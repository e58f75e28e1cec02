"""GM603: what torch has itself takes the place of calls of opt_einsum and NumPy under torch.compile."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.subject import forget, load, register

_SOURCE = """
import opt_einsum as oe
import torch
from torch import nn

contract = oe.contract


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 24).view(6, 4))
        self.scale = nn.Parameter(torch.linspace(0, 1, 6))

    def forward(self, x):
        {body}
        return x
"""


@pytest.mark.parametrize(
    "body",
    [
        'x = contract("b u ..., v u -> b v ...", x, self.weight) + self.scale[:, None]',
        'x = oe.contract("bul,vu,v->bvl", x, self.weight, self.scale) * 2',
        'x = contract("bul,bul", x, x)',
        'x = contract("bul,bul->", x, x) + contract("bul,u->lb", x, x[0, :, 0]).sum()',
        # `torch.einsum` gives this in another order of strides, of which no `view` is one.
        'x = contract("lu,uv,vw->lw", x[0].T, x[1, :, :1] * self.scale[None], self.weight).view(-1)',
        'x = contract("ul,u->ul", x.to(torch.complex64)[0], x.to(torch.complex64)[0, :, 0])',
    ],
)
def test_one_graph_computes_what_eager_mode_computes(body: str) -> None:
    before = _SOURCE.format(body=body)
    after, _ = fixed(before)
    assert "_contract_while_tracing if torch.compiler.is_compiling() else" in " ".join(after.split())
    inputs = ["torch.randn(2, 4, 3)", "torch.randn(2, 4, 3).transpose(0, 0)"]
    behaves(before, after, inputs)
    compiles(after, inputs)


def test_sizes_may_change() -> None:
    after, _ = fixed(_SOURCE.format(body='x = contract("bul,vu,v->bvl", x, self.weight, self.scale)'))
    compiles(after, ["torch.randn(2, 4, 3)", "torch.randn(3, 4, 5)", "torch.randn(5, 4, 7)"], dynamic=True)


def test_what_is_no_tensor_goes_to_the_library() -> None:
    before = _SOURCE.format(body='x = x + torch.from_numpy(contract("ij,jk->ik", x[0].numpy(), x[1].numpy().T)).sum()')
    after, _ = fixed(before)
    behaves(before, after, ["torch.randn(2, 4, 3)"])
    compiles(after, ["torch.randn(2, 4, 3)"], strict=False)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ('x = contract("bul->blu", x)', "may have one operand"),
        ('x = contract("bul,bul->b", *[x, x])', "may have one operand"),
        ('x = contract("bul,bul->b", x, x, optimize="greedy")', "no other arguments"),
        ('x = contract("bul,bul->b\\N{GREEK SMALL LETTER ALPHA}", x, x)', "equations of letters"),
        ("x = contract(x, [0, 1, 2], x, [0, 1, 2], [0])", "its equation is no literal"),
        ('x = contract(f"bul,bul->{self.out}", x, x)', "its equation is no literal"),
    ],
)
def test_what_torch_does_not_take_says_why(body: str, because: str) -> None:
    declined(_SOURCE.format(body=body), because=because, select=("GM603",))


_LIMITS = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        {body}
        return x
"""


@pytest.mark.parametrize(
    "body",
    [
        "x = x.masked_fill(x < 0, float(np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).min)).softmax(-1)",
        "low = float(\n            np.finfo(torch.zeros((2, 1), dtype=x.dtype).numpy().dtype).tiny\n        )\n"
        "        x = x + low",
        "x = x / float(np.finfo(torch.empty((), dtype=x.dtype).numpy().dtype).eps)",
        "y = x.long()\n        x = y.clamp(max=int(np.iinfo(torch.tensor(0, dtype=y.dtype).numpy().dtype).max))",
    ],
)
def test_limits_of_a_dtype_are_those_that_torch_knows(body: str) -> None:
    before = _LIMITS.format(body=body)
    after, _ = fixed(before)
    assert "info(" in after.replace("np.finfo", "").replace("np.iinfo", "")
    inputs = ["torch.randn(2, 4)", "torch.randn(2, 4).double()", "torch.randn(2, 4).half()"]
    behaves(before, after, inputs)
    compiles(after, inputs)


def test_a_dtype_that_numpy_lacks_raises_in_compiled_code_as_well() -> None:
    body = "x = x + float(np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).eps)"
    after, _ = fixed(_LIMITS.format(body=body))
    source = register(after)
    try:
        compiled: Any = torch.compile(load(source).Model(), backend="eager")
        with pytest.raises(TypeError, match="BFloat16"):
            compiled(torch.ones(2, dtype=torch.bfloat16))
    finally:
        forget(source)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("x = x + np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).eps", "a number of NumPy"),
        ("x = x + float(np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).resolution)", "a number of NumPy"),
        ("x = x + float(np.finfo(x.numpy().dtype).eps)", "may not be on the CPU"),
        ("x = x + float(np.finfo(torch.zeros(x.size(0), dtype=x.dtype).numpy().dtype).eps)", "has no dtype that"),
        (
            'x = x + float(np.finfo(torch.zeros(1, dtype=x.dtype, device="meta").numpy().dtype).eps)',
            "has no dtype that",
        ),
        ("x = x + float(np.finfo(torch.tensor(0.0).numpy().dtype).eps)", "has no dtype that"),
    ],
)
def test_limits_that_may_be_others_say_why(body: str, because: str) -> None:
    declined(_LIMITS.format(body=body), because=because, select=("GM603",))


_CAUGHT = """
import copy
import numpy as np
import torch
from torch import nn


class Part(nn.Module):
    def forward(self, x):
        {body}
        return x * 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        try:
            return self.part(x)
        except Exception:
            return x
"""


@pytest.mark.parametrize(
    ("body", "mended"),
    [
        ("low = float(np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).min)", True),
        ("x = x[0] + float(np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).min)", False),
        ("self.low = float(np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).min)", False),
        ("y = [x]\n        z = copy.copy(y)\n        x = z[0]", True),
    ],
)
def test_a_handler_does_not_matter_for_what_cannot_raise(body: str, mended: bool) -> None:
    before = _CAUGHT.format(body=body)
    assert (fixed(before)[0] != before) is mended
