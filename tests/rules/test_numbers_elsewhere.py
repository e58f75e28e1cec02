"""Numbers, lists and state that code elsewhere may change, read or give: another file, a subclass, another name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, fixed_among
from tests.tools.observe import Scenario

_BUFFER = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, span: int = 3):
        super().__init__()
        self.span = span
        self.register_buffer("width", torch.tensor(span, dtype=torch.int64), persistent=False)

    def forward(self, x: torch.Tensor):
        return F.pad(x, (self.width, 0))
"""


@pytest.mark.parametrize(
    ("other", "because"),
    [
        ("def widen(m):\n    m.span = 5", "`m.span` is assigned in other.py"),
        ("def widen(m):\n    m.width += 5", "`m.width` is assigned in other.py"),
        ("def widen(m):\n    m.width.fill_(5)", "`m.width` is changed in other.py"),
        ("def widen(m):\n    m.width.copy_(torch.tensor(5))", "`m.width` is changed in other.py"),
        ("def widen(m):\n    m.width.data = torch.tensor(5)", "`m.width.data` is assigned in other.py"),
        ("def widen(m):\n    m.width.data.add_(1)", "`m.width` is changed in other.py"),
        ("def widen(m):\n    m.width[...] = 5", "`m.width` is changed in other.py"),
        ("def widen(m):\n    m.register_buffer('width', torch.tensor(5))", "`m.width` is assigned in other.py"),
        ("def widen(m):\n    setattr(m, 'span', 5)", "`m.span` is assigned in other.py"),
        ("def widen(m):\n    torch.nn.init.constant_(m.width, 5)", "`m.width` is changed in other.py"),
        ("def widen(m):\n    torch.add(m.width, 1, out=m.width)", "`m.width` is changed in other.py"),
        ("def hook(self, state, prefix, *rest):\n    self.width.copy_(state['w'])", "`self.width` is changed in"),
    ],
)
def test_a_number_that_another_file_may_change_stays_in_its_buffer(tmp_path: Path, other: str, because: str) -> None:
    other = f"import torch\nfrom model import Model\n{other}\n"
    after, reasons = fixed_among(tmp_path, _BUFFER, {"other.py": other})
    assert after == _BUFFER
    assert any(because in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    "heir",
    [
        "def widen(self):\n        self.span = 5",
        "span = 5",
        "def widen(self):\n        self.register_buffer('width', torch.tensor(5))",
    ],
)
def test_a_subclass_that_sets_the_number_runs_the_original(tmp_path: Path, heir: str) -> None:
    other = f"import torch\nfrom model import Model\n\n\nclass Heir(Model):\n    {heir}\n"
    after, _ = fixed_among(tmp_path, _BUFFER, {"other.py": other})
    assert "type(self) is Model and type(self.span) is int" in after


@pytest.mark.parametrize(
    "other",
    [
        "from model import Model\nm = Model()\nm.span = 5",
        "def widen(m):\n    m.width[...] = 5",
        "def widen(m):\n    m.width += 5",
        "def widen(m):\n    m.width.fill_(5)",
        "def widen(m):\n    setattr(m, 'span', 5)",
        "def widen(m, t):\n    m.width.data = t",
    ],
)
def test_a_file_that_imports_no_torch_may_change_a_number(tmp_path: Path, other: str) -> None:
    after, reasons = fixed_among(tmp_path, _BUFFER, {"other.py": f"{other}\n"})
    assert after == _BUFFER
    assert any("in other.py" in reason for reason in reasons), reasons


def test_a_number_that_is_no_integer_stays_in_its_buffer() -> None:
    after, _ = fixed(_BUFFER)
    assert "type(self.span) is int" in after
    made = "\n\ndef make():\n    return Model(2.7)\n"
    compiles(after + made, ["torch.ones(2, 3)"], name="make", strict=False)


def test_an_heir_gets_the_tensor_that_a_method_returns() -> None:
    source = _BUFFER.replace(
        "    def forward(self, x: torch.Tensor):\n        return F.pad(x, (self.width, 0))\n",
        "    def _wide(self):\n        return self.width + 1\n\n"
        "    def forward(self, x: torch.Tensor):\n        return F.pad(x, (self._wide(), 0))\n",
    )
    after, _ = fixed(source)
    assert "and type(self) is Model" in after
    heir = """

class Replaced(Model):
    def forward(self, x):
        return super().forward(x) + self._wide().float()
"""
    compiles(after + heir, ["torch.ones(2, 3)"], name="Replaced", strict=False)


