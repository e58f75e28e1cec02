"""GM802: a number of which Python asks the truth (`n or 1`, `if n:`) is read as before, also in other files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import fixed, fixed_among

MODEL = """
import torch
from torch import nn
from sizes import rows


class Model(nn.Module):
    def part(self, x, n):
        return x.new_zeros(n or 1)

    def forward(self, x: torch.Tensor, t: torch.Tensor, least=0):
        n = int(t.max())
        return EXPRESSION + x.sum()
"""
SIZES = """
    def rows(x, n=None):
        return BODY
"""


@pytest.mark.parametrize(
    "expression",
    ["x.new_zeros(n or 1)", "x.new_zeros(max(least or n or 2, 1))", "self.part(x, n)", "x.new_zeros(n and 3)"],
)
def test_operands_of_or_are_asked_for_their_truth(expression: str) -> None:
    before = MODEL.replace("from sizes import rows\n", "").replace("EXPRESSION", expression)
    assert fixed(before, opaque=True, select=("GM802",))[0] == before


def test_the_last_operand_is_not_asked() -> None:
    before = MODEL.replace("from sizes import rows\n", "").replace("EXPRESSION", "x.new_zeros(least or n)")
    after, _ = fixed(before, opaque=True, select=("GM802",))
    assert "_integer_in_graph(" in after
    compiles(after, ["torch.ones(2), torch.tensor([3, 1])"])


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("x.new_zeros(n or 1)", True),
        ("x.new_zeros(n) if n else x", True),
        ("x.new_zeros(n)", False),
        ("x if n is None else x.new_zeros(n)", False),
    ],
)
@pytest.mark.parametrize("call", ["rows(x, n)", "rows(x, n=n + 1)"])
def test_functions_of_other_files_are_asked(tmp_path: Path, body: str, call: str, *, stays: bool) -> None:
    source = MODEL.replace("EXPRESSION", call)
    others = {"sizes.py": dedent(SIZES).replace("BODY", body)}
    after, _ = fixed_among(tmp_path, source, others, opaque=True, select=("GM802",))
    assert (after == source) is stays


@pytest.mark.parametrize("test", ["self.training and n > 3 and least", "least is not None and n > 3 and x.dim() > 1"])
def test_a_test_that_python_decides_first_is_passed_by_as_before(test: str) -> None:
    before = MODEL.replace("from sizes import rows\n", "").replace("EXPRESSION", f"(x if {test} else x.new_zeros(n))")
    after, _ = fixed(before, opaque=True, select=("GM802",))
    assert "_integer_in_graph(" in after


@pytest.mark.parametrize(("body", "stays"), [("x.new_zeros(n or 1)", True), ("x.new_zeros(n)", False)])
def test_layers_of_other_files_are_asked(tmp_path: Path, body: str, *, stays: bool) -> None:
    source = """
import torch
from torch import nn
from parts import Part


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, t: torch.Tensor):
        n = int(t.max())
        return self.part(x, n) + x.sum()
"""
    part = f"""
    import torch
    from torch import nn


    class Part(nn.Module):
        def forward(self, x, n):
            return {body}
    """
    after, _ = fixed_among(tmp_path, source, {"parts.py": part}, opaque=True, select=("GM802",))
    assert (after == source) is stays


@pytest.mark.parametrize(("body", "stays"), [("x.new_zeros(n or 1)", True), ("x.new_zeros(n)", False)])
def test_heirs_that_a_base_class_calls_are_asked(tmp_path: Path, body: str, *, stays: bool) -> None:
    source = """
import torch
from torch import nn


class Base(nn.Module):
    def forward(self, x, n):
        raise NotImplementedError

    def __call__(self, x: torch.Tensor, t: torch.Tensor):
        n = int(t.max())
        return super().__call__(x, n=n)
"""
    heir = f"""
    from model import Base


    class Heir(Base):
        def forward(self, x, n):
            return {body}
    """
    after, _ = fixed_among(tmp_path, source, {"heir.py": heir}, opaque=True, select=("GM802",))
    assert (after == source) is stays


OWN = """
from functools import partial

import torch
from torch import nn


def head(rows):
    return rows.sum() if len(rows) else rows.new_zeros(())


def deep(rows):
    return head(rows * 2)


def first(x, n=1):
    return x * (n or 1)


def times(x, n):
    return x * n


