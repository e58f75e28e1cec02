"""Parts that are replaced elsewhere: by a subclass in another file, from outside, by an assigned method, by a hook."""

from __future__ import annotations

from pathlib import Path

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed, fixed_among
from tests.tools.observe import Scenario

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
    assert "gated(x, numbers_in_channels[0])" in fixed_among(tmp_path, _BOUNDS, {})[0]
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
