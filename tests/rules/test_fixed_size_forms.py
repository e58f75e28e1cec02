"""GM411: what reads no tensor does what the operator did that read one, for whatever it is given."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.arange(3.0))
        self.n = 3

    def touch(self):
        self.state += 1

    def forward(self, x, t, n=3):
        {body}
        return x
"""
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))
_TOP = "top = torch.topk(x.mean(0), 2)[1]\n        "


def model(body: str) -> str:
    return _MODEL.format(body=body)


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        (
            _TOP + "y = torch.stack([x[:, top[i]] for i in range(2)], dim=-1)\n"
            "        x = torch.roll(x, int(top[0]), 0) * y.sum()",
            ["torch.randn(3, 5), None", "torch.randn(4, 7), None"],
        ),
        (
            _TOP + "for i in range(2):\n            x = x + x.roll(shifts=-int(top[i]), dims=1)",
            ["torch.randn(3, 5), None", "torch.randn(0, 5), None"],
        ),
        (
            "x = torch.roll(x, 2 * t[0].item() - n, -1) + x[..., t[-1]].sum()",
            ["torch.randn(2, 6), torch.tensor([-9, -1])", "torch.randn(2, 6), torch.tensor([7, 5]), 0"],
        ),
        (
            "best, y = x.argmax(), x.flatten()[None]\n        row = y[0, best]\n        x = x + row * 2",
            ["torch.randn(2, 6), None"],
        ),
        (
            "step = torch.randint(1, 4, (1,))\n        x = torch.roll(x, shifts=step.item(), dims=n)",
            ["torch.randn(2, 6), None, 1", "torch.randn(2, 6), None, -1"],
        ),
        (
            "highest = t.max() + 1\n        x = x + F.one_hot(t, max(n, highest))[..., :n].sum() + n",
            ["torch.randn(2), torch.tensor([[2, 9, 0]])", "torch.randn(2), torch.tensor([1, 1]), 0"],
        ),
    ],
)
def test_the_fixed_form_does_the_same_and_compiles(body: str, inputs: list[str]) -> None:
    before = model(body)
    after, _ = fixed(before)
    assert "is_compiling()" in after
    behaves(before, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES)


@pytest.mark.parametrize("given", ["torch.tensor([1.7, 2.0])", "torch.tensor([1, 0], dtype=torch.int32)", "[2, 1]"])
def test_other_numbers_are_read_as_before(given: str) -> None:
    after, _ = fixed(model("x = torch.roll(x, int(t[0]), 1)"))
    compiles(after, [f"torch.randn(2, 5), {given}"], strict=False)


