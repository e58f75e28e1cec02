"""Parts that are replaced elsewhere: by a subclass in another file, from outside, by an assigned method, by a hook."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed, fixed_among
from tests.tools.observe import Scenario

_ROWS = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.long = nn.Linear(4, 4)

    def forward(self, x, rows):
        y = self.proj(x)
        if len(rows) > 0:
            y[rows] = self.long(x[rows])
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, longer: torch.Tensor):
        rows = torch.where(longer)[0]
        return self.part(x, rows)
"""
_SUM_OF_ROWS = """

class Summed(Part):
    def forward(self, x, rows):
        return super().forward(x, rows) + len(rows)


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0)


class Replaced(Model):
    def __init__(self):
        super().__init__()
        {replaced}
"""


@pytest.mark.parametrize(
    "replaced",
    [
        "self.part = Summed()",
        "self.part.long = Centred()",
        "self.part.long = nn.Sequential(nn.Linear(4, 4), Centred())",
    ],
)
def test_rows_stay_numbers_for_a_layer_of_another_class(replaced: str) -> None:
    after, _ = _fixed_rows()
    source = after + _SUM_OF_ROWS.format(replaced=replaced)
    masks = ("[True, False, True]", "[False] * 3", "[True, True, True]")
    compiles(source, [f"torch.ones(3, 4), torch.tensor({mask})" for mask in masks], name="Replaced", strict=False)


def _fixed_rows() -> tuple[str, list[str]]:
    after, result = fixed(_ROWS, select=("GM505",), unsafe_fixes=True)
    assert "type(self.part) is Part" in after
    assert "type(self.long) is nn.Linear" in after
    return after, [each.declined or "" for each in result.remaining]


@pytest.mark.parametrize(
    "mask", ["[True, False]", "[False] * 2", "[True, False, True, False]", "[[True], [True], [False]]"]
)
def test_a_mask_without_an_entry_for_each_row_is_handed_down_as_numbers(mask: str) -> None:
    after, _ = _fixed_rows()
    compiles(after, [f"torch.randn(3, 4), torch.tensor({mask})"], strict=False)


def test_no_rows_at_all_are_no_error() -> None:
    after, _ = _fixed_rows()
    for shape in ("0", "(0, 3)"):
        compiles(after, [f"torch.ones(0, 4), torch.zeros({shape}, dtype=torch.bool)"], strict=False)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_rows_that_numbers_choose_are_handed_down_as_numbers(dtype: str) -> None:
    after, _ = _fixed_rows()
    compiles(after, [f"torch.randn(3, 4), torch.tensor([0, 2, 1]).to(torch.{dtype})"], strict=False)


_HOOK = """
    from model import Model
    def watched(model: Model):
        model.part.register_forward_pre_hook(print)
    """
_PATCH = """
    import model
    def forward(self, x, rows):
        return self.proj(x) * len(rows)
    model.Part.forward = forward
    """


@pytest.mark.parametrize(
    ("other", "because"), [(_HOOK, "registers a hook on `model.part`"), (_PATCH, "is assigned in")]
)
def test_a_hook_or_an_assigned_method_in_another_file_is_a_reason(tmp_path: Path, other: str, because: str) -> None:
    other = "import torch\n" + dedent(other)
    after, reasons = fixed_among(tmp_path, _ROWS, {"other.py": other}, select=("GM505",), unsafe_fixes=True)
    assert "rows = torch.where(longer)[0]\n        return" in after
    assert any(because in reason for reason in reasons), reasons


_FLAG = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, masked=None):
        y = x * 2
        if masked:
            y = self.linear(y)
        assert y.size() == x.size()
        return y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor):
        mask = x > 3
        masked = mask.any().item()
        return self.part(x, masked)
"""
_AGAIN = """

class Again(Part):
    def forward(self, x, masked=None):
        return super().forward(x, masked) + (7 if masked is True else 1)


