"""What a function gathers in `*rest` and `**words`, and gets behind a star, is followed like any other argument."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined, fixed

SELECT = """
import torch
from torch import nn


{helper}


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.tanh()
        z = y
        if y.sum() > 0:
            z = y * 2
        {call}
        return y + z
"""


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        ("def grow(**parts):\n    parts['z'].add_(1)", "grow(z=z)"),
        ("def grow(first, **parts):\n    parts['z'].add_(1)", "grow(x, z=z)"),
        ("def grow(first, *parts):\n    parts[0].add_(1)", "grow(x, z)"),
        ("def grow(first, *parts):\n    parts[0].add_(1)", "grow(*(x, z))"),
        ("def grow(first, part=None):\n    part.add_(1)", "grow(x, **{'part': z})"),
        ("def tell(part, *, other):\n    return part is other", "x = x * tell(y, other=z)"),
        ("def tell(*parts):\n    return parts[0] is parts[1]", "x = x * tell(y, z)"),
        ("def tell(**parts):\n    return parts['a'] is parts['b']", "x = x * tell(a=y, b=z)"),
        (
            "def tell(one, other):\n    return deeper(other, one)\n\n\ndef deeper(a, b):\n    return a is b",
            "x = x * tell(y, z)",
        ),
        (
            "def tell(one, other, n=1):\n    return deeper(other, one, n)\n\n\n"
            "def deeper(a, b, n):\n    return tell(a, b, n - 1) if n else a is b",
            "x = x * tell(y, z)",
        ),
    ],
)
def test_a_select_is_refused_where_a_function_would_tell(helper: str, call: str) -> None:
    source = SELECT.format(helper=helper, call=call)
    assert fixed(source)[0] == source


LISTS = """
import torch
from torch import nn


{helper}


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        counts = [1, x.shape[0] - 1]
        lengths = torch.tensor(counts)
        {call}
        return torch.cat(x.split(lengths.tolist())[::-1])
"""


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        ("def turn(**lists):\n    lists['counts'].reverse()", "turn(counts=counts)"),
        ("def turn(other, *lists):\n    lists[0].reverse()", "turn(x, counts)"),
        ("def turn(other, counts):\n    counts.reverse()", "turn(counts, *[counts])"),
        ("def turn(other, counts):\n    counts.reverse()", "turn(x, **{'counts': counts})"),
    ],
)
def test_a_list_that_a_function_may_change_is_copied_before(helper: str, call: str) -> None:
    after, _ = fixed(LISTS.format(helper=helper, call=call))
    assert "x.split(counts)" not in after


NUMBERS = """
import torch
from torch import nn


class Model(nn.Module):
    {part}

    def forward(self, x: torch.Tensor, t: torch.Tensor):
        n = int(t.max())
        return {call} + x.sum()
"""


@pytest.mark.parametrize(
    ("part", "call"),
    [
        ("def part(self, x, **words):\n        return x.new_zeros(words['n'] or 1)", "self.part(x, n=n)"),
        ("def part(self, x, **words):\n        return x.new_zeros(1 if words['n'] else 2)", "self.part(x, n=n)"),
        ("def part(self, x, *rest):\n        return x.new_zeros(1 if rest[0] else 2)", "self.part(x, n)"),
        ("def part(self, x, n):\n        return x.new_zeros(n or 1)", "self.part(x, **{'n': n})"),
        ("def part(self, x, n):\n        return x.new_zeros(n or 1)", "Model.part(self, x, n)"),
    ],
)
def test_a_number_that_a_function_asks_for_is_read_as_before(part: str, call: str) -> None:
    source = NUMBERS.format(part=part, call=call)
    assert fixed(source, opaque=True, select=("GM802",))[0] == source


LEAVES = """
import torch
from torch import nn


def keep(leaf, where):
    put(where, leaf)


def put(where, leaf):
    where.last = leaf


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        total = torch.tensor(0.0, requires_grad=True, device=x.device)
        {call}
        return x + total
"""


@pytest.mark.parametrize("call", ["keep(total, self)", "put(self, total)", "keep(where=self, leaf=total)"])
def test_a_leaf_that_a_function_keeps_stays_one(call: str) -> None:
    declined(LEAVES.format(call=call), because="others may ask that for a leaf")


JOINED = """
import torch
from torch import nn


def halve(*parts):
    parts[0].mul_(0.5)


class Part(nn.Module):
    def forward(self, x: torch.Tensor, *scales):
        z = x * 2.0
        if z.sum() > 0:
            z = z * 2.0
        scales[0].mul_(0.5)
        return z


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0]))

    def forward(self, x: torch.Tensor, scale: torch.Tensor):
        y = x * {read}.exp()
        {between}
        {below}
        return y
"""


@pytest.mark.parametrize(
    ("read", "between", "below"),
    [
        ("scale", "if y.sum() > 0:\n            y = y * 2.0", "halve(scale)"),
        ("self.scale", "y = self.part(y, self.scale)", "pass"),
    ],
)
def test_what_a_function_writes_of_what_it_gathers_is_for_code_without_gradients(
    read: str, between: str, below: str
) -> None:
    after, _ = fixed(JOINED.format(read=read, between=between, below=below))
    assert after.count("is_grad_enabled") == 1


HANDED_ON = """
import torch
from torch import nn


class Reads(nn.Module):
    def forward(self, x, mask=None, **words):
        return x if mask is None else x * mask.sigmoid()


class Writes(nn.Module):
    def forward(self, x, mask=None, **words):
        mask.add_(x)
        return x * mask


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.reads = Reads()
        self.writes = Writes()

    def forward(self, x: torch.Tensor, **words):
        x = self.reads(x, **words)
        print("read")
        return self.writes(x, {given}**words)
"""


def test_words_handed_on_hold_none_of_what_is_given_by_name() -> None:
    assert "if not torch.compiler.is_compiling():" in fixed(HANDED_ON.format(given="mask=x.clone(), "))[0]
    declined(HANDED_ON.format(given=""), "`words` is read and written in place")