def test_sizes_may_be_dynamic() -> None:
    body = _TOP + "x = torch.roll(x, -int(top[0]), -1) + F.one_hot(t, max(t.max() + 1, n))[..., :n].sum()"
    after, _ = fixed(model(body))
    inputs = ["torch.randn(3, 5), torch.tensor([4, 1])", "torch.randn(4, 7), torch.tensor([2, 1, 3]), 4"]
    compiles(after, inputs, dynamic=True)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        (_TOP + "y = x[:, top[0]]\n        y.mul_(int(top[0]))", "may write in place"),
        (_TOP + "y = x[:, top[0]]\n        x += int(top[0])\n        x = x + y[:, None]", "may write in place"),
        (_TOP + "y = self.norm(x[:, top[0]]) * int(top[0])", "may be written in place"),
        (_TOP + "y = [x[:, top[0]]] * int(top[0])", "may be written in place"),
        (_TOP + "return x[:, top[int(top[0])]]", "may be written in place"),
        ("x = torch.roll(x * 2, int(t[0]), 1)", "would be computed twice"),
        ("x = torch.roll(x, int(t[0]), (n,))", "its dimension is no constant"),
        ("x = x + F.one_hot(t, max(t.max() - 1, n))[..., :n].sum()", "is larger than all of `t`"),
        ("x = x + F.one_hot(t, max(t.max() + 1, n))[..., : n - 1].sum()", "is not cut to the number of classes"),
        (_TOP + "y = F.relu(x[:, top[0]], True) * int(top[0])", "may be written in place"),
        (_TOP + "y = F.dropout(x[:, top[0]], 0.5, True, True) * int(top[0])", "may be written in place"),
        (
            "b = x.mean(0).argmax()\n        y = self.state[b]\n        self.touch()\n        x = x * y",
            "write in place",
        ),
        (
            "b = x.mean(0).argmax()\n        y = self.state[b]\n        self.later()\n        x = x * y",
            "write in place",
        ),
        (
            "u = x.argmax(-1)\n        m = max(u.max() + 1, n)\n        u[0] = 9\n        x = F.one_hot(u, m)[..., :n]",
            "write in place",
        ),
        ("m = max(t.max() + 1, n)\n        t[0] = 9\n        x = F.one_hot(t, m)[..., :n]", "write in place"),
        ("m = max(t.max() + 1, n)\n        t.add_(1)\n        x = F.one_hot(t, m)[..., :n]", "write in place"),
        (
            "m = max(t.max() + 1, self.n)\n        self.n += 1\n        x = F.one_hot(t, m)[..., : self.n]",
            "may change before",
        ),
        (
            "x = x * 1\n        b = x.mean(0).argmax()\n        for _ in range(2):\n"
            "            y = x[:, b]\n            y.add_(1)\n        x = y",
            "write in place",
        ),
        ("t = t.int()\n        x = torch.roll(x, int(t[0]), 1)", "is no int64"),
        ("m = t.max() + 1\n        t = t + 5\n        x = F.one_hot(t, max(m, n))[..., :n]", "is larger than all of"),
    ],
)
def test_what_could_tell_is_left_alone(body: str, because: str) -> None:
    declined(model(body), because, select=("GM411",))


PAIRS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.triu_indices(3, 3)

    def forward(self, cost: torch.Tensor, value: torch.Tensor):
        offset = torch.argmin(cost)
        i, j = self.first[offset], self.second[offset]
        found = value.new_zeros(6, 6)
        found[offset] = 4.0
        found[:, offset], found[-1] = 5.0, 6.0
        found[offset] += 0.5
        found[offset] = value
        row = found[1]
        found[offset] = row
        return found, i, j
"""
VALUES = [f"torch.tensor([3.0, 1.0, 2.0, 0.5, 4.0, 5.0]), {value}" for value in ("torch.rand(6)", "torch.tensor(3)")]


def test_elements_are_read_and_written_by_a_tensor() -> None:
    after, _ = fixed(PAIRS)
    assert after.count("is_compiling()") == 4  # three statements share a header, and its comment
    assert after.count("# The number stays in its tensor: to read it back would end the graph.") == 4
    behaves(PAIRS, after, VALUES)
    compiles(after, VALUES)


def test_elements_of_which_one_is_written_are_left_together() -> None:
    found = checked(PAIRS.replace("found = value", "j.add_(1)\n        found = value")).findings[0]
    assert "may write in place" in (found.declined or "")


TABLE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, rows):
        table = {}
        for row in rows:
            for j in range(1, len(row)):
                table[row[j]] = float(row[0])
        return table
"""


def test_a_dict_is_no_tensor() -> None:
    assert fixed(TABLE)[0] == TABLE
    assert fixed(TABLE.replace("{}", "made()"))[0] != TABLE


def test_what_is_written_may_be_of_another_dtype() -> None:
    source = PAIRS.replace("found = value.new_zeros", "found = torch.zeros")
    after, _ = fixed(source)
    inputs = ["torch.tensor([3.0, 1.0, 2.0, 0.5]), torch.tensor(3)"]
    behaves(source, after, inputs)
    compiles(after, inputs, strict=False)
    reasons = [each.declined for each in checked(source.replace("= value", "= value + 1")).findings]
    assert "`value + 1` may have another dtype; assign it to a variable first" in reasons


def test_what_is_written_only_sometimes_needs_a_name() -> None:
    source = PAIRS.replace("= 4.0", "= 4.0 if value.dim() else 3.0")
    assert checked(source).findings[1].declined == "assign what is written to a variable first"