class Part(nn.Module):
    def forward(self, rows):
        return rows.mean() if rows.shape[0] else rows.sum()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.act = Part(), first

    def more(self, x, n):
        return x * (n or 1)

    def made(self, n):
        return partial(self.more, n=n)

    def forward(self, x: torch.Tensor, t: torch.Tensor, given=first):
        BODY
"""
NUMBERS = [
    "m = n * 2; return x * (m or 1)",
    "return x * (1 if min(n, 3) else 2)",
    "a, b = n, 3; return x * (a or b)",
    "sizes = [n, 1]; return x * any(sizes)",
    "sizes = []; sizes.append(n); return x * (sizes[0] or 1)",
    "sizes = {}; sizes['n'] = n; return x * (sizes.get('n') or 1)",
    "self.n = n; return x * (self.n or 1)",
    "return first(*(x, n))",
    "return given(x, n)",
    "return self.act(x, n)",
    "return self.made(n)(x)",
]
ROWS = [
    "rows = x[x > 0]; n = len(rows); return rows.sum() / (n or 1)",
    "rows = x[x > 0]; more = rows * 2; return x if len(more) else x * 2",
    "n, c = x[x[:, 0] > 0].shape; return x if n else x * 2",
    "n = (x > 0).nonzero().shape[0]; return first(x, n)",
    "self.rows = x[x > 0]; return x if len(self.rows) else x * 2",
    "rows = x[x > 0]; return x if rows.nelement() else x * 2",
    "return head(x[x > 0]) + x",
    "return deep(x[x > 0]) + x",
    "return self.part(x[x[:, 0] > 0]) + x",
]


@pytest.mark.parametrize("body", [*(f"n = int(t.max()); {each}" for each in NUMBERS), *ROWS])
def test_what_is_made_of_a_number_or_a_size_may_be_asked_as_well(body: str) -> None:
    before = OWN.replace("BODY", body)
    assert fixed(before, opaque=True)[0] == before


@pytest.mark.parametrize(
    "body",
    [
        "n = int(t.max()); return times(x, n)",
        "n = int(t.max()); sizes = {'n': n}; return x * sizes['n']",
        "rows = x[x > 0]; return rows.sum() / max(len(rows), 1)",
        "n = len(x[x > 0]); return times(x, n)",
        "rows = x[x[:, 0] > 0]; return rows.new_zeros(rows.shape[0], 2)",
    ],
)
def test_other_uses_of_them_are_not(body: str) -> None:
    assert "_in_graph(" in fixed(OWN.replace("BODY", body), opaque=True)[0]


def test_names_of_as_many_elements_as_data_says_do_not_leave_an_operator() -> None:
    """They had one element for the compiler, and as many as there are in its graph."""
    before = OWN.replace("BODY", "rows = x[x > 0]; more = rows * 2; y = more.sort()[0]; return x if len(y) else x * 2")
    before = before.replace("; ", "\n        ")
    assert fixed(before, opaque=True)[0] == before
    assert fixed(before, opaque=True, select=("GM801",))[0] == before


_GATHERED = """
import torch


def gathered(data):
    if isinstance(data, dict):
        return {key: gathered(value) for key, value in data.items()}
    elif isinstance(data, tuple) and type(data) is tuple:
        return type(data)(gathered(value) for value in data)
    elif isinstance(data, torch.Tensor):
        if data.dim() == 0:
            data = data[None]
        return data * 1
    elif isinstance(data, int):
        return torch.tensor([data])
    TEST
    return data
"""
_GATHERS = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        stats = dict(loss=x.sum(), n=int(lengths.sum()), acc=None)
        stats, other = gathered((stats, x.shape[0]))
        return stats["n"] * x + other
"""


@pytest.mark.parametrize(
    ("test", "counts"),
    [
        ("elif data is None:\n        return None", False),
        ("elif hasattr(data, 'items'):\n        return None", False),
        ("elif data:\n        return None", True),
    ],
)
def test_of_what_type_a_number_is_asks_for_no_value(tmp_path: Path, test: str, counts: bool) -> None:
    gathered = _GATHERED.replace("TEST", test)
    assert ("_in_graph(" in fixed(f"{_GATHERS}{gathered}", opaque=True)[0]) is not counts
    imported = _GATHERS.replace("from torch import nn\n", "from torch import nn\nfrom gather import gathered\n")
    assert ("_in_graph(" in fixed_among(tmp_path, imported, {"gather.py": gathered}, opaque=True)[0]) is not counts