_GRID = """
import torch
from torch import nn


class Grid(nn.Module):
    def points(self, shapes):
        return torch.cat([torch.linspace(0, 1, height * width) for height, width in shapes])

    def forward(self, x, shapes, shape_list):
        return x + self.points(shapes)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = Grid()

    def forward(self, maps):
        shape_list = [tuple(each.shape) for each in maps]
        shapes = torch.as_tensor(shape_list, dtype=torch.long)
        return self.grid(torch.cat([each.flatten() for each in maps]), shapes, shape_list)
"""
_CHOSEN = "self.points(shape_list)"


def test_a_list_takes_the_place_of_its_tensor_where_all_callers_are_known(tmp_path: Path) -> None:
    assert _CHOSEN in fixed_among(tmp_path, _GRID, {})[0]


@pytest.mark.parametrize(
    "other",
    [
        "def points(grid: Grid, x):\n    return grid(x, torch.tensor([[1, 2]]), [(2, 1)])",
        "class Heir(Grid):\n    def forward(self, x, shapes, shape_list):\n"
        "        return super().forward(x, shapes + 1, shape_list)",
    ],
)
def test_a_caller_in_another_file_may_give_another_list(tmp_path: Path, other: str) -> None:
    other = f"import torch\nfrom model import Grid\n{other}\n"
    after, reasons = fixed_among(tmp_path, _GRID, {"other.py": other})
    assert after == _GRID
    assert any("`Grid` is used in other.py as well" in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    "change",
    [
        "other = shape_list\n        other.reverse()",
        "held = [shape_list]\n        held[0].reverse()",
        "self.turn(shape_list)",
        "turned(shape_list)",
        "self.kept = shape_list\n        self.kept.reverse()",
    ],
)
def test_a_list_that_changes_by_another_name_is_not_used(tmp_path: Path, change: str) -> None:
    source = _GRID.replace("        return self.grid(", f"        {change}\n        return self.grid(")
    source = source.replace("class Model(", "def turned(given):\n    given.reverse()\n\n\nclass Model(")
    source += "\n    def turn(self, given):\n        more = given\n        more.reverse()\n"
    after, _ = fixed_among(tmp_path, source, {})
    assert "if torch.compiler.is_compiling()" not in after


@pytest.mark.parametrize(
    "call",
    [
        "grid = self.grid\n        return grid(maps[0].flatten(), torch.tensor([[1, 2]]), [(2, 1)])",
        "return self.grid.points(torch.tensor([[1, 2]]))",
        "return self.grid.forward(maps[0].flatten(), torch.tensor([[1, 2]]), [(2, 1)])",
        "return [each(maps[0].flatten(), torch.tensor([[1, 2]]), [(2, 1)]) for each in self.children()]",
    ],
)
def test_a_second_caller_gets_what_it_gave(call: str) -> None:
    source = _GRID + f"\n    def other(self, maps):\n        {call}\n"
    source += "\n\nclass Replaced(Model):\n    def forward(self, maps):\n        return self.other(maps)\n"
    after, _ = fixed(source)
    compiles(after, ["([torch.ones(2, 1)],)"], name="Replaced", strict=False)


def test_a_list_of_an_annotated_parameter_is_not_taken_for_integers() -> None:
    source = _GRID.replace("def forward(self, maps):", "def forward(self, maps, shape_list: list[tuple[int, int]]):")
    source = source.replace("        shape_list = [tuple(each.shape) for each in maps]\n", "")
    assert _CHOSEN not in fixed(source)[0]


def test_an_heir_that_needs_the_tensor_gets_it() -> None:
    heir = """

class Heir(Grid):
    def points(self, shapes):
        return super().points(shapes) + shapes.sum()


class Replaced(Model):
    def __init__(self):
        super().__init__()
        self.grid = Heir()
"""
    after, _ = fixed(_GRID + heir)
    compiles(after, ["([torch.ones(2, 1)],)"], name="Replaced", strict=False)


_END = """
import torch
from torch import nn


class Model(nn.Module):
    def later(self, positions):
        length = positions[-1] + 1
        return torch.arange(length) > positions.reshape(-1, 1)

    def forward(self, x: torch.Tensor, positions=None, past=0):
        if positions is None:
            positions = torch.arange(past, past + x.shape[0])
        mask = self.later(positions)
        return x.sum() * mask
"""


def test_an_heir_without_the_new_argument_gets_the_old_ones() -> None:
    after, _ = fixed(_END)
    assert "type(self).later is Model.later" in after
    heir = """

class Replaced(Model):
    def later(self, positions):
        return super().later(positions) | (positions > 1)[:, None]
"""
    compiles(after + heir, ["torch.ones(3)"], name="Replaced", strict=False)


