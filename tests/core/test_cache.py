"""What is remembered between runs, and when it is not believed."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmend_codemod.core.cache import Cache, cache_folder
from graphmend_codemod.core.findings import (
    Edit,
    EditForm,
    Finding,
    Helper,
    Original,
    Problem,
    Replacement,
    Safety,
    Span,
)
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.engine.analyze import Analysed
from graphmend_codemod.engine.api import CheckResult
from graphmend_codemod.engine.cached_results import (
    analysed_from_json,
    analysed_to_json,
    finding_from_json,
    finding_to_json,
    problem_from_json,
    problem_to_json,
)

MODEL = dedent("""
    import logging
    from torch import nn
    from helper import say
    logger = logging.getLogger(__name__)
    class Model(nn.Module):
        def forward(self, x):
            logger.warning("forward")
            say()
            return x
    """)
HELPER = (
    "import logging\nlogger = logging.getLogger()\ndef say():\n    logger.warning('x')\ndef more():\n    print('x')\n"
)


@pytest.fixture(autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all caches."""
    folder = tmp_path_factory.mktemp("caches") / "graphmend"
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


def check(root: Path, **settings: tuple[str, ...]) -> CheckResult:
    result = api.check([], Settings(root, **settings), cache=True)  # type: ignore[arg-type]
    assert result == api.check([], Settings(root, **settings), cache=False)  # type: ignore[arg-type]
    return result


def places(result: CheckResult) -> list[tuple[str, str]]:
    return [(each.path, each.function) for each in result.findings]


def entries(root: Path, kind: str) -> list[Path]:
    return sorted(Path(str(cache_folder())).glob(f"{root.name}-*/{kind}/*.json"))


def test_a_second_run_reads_the_first_ones_answer(project: Path) -> None:
    first = check(project)
    (run,) = entries(project, "runs")
    header, _, payload = run.read_bytes().partition(b"\n")
    assert json.loads(payload)
    assert check(project) == first
    assert run.read_bytes().partition(b"\n")[0] == header


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("m.py", MODEL.replace('logger.warning("forward")', "pass")), [("helper.py", "say")]),
        (("helper.py", HELPER.replace("logger.warning", "str")), [("m.py", "Model.forward")]),
        (("m.py", MODEL.replace("nn.Module", "object")), []),
        (("helper.py", HELPER.replace("def say():", "def say():\n    more()")), None),
    ],
)
def test_a_change_anywhere_is_seen(
    project: Path, change: tuple[str, str], expected: list[tuple[str, str]] | None
) -> None:
    assert places(check(project)) == [("helper.py", "say"), ("m.py", "Model.forward")]
    (project / change[0]).write_text(change[1])
    found = places(check(project))
    if expected is None:
        assert ("helper.py", "more") in found
    else:
        assert found == expected


def test_a_new_file_that_shadows_a_library_is_seen(project: Path) -> None:
    check(project)
    (project / "torch.py").write_text("class nn:\n    class Module: ...\n")
    assert places(check(project)) == []


def test_other_settings_have_other_answers(project: Path) -> None:
    assert len(check(project).findings) == 2
    assert check(project, ignore=("GM201",)).findings == ()
    assert len(check(project).findings) == 2


def test_a_change_in_one_file_keeps_what_is_known_of_the_others(project: Path) -> None:
    check(project)
    before = {path: path.stat().st_mtime_ns for path in entries(project, "findings")}
    assert len(before) == 2
    (project / "helper.py").write_text(HELPER + "# more\n")
    check(project)
    after = {path: path.stat().st_mtime_ns for path in entries(project, "findings")}
    assert sum(before[path] == after[path] for path in before) == 1


def test_entries_of_files_that_are_gone_go_too(project: Path) -> None:
    check(project)
    (project / "m.py").unlink()
    check(project)
    assert len(entries(project, "summaries")) <= 1


def test_nothing_of_it_lies_in_the_project(project: Path, caches: Path) -> None:
    before = sorted(project.rglob("*"))
    check(project)
    assert sorted(project.rglob("*")) == before
    assert (caches / ".gitignore").read_text().endswith("*\n")
    assert (caches / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_projects_of_one_name_do_not_share(project: Path, caches: Path) -> None:
    other = project / "other" / project.name
    other.mkdir(parents=True)
    (other / "m.py").write_text(HELPER)
    check(project)
    check(other)
    assert len(list(caches.glob(f"{project.name}-*"))) == 2


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "other data", "a folder"])
def test_a_broken_cache_is_written_anew(project: Path, damage: str) -> None:
    expected = check(project)
    for kind in ("runs", "findings", "summaries"):
        for path in entries(project, kind):
            raw = path.read_bytes()
            if damage == "a folder":
                path.unlink()
                path.mkdir()
            else:
                broken = {"empty": b"", "cut": raw[:-5], "garbage": b"\xff\0" * 50}
                path.write_bytes(broken.get(damage, raw.partition(b"\n")[0] + b"\n[1, 2]"))
    assert check(project) == expected


