"""Measures graphmend against `ast.parse` and `import ast`, all in one run so that the ratios are fair."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.corpus import Corpus, SourceText, near_length
from benchmarks.outcome import Target, cores
from benchmarks.timing import Run, Spread, timed

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine.session import Checker

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1_000_000
CLEAN_LINES = 300
SITES_LINES = 1000
_LONG_ENOUGH = 30.0

PARSE = "ast.parse"
COLD = "check --no-cache --jobs 1"
WARM = "check --jobs 1, warm cache"
EDITED = "check --jobs 1, warm cache, one file edited"
PARALLEL = "check --no-cache --jobs 2"
COMPILED = "check --no-cache --jobs 1, compiled wheel"
IMPORT_AST = "import ast"
FIX = "fix FILE"
COMMIT = "fix FILE, with sites, after an edit of what it calls"
NEXT_COMMIT = "fix FILE, with sites, again"

_GRAPHMEND = (sys.executable, "-m", "graphmend_codemod")
_PARSE_ALL = """
import ast, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        pass
"""


def environment_of(cache: Path) -> dict[str, str]:
    """The environment of what is measured: compiled Python files are written, caches stand in a folder of their own."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON"))}
    return {**ours, "XDG_CACHE_HOME": str(cache)}


@dataclass
class Measurement:
    """Collects runs of the graphmend in `checkout` over one corpus. RunError when a command fails.

    `compiled` is the folder of an unpacked wheel whose analysis is compiled, if that is measured, too.
    """

    corpus: Corpus
    checkout: Path
    environment: dict[str, str]
    say: Callable[[str], None]
    compiled: Path | None = None
    runs: dict[str, list[Run]] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    hanging: tuple[str, ...] = ()

    def package(self, repetitions: int) -> None:
        """The whole package, again and again: each round has every command once, so a slow spell hits all of them."""
        commands: dict[str, tuple[str, ...]] = {
            PARSE: (sys.executable, "-c", _PARSE_ALL, "src"),
            COLD: (*_GRAPHMEND, "check", "--no-cache", "--jobs", "1"),
            WARM: (*_GRAPHMEND, "check", "--jobs", "1"),
        }
        if self.compiled is not None:
            commands[COMPILED] = commands[COLD]
        if cores() >= 2:
            commands[PARALLEL] = (*_GRAPHMEND, "check", "--no-cache", "--jobs", "2")
        for name, command in commands.items():
            self.say(f"warming up: {name}")
            self._run(command, name=name)
        for number in range(repetitions):
            for name, command in commands.items():
                self.say(f"round {number + 1} of {repetitions}: {name}")
                run, self.printed[name] = self._run(command, name=name)
                self.runs.setdefault(name, []).append(run)

    def edited(self, repetitions: int) -> None:
        """The whole package with a warm cache after an edit of one file, which has about 300 lines."""
        path = self.corpus.root / near_length(self.corpus.files, CLEAN_LINES, 1)[0].path
        before = path.read_bytes()
        self.say(EDITED)
        try:
            for number in range(repetitions):
                path.write_bytes(_edited(before, number))
                run, self.printed[EDITED] = self._run((*_GRAPHMEND, "check", "--jobs", "1"))
                self.runs.setdefault(EDITED, []).append(run)
        finally:
            path.write_bytes(before)

    @property
    def same_findings(self) -> bool:
        """Whether cache and workers left the printed findings as they are without."""
        return len({text for name, text in self.printed.items() if name != PARSE}) == 1

    def clean_files(self, files: int, repetitions: int) -> dict[str, Spread]:
        """By file: how many seconds longer `graphmend fix FILE` takes than `python -c "import ast"`, in turns.

        The files are those nearest to 300 lines in which nothing is found. The last is one in which that is known only
        after a look at all callers in the project: nothing in it is clean by itself, so no target is for it. A comment
        with a new number is put at the end before each run, as after an edit, so that no cache has the answer.
        """
        more: dict[str, list[float]] = {}
        clean = self._clean()
        checker = Checker(Settings(root=self.corpus.root))
        alone = tuple(file for file in clean if checker.decides_alone((file.path,)))
        self.hanging = tuple(file.path for file in clean if file not in alone)
        others = tuple(file for file in clean if file not in alone)
        for file in (*near_length(alone, CLEAN_LINES, files), *near_length(others, CLEAN_LINES, 1)):
            self.say(f"clean file: {file.path}")
            more[file.path] = self._clean_file(file, repetitions)
        return {path: Spread.of(seconds) for path, seconds in more.items()}

    def files_with_sites(self, files: int, repetitions: int) -> None:
        """`graphmend fix` of files that have something to fix, which takes a look at the project: at a commit, and at
        the next, to which what was fixed is added.

        The files are those nearest to 1,000 lines with a safe fix. Before each commit they get a new function that
        calls one of their own, so that no cache knows what leads where.
        """
        _, printed = self._run((*_GRAPHMEND, "check", "--output-format", "json"))
        fixable = {each["path"] for each in json.loads(printed)["findings"] if each["fixable"]}
        chosen = near_length(tuple(each for each in self.corpus.files if each.path in fixable), SITES_LINES, files)
        for file in chosen:
            self.say(f"file with sites: {file.path}")
            path = self.corpus.root / file.path
            before = path.read_bytes()
            try:
                for number in range(repetitions + 1):
                    path.write_bytes(before.rstrip(b"\n") + _CALLS % (number, number))
                    for name in (COMMIT, NEXT_COMMIT):
                        run, _ = self._run((*_GRAPHMEND, "fix", file.path))
                        if number:  # the first pair only warms up
                            self.runs.setdefault(name, []).append(run)
            finally:
                path.write_bytes(before)

    def targets(self, clean_files: dict[str, Spread]) -> tuple[tuple[Target, ...], dict[str, str]]:
        """Every target with its number, and why others were not measured."""
        cold = self._ratio(COLD, PARSE, lambda run: run.cpu)
        warm = self._ratio(WARM, PARSE, lambda run: run.cpu)
        memory = Spread.of(run.peak_bytes / MEGABYTE for run in self.runs[COLD])
        judged = {path: spread for path, spread in clean_files.items() if path not in self.hanging}
        slowest, extra = max(judged.items(), key=lambda item: item[1].median)
        found = [
            Target(
                "whole package, no cache, one worker", "times the CPU seconds of `ast.parse`", 2.0, cold, cold.median
            ),
            *self._compiled_target(),
            Target("whole package, warm cache", "times the CPU seconds of `ast.parse`", 0.3, warm, warm.median),
            Target("whole package, peak memory", "MB", 500.0, memory, memory.high, note="the highest run counts"),
            Target(
                "one clean file through `graphmend fix`",
                'ms more than `python -c "import ast"`',
                80.0,
                Spread(extra.median * 1000, extra.low * 1000, extra.high * 1000),
                extra.median * 1000,
                note=f"the slowest of {len(judged)} files counts: `{Path(slowest).name}`",
            ),
        ]
        parse = Spread.of(run.cpu for run in self.runs[PARSE]).median
        for name, limit in ((COMMIT, 0.8), (NEXT_COMMIT, 0.25)):
            times = Spread.of(run.cpu / parse for run in self.runs[name])
            what = f"`{name}`"
            found.append(
                Target(what, "times the CPU seconds of `ast.parse` on the package", limit, times, times.median)
            )
        if PARALLEL not in self.runs:
            return tuple(found), {"two workers against one": "needs two cores"}
        gain = self._ratio(COLD, PARALLEL, lambda run: run.wall)
        found.append(Target("two workers against one", "times as fast (wall)", 1.6, gain, gain.median, at_least=True))
        return tuple(found), {}

    def _compiled_target(self) -> list[Target]:
        if COMPILED not in self.runs:
            return []
        ratio = self._ratio(COMPILED, PARSE, lambda run: run.cpu)
        what = "whole package, no cache, one worker, from a compiled wheel"
        return [Target(what, "times the CPU seconds of `ast.parse`", 2.0, ratio, ratio.median)]

    def _ratio(self, name: str, against: str, what: Callable[[Run], float]) -> Spread:
        pairs = zip(self.runs[name], self.runs[against], strict=True)
        return Spread.of(what(run) / what(other) for run, other in pairs)

    def _clean(self) -> tuple[SourceText, ...]:
        """Files in which `check` finds nothing, not even something to decline."""
        _, printed = self._run((*_GRAPHMEND, "check", "--output-format", "json"))
        found = {finding["path"] for finding in json.loads(printed)["findings"]}
        return tuple(file for file in self.corpus.files if file.path not in found)

    def _clean_file(self, file: SourceText, repetitions: int) -> list[float]:
        path = self.corpus.root / file.path
        before = path.read_bytes()
        more = []
        try:
            for number in range(repetitions + 1):
                path.write_bytes(_edited(before, number))
                start, _ = self._run((sys.executable, "-c", "import ast"))
                fix, _ = self._run((*_GRAPHMEND, "fix", file.path), codes=(0,))
                if number:  # the first pair only warms up
                    self.runs.setdefault(IMPORT_AST, []).append(start)
                    self.runs.setdefault(FIX, []).append(fix)
                    more.append(fix.wall - start.wall)
                if sum(more) > _LONG_ENOUGH:
                    break
        finally:
            path.write_bytes(before)
        return more

    def _run(self, command: Sequence[str], codes: Sequence[int] = (0, 1), name: str = "") -> tuple[Run, str]:
        code = self.compiled if name == COMPILED else self.checkout
        environment = {**self.environment, "PYTHONPATH": str(code)}
        return timed(command, folder=self.corpus.root, environment=environment, codes=codes)


_CALLS = b"\n\n\ndef edited_%d():\n    return edited_%d()\n"


def _edited(text: bytes, number: int) -> bytes:
    return text.rstrip(b"\n") + b"\n# edit %d\n" % number
