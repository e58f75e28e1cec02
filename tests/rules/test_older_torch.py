"""Fixes for projects that support a torch from before `torch.compiler`: such a torch must run them, too."""

from __future__ import annotations

import ast
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.torch_version import TorchVersion

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.rules.framework.examples import Example
from graphmend_codemod.rules.framework.registry import all_rules
from tests.tools.behaviour import EVERYTHING, FEW_SCENARIOS, USUAL_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import MOVED_LOOP, checked, declined, embedded, fixed, fixed_among
from tests.tools.observe import Scenario

ASKS = 'hasattr(torch, "compiler") and torch.compiler.is_compiling()'
CASES = [
    pytest.param(rule.code, example, EVERYTHING or number == 1, id=f"{rule.code}-{number}")
    for rule in all_rules()
    if rule.safety in (Safety.SAFE, Safety.OPAQUE)
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
        if name in {"compiler", "compile", "library", "func", "cond", "_assert_async", "ops", "Tag", "_library"}:
            raise AttributeError(f"module 'torch' has no attribute {name!r}")
        return getattr(torch, name)


RECURRENT = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4)

    def forward(self, x: torch.Tensor):
        y, _ = self.lstm(x)
        return y[y > 0]
"""
OPERATORS: dict[str, Any] = {"target_torch": (1, 8), "opaque": True}


def imported_by_an_old_python(source: str) -> None:
    """Assert that Python 3.7, which such a torch runs with, reads the file and evaluates its annotations."""
    tree = ast.parse(source, feature_version=(3, 7))
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    arguments = [each for function in functions for each in ast.walk(function.args) if isinstance(each, ast.arg)]
    annotations = [*(function.returns for function in functions), *(each.annotation for each in arguments)]
    parts = [part for each in annotations if each is not None for part in ast.walk(each)]
    assert not [ast.unparse(part) for part in parts if isinstance(part, (ast.Subscript, ast.BinOp))]


@pytest.mark.parametrize(("code", "example", "compiled"), CASES)
def test_an_older_torch_runs_the_fixed_example(
    code: str, example: Example, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = embedded(example.before, example.setup)
    asked: dict[str, Any] = {"target_torch": (1, 8), "select": (code,), "opaque": True}
    after, _ = fixed(before, **asked)
    if after == before:
        reasons = [each.declined or "" for each in checked(before, **asked).findings]
        assert any("the project supports torch 1.8" in each or "TorchScript supports" in each for each in reasons)
        return
    assert fixed(after, **asked)[0] == after
    imported_by_an_old_python(after)
    monkeypatch.setitem(sys.modules, "older_torch", _OlderTorch("older_torch"))
    older = after.replace("import torch\n", "import older_torch as torch\n", 1)
    behaves(before, older, example.inputs, scenarios=USUAL_SCENARIOS if EVERYTHING else FEW_SCENARIOS)
    if compiled and ASKS in after:
        compiles(after, example.inputs, scenarios=[Scenario(gradients="off")], state=False)


def test_a_name_that_is_taken_is_left_alone() -> None:
    after, _ = fixed(GUARD + "\n\n_is_torch_compiling = None\n", target_torch=(1, 8))
    assert "if _is_torch_2_1_compiling()" in after
    both = "\n\n_is_torch_compiling = _is_torch_2_1_compiling = None\n"
    declined(GUARD + both, "the project supports torch 1.8", target_torch=(1, 8))


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


@pytest.mark.parametrize(("version", "called"), [("2.1.0", 0), ("2.11.1", 1), ("2.12.0", 2), ("2.15.0", 2)])
def test_a_torch_in_between_calls_the_operators_that_it_has(
    version: str, called: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks need torch 2.6 and recurrent layers 2.12; the compiler of an older one traces the code as it was."""
    between = types.ModuleType("torch_between")
    monkeypatch.setitem(sys.modules, between.__name__, between)
    between.__dict__.update(vars(torch), __version__=TorchVersion(version))
    after, _ = fixed(RECURRENT, **OPERATORS)
    names: dict[str, Any] = {"__name__": f"between_{called}_{version[:4]}"}
    exec(after.replace("import torch\n", "import torch_between as torch\n", 1), names)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(torch.compiler, "is_dynamo_compiling", lambda: True)
    asks = [names["_is_torch_2_6_compiling"], names["_is_torch_2_12_dynamo_compiling"]]
    assert sum(each() for each in asks) == called
    assert isinstance(names["_nonzero_as_operator"], types.FunctionType) is (called == 0)
    assert hasattr(names["_lstm_operator"], "code") is (called == 2)


@pytest.mark.parametrize("target", [(1, 8), (2, 5), (2, 12)])
def test_operators_of_projects_with_an_old_torch_are_one_graph(target: tuple[int, int]) -> None:
    after, _ = fixed(RECURRENT, target_torch=target, opaque=True)
    behaves(RECURRENT, after, ["torch.randn(3, 2, 4)"])
    compiles(after, ["torch.randn(3, 2, 4)"], state=False)


@pytest.mark.parametrize("taken", ["_is_torch_2_6_compiling", "_is_torch_2_12_dynamo_compiling"])
def test_names_of_the_questions_for_a_newer_torch_may_be_taken(taken: str) -> None:
    after, _ = fixed(f"{RECURRENT}\n\n{taken} = None\n", **OPERATORS)
    assert f"if {taken}" not in after
    assert after.count("_compiling()") == 2  # one question, and what it asks


def test_a_loop_that_moves_into_a_function_needs_the_newer_torch() -> None:
    """Where no operator is called the graph breaks in the loop and in the new function, so once more than before."""
    declined(MOVED_LOOP, "raise `target-torch`", target_torch=(2, 3), select=("GM504",))


def test_the_module_of_helpers_holds_what_older_torch_imports(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from .model import Model\n")
    (package / "model.py").write_text(RECURRENT)
    (package / "_compile.py").touch()
    settings = Settings(tmp_path, target_torch=(1, 8), opaque=True, helpers="package/_compile.py")
    result = api.fix([tmp_path], settings, write=True, cache=False)
    assert not result.problems
    imported = (package / "_compile.py").read_text()
    assert imported.count("def _since_torch_2_6(") == 1
    assert "@_since_torch_2_6(lambda: _nonzero_as_operator.register_fake)" in imported
    assert "def _since_torch_2_12(" in imported
