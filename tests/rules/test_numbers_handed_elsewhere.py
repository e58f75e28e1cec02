"""Tensors that are made of Python integers, and handed to a function of another file that reads them for bounds."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.tools.fixes import fixed_among

MODEL = """
import torch
from torch import nn

import gates_elsewhere{imports}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        channels = torch.IntTensor([self.hidden])
        for _ in range(2):
            gated = gates_elsewhere.gated(x, channels)
            {below}
            x = torch.cat([gated, gated], dim=1)
        return x
"""
GATES = """
import torch

{decorator}
def gated(x, channels):
    width = channels[0]
    {inside}
    return torch.tanh(x[:, :width]) * torch.sigmoid(x[:, width:])
"""


def _fixed(
    root: Path,
    decorator: str = "",
    inside: str = "x = x + 0.0",
    below: str = "gated = gated + 1.0",
    gates: str = GATES,
    **more: str,
) -> tuple[str, list[str]]:
    model = MODEL.format(imports=more.pop("imports", ""), below=below)
    return fixed_among(root, model, {"gates_elsewhere.py": gates.format(decorator=decorator, inside=inside), **more})


@pytest.mark.parametrize("decorator", ["", "@torch.jit.script"])
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_the_function_gets_the_numbers(tmp_path: Path, decorator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after, reasons = _fixed(tmp_path, decorator, "x = x + 0.0")
    assert "gates_elsewhere.gated(x, numbers_in_channels)" in after
    assert not reasons
    asked = "torch.compiler.is_dynamo_compiling()" if decorator else "torch.compiler.is_compiling()"
    assert f"            {asked}\n" in after
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("gates_elsewhere", "model"):
        monkeypatch.delitem(importlib.sys.modules, name, raising=False)  # type: ignore[attr-defined]
    module = importlib.import_module("model").Model()
    torch._dynamo.reset()
    x = torch.randn(2, 6)
    compiled: Any = torch.compile(module, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), module(x))
    for name in ("gates_elsewhere", "model"):
        monkeypatch.delitem(importlib.sys.modules, name)  # type: ignore[attr-defined]


DECLINED = {
    "another decorator": {"decorator": "@wrapped"},
    "needs the tensor": {"inside": "x = x + channels.float()"},
    "binds the parameter again": {"inside": "channels = channels + 1"},
    "hands it on": {"inside": "x = other(x, channels)"},
    "a script that calls another function": {"decorator": "@torch.jit.script", "inside": "x = other(x)"},
    "defined twice": {"gates": GATES + "\n\ndef gated(x, channels):\n    return x * channels\n"},
    "bound again": {"gates": GATES + "\n\ngated = torch.no_grad()(gated)\n"},
    "bound again somewhere": {"gates": GATES + "\n\nif torch.cuda.is_available():\n    gated = torch.tanh\n"},
    "assigned by another file": {
        "patch.py": "import gates_elsewhere\n\n\ndef patch(f):\n    gates_elsewhere.gated = f\n",
    },
    "written below": {"gates": GATES.replace("return", "return channels[:1] *"), "below": "channels.add_(1)"},
}


@pytest.mark.parametrize("case", DECLINED.values(), ids=DECLINED)
def test_what_may_need_the_tensor_gets_it(tmp_path: Path, case: dict[str, str]) -> None:
    after, _ = _fixed(tmp_path, **case)
    assert "numbers_in_channels)" not in after


def test_a_result_that_shares_nothing_may_be_written_below(tmp_path: Path) -> None:
    after, _ = _fixed(tmp_path, below="gated.add_(1)")
    assert "gates_elsewhere.gated(x, numbers_in_channels)" in after


SHARING = """
import torch
from torch import nn

import gates_elsewhere


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        a = torch.abs(x)
        b = torch.relu(x)
        if x.sum() > 0:
            b = a
        gates_elsewhere.{}(b).add_(1.0)
        return a, b
"""
FUNCTIONS = """
import torch
from wrappers_elsewhere import wrapped


def rows(x):
    flat = x.view(-1)
    return flat


def sums(x):
    total = x + 1.0
    return total


@torch.jit.script
def scripted_rows(x):
    return x.view(-1)


@torch.jit.script
def scripted_sums(x):
    return x + 1.0


@wrapped
def wrapped_sums(x):
    return x + 1.0
"""


@pytest.mark.parametrize(
    ("function", "shares"),
    [("rows", True), ("sums", False), ("scripted_rows", True), ("scripted_sums", False), ("wrapped_sums", True)],
)
def test_what_a_function_of_another_file_returns_shares_memory_where_its_text_says_so(
    tmp_path: Path, function: str, shares: bool
) -> None:
    (tmp_path / "model.py").write_text(SHARING.format(function))
    (tmp_path / "gates_elsewhere.py").write_text(FUNCTIONS)
    api.fix([tmp_path], Settings(tmp_path), write=True, cache=False)
    assert ("torch.where(" not in (tmp_path / "model.py").read_text()) == shares
