"""Python integers in tensors: what they are read for, and where they are read from the tensor (GM402)."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, span: int = 2):
        super().__init__()
        self.span = span
        self.register_buffer("width", torch.tensor(span, dtype=torch.int64), persistent=False)
        self.half = self.width // 2
        self.linear = nn.Linear(4, 4)

    def view(self, x, n):
        return x * n.float()

    def forward(self, x: torch.Tensor, y):
        xs = [x, x[:1]]
"""
_INPUTS = ["torch.ones(3, 4), 2", "torch.ones(2, 4), 1", "torch.ones(5, 4), 3"]


def model(body: str) -> str:
    return _MODEL + "".join(f"        {line}\n" for line in body.splitlines())


@pytest.mark.parametrize(
    "body",
    [
        # joined and cut, moved to a device, elements of elements
        "t = torch.stack([torch.tensor(x.shape[0]), torch.tensor(x.shape[1])])\nreturn x.new_ones(t.tolist()) + x",
        "t = torch.tensor([9, x.shape[0], x.shape[1]]).to(x.device)\nreturn self.linear(x.reshape(t[1:].tolist()))",
        "t = torch.tensor([[x.shape[0], 2], [1, 3]])\nfor rows, n in t:\n    x = x + torch.ones(n).sum()\nreturn x",
        "t = torch.tensor([x.shape[0], 3])\nn = -t[0] + t[1] * 2\nreturn x[:, n:] + 1",
        "n = torch.tensor(x.shape[0])[None]\nt = torch.cat([n, torch.tensor(x.shape)])\nreturn x.new_ones(t.tolist())",
        # single numbers by `int` and `item`, inside of larger expressions
        "t = torch.tensor([len(each) for each in xs])\nreturn x * int(t[0]) + t[1].item()",
        "t = torch.as_tensor(x.shape)\nk = t.max().item() - t.min().item()\nreturn F.pad(x, (k, 0)) + t.sum()",
        "t = torch.tensor(y + 1)\nk = int(t) * 2\nreturn x.repeat(k, 1)",
        # attributes: bounds, sizes, arithmetic with others, in functions that need numbers
        "return x[:, : self.width] * self.half",
        "return torch.zeros(self.width + x.shape[0], 4) + x[:1]",
        "k = self.width + self.half\nreturn x[: k - 1] + int(self.half)",
        "t = torch.tensor([y, 2])\nx = x.expand(x.shape[0], t[1] * 2)\nreturn x.narrow(1, 0, max(t[1], 1))",
    ],
)
def test_numbers_are_read_from_what_the_tensor_was_made_of(body: str) -> None:
    before = model(body)
    after, _ = fixed(before, select=("GM402",))
    assert "is_compiling()" in after
    behaves(before, after, _INPUTS)
    compiles(after, _INPUTS)


@pytest.mark.parametrize("dynamic", [False, True])
def test_sizes_may_be_dynamic(dynamic: bool) -> None:
    body = "t = torch.stack([torch.tensor(x.shape[0]), torch.tensor(x.shape[1])])\nreturn x.new_ones(t.tolist()) + x"
    compiles(fixed(model(body), select=("GM402",))[0], _INPUTS, dynamic=dynamic)


@pytest.mark.parametrize(
    "body",
    [
        # what runs later, when the names may hold something else
        "t = torch.tensor([y, 2])\nf = lambda: x[:, : t[0]]\nt = torch.tensor([1, 1])\nreturn f()",
        "t = torch.tensor([y, 2])\ng = (x[:, : t[0]] for _ in xs)\nt = torch.tensor([1, 1])\nreturn next(g)",
        # another name of the same spelling
        "t = torch.tensor([y, 2])\nreturn sum(x[:, : t[0]] for t in ([1], [2]))",
        "t = torch.tensor([y, 2])\nreturn x[:, : (t := [3])[0]] + t[0]",
        # a method of the instance that has the name of one of tensors
        "t = torch.tensor([y, 2])\nreturn self.view(x, t[0])",
        # numbers that are none, and no numbers
        "s = []\nt = torch.tensor(s)\nreturn x, t.sum().item(), t.tolist()",
        "t = torch.tensor([y * 0.5, 2])\nreturn x * t[0].item()",
        "t = torch.tensor(y > 1)\nreturn x * t.item()",
        "t = torch.tensor([y > 1, True])\nreturn x * int(t[0]), [str(each) for each in t.tolist()]",
        "t = torch.tensor([2.0, 1])\nreturn x * t[0].item()",
        # tensors that are bound again, or only in a branch
        "t = torch.tensor([y, 2])\nif y > 1:\n    t = t + 1\nreturn x[:, : t[0]]",
        "if y > 1:\n    t = torch.tensor([y, 2])\nelse:\n    t = torch.tensor([1, 1])\nreturn x[:, : t[0]]",
        "t = torch.tensor([y, 2])\nfor _ in xs:\n    x = x[:, : t[0]] * 1\n    t = t - 1\nreturn x",
    ],
)
def test_what_may_be_something_else_is_read_from_the_tensor(body: str) -> None:
    before = model(body)
    after, _ = fixed(before, select=("GM402",))
    behaves(before, after, _INPUTS)
    compiles(after, _INPUTS, strict=False)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("t = torch.tensor([y, 2])\nt[0] = 1\nreturn x[:, : t[0]]", "may write in place to `t`"),
        ("t = torch.tensor([y, 2])\nk = t[0]\nk += 1\nn = t[0]\nreturn x[:, : n + 0]", "may write in place to `t`"),
        ("t = torch.tensor([y, 2])\nt.add_(1)\nreturn x * int(t[0])", "may write in place to `t`"),
        ("s = [y, 2]\nt = torch.tensor(s)\nt.numpy()[0] = 1\nreturn x * t[0].item()", "may write in place to `t`"),
        (
            "s = [2, 2]\nt = torch.tensor(s)\nt.data = t + 1\nfor n in t:\n    x = x[:, :n]\nreturn x",
            "may write in place",
        ),
        (
            "p = None\nif p is None:\n    p = torch.arange(x.shape[0])\np[0] = 4\nreturn torch.arange(p[-1] + 1)",
            "may write in place to `p`",
        ),
        ("t = torch.tensor([x.pop(), 2])\nreturn x[:, : t[0]]", "cannot infer that `x.pop()` is an integer"),
    ],
)
def test_a_tensor_that_may_hold_other_numbers_is_read(body: str, reason: str) -> None:
    declined(model(body), because=reason, select=("GM402",))


def test_a_loaded_buffer_and_one_that_another_method_writes_are_read() -> None:
    source = model("return x[:, : self.width]")
    loaded = source.replace(", persistent=False", "")
    written = source.replace("return x * n.float()", "self.width.add_(1)\n        return x * n.float()")
    again = source.replace("self.span = span\n", "self.span = span\n        if span > 5:\n            self.span = 5\n")
    for each in (loaded, written, again):
        assert each != source
        assert fixed(each, select=("GM402",))[0] == each
        assert [finding.declined for finding in checked(each, select=("GM402",)).findings] != []


def test_quotients_are_no_integers_and_get_no_path_that_is_never_taken() -> None:
    before = model("t = torch.tensor([n / 3 for n in x.shape])\nreturn x[: int(t[0])]")
    assert fixed(before, select=("GM402",))[0] == before