def test_an_entry_of_another_version_is_not_read(tmp_path: Path) -> None:
    Cache(tmp_path, "1").write("runs", "name", "key", [1])
    assert Cache(tmp_path, "1").read("runs", "name", "key", list) == [1]
    assert Cache(tmp_path, "2").read("runs", "name", "key", list) is None
    assert Cache(tmp_path, "1").read("runs", "name", "other", list) is None


@pytest.mark.parametrize("data", [None, 3, {"a": 1}, [[]], [[["GM1"]], [], []], "text"])
def test_an_entry_with_other_data_counts_as_absent(tmp_path: Path, data: object) -> None:
    cache = Cache(tmp_path, "1")
    cache.write("findings", "name", "key", data)
    assert cache.read("findings", "name", "key", analysed_from_json) is None


@pytest.mark.parametrize("kind", ["a file", "read-only"])
def test_a_folder_that_cannot_be_written_is_no_obstacle(project: Path, caches: Path, kind: str) -> None:
    if kind == "a file":
        caches.write_text("not a folder")
    else:
        caches.parent.chmod(0o500)
    try:
        assert len(api.check([], Settings(project), cache=True).findings) == 2
    finally:
        caches.parent.chmod(0o700)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"GRAPHMEND_CACHE_DIR": "/chosen"}, "/chosen"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/graphmend"),
        ({"XDG_CACHE_HOME": "relative"}, "{home}/.cache/graphmend"),
        ({}, "{home}/.cache/graphmend"),
        ({"HOME": "/nonexistent"}, None),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="has its caches in ~/Library")
def test_the_folder_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str | None
) -> None:
    for name in ("GRAPHMEND_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == (None if expected is None else expected.format(home=tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_with_the_home_of_somebody_else_nothing_is_kept(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, caches: Path
) -> None:
    home = caches.parent / "home"
    home.mkdir()
    os.chown(home, 4242, 4242)
    for name in ("GRAPHMEND_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    assert len(check(project).findings) == 2
    assert list(home.iterdir()) == []


def test_old_runs_are_forgotten(project: Path) -> None:
    for number in range(20):
        check(project, ignore=(f"GM9{number:02}",))
    assert len(entries(project, "runs")) == 16


def _run(root: str) -> list[str]:
    return [str(each) for each in api.check([], Settings(Path(root)), cache=True).findings]


def test_runs_at_the_same_time_agree(project: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        results = pool.map(_run, [os.fspath(project)] * 6)
    assert all(result == results[0] for result in results)
    assert not list(Path(str(cache_folder())).rglob("*.tmp"))


def test_fixing_does_not_believe_remembered_findings(project: Path) -> None:
    check(project)
    for path in entries(project, "findings"):
        path.write_bytes(path.read_bytes().replace(b"GM201", b"GM999"))
    result = api.fix([], Settings(project), write=False, cache=True)
    assert {each.code for fix in result.fixes for each in fix.applied} == {"GM201"}


texts = st.text(max_size=8)
numbers = st.integers(0, 10**6)
spans = st.builds(Span, numbers, numbers, numbers, numbers)
parts = st.one_of(texts, st.builds(Original, spans, st.integers(-2, 2)))
replacements = st.builds(Replacement, spans, st.lists(parts, max_size=3).map(tuple))
names = st.lists(texts, max_size=2).map(tuple)
helpers = st.builds(Helper, texts, texts, names)
edits = st.builds(
    Edit,
    st.lists(replacements, max_size=2).map(tuple),
    names,
    st.lists(helpers, max_size=2).map(tuple),
    st.sampled_from(EditForm),
    st.booleans(),
)
findings = st.builds(
    Finding, texts, texts, texts, spans, texts, st.sampled_from(Safety), texts, st.none() | edits, st.none() | texts
)


@given(st.lists(findings, max_size=3), st.lists(st.tuples(st.tuples(texts, texts, texts), texts), max_size=3))
def test_findings_come_back_as_they_were(found: list[Finding], answers: list[tuple[tuple[str, str, str], str]]) -> None:
    for finding in found:
        assert finding_from_json(json.loads(json.dumps(finding_to_json(finding)))) == finding
    analysed = Analysed("a.py", tuple(found), answers=tuple(answers))
    assert analysed_from_json(json.loads(json.dumps(analysed_to_json(analysed)))) == analysed


@given(texts, texts, st.none() | numbers, st.booleans())
def test_problems_come_back_as_they_were(path: str, message: str, line: int | None, aside: bool) -> None:
    problem = Problem(path, message, line, aside)
    assert problem_from_json(json.loads(json.dumps(problem_to_json(problem)))) == problem
