"""A function that some file of the project gives to TorchScript still compiles there after a fix."""

from __future__ import annotations

import ast
import importlib
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api

_MODEL = """
import warnings

import torch
from torch import nn


def warned(x: torch.Tensor) -> torch.Tensor:
    warnings.warn("called")
    return x


class Part(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return warned(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if (x < 0).any():
            raise ValueError("negative")
        scale = x.max().item()
        print("got", x)
        return self.part(x) * scale


def build(large: bool) -> Model:
    return Model()
"""
_USES = {
    "call": "import torch\nfrom model import Model\n\nscripted = torch.jit.script(Model())\n",
    "local": (
        "import torch\nfrom model import Model\n\n\ndef export():\n    made = Model().eval()\n"
        "    return torch.jit.script(made)\n"
    ),
    "global": "import model\nfrom torch import jit\n\nmade = model.Model()\nscripted = jit.script(made.eval())\n",
    "from import": "from torch.jit import script\nimport model as m\n\nif True:\n    script(obj=m.Model())\n",
    "built": "import torch\nfrom model import build\n\nscripted = torch.jit.script(build(True))\n",
    "unknown": (
        "import torch\nimport model\n\n\ndef export(name):\n    return torch.jit.script(getattr(model, name)())\n"
    ),
    "held": (
        "import torch\nfrom torch import nn\nfrom model import Model\n\n\nclass Whole(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.model = Model()\n\n"
        "    def forward(self, x: torch.Tensor):\n        return self.model(x)\n\n\ntorch.jit.script(Whole())\n"
    ),
    "listed": (
        "import torch\nfrom torch import nn\nfrom model import Model\n\n\nclass Whole(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.models = nn.ModuleList([Model() for _ in range(2)])\n\n"
        "    def forward(self, x: torch.Tensor):\n        for model in self.models:\n            x = model(x)\n"
        "        return x\n\n\ntorch.jit.script(Whole())\n"
    ),
    "script module": (
        "import torch\nfrom model import Part\n\n\nclass Held(torch.jit.ScriptModule):\n"
        "    def __init__(self):\n        super().__init__()\n        self.part = Part()\n\n"
        "    @torch.jit.script_method\n    def forward(self, x):\n        return self.part(x)\n"
    ),
    "decorator": (
        "import torch\nfrom model import warned\n\n\n@torch.jit.script_if_tracing\n"
        "def twice(x: torch.Tensor):\n    return warned(warned(x))\n"
    ),
    "function": "import torch\nimport model\n\nscripted = torch.jit.script(model.warned)\n",
}
_WHOLE = ("call", "local", "global", "from import", "built", "unknown", "held", "listed")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("model", "use"):
        sys.modules.pop(name, None)


def _fix(project: Path, use: str, named: bool) -> str:
    (project / "model.py").write_text(_MODEL)
    (project / "use.py").write_text(use)
    paths = [project / "model.py"] if named else [project]
    api.fix(paths, Settings(project, log_calls="once"), write=True, cache=False)
    return (project / "model.py").read_text()


@pytest.mark.parametrize("name", _USES)
@pytest.mark.parametrize("named", [False, True])
def test_no_helper_is_called_where_a_script_leads(project: Path, name: str, named: bool) -> None:
    after = _fix(project, _USES[name], named)
    assert "_constant_while_tracing" not in after
    assert after.count("if not torch.compiler.is_compiling():") == 2
    if name in _WHOLE:
        assert "scale = x.max().item()\n" in after
        assert "isinstance(x, torch.Tensor):\n            torch._assert_async(" in after