class Limited(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Replaced(Model):
    def __init__(self):
        super().__init__()
        {replaced}
"""


@pytest.mark.parametrize("replaced", ["self.part = Again()", "self.part.linear = Limited()"])
def test_a_flag_stays_a_python_bool_for_a_layer_of_another_class(replaced: str) -> None:
    after, _ = fixed(_FLAG, select=("GM106", "GM403"))
    assert "torch.cond" in after
    source = after + _AGAIN.format(replaced=replaced)
    inputs = ["torch.ones(2, 4)", "torch.ones(2, 4) * 4"]
    compiles(source, inputs, name="Replaced", scenarios=[Scenario(gradients="off")], strict=False)


def test_an_heir_does_not_run_twice_when_a_flag_is_handed_to_cond() -> None:
    after, _ = fixed(_FLAG, select=("GM106", "GM403"))
    source = (
        after
        + _AGAIN.format(replaced="self.part = Again()")
        + ("\n    def forward(self, x):\n        return self.part(x, (x > 3).any())\n")
    )
    inputs = ["torch.ones(2, 4)", "torch.ones(2, 4) * 4"]
    compiles(source, inputs, name="Replaced", scenarios=[Scenario(gradients="off")], strict=False)


_POSITIONS = """
import torch
from torch import nn


class Layer(nn.Module):
    def forward(self, x: torch.Tensor, positions=None):
        if positions is not None and positions[0] > 0:
            x = x * 2
        return x + 1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.width = 4

    def forward(self, x: torch.Tensor):
        positions = torch.arange(0, self.width, device=x.device)
        for layer in self.layers:
            x = layer(x, positions=positions)
        return x
"""
_SHIFTED = """

class Shifted(Layer):
    def forward(self, x, positions=None):
        return super().forward(x, positions) + positions.sum()


class Replaced(Model):
    def __init__(self):
        super().__init__()
        self.layers[1] = Shifted()
"""


def test_a_range_stays_a_tensor_for_a_layer_of_another_class() -> None:
    after, _ = fixed(_POSITIONS)
    assert "all(type(layer) is Layer for layer in self.layers)" in after
    compiles(after, ["torch.ones(3)"])
    compiles(after + _SHIFTED, ["torch.ones(3)"], name="Replaced", strict=False)


_BOUNDS = """
import torch
from torch import nn


def gated(x, channels):
    return torch.tanh(x[:, :channels]) * torch.sigmoid(x[:, channels:])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = 3

    def forward(self, x: torch.Tensor):
        channels = torch.IntTensor([self.wide])
        return gated(x, channels[0])
"""


def test_a_function_that_another_file_assigns_gets_the_number_in_its_tensor(tmp_path: Path) -> None:
    assert "gated(x, self.wide)" in fixed_among(tmp_path, _BOUNDS, {})[0]
    other = "import torch\nimport model\nmodel.gated = lambda x, channels: x * channels.float()\n"
    after, reasons = fixed_among(tmp_path, _BOUNDS, {"other.py": other})
    assert after == _BOUNDS
    assert any("`model.gated` is assigned in other.py" in reason for reason in reasons)


_MASK = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        x = self.proj(x)
        if mask is not None:
            x = x * mask[:, :, None]
        return torch.cumsum(x, dim=1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, mask=None, positions=None):
        if positions is None:
            positions = torch.arange(x.shape[1])
        kept = self._mask(mask, positions)
        return self.part(x, kept)

    def _mask(self, mask, positions):
        kept = mask
        if positions[0] > 0 or (mask is not None and torch.all(mask == 1)):
            kept = None
        return kept
"""
_COUNTED = """

class Counted(Part):
    def forward(self, x, mask=None):
        return super().forward(x, mask) + (0 if mask is None else 1)


class Replaced(Model):
    def __init__(self):
        super().__init__()
        {replaced}
"""
_MASKS = ["torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.long)", "torch.randn(2, 3, 4)"]


def test_a_mask_becomes_none_for_a_layer_of_another_class() -> None:
    after, _ = fixed(_MASK)
    assert "type(self.part) is Part" in after
    source = after + _COUNTED.format(replaced="self.part = Counted()")
    compiles(source, _MASKS, name="Replaced", scenarios=[Scenario(gradients="off")], strict=False)


def test_an_heir_elsewhere_that_uses_the_mask_otherwise_is_asked_for(tmp_path: Path) -> None:
    heir = """
        import torch
        from model import Model
        class Heir(Model):
            def forward(self, x, mask=None, positions=None):
                kept = self._mask(mask, torch.arange(x.shape[1]))
                return x if kept is None else -x
        """
    assert "type(self) is Model" not in fixed_among(tmp_path, _MASK, {})[0]
    assert "and type(self) is Model" in fixed_among(tmp_path, _MASK, {"heir.py": heir})[0]


def test_positions_may_be_given_as_a_list() -> None:
    after, _ = fixed(_MASK)
    compiles(after, ["torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.long), [0, 1, 2]"], strict=False)


def test_what_other_files_do_counts_in_every_run_with_a_cache(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(_MASK)
    other = tmp_path / "other.py"

    def reasons() -> list[str | None]:
        found = api.check([tmp_path / "model.py"], Settings(tmp_path), cache=True).findings
        return [each.declined for each in found if each.code == "GM109"]

    assert reasons() == [None]
    assert reasons() == [None]
    other.write_text("import torch\n\n\ndef watch(model):\n    model.part.register_forward_hook(print)\n")
    assert reasons() == ["other.py registers a hook on `model.part`"]
    assert reasons() == ["other.py registers a hook on `model.part`"]
    other.write_text("import torch\n")
    assert reasons() == [None]
