"""The setting `helpers`: projects whose helpers stand once, from the settings to compiled models."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.settings import Settings, load_settings
from graphmend_codemod.engine import api
from tests.engine.test_api import write

_ROWS = """
    import torch
    from torch import nn

    class Model(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            y = torch.zeros_like(x)
            y[mask] = torch.relu(x[mask]) * {factor}
            return y
    """
_LOOP = """
    import torch
    from torch import nn

    class Counts(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            n = torch.zeros_like(x)
            for i in range(x.shape[0]):
                k = int((x[i] > 0).sum())
                while k > 0 and n[i].sum() < 10:
                    n[i] += x[i].abs() + {factor}
                    k -= 1
            return n
    """
_PYPROJECT = """
    [project]
    name = "pkg"
    dependencies = ["torch>=2.13"]
    [tool.graphmend]
    helpers = "pkg/_helpers.py"
    opaque = true
    """


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {"pyproject.toml": _PYPROJECT, "pkg/_helpers.py": ""}
    files |= dict.fromkeys(("pkg/__init__.py", "pkg/sub/__init__.py"), "from . import loop, rows\n")
    files |= {"pkg/rows.py": _ROWS.format(factor=2), "pkg/sub/rows.py": _ROWS.format(factor=3)}
    files |= {"pkg/loop.py": _LOOP.format(factor=1), "pkg/sub/loop.py": _LOOP.format(factor=2)}
    return write(tmp_path, files)


def texts(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in sorted(root.glob("pkg/**/*.py"))}


def test_helpers_are_written_once_and_a_second_run_changes_nothing(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert main(["fix", "--no-cache", "."]) == 1
    said = capsys.readouterr().out
    assert "pkg/_helpers.py: functions that fixed files import\n" in said
    assert "Fixed 4 break sites in 4 files" in said
    after = texts(root)
    for name in ("_rows_under", "_write_under", "_operator_name", "_left_to_its_callers"):
        assert [path for path, text in after.items() if f"def {name}(" in text] == ["pkg/_helpers.py"]
    assert "from ._helpers import _rows_under, _write_under\n" in after["pkg/rows.py"]
    assert "from .._helpers import _rows_under, _write_under\n" in after["pkg/sub/rows.py"]
    assert main(["fix", "--no-cache", "."]) == 0
    assert main(["check", "--no-cache", "."]) == 0
    assert texts(root) == after


def test_the_number_of_workers_and_of_files_named_makes_no_difference(root: Path) -> None:
    settings = load_settings(root)
    whole = {each.path: each.after for each in api.fix([], settings, write=False, jobs=2, cache=False).fixes}
    for path in ("pkg/sub/loop.py", "pkg/loop.py", "pkg/sub/rows.py", "pkg/rows.py"):
        api.fix([root / path], settings, write=True, cache=False)
    one_by_one = {path: text.encode() for path, text in texts(root).items() if path in whole}
    assert {path: text for path, text in one_by_one.items() if path != "pkg/_helpers.py"} == {
        path: text for path, text in whole.items() if path != "pkg/_helpers.py"
    }
    definitions = [sorted(text[path].split(b"\n\n\n")) for text in (whole, one_by_one) for path in ["pkg/_helpers.py"]]
    assert definitions[0][1:] == definitions[1][1:]


def test_fixed_models_compile_and_operators_of_two_files_are_two(root: Path) -> None:
    api.fix([], load_settings(root), write=True, cache=False)
    script = """
import torch
from pkg import loop, rows
from pkg.sub import loop as loop_2, rows as rows_2

x = torch.tensor([[1.0, -2.0, 3.0], [-1.0, -1.0, 2.0]])
for module in (loop, loop_2, rows, rows_2):
    given = (x, x > 0) if hasattr(module, "Model") else (x,)
    model = getattr(module, "Model", None) or module.Counts
    compiled = torch.compile(model(), backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert torch.equal(model()(*given), compiled(*given)), module
assert not torch.equal(loop.Counts()(x), loop_2.Counts()(x))
names = {name for name in dir(torch.ops) if name.startswith("in_")}
assert names == {"in_95_pkg_46_loop", "in_95_pkg_46_sub_46_loop"}, names
"""
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True, timeout=300)


def test_nothing_imports_what_could_not_be_written(root: Path) -> None:
    before = texts(root)
    os.chmod(root / "pkg/_helpers.py", 0o444)
    result = api.fix([], load_settings(root), write=True, cache=False)
    told = {each.path: each.message for each in result.problems}
    assert told["pkg/_helpers.py"] == "is read-only; make it writable or exclude it"
    assert told["pkg/rows.py"] == "was not changed: pkg/_helpers.py could not be written"
    assert result.fixes == ()
    assert texts(root) == before


def test_one_text_alone_takes_what_is_there_and_keeps_the_rest(root: Path) -> None:
    settings = load_settings(root)
    path = root / "pkg/rows.py"
    (alone,) = api.fix_text(path.read_bytes(), path, settings).fixes
    assert b"def _rows_under" in alone.after
    api.fix([root / "pkg/sub/rows.py"], settings, write=True, cache=False)
    (with_others,) = api.fix_text(path.read_bytes(), path, settings).fixes
    assert b"from ._helpers import _rows_under, _write_under\n" in with_others.after


@pytest.mark.parametrize("path", ["pkg/rows.py", "pkg/_helpers.py"])
def test_nothing_is_found_in_the_module_itself(root: Path, path: str) -> None:
    (root / "pkg/_helpers.py").write_text((root / "pkg/rows.py").read_text())
    result = api.check([root / path], load_settings(root), cache=False)
    assert {each.path for each in result.findings} == {path} - {"pkg/_helpers.py"}
    everything = api.check([], load_settings(root), cache=False)
    assert "pkg/_helpers.py" not in {each.path for each in everything.findings}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('"pkg/missing.py"', "there is no pkg/missing.py; create an empty file there and add it to git"),
        ('"run/_helpers.py"', "run/_helpers.py is not in a package: there is no `__init__.py` beside it"),
        ('"../pkg/_helpers.py"', 'must be a module of a package of this project, such as "pkg/_helpers.py"'),
        ('"/pkg/_helpers.py"', "must be a module of a package"),
        ('"pkg/__init__.py"', "must be a module of a package"),
        ('"pkg/helpers.txt"', "must be a module of a package"),
        ('"pkg/class.py"', "must be a module of a package"),
        ("true", "must be a string, not"),
    ],
)
def test_mistakes_in_the_setting_are_told_in_one_line(root: Path, value: str, said: str) -> None:
    (root / "pyproject.toml").write_text(f"[tool.graphmend]\nhelpers = {value}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(root)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_it_is_off_unless_set(root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool.graphmend]\n")
    assert load_settings(root).helpers is None
    assert Settings(root).helpers is None
    result = api.fix([], load_settings(root), write=False, cache=False)
    assert "pkg/_helpers.py" not in {each.path for each in result.fixes}


def test_files_that_get_copies_are_told_of_the_setting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "pyproject.toml").write_text("[tool.graphmend]\n")
    assert api.fix([], load_settings(root), write=False, cache=False).notes == ()
    monkeypatch.setattr("graphmend_codemod.engine.fixpoint._WORTH_SHARING", 10)
    (note,) = api.fix([], load_settings(root), write=False, cache=False).notes
    assert note == (
        "2 files get the same functions, 28 lines that one copy would save; "
        "the setting `helpers` keeps them in one module of your package"
    )
    (root / "pyproject.toml").write_text('[tool.graphmend]\nhelpers = "pkg/_helpers.py"\n')
    assert api.fix([], load_settings(root), write=False, cache=False).notes == ()


def test_a_module_that_cannot_be_parsed_is_named_with_its_line(root: Path) -> None:
    (root / "pkg/_helpers.py").write_text("import torch\ndef (:\n")
    before = texts(root)
    result = api.fix([root / "pkg/rows.py"], load_settings(root), write=True, cache=False)
    (problem,) = result.problems
    assert problem.path == "pkg/rows.py"
    assert problem.line is None
    assert problem.message.startswith("was not changed: pkg/_helpers.py:2, the module of helpers, cannot be parsed")
    assert texts(root) == before


@pytest.mark.parametrize("link", ["pkg/_linked.py", "linked"])
def test_a_module_behind_a_symbolic_link_is_refused(
    root: Path, tmp_path_factory: pytest.TempPathFactory, link: str
) -> None:
    outside = write(tmp_path_factory.mktemp("outside"), {"__init__.py": "", "_linked.py": "kept = 1\n"})
    (root / link).symlink_to(outside / "_linked.py" if link.endswith(".py") else outside)
    path = link if link.endswith(".py") else f"{link}/_linked.py"
    (root / "pyproject.toml").write_text(f'[tool.graphmend]\nhelpers = "{path}"\n')
    with pytest.raises(SettingsError, match="is or lies behind a symbolic link; name the file itself"):
        load_settings(root)