@pytest.mark.parametrize("name", ["call", "function"])
def test_a_fixed_module_is_still_a_script(project: Path, name: str) -> None:
    after = _fix(project, _USES[name], named=False)
    ast.parse(after)
    model = importlib.import_module("model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(model.Model() if name == "call" else model.warned)
        assert torch.equal(script(torch.ones(2)), torch.ones(2))
        if name == "call":
            with pytest.raises(torch.jit.Error, match="negative"):
                script(-torch.ones(2))


def test_without_scripts_messages_are_sent_once(project: Path) -> None:
    after = _fix(project, "from model import Model\n\nsubscript = Model()\n", named=False)
    assert "_constant_while_tracing" in after
    assert "scale = x.max()" in after


def test_what_another_module_is_scripted_for_does_not_count(project: Path) -> None:
    use = "import torch\n\n\n@torch.jit.script\ndef other(x: torch.Tensor):\n    return x\n"
    assert "_constant_while_tracing" in _fix(project, use, named=True)


def test_an_older_torch_does_not_script_the_predicate(project: Path) -> None:
    (project / "model.py").write_text(_MODEL)
    (project / "use.py").write_text(_USES["call"])
    for target, scripted in (((2, 3), False), ((2, 4), True)):
        found = api.check([project], Settings(project, target_torch=target), cache=False).findings
        assert any(each.edit is not None for each in found) is scripted
        assert any("TorchScript supports" in (each.declined or "") for each in found) is not scripted


_SOLVED = """
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        if not torch.jit.is_scripting():
            pairs = [linear_sum_assignment(c[i]) for i, c in enumerate(x.detach().split(1))]
            x = x + len(pairs)
        return x
"""


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_a_compile_path_may_have_the_loops_of_the_statement(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = types.ModuleType("scipy.optimize")
    vars(solver)["linear_sum_assignment"] = len
    monkeypatch.setitem(sys.modules, "scipy", types.ModuleType("scipy"))
    monkeypatch.setitem(sys.modules, "scipy.optimize", solver)
    (project / "model.py").write_text(_SOLVED)
    api.fix([project], Settings(project, opaque=True), write=True, cache=False)
    after = (project / "model.py").read_text()
    assert "if torch.compiler.is_compiling() and not torch.jit.is_scripting():" in after
    assert "pairs = [_assignment_in_graph(c[i]) for i, c in enumerate(x.detach().split(1))]" in after
    model = importlib.import_module("model").Model()
    assert torch.equal(torch.jit.script(model)(torch.ones(2, 2, 2)), torch.ones(2, 2, 2))


def test_a_fix_that_waits_for_a_newer_torch_says_for_which(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(_MODEL)
    (tmp_path / "use.py").write_text(_USES["call"])

    found = api.check([tmp_path], Settings(tmp_path, target_torch=(2, 3)), cache=False).findings

    waiting = [each for each in found if each.declined and "raise `target-torch`" in each.declined]
    assert waiting
    assert {each.needs_torch for each in waiting} == {torch_api.SCRIPTS_KNOW_COMPILING}
    assert all(each.needs_torch is None for each in found if each not in waiting)


_PARTS = """
import torch
from torch import nn


class Part(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.dim() > 1:
            print("called")
        return x[x > 0]
"""
_WHOLE_OF_PARTS = """
import torch
from torch import nn
from model import Part


class General(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor):
        if torch.jit.is_scripting():
            x = x + 0
        return self.part(x)


class Special(General):
    def __init__(self) -> None:
        part = Part()
        super().__init__(part)
"""


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("named", [False, True])
def test_a_part_of_what_asks_for_scripting_is_still_a_script(project: Path, named: bool) -> None:
    (project / "model.py").write_text(_PARTS)
    (project / "use.py").write_text(_WHOLE_OF_PARTS)
    paths = [project / "model.py"] if named else [project]
    api.fix(paths, Settings(project, opaque=True), write=True, cache=False)
    assert "and not torch.jit.is_scripting():" in (project / "model.py").read_text()
    whole, x = importlib.import_module("use").Special(), torch.tensor([1.0, -1.0, 2.0])
    assert torch.equal(torch.jit.script(whole)(x), whole(x))


_CONDITIONS = {
    "a few rounds": (
        "rows: list[torch.Tensor] = []\nfor i in range(n):\n    rows.append(x[x > i])\nreturn torch.cat(rows)",
        "and (\n                False if torch.jit.is_scripting() else n <= 64\n            ):",
    ),
    "a test that passes by": (
        "rows = torch.where(x > 0)[0]\nif self.training:\n    if rows.numel() > 1:\n        x = x + 1\nreturn x[rows]",
        "else not self.training",
    ),
    "facts of tensors": (
        "y = torch.zeros_like(x)\nmask = x > 0\ny[mask] = x[mask] * n\nreturn y",
        "and mask.dtype == torch.bool",
    ),
    "facts of several tensors": (
        "y = torch.zeros_like(x)\nx1, x2 = x.unbind(-1)\nlow, high = torch.min(x1, x2), torch.max(x1, x2)\n"
        "both = torch.zeros_like(low)\nmask = high > low\n"
        "both[mask] = (high[mask] - low[mask]) * (x1[mask] - x2[mask])\n"
        "return both + y.sum() + n",
        "for each in (",
    ),
    "a number": (
        "longest = x.max().item()\nreturn torch.arange(int(longest)) + n",
        "else isinstance(x, torch.Tensor)\n                and not x.is_floating_point()",
    ),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("name", _CONDITIONS)
def test_torchscript_passes_by_what_a_header_asks(project: Path, name: str) -> None:
    body, header = _CONDITIONS[name]
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    source = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
    source += f"    def forward(self, x: torch.Tensor, n: int):\n{lines}\n"
    source += "\n\ndef export():\n    return torch.jit.script(Model())\n"
    (project / "model.py").write_text(source)
    api.fix([project], Settings(project, opaque=True), write=True, cache=False)
    after = (project / "model.py").read_text()
    assert "if torch.jit.is_scripting()" in after
    assert header in after
    assert not api.fix([project], Settings(project, opaque=True), write=False, cache=False).fixes
    module = importlib.import_module("model")
    x = torch.tensor([1.0, -1.0, 3.0]) if "unbind" not in body else torch.tensor([[1.0, 2.0], [2.0, 2.0], [3.0, 1.0]])
    for training in (False, True):
        model = module.Model().train(training)
        assert torch.equal(torch.jit.script(model)(x, 3), model(x, 3))
        torch._dynamo.reset()
        assert torch.equal(torch.compile(model, backend="eager")(x, 3), model(x, 3))  # type: ignore[no-untyped-call]
