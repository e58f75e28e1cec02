"""What other files of the project say of a value: advice alone relies on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api

_MODEL = """
import torch
from torch import nn
from .parts import f, Part

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.part = Part(n)

    def forward(self, x):
        y = {}
        if y > 2:
            x = x + 1
        return x
"""


def _project(root: Path, files: Mapping[str, str]) -> None:
    (root / "pyproject.toml").write_text("[project]\nname = 'pkg'\n")
    for name, text in {"pkg/__init__.py": "", **files}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(dedent(text))


def _found(root: Path, files: Mapping[str, str], path: str = "pkg/model.py", *, cache: bool = False) -> set[str]:
    _project(root, files)
    result = api.check((), Settings(root), cache=cache)
    assert not result.problems
    lines = (root / path).read_text().splitlines()
    return {lines[each.span.start_line - 1].strip() for each in result.findings if each.path == path}


@pytest.mark.parametrize(
    ("call", "parts", "breaks"),
    [
        ("f(x)", "def f(x): return x.sum()", True),
        ("f(x)[1]", "def f(x): return x.shape[0], torch.sqrt(x)", True),
        ("f(x)[0]", "def f(x): return x.shape[0], torch.sqrt(x)", False),
        ("f(x)", "def f(x): return g(x)\ndef g(x): return torch.norm(x)", True),
        ("f(torch.sqrt(x))", "def f(x): return x", True),
        ("f(3)", "def f(x): return x", False),
        ("f(x)", "def f(x): return len(x)", False),
        ("f(3)", "def f(x): return x.to(torch.int64) if torch.jit.is_tracing() and x is not None else int(x)", False),
        ("self.part.score(x)", "class Part:\n    def score(self, x): return x.mean()", True),
        ("self.part.score(x)", "class Part:\n    def score(self, x): return 3", False),
        ("self.part(x)", "class Part(nn.Module):\n    def forward(self, x): return torch.norm(x)", True),
    ],
)  # fmt: skip
def test_what_a_function_of_another_file_returns(tmp_path: Path, call: str, parts: str, *, breaks: bool) -> None:
    files = {"pkg/model.py": _MODEL.format(call), "pkg/parts.py": f"import torch\nfrom torch import nn\n{parts}\n"}
    assert ("if y > 2:" in _found(tmp_path, files)) is breaks


_PART = """
import torch

def f(first, last, step=1):
    assert first <= last
    return first + step

class Part:
    def __init__(self, limit):
        self.limit = limit

    def run(self, x):
        if self.limit > 0:
            x = x + 1
        return x
