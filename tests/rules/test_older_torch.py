"""Fixes for projects that support a torch from before `torch.compiler`: such a torch must run them, too."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.examples import Example
from graphmend_codemod.rules.framework.registry import all_rules
from tests.tools.behaviour import EVERYTHING, FEW_SCENARIOS, USUAL_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, embedded, fixed, fixed_among
from tests.tools.observe import Scenario

ASKS = 'hasattr(torch, "compiler") and torch.compiler.is_compiling()'
CASES = [
    pytest.param(rule.code, example, EVERYTHING or number == 1, id=f"{rule.code}-{number}")
    for rule in all_rules()
    if rule.safety is Safety.SAFE
    for number, example in enumerate((each for each in rule.examples if isinstance(each, Example)), 1)
    if example.inputs
]
GUARD = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x + 1
"""


class _OlderTorch(types.ModuleType):
    """torch without what came with its compiler."""

    def __getattr__(self, name: str) -> Any:
        if name in {"compiler", "compile", "library", "func", "cond", "_assert_async"}:
            raise AttributeError(f"module 'torch' has no attribute {name!r}")
        return getattr(torch, name)


@pytest.mark.parametrize(("code", "example", "compiled"), CASES)
def test_an_older_torch_runs_the_fixed_example(
    code: str, example: Example, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = embedded(example.before, example.setup)
    after, _ = fixed(before, target_torch=(1, 8), select=(code,))
    if after == before:
        reasons = [each.declined or "" for each in checked(before, target_torch=(1, 8), select=(code,)).findings]
        assert any("the project supports torch 1.8" in each or "TorchScript supports" in each for each in reasons)
        return
    assert fixed(after, target_torch=(1, 8), select=(code,))[0] == after
    monkeypatch.setitem(sys.modules, "older_torch", _OlderTorch("older_torch"))
    older = after.replace("import torch\n", "import older_torch as torch\n", 1)
    behaves(before, older, example.inputs, scenarios=USUAL_SCENARIOS if EVERYTHING else FEW_SCENARIOS)
    if compiled and ASKS in after:
        compiles(after, example.inputs, scenarios=[Scenario(gradients="off")], state=False)


def test_a_name_that_is_taken_leaves_the_code_alone() -> None:
    declined(GUARD + "\n\n_is_torch_compiling = None\n", "the project supports torch 1.8", target_torch=(1, 8))


def test_torch_of_a_function_leaves_the_code_alone() -> None:
    local = GUARD.replace("import torch\nfrom torch import nn\n", "from torch import nn\n").replace(
        "x: torch.Tensor):\n", "x):\n        import torch\n\n"
    )
    after, _ = fixed(local, target_torch=(1, 8))
    assert "_is_torch_compiling" not in after


def test_two_fixes_share_one_question_and_a_later_one_finds_it(tmp_path: Path) -> None:
    later = "\n    def later(self, x: torch.Tensor):\n        if (x < 0).any():\n            raise ValueError('low')\n"
    once, _ = fixed_among(tmp_path, GUARD, {}, target_torch=(1, 8))
    assert once.count(ASKS) == 1
    again, _ = fixed_among(tmp_path, once + later, {}, target_torch=(1, 8))
    assert again.count(ASKS) == 1


def test_a_newer_torch_is_asked_directly() -> None:
    assert "_is_torch_compiling" not in fixed(GUARD, target_torch=(2, 1))[0]


def test_other_files_that_import_everything_do_not_get_the_question(tmp_path: Path) -> None:
    """A function of the project with the name that the helper would have without an underscore stays what it is."""
    other = "def is_torch_compiling():\n    return 1\n\n\nfrom model import *\n"
    after, _ = fixed_among(tmp_path, GUARD, {"other.py": other}, target_torch=(1, 8))
    assert ASKS in after
    names: dict[str, Any] = {}
    exec(after, names)
    assert {name for name in names if not name.startswith("_")} == {"torch", "nn", "Model"}
