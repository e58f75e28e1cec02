"""Find models to evaluate: small ones of touched `transformers` files, and what a repository's own tests call.

This module imports neither torch nor any code of the repository: files are read, and tests run in a child process.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_evaluation.huggingface.classes import models_of_files
from graphmend_evaluation.isolation import DEFAULT_POLICY, Ending, Policy, how_it_ended, run_child
from graphmend_evaluation.names import RECORDED
from graphmend_evaluation.recording.pytest_plugin import Settings, write_settings

_PYTEST_SAYS = {
    1: "some tests failed; what was recorded of them is used all the same",
    2: "the tests were interrupted or could not be collected",
    3: "pytest had an internal error",
    4: "pytest was called with arguments that it does not take",
    5: "no test was found",
}
_START = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; sys.path.append(sys.argv.pop(1)); import runpy; "
    "runpy.run_module('graphmend_evaluation.recording.run_tests', run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True)
class Recorded:
    """Names of recorded models, in the order of the tests, and what did not work, a line each."""

    models: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def huggingface_models(root: Path, changed: Sequence[str]) -> tuple[str, ...]:
    """Names of small models that between them run the classes of the changed files of a `transformers` repository.

    `changed` are paths relative to `root`. A changed file without models of its own, such as one of helpers, gets a few
    models of files that import it. Empty when nothing changed belongs to a model.
    """
    return models_of_files(root, changed)


def record_from_tests(
    worktree: Path, arguments: str, changed: Collection[str], *, folder: Path, policy: Policy = DEFAULT_POLICY
) -> Recorded:
    """Run `pytest arguments` in `worktree`, and record the modules whose classes are defined in `changed` files.

    The tests run in a child process under `policy`. Whatever they do, what was recorded until then is used; a remark
    tells what happened, and which classes could not be recorded and why.
    """
    worktree = worktree.resolve()
    recordings = folder.resolve() / "recordings"
    recordings.mkdir(parents=True, exist_ok=True)
    for old in recordings.iterdir():
        old.unlink()
    try:
        given = shlex.split(arguments)
    except ValueError as error:
        return Recorded((), (f"--from-tests {arguments!r} cannot be split into arguments: {error}",))
    settings = folder.resolve() / "recording.json"
    write_settings(Settings(worktree, frozenset(changed), recordings), settings)
    ending = run_child(_command(worktree, changed, settings, given, policy), worktree, folder.resolve(), policy)
    return _read(recordings, folder.resolve(), ending)


def _command(
    worktree: Path, changed: Collection[str], settings: Path, arguments: Sequence[str], policy: Policy
) -> list[str]:
    package_parent = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-c", _START, str(package_parent), "--root", str(worktree), "--settings", str(settings)]
    for package in sorted({_package(worktree, path) for path in changed}):
        command += ["--package", package]
    if policy.memory_bytes is not None:
        command += ["--memory-bytes", str(policy.memory_bytes)]
    return [*command, "--", *arguments]


def _package(worktree: Path, path: str) -> str:
    """The top-level package, or module, that a file belongs to."""
    file = worktree / path
    if not (file.parent / "__init__.py").is_file():
        return file.stem
    folder = file.parent
    while folder.parent != worktree and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder.name


def _read(recordings: Path, folder: Path, ending: Ending) -> Recorded:
    models: list[str] = []
    left_out: dict[str, str] = {}
    recorded: set[str] = set()
    for index in sorted(recordings.glob("index-*.json")):
        content = json.loads(index.read_text(encoding="utf-8"))
        models += [f"{RECORDED}:{index}#{number}" for number in range(len(content["models"]))]
        recorded |= {each["class"] for each in content["models"]}
        left_out.update(content["left_out"])
    remarks = _how_the_tests_went(folder, ending)
    remarks += [f"tests: {name} was not recorded: {why}" for name, why in left_out.items() if name not in recorded]
    if not models:
        remarks.append("tests: none of them called a module of a changed file")
    return Recorded(tuple(models), tuple(remarks))


def _how_the_tests_went(folder: Path, ending: Ending) -> list[str]:
    if ending.stopped is None and ending.returncode == 0:
        return []
    if ending.stopped is None and ending.returncode in _PYTEST_SAYS:
        return [f"tests: {_PYTEST_SAYS[ending.returncode]}{_last_line(folder)}"]
    return [f"tests: {how_it_ended(ending, folder)}"]


def _last_line(folder: Path) -> str:
    """Pytest's summary, or its complaint."""
    for name in ("stdout.txt", "stderr.txt"):
        lines = (folder / name).read_bytes()[-8192:].decode("utf-8", "replace").strip().splitlines()
        if lines:
            return f" ({lines[-1].strip(' =')[:200]})"
    return ""