"""


@pytest.mark.parametrize(
    ("statement", "line", "breaks"),
    [
        ("f(x.min(), 3)", "assert first <= last", True),
        ("f(last=torch.sqrt(x), first=3)", "assert first <= last", True),
        ("f(0, len(x))", "assert first <= last", False),
        ("part = Part(torch.ones(1))\n        part.run(x)", "if self.limit > 0:", True),
        ("part = Part(3)\n        part.run(x)", "if self.limit > 0:", False),
    ],
)
def test_what_callers_in_other_files_give(tmp_path: Path, statement: str, line: str, *, breaks: bool) -> None:
    model = _MODEL.format(f"len(x)\n        {statement}").replace("self.part = Part(n)", "pass")
    found = _found(tmp_path, {"pkg/model.py": model, "pkg/parts.py": _PART}, "pkg/parts.py")
    assert (line in found) is breaks


def test_a_remembered_answer_follows_the_other_file(tmp_path: Path) -> None:
    files = {"pkg/model.py": _MODEL.format("f(x)"), "pkg/parts.py": "def f(x): return x.shape[0]\nclass Part: ..."}
    assert "if y > 2:" not in _found(tmp_path, files, cache=True)
    files["pkg/parts.py"] = "def f(x): return x.mean()\nclass Part: ..."
    assert "if y > 2:" in _found(tmp_path, files, cache=True)


def test_an_edit_that_relies_on_it_asks_for_it(tmp_path: Path) -> None:
    parts = "def f(x): return g(x)\ndef g(x): return x.mean()\nclass Part: ..."
    files = {"pkg/model.py": _MODEL.format("f(x)"), "pkg/parts.py": parts}
    _project(tmp_path, files)
    (fix,) = api.fix((), Settings(tmp_path), write=False, cache=False).fixes
    assert b"is_compiling()" in fix.after
    assert b"isinstance(y, torch.Tensor)" in fix.after


def test_an_edit_asks_for_what_the_text_of_a_function_says(tmp_path: Path) -> None:
    files = {"pkg/model.py": _MODEL.format("f(x)"), "pkg/parts.py": "def f(x): return x.mean()\nclass Part: ..."}
    _project(tmp_path, files)
    (fix,) = api.fix((), Settings(tmp_path), write=False, cache=False).fixes
    assert b"isinstance(y, torch.Tensor)" in fix.after


def test_an_annotated_number_that_is_given_a_tensor(tmp_path: Path) -> None:
    model = """
        import torch
        from torch import nn

        def mask_of(lengths, size: int | None = None):
            if size is None:
                size = lengths.max()
            return torch.arange(size) < lengths[:, None]

        class Model(nn.Module):
            def forward(self, x, lengths):
                return x * mask_of(lengths)
    """
    assert _found(tmp_path, {"pkg/model.py": model}) == {"return torch.arange(size) < lengths[:, None]"}


def test_an_argument_annotated_as_a_tensor_may_be_none(tmp_path: Path) -> None:
    model = """
        import torch
        from torch import nn

        class Model(nn.Module):
            def forward(self, x: torch.Tensor, places: torch.Tensor):
                if places is not None:
                    return x[places]
                return torch.unique(x)
    """
    assert _found(tmp_path, {"pkg/model.py": model}) == {"return torch.unique(x)"}


def test_a_class_that_inherits_from_a_library_is_constructed(tmp_path: Path) -> None:
    model = """
        import torch
        from torch import nn
        from .parts import Checked, Plain

        class Model(nn.Module):
            def forward(self, x):
                if x.sum() > 3:
                    x = x + 1
                Plain(x=x)
                return Checked(x=x).x
    """
    parts = """
        from pydantic import BaseModel

        class Plain:
            def __init__(self, x): self.x = x

        class Base(BaseModel): ...

        class Checked(Base):
            x: object
    """
    found = _found(tmp_path, {"pkg/model.py": model, "pkg/parts.py": parts})
    assert found == {"if x.sum() > 3:", "return Checked(x=x).x"}


@pytest.mark.parametrize(
    ("name", "breaks"), [("fast", True), ("given", True), ("made", True), ("slow", False), ("chosen", False)]
)
def test_a_function_that_numba_compiles(tmp_path: Path, name: str, *, breaks: bool) -> None:
    parts = """
        from numba import njit

        def slow(x): return x
        @njit(parallel=True)
        def fast(x): return x
        given = njit(slow)
        def make(x): return njit(nogil=True)(x)
        made = make(slow)
        def choose(x): return x
        chosen = choose(slow)
        """
    model = """
        import numba
        import torch
        from torch import nn
        from .parts import fast, given, made, slow, chosen

        class Model(nn.Module):
            def forward(self, x):
                y = x.item()
                x = x.detach().numpy()
                return NAME(x)
        """.replace("NAME", name)
    assert (f"return {name}(x)" in _found(tmp_path, {"pkg/model.py": model, "pkg/parts.py": parts})) is breaks


def test_the_class_of_where_the_library_is_there(tmp_path: Path) -> None:
    model = """
        try:
            import torch
        except ImportError:
            torch = None

        if torch is None:

            class Model:
                pass

        else:

            class Model(torch.nn.Module):
                def forward(self, x):
                    return x.item()
        """
    assert "return x.item()" in _found(tmp_path, {"pkg/model.py": model})


@pytest.mark.parametrize(
    ("made", "breaks"),
    [
        ("self.rnns = nn.ModuleList()\n        self.rnns.append(kind(3, 3))", True),
        ("self.rnns = nn.ModuleList()\n        self.rnns.append(nn.GRU(3, 3))", True),
        ("self.rnns = nn.ModuleList()\n        self.rnns.append(nn.Linear(3, 3))", False),
        ("cell = getattr(nn, rnn)\n        self.rnns = nn.ModuleList([cell(3, 3)])", True),
    ],
)
def test_recurrent_layers_that_are_put_into_a_list(tmp_path: Path, made: str, *, breaks: bool) -> None:
    model = f"""
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, rnn, kind=nn.LSTM):
        super().__init__()
        {made}

    def forward(self, x, i):
        return self.rnns[i](x)[0]
"""
    assert ("return self.rnns[i](x)[0]" in _found(tmp_path, {"pkg/model.py": model})) is breaks
