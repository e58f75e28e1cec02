"""One bad file costs that file: one line, exit code 2, and the others are checked. Never a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.settings import Settings, load_settings
from graphmend_codemod.core.source import MOST_PARSED, MOST_READ, SourceError, SourceFile
from graphmend_codemod.engine import api
from tests.repository.tools import BROKEN, CHECKOUT

Captured = pytest.CaptureFixture[str]
TORCH = "import torch\n"
MINUSES = f"# torch\nx = {'-' * 100_000}1\n"
SUM = f"{TORCH}x = {'1+' * 50_000}1\n"
NESTED = f"{TORCH}x = {'[' * 50_000}{']' * 50_000}\n"
ATTRIBUTES = f"{TORCH}x = a{'.b' * 50_000}\n"
CALLS = f"{TORCH}x = {'f(' * 50_000}{')' * 50_000}\n"
STRINGS = f"{TORCH}x = {chr(39)}a{chr(39)}{' if a else b' * 20_000}\n"
BLOCKS = TORCH + "".join(" " * level + "if a:\n" for level in range(200)) + " " * 200 + "pass\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.graphmend]\n")
    (tmp_path / "good.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def only_that_file(project: Path, capsys: Captured, name: str) -> str:
    """What is said about the bad file, in one line, by `check` and `fix`; the good one is checked and fixed."""
    lines = []
    for command in ("check", "fix"):
        assert main([command, "--no-cache"]) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert captured.err.startswith(f"graphmend: error: {name}")
        assert "Traceback" not in captured.err
        assert "good.py" in captured.out
        lines.append(captured.err)
    assert (project / "good.py").read_text() != BROKEN
    assert lines[0] == lines[1]
    return lines[0].removeprefix("graphmend: error: ")


@pytest.mark.parametrize(
    "raw",
    [
        *(f"# coding: {name}\nimport torch\nx = 1\n".encode() for name in ("idna", "punycode", "undefined", "hex")),
        *(
            f"# coding: {name}\nimport torch\nx = '\\\\d'\n".encode()
            for name in ("unicode_escape", "raw_unicode_escape")
        ),
        b"# coding: utf-16\nimport torch\n",
        b"# coding: utf-7\nimport torch\nx = '+AGE-'\n",
        b"import torch\nx = '\xff'\n",
        b"import torch\nx = '\0'\n",
        *(text.encode() for text in (SUM, NESTED, ATTRIBUTES, CALLS, STRINGS, BLOCKS)),
        b"import torch\nx = " + b"9" * 5000 + b"\n",
        b"import torch\nx = '\\N{no such}'\n",
        b"import torch\ndef f(:\n",
    ],
    ids=lambda raw: raw[:30].decode("latin-1"),
)
def test_a_bad_source_file_is_one_line(project: Path, capsys: Captured, raw: bytes) -> None:
    (project / "bad.py").write_bytes(raw)
    only_that_file(project, capsys, "bad.py")


@pytest.mark.parametrize("text", [MINUSES, SUM], ids=["minuses", "sum"])
def test_a_setup_py_that_cannot_be_parsed_is_one_line(project: Path, capsys: Captured, text: str) -> None:
    (project / "setup.py").write_text(text)
    assert "nested too deeply" in only_that_file(project, capsys, "setup.py")


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("pyproject.toml", f"[tool.graphmend]\nselect = {'[' * 100_000}{']' * 100_000}", "nested too deeply"),
        ("pyproject.toml", f"[tool.graphmend]\nselect = {'{a=' * 100_000}", "nested too deeply"),
        ("pyproject.toml", f"[tool.graphmend]\nselect = {'9' * 5000}", "is not valid TOML: "),
        ("pyproject.toml", f"[tool.graphmend]\n{'k' * 100_000} = 1", "has no setting `kkk"),
        ("pyproject.toml", f"[tool.graphmend]\ntarget-torch = '{'2' * 5000}.1'", 'a string such as "2.4"'),
        ("pyproject.toml", "[tool.graphmend]\n# " + "x" * (2 * 2**20), "is larger than 2 MiB"),
        ("requirements.txt", "torch\n# " + "x" * (2 * 2**20), "is larger than 2 MiB"),
    ],
    ids=["lists", "tables", "digits", "key", "version", "large", "requirements"],
)
def test_bad_settings_are_one_line_that_is_not_too_long(
    project: Path, capsys: Captured, name: str, text: str, cause: str
) -> None:
    (project / name).write_text(text)
    for command in ("check", "fix"):
        assert main([command, "--no-cache"]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith(f"graphmend: error: {project}/{name}: ")
        assert cause in captured.err
        assert captured.err.count("\n") == 1
        assert len(captured.err) < 2500
        assert captured.out == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"torch>={'9' * 5000}", None),
        (f"torch>=2.{'9' * 5000}", (2, 0)),
        (f"torch!={'9' * 900}.1.*,>=2.1", (2, 1)),
        ("torch" + " " * 1_000_000 + "x", None),
    ],
    ids=["major", "minor", "excluded", "spaces"],
)
def test_requirements_that_nobody_writes_say_nothing_and_take_no_time(
    tmp_path: Path, text: str, expected: tuple[int, int] | None
) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "requirements.txt").write_text(text)
    began = time.process_time()
    assert load_settings(tmp_path).target_torch == expected
    assert time.process_time() - began < 1


def test_tables_as_deep_as_python_goes_are_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[dependency-groups]\ntorch = {'[' * 400}{']' * 400}\n")
    limit = sys.getrecursionlimit()
    for depth in range(60, 900, 30):
        sys.setrecursionlimit(max(depth + 60, _depth() + 60))
        try:
            load_settings(tmp_path)
        except SettingsError as error:
            assert "nested too deeply" in str(error)  # noqa: PT017
        finally:
            sys.setrecursionlimit(limit)


def _depth() -> int:
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]
    return count


@pytest.fixture
def little_memory() -> Callable[[list[str], Path], subprocess.CompletedProcess[str]]:
    def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        limit = 2**30
        return subprocess.run(
            [sys.executable, "-m", "graphmend_codemod", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.mark.parametrize("name", ["bad.py", "pyproject.toml", "requirements.txt", "setup.py"])
def test_a_file_of_three_gigabytes_is_not_read(
    project: Path, name: str, little_memory: Callable[[list[str], Path], subprocess.CompletedProcess[str]]
) -> None:
    with (project / name).open("ab") as file:
        file.truncate(3 * 2**30)  # sparse: it takes no space
    for arguments in (["check", "--no-cache"], ["check", "-j2"], ["fix", "--no-cache"]):
        done = little_memory(arguments, project)
        assert done.returncode == 2, done
        assert done.stderr.count("\n") == 1
        assert f"{name}: is larger than" in done.stderr


def test_a_text_that_takes_more_memory_than_there_is_costs_that_file(
    project: Path, little_memory: Callable[[list[str], Path], subprocess.CompletedProcess[str]]
) -> None:
    (project / "bad.py").write_text(TORCH + "a;" * (MOST_PARSED // 2 - 10))
    done = little_memory(["check", "--no-cache", "-j1"], project)
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1
    assert "graphmend: error: bad.py: " in done.stderr
    assert "memory" in done.stderr
    assert "good.py" in done.stdout


def test_sizes_are_said_with_their_way_out(tmp_path: Path) -> None:
    (tmp_path / "read.py").write_bytes(b"#" * (MOST_READ + 1))
    (tmp_path / "parsed.py").write_bytes(b"#" * (MOST_PARSED + 1))
    with pytest.raises(SourceError, match="is larger than 16 MiB, which is not read; exclude it"):
        SourceFile.read(tmp_path / "read.py", tmp_path)
    with pytest.raises(SourceError, match="is larger than 4 MiB, which is not parsed; split it or exclude it"):
        SourceFile.read(tmp_path / "parsed.py", tmp_path).parse()


def test_standard_input_without_end_is_not_read_for_ever_and_comes_back_whole_where_it_ends(project: Path) -> None:
    command = [sys.executable, "-m", "graphmend_codemod"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with open("/dev/zero", "rb") as endless:
        done = subprocess.run(
            [*command, "check", "-"], stdin=endless, env=environment, capture_output=True, timeout=60, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"graphmend: error: stdin.py: is larger than 16 MiB, which is not read\n"
    text = b"import torch\n" + b"# line\n" * (MOST_READ // 7 + 100_000)
    done = subprocess.run(
        [*command, "fix", "-"], input=text, env=environment, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout == text) == (2, True)


def test_large_data_without_torch_is_no_problem(project: Path, capsys: Captured) -> None:
    (project / "table.py").write_text("TABLE = [\n" + "    1,\n" * (MOST_PARSED // 7 + 1) + "]\n")
    assert main(["check", "--no-cache"]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "line", ["class M(nn.Module)", "x = torch.ones(", "    nn.Linear(1, 2", "def f(x: torch.Tensor:"]
)
def test_a_syntax_error_in_a_file_that_uses_torch_is_reported_whatever_it_imports(
    project: Path, capsys: Captured, line: str
) -> None:
    (project / "bad.py").write_text(f"from lib import *\n{line}\n")
    assert "cannot be parsed" in only_that_file(project, capsys, "bad.py")


def test_a_syntax_error_in_another_file_is_said_in_the_summary_alone(project: Path, capsys: Captured) -> None:
    (project / "helper.py").write_text("print 'Python 2'\n")
    (project / "latin.py").write_bytes(b"x = '\xe9'\n")
    (project / "good.py").write_text(
        "from helper import say\n" + BROKEN.replace("        y = s", "        say()\n        y = s")
    )
    assert main(["check", "--no-cache"]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.endswith(" 2 files without torch cannot be parsed.\n")
    assert main(["check"]) == 1
    assert main(["check"]) == 1  # and so from the cache
    assert capsys.readouterr().out.count(" 2 files without torch cannot be parsed.\n") == 2
    assert main(["fix", "--no-cache"]) == 1
    assert capsys.readouterr().out.endswith(" 2 files without torch cannot be parsed.\n")


def test_many_files_tell_the_same_from_workers(project: Path, capsys: Captured) -> None:
    for number in range(70):
        (project / f"m{number}.py").write_text(BROKEN)
    (project / "bad.py").write_text(SUM)
    (project / "latin.py").write_bytes(b"x = '\xe9'\n")
    told = []
    for jobs in ("-j1", "-j2"):
        assert main(["check", "--no-cache", jobs]) == 2
        told.append(capsys.readouterr())
    assert told[0] == told[1]


def test_chains_of_names_as_long_as_a_file_cost_nobody_anything(project: Path, capsys: Captured) -> None:
    chain = "a0 = torch.nn.Module\n" + "".join(f"a{n} = a{n - 1}\n" for n in range(1, 5000))
    (project / "chain.py").write_text(f"{TORCH}{chain}class M(a4999):\n    def forward(self, x):\n        print(x)\n")
    for number in range(400):
        (project / f"p{number}.py").write_text(f"from p{number + 1} import *\nfrom p{number + 1} import B\n")
    (project / "p400.py").write_text(f"{TORCH}class B(torch.nn.Module):\n    pass\n")
    (project / "last.py").write_text("from p0 import B\nclass C(B):\n    def forward(self, x):\n        print(x)\n")
    for command in ("check", "fix"):
        assert main([command, "--no-cache", "-j1"]) == 1
        captured = capsys.readouterr()
        assert captured.err == ""
        assert "good.py" in captured.out


def test_a_function_that_would_take_minutes_is_left_out_with_a_word(project: Path, capsys: Captured) -> None:
    body = "        print(x)\n" * 10_000
    (project / "bad.py").write_text(
        f"{TORCH}class M(torch.nn.Module):\n    def forward(self, x):\n{body}        return self.rest(x)\n"
        "    def rest(self, x):\n        print(x)\n        return x\n"
    )
    began = time.process_time()
    assert main(["check", "--no-cache"]) == 2
    assert time.process_time() - began < 5
    captured = capsys.readouterr()
    assert captured.err.endswith("bad.py:3: `M.forward` is longer than 150 kB, which is not analysed; split it\n")
    assert captured.err.count("\n") == 1
    assert "bad.py:10006:9: GM201" in captured.out
    assert "good.py" in captured.out


def test_comments_and_lines_made_to_be_slow_are_not(tmp_path: Path) -> None:
    marks = "# graphmend: ignore[" * 20_000
    colons = "if x:" + ":#" * 50_000
    for text in (f"{TORCH}x = 1  {marks}\n", f"{TORCH}# {colons}\n", f"{TORCH}{'torch.' * 100_000}\n"):
        (tmp_path / "slow.py").write_text(text)
        began = time.process_time()
        api.check([tmp_path / "slow.py"], Settings(tmp_path), cache=False)
        source = SourceFile.read(tmp_path / "slow.py", tmp_path)
        assert source.indent == "    "
        assert not source.suppressions.skip_file
        assert time.process_time() - began < 3


@pytest.mark.parametrize("error", [RuntimeError("odd\x1b[2J"), RecursionError("deep"), KeyError("key"), MemoryError()])
def test_the_last_resort_is_one_line_and_2(
    project: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*arguments: object, **more: object) -> None:
        raise error

    monkeypatch.setattr("graphmend_codemod.engine.session.Checker.check", fail)
    for command in ("check", "fix"):
        assert main([command]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("graphmend: error: ")
        assert captured.err.count("\n") == 1
        assert "\x1b" not in captured.err
        assert "--traceback" in captured.err or "memory" in captured.err
    for arguments in (["check", "--traceback"], ["--traceback", "fix"]):
        assert main(arguments) == 2
        shown = capsys.readouterr().err
        assert "Traceback (most recent call last)" in shown
        assert shown.splitlines()[-1].startswith("graphmend: error: ")
