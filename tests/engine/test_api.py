"""Files to findings to fixed files, through the functions that the commands call."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from graphmend_codemod.core.findings import Finding, Safety
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.engine import api, judge
from graphmend_codemod.engine.api import CheckResult

MODEL = """
    import logging
    import torch
    from torch import nn
    logger = logging.getLogger(__name__)
    class Model(nn.Module):
        def forward(self, x):
            logger.warning("forward")
            return x
    def spare(x):
        logger.warning("spare")
        return x
    """
CLEAN = """
    from torch import nn
    class Model(nn.Module):
        def forward(self, x, mask=None):
            return x if mask is None else x + mask
    """


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return root


def places(result: CheckResult) -> list[tuple[str, str, str]]:
    return [(each.code, each.path, each.function) for each in result.findings]


def check(root: Path, *names: str, settings: Settings | None = None) -> CheckResult:
    return api.check([root / name for name in names], settings or Settings(root), cache=False)


def test_findings_stand_in_what_forward_reaches(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": MODEL})
    result = check(tmp_path)
    assert places(result) == [("GM201", "m.py", "Model.forward")]
    assert (result.problems, result.files) == ((), 1)


@pytest.mark.parametrize("names", [(), ("m.py",), (".",)])
def test_a_file_gets_the_same_answer_however_it_is_asked_for(tmp_path: Path, names: tuple[str, ...]) -> None:
    write(tmp_path, {"m.py": MODEL})
    assert places(check(tmp_path, *names)) == [("GM201", "m.py", "Model.forward")]


def test_a_named_file_is_judged_by_its_base_class_elsewhere(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "p/__init__.py": "",
            "p/base.py": "from torch import nn\nclass Base(nn.Module): ...\n",
            "p/m.py": MODEL.replace("(nn.Module)", "(Base)").replace("import torch\n", "from .base import Base\n"),
        },
    )
    assert places(check(tmp_path, "p/m.py")) == [("GM201", "p/m.py", "Model.forward")]


def test_a_named_helper_is_judged_by_who_calls_it_elsewhere(tmp_path: Path) -> None:
    helper = "import torch, logging\nlogger = logging.getLogger()\ndef say():\n    logger.warning('x')\n"
    user = "from torch import nn\nfrom {} import say\nclass A(nn.Module):\n    def forward(self, x): say()\n"
    write(tmp_path, {"used.py": helper, "unused.py": helper, "user.py": user.format("used")})
    assert places(check(tmp_path, "used.py")) == [("GM201", "used.py", "say")]
    assert places(check(tmp_path, "unused.py")) == []


def test_a_wrapper_of_another_file_is_found_when_its_file_is_named(tmp_path: Path) -> None:
    deco = """
        import torch, logging
        logger = logging.getLogger()
        def talk(forward):
            def wrapper(self, x):
                logger.warning('x')
                return forward(self, x)
            return wrapper
        """
    user = (
        "from torch import nn\nfrom deco import talk\nclass A(nn.Module):\n    @talk\n    def forward(self, x): ...\n"
    )
    write(tmp_path, {"deco.py": deco, "user.py": user})
    assert places(check(tmp_path, "deco.py")) == places(check(tmp_path)) == [("GM201", "deco.py", "talk.wrapper")]


def test_selection_ignores_and_suppressions_are_kept(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.py": MODEL,
            "tests/b.py": MODEL,
            "c.py": MODEL.replace('("forward")', '("forward")  # graphmend: ignore[GM201]'),
            "d.py": "# graphmend: skip-file\n" + dedent(MODEL),
        },
    )
    assert [each.path for each in check(tmp_path).findings] == ["a.py", "tests/b.py"]
    per_file = Settings(tmp_path, per_file_ignores=(("tests/*", ("GM2",)),))
    assert [each.path for each in check(tmp_path, settings=per_file).findings] == ["a.py"]
    assert check(tmp_path, settings=Settings(tmp_path, select=("GM1",))).findings == ()
    assert check(tmp_path, settings=Settings(tmp_path, ignore=("GM201",))).findings == ()
    longer = Settings(tmp_path, select=("GM201",), ignore=("GM2",))
    assert len(check(tmp_path, settings=longer).findings) == len(check(tmp_path).findings) > 0


def test_findings_come_in_order_of_path_and_position(tmp_path: Path) -> None:
    twice = MODEL.replace('logger.warning("forward")', 'logger.warning("a"); logger.warning("b")')
    write(tmp_path, {"b.py": twice, "a.py": twice})
    order = [(each.path, each.span) for each in check(tmp_path).findings]
    assert order == sorted(order)
    assert len(order) == 4


BAD_FILES = {
    "syntax error": b"import torch\ndef f(:\n",
    "python 2": b"import torch\nprint 'hello'\n",
    "undecodable": b"import torch\nx = '\xff'\n",
    "unknown encoding": b"# coding: nonsense\nimport torch\n",
    "null byte": b"import torch\nx = 1\0\n",
    "nested too deeply": b"import torch\nx = " + b"(" * 5000 + b")" * 5000 + b"\n",
    "a chain too long": b"import torch\nx = " + b"-" * 200_000 + b"1\n",
}


@pytest.mark.parametrize("raw", BAD_FILES.values(), ids=BAD_FILES.keys())
@pytest.mark.parametrize("names", [(), ("bad.py", "m.py")])
def test_a_bad_file_is_a_problem_and_the_others_go_on(tmp_path: Path, raw: bytes, names: tuple[str, ...]) -> None:
    write(tmp_path, {"m.py": MODEL})
    (tmp_path / "bad.py").write_bytes(raw)
    result = check(tmp_path, *names)
    assert [each.path for each in result.problems] == ["bad.py"]
    assert "\n" not in result.problems[0].message
    assert places(result) == [("GM201", "m.py", "Model.forward")]


def test_a_mistake_of_ours_in_one_file_costs_that_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.py": MODEL, "b.py": MODEL})
    find = judge.find

    def stumble(source: SourceFile, *rest: Any) -> list[Finding]:
        if source.path == "a.py":
            raise ZeroDivisionError("planted\nsecond line")
        return find(source, *rest)

    monkeypatch.setattr(judge, "find", stumble)
    result = api.check((), Settings(root=tmp_path))
    assert {finding.path for finding in result.findings} == {"b.py"}
    (problem,) = result.problems
    assert str(problem).startswith("a.py: is skipped because of an internal error (ZeroDivisionError: planted")
    assert "\n" not in str(problem)


def test_long_expressions_that_python_takes_are_taken(tmp_path: Path) -> None:
    text = MODEL.replace("return x\n", "return " + " + ".join(["x"] * 900) + "\n", 1)
    write(tmp_path, {"m.py": text})
    result = check(tmp_path)
    assert not result.problems
    assert [each.code for each in result.findings] == ["GM201"]


@pytest.mark.parametrize("raw", [b"", b"\n", b"\xef\xbb\xbfimport torch\n", b"import torch"])
def test_small_files_are_fine(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "m.py").write_bytes(raw)
    assert check(tmp_path) == CheckResult((), (), 1)


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": MODEL})
    (tmp_path / "m.py").chmod(0)
    if os.access(tmp_path / "m.py", os.R_OK):
        pytest.skip("this user may read everything")
    assert [each.path for each in check(tmp_path).problems] == ["m.py"]


def test_a_text_is_checked_as_if_it_stood_at_its_path(tmp_path: Path) -> None:
    write(tmp_path, {"p/__init__.py": "", "p/base.py": "from torch import nn\nclass Base(nn.Module): ...\n"})
    text = dedent(MODEL.replace("(nn.Module)", "(Base)").replace("import torch\n", "from .base import Base\n"))
    result = api.check_text(text.encode(), tmp_path / "p" / "new.py", Settings(tmp_path))
    assert places(result) == [("GM201", "p/new.py", "Model.forward")]
    assert not (tmp_path / "p" / "new.py").exists()


def test_a_text_stands_in_for_the_file_on_disk(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": MODEL})
    assert api.check_text(dedent(CLEAN).encode(), tmp_path / "m.py", Settings(tmp_path)).findings == ()


def test_a_text_that_cannot_be_decoded_is_a_problem(tmp_path: Path) -> None:
    result = api.check_text(b"x = '\xff'\n", tmp_path / "m.py", Settings(tmp_path))
    assert [each.path for each in result.problems] == ["m.py"]


def test_fixing_settles_and_then_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": MODEL, "clean.py": CLEAN})
    before = (tmp_path / "m.py").read_bytes()
    result = api.fix([], Settings(tmp_path), write=True, cache=False)
    after = (tmp_path / "m.py").read_bytes()
    assert [(each.path, each.before, each.after) for each in result.fixes] == [("m.py", before, after)]
    assert [each.code for each in result.fixes[0].applied] == ["GM201"]
    assert (result.remaining, result.problems, result.files) == ((), (), 2)
    again = api.fix([], Settings(tmp_path), write=True, cache=False)
    assert again.fixes == ()
    assert (tmp_path / "m.py").read_bytes() == after
    assert b"spare" in after


def test_without_writing_the_files_stay(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": MODEL})
    before = (tmp_path / "m.py").read_bytes()
    result = api.fix([], Settings(tmp_path), write=False, cache=False)
    assert (tmp_path / "m.py").read_bytes() == before
    assert result.fixes[0].after != before


def test_a_text_is_fixed_without_being_written(tmp_path: Path) -> None:
    result = api.fix_text(dedent(MODEL).encode(), tmp_path / "m.py", Settings(tmp_path))
    assert [each.path for each in result.fixes] == ["m.py"]
    assert list(tmp_path.iterdir()) == []
    again = api.fix_text(result.fixes[0].after, tmp_path / "m.py", Settings(tmp_path))
    assert again.fixes == ()


def test_unsafe_fixes_wait_for_the_setting(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": MODEL})
    result = api.fix([], Settings(tmp_path), write=False, cache=False)
    assert all(each.safety is Safety.SAFE for fix in result.fixes for each in fix.applied)


def test_a_read_only_file_is_a_problem_and_stays(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": MODEL, "n.py": MODEL})
    (tmp_path / "m.py").chmod(0o444)
    before = (tmp_path / "m.py").read_bytes()
    result = api.fix([], Settings(tmp_path), write=True, cache=False)
    assert [each.path for each in result.fixes] == ["n.py"]
    assert [(each.path, "read-only" in each.message) for each in result.problems] == [("m.py", True)]
    assert (tmp_path / "m.py").read_bytes() == before


def many(root: Path) -> Path:
    files = {f"pkg/m{number}.py": MODEL.replace("Model", f"Model{number}") for number in range(70)}
    return write(root, {"pkg/__init__.py": "", **files, "pkg/bad.py": "import torch\ndef f(:\n"})


def test_any_number_of_workers_gives_the_same_result(tmp_path: Path) -> None:
    many(tmp_path)
    alone = api.check([], Settings(tmp_path), jobs=1, cache=False)
    together = api.check([], Settings(tmp_path), jobs=2, cache=False)
    assert alone == together
    assert len(alone.findings) == 70
    one = api.fix([], Settings(tmp_path), write=False, jobs=1, cache=False)
    assert one == api.fix([], Settings(tmp_path), write=False, jobs=2, cache=False)
    assert len(one.fixes) == 70


def test_nothing_but_the_cache_is_written_by_check(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": MODEL})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    api.check([], Settings(tmp_path), cache=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "m.py"]
    api.check([], Settings(tmp_path), cache=True)
    status = subprocess.run(["git", "status", "--short"], cwd=tmp_path, check=True, capture_output=True)
    assert status.stdout == b"?? m.py\n"


def test_a_named_file_is_fixed_to_the_end(tmp_path: Path) -> None:
    nested = """
        import logging
        from torch import nn
        logger = logging.getLogger(__name__)
        class Model(nn.Module):
            def forward(self, x):
                if x.sum() > 0:
                    if x.max() > 1:
                        x = x * 2
                logger.warning("one"); logger.warning("two")
                return x
        """
    write(tmp_path, {"m.py": nested})
    api.fix([tmp_path / "m.py"], Settings(tmp_path), write=True, cache=False)
    again = api.fix([tmp_path / "m.py"], Settings(tmp_path), write=True, cache=False)
    whole = api.fix([], Settings(tmp_path), write=True, cache=False)
    assert (again.fixes, whole.fixes) == ((), ())