@pytest.mark.parametrize("past", ["2", "0.5", "torch.tensor(2)", "torch.tensor([2])[0]"])
def test_an_end_that_is_no_integer_is_read_out_of_the_positions(past: str) -> None:
    after, _ = fixed(_END)
    compiles(after, [f"torch.ones(3), None, {past}"], strict=False)


def test_eager_mode_adds_no_tensors_for_the_end() -> None:
    assert (
        "            if torch.compiler.is_compiling():\n                end_of_positions = past + x.shape[0]\n"
        in fixed(_END)[0]
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "        length = positions",
            "        other = positions.view(-1)\n        other += 1\n        length = positions",
        ),
        ("        length = positions", "        torch.add(positions, 1, out=positions)\n        length = positions"),
        ("        mask = self", "        other = positions[:]\n        other.add_(1)\n        mask = self"),
        ("return torch.arange(length)", "length = length / 2\n        return torch.arange(length)"),
        ("return torch.arange(length)", "self.note(length)\n        return torch.arange(length)"),
        ("past, past + x.shape[0]", "past, x.shape[0]"),
    ],
)
def test_an_end_that_may_differ_or_be_needed_as_a_tensor_is_read(old: str, new: str) -> None:
    source = _END.replace(old, new)
    assert source != _END
    assert "end_of_positions" not in fixed(source)[0]


@pytest.mark.parametrize(
    "also", ["self.length = length", "kept = {1: length}", "if len(positions) < 0:\n            return length"]
)
def test_an_end_that_is_needed_as_a_tensor_as_well_is_one(also: str) -> None:
    source = _END.replace("return torch.arange(length)", f"{also}\n        return torch.arange(length)")
    after, _ = fixed(source)
    assert "torch.arange(end_of_positions)" in after
    compiles(after, ["torch.ones(3)", "torch.ones(4)"])


_STATE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4), persistent=False)
        self.short_scale = self.scale

    def build(self, factor):
        return torch.full((4,), factor)

    def forward(self, x: torch.Tensor):
        longest = torch.max(x)
        if longest > 3:
            if not hasattr(self, "long_scale"):
                self.long_scale = self.build(2.0)
            self.register_buffer("scale", self.long_scale, persistent=False)
        else:
            self.register_buffer("scale", self.short_scale, persistent=False)
        return x[:1] * self.scale
"""
_GROWING = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4), persistent=False)
        self.longest, self.factor = 3, 1.0

    def scaled(self, length):
        return torch.ones(4) * length, 1.0

    def forward(self, x: torch.Tensor):
        length = torch.max(x)
        if length > self.longest:
            scale, self.factor = self.scaled(length)
            self.register_buffer("scale", scale, persistent=False)
            self.longest = length
        return x[:1] * self.scale
"""


@pytest.mark.parametrize("source", [_STATE, _GROWING])
@pytest.mark.parametrize(
    ("old", "new"), [("(4,), f", "(1,), f"), ("factor)", "factor, dtype=torch.float64)"), ("", "")]
)
def test_a_table_of_another_shape_or_dtype_is_not_selected(source: str, old: str, new: str) -> None:
    source = source.replace(old, new) if old else source
    if "torch.ones(4) * length" in source and old:
        source = source.replace(
            "torch.ones(4) * length", "torch.ones(1) * length" if "1" in new else "torch.ones(4).double()"
        )
    after, _ = fixed(source)
    assert "torch.where(" in after
    inputs = ["torch.ones(4)", "torch.full((4,), 5.0)", "torch.ones(4)"]
    compiles(after, inputs, scenarios=[Scenario(gradients="off")], strict=not old, state=False)


@pytest.mark.parametrize(
    "use",
    [
        "return self.long_scale",
        "return getattr(self, 'long_scale', None)",
        "return hasattr(self, 'long_scale')",
    ],
)
def test_a_cached_value_that_is_read_elsewhere_is_stored_by_the_branch(use: str) -> None:
    declined(_STATE + f"\n    def kept(self):\n        {use}\n", because="`long_scale` is used outside the branch")


def test_a_cached_value_that_another_file_reads_is_stored_by_the_branch(tmp_path: Path) -> None:
    heir = "class Heir(Model):\n    def kept(self):\n        return self.long_scale\n"
    other = f"import torch\nfrom model import Model\n{heir}"
    after, reasons = fixed_among(tmp_path, _STATE, {"other.py": other})
    assert after == _STATE
    assert any("`long_scale` is used in other.py" in reason for reason in reasons)
