"""Calls that set a module up once (GM603): torch.compile makes them while it traces."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.fixes import fixed, fixed_among

_SOURCE = '''
import threading

import torch
from torch import nn

_lock = threading.Lock()


def tell(layer, given, result):
    return result * 2


def install(model):
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_hook(tell)
    setattr(model, "_installed", True)


def maybe_install(model):
    """Once."""
    if getattr(model, "_installed", False):
        return
    with _lock:
        if getattr(model, "_installed", False):
            return
        install(model)


def capture(function):
    def wrapper(self, x):
        if x.shape[0] > 0:
            maybe_install(self)
        return function(self, x)

    return wrapper


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)

    @capture
    def forward(self, x: torch.Tensor):
        return self.last(self.first(x))
'''
_BEFORE_USE = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor):
        x = self.first(x)
        maybe_install(self)
        return self.last(self.first(x))
"""


def _results(module: types.ModuleType, compiled: bool, whole: bool = True) -> list[torch.Tensor]:
    """What two calls of three models of one class give, to which each hook adds a factor."""
    torch._dynamo.reset()
    found = []
    for rows in (2, 2, 4):
        torch.manual_seed(0)
        model = vars(module)["Model"]()
        call: Any = torch.compile(model, backend="aot_eager", fullgraph=whole) if compiled else model
        found += [call(torch.ones(rows, 3)) for _ in range(2)]
    return found


def _same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.allclose(*each) for each in zip(one, other, strict=True))


def _loaded(source: str) -> types.ModuleType:
    module = types.ModuleType("set_up")
    exec(compile(source, "set_up.py", "exec"), vars(module))
    return module


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", ["", _BEFORE_USE], ids=["in a decorator", "after a layer has run"])
def test_hooks_are_registered_once_in_one_graph(model: str) -> None:
    source = _SOURCE if not model else _SOURCE[: _SOURCE.index("class Model")] + model
    after, found = fixed(source, select=("GM603",))
    assert not found.remaining
    assert "_maybe_install_while_tracing(self)" in after
    module = _loaded(after)
    expected = _results(_loaded(source), compiled=False)
    assert _same(_results(module, compiled=False), expected)
    # Of a layer that has run before, compiled code of torch takes the hooks of its first call, with and without a fix.
    assert _same(_results(module, compiled=True), _results(_loaded(source), compiled=True, whole=False))
    assert _same(_results(module, compiled=True), expected) is (not model)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('setattr(model, "_installed", True)', "pass"),
        ('setattr(model, "_installed", True)', 'setattr(model, "_other", True)'),
        ('setattr(model, "_installed", True)', 'setattr(model, "_installed", False)'),
        ("        return\n    with", "        return True\n    with"),
        ('    if getattr(model, "_installed", False):\n        return\n    with', "    with"),
        ("def maybe_install(model):", "def maybe_install(model, often=False):"),
        ("def maybe_install(model):", "@staticmethod\ndef maybe_install(model):"),
    ],
)
def test_what_may_do_more_than_once_is_left_alone(old: str, new: str) -> None:
    assert old in _SOURCE
    source = _SOURCE.replace(old, new)
    assert fixed(source, select=("GM603",))[0] == source


def test_a_flag_of_the_parts_is_none_of_the_module() -> None:
    source = _SOURCE.replace('    setattr(model, "_installed", True)', "        layer._installed = True")
    assert fixed(source, select=("GM603",))[0] == source


def test_what_dynamo_traces_is_left_alone() -> None:
    source = _SOURCE.replace("    with _lock:", "    if True:").replace(
        "layer.register_forward_hook(tell)", "layer.told = True"
    )
    assert fixed(source, select=("GM603",))[0] == source


def test_a_flag_that_is_an_attribute_is_one() -> None:
    source = _SOURCE.replace('getattr(model, "_installed", False)', "model.installed")
    source = source.replace('setattr(model, "_installed", True)', "model.installed = True")
    source = source.replace(
        "        super().__init__()\n", "        super().__init__()\n        self.installed = False\n"
    )
    after, _ = fixed(source, select=("GM603",))
    assert "_maybe_install_while_tracing(self)" in after
    module = _loaded(after)
    assert _same(_results(module, compiled=True), _results(_loaded(source), compiled=False))


@pytest.mark.parametrize(
    ("install", "above", "kept"),
    [
        ("", 'x = x * (3 if getattr(self, "_installed", False) else 2)', False),
        ("model.factor = 3.0", "x = x * self.factor", False),
        ("model.calls = 10", "self.calls = 1", False),
        ("model.kept = model.rows", "self.rows = x.shape[0]", False),
        ("model.factor = 3.0", "x = x * self.other", True),
        ("model.kept = model.first", "x = self.first(x)", True),
    ],
)
def test_what_is_read_or_changed_above_is_not_set_up_while_tracing(install: str, above: str, kept: bool) -> None:
    model = _BEFORE_USE.replace("        maybe_install(self)\n", f"        {above}\n        maybe_install(self)\n")
    source = _SOURCE[: _SOURCE.index("def capture")] + model
    source = source.replace('    setattr(model, "_in', f'    {install or "pass"}\n    setattr(model, "_in', 1)
    assert ("_maybe_install_while_tracing(self)" in fixed(source, select=("GM603",))[0]) is kept


@pytest.mark.parametrize("place", ["in a method", "in another file"])
def test_a_flag_that_is_taken_back_is_asked_for_by_nothing(place: str, tmp_path: Path) -> None:
    method = "\n    def reset(self):\n        self._installed = False\n" if place == "in a method" else ""
    other = "" if method else "def reset(decoder):\n    decoder._installed = False\n"
    source = _SOURCE + method
    after, reasons = fixed_among(tmp_path, source, {"other.py": other}, select=("GM603",))
    assert after == source
    assert any("set it up again" in each for each in reasons)
