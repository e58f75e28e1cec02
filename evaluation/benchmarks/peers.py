"""The same files through other tools, installed for the moment into an environment outside the project."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import Corpus, SourceText, copy, sample
from benchmarks.outcome import Peer
from benchmarks.timing import Run, RunError, Spread, timed

_REPEAT_WITHIN = 60.0
_DISTRIBUTIONS = ("ruff", "django-upgrade", "torchfix", "libcst")
_EMPTY = "empty_file_for_the_start_up_time.py"


@dataclass(frozen=True)
class _Tool:
    distribution: str
    arguments: tuple[str, ...]
    work: str
    sampled: bool = False
    codes: tuple[int, ...] = (0,)
    module: bool = False

    def command(self, binaries: Path, files: Sequence[str]) -> list[str]:
        program = (
            [str(binaries / "python"), "-m", "libcst.tool"] if self.module else [str(binaries / self.distribution)]
        )
        return [*program, *self.arguments, *files]


_TOOLS = (
    _Tool(
        "ruff",
        ("check", "--isolated", "--no-cache", "--quiet", "--select", "F,E"),
        "`ruff check --no-cache --select F,E`, in Rust, on all cores",
        codes=(0, 1),
    ),
    _Tool(
        "django-upgrade",
        ("--target-version", "4.2"),
        "`django-upgrade --target-version 4.2`, on `ast`, one process",
        codes=(0, 1),
    ),
    _Tool(
        "libcst",
        ("codemod", "--no-format", "--hide-progress", "noop.NOOPCommand", "-j", "1"),
        "`python -m libcst.tool codemod noop.NOOPCommand`: parse and write back, one process",
        sampled=True,
        module=True,
    ),
    _Tool("torchfix", ("-j", "1"), "`torchfix`, its default rules, on libcst, one process", sampled=True),
)


def measure_peers(
    corpus: Corpus,
    folder: Path,
    environment: Mapping[str, str],
    *,
    sample_files: int,
    repetitions: int,
    limit: float,
    say: Callable[[str], None],
) -> tuple[Peer, ...]:
    """One row a tool; a tool that cannot be installed, fails or takes too long is a row that says so."""
    say("installing the peers")
    binaries, failed = _installed(folder / "peers", limit)
    versions = {} if failed else _versions(binaries)
    rows = []
    for tool in _TOOLS:
        files = sample(corpus.files, sample_files) if tool.sampled else corpus.files
        share = sum(file.size for file in files) / corpus.size
        version = versions.get(tool.distribution, "")
        row = Peer(tool.distribution, version, tool.work, len(files), share, failed=failed)
        if not failed:
            say(f"{tool.distribution} on {len(files)} files")
            row = _measured(tool, row, files, corpus, folder, binaries, environment, repetitions, limit)
        rows.append(row)
    return tuple(rows)


def _measured(
    tool: _Tool,
    row: Peer,
    files: Sequence[SourceText],
    corpus: Corpus,
    folder: Path,
    binaries: Path,
    environment: Mapping[str, str],
    repetitions: int,
    limit: float,
) -> Peer:
    """The row with its numbers. Start-up, which a whole package pays once, is not scaled up."""
    paths = [file.path for file in files]
    began = time.perf_counter()
    start: list[Run] = []
    runs: list[Run] = []
    try:
        for _ in range(repetitions):
            start.append(_once(tool, [_EMPTY], corpus, folder, binaries, environment, limit))
            runs.append(_once(tool, paths, corpus, folder, binaries, environment, limit))
            if time.perf_counter() - began > _REPEAT_WITHIN:
                break
    except RunError as error:
        return Peer(row.name, row.version, row.work, row.files, row.share, tuple(runs), failed=str(error))

    def scaled(what: Callable[[Run], float]) -> float:
        once = Spread.of(what(run) for run in runs).median
        if row.share == 1.0:
            return once
        before = Spread.of(what(run) for run in start).median
        return before + max(0.0, once - before) / row.share

    cpu, wall = scaled(lambda run: run.cpu), scaled(lambda run: run.wall)
    return Peer(row.name, row.version, row.work, row.files, row.share, tuple(runs), cpu, wall)


def _once(
    tool: _Tool,
    paths: Sequence[str],
    corpus: Corpus,
    folder: Path,
    binaries: Path,
    environment: Mapping[str, str],
    limit: float,
) -> Run:
    """One run in a fresh copy, since some tools write."""
    place = folder / "peer-copy"
    copy(corpus.root / "src", place / "src")
    (place / _EMPTY).write_text("", encoding="utf-8")
    try:
        run, _ = timed(
            tool.command(binaries, paths), folder=place, environment=environment, codes=tool.codes, limit=limit
        )
    finally:
        shutil.rmtree(place)
    return run


def _installed(where: Path, limit: float) -> tuple[Path, str]:
    """The folder with the tools' programs, and why there are none if that is so."""
    binaries = where / "bin"
    steps = (
        [sys.executable, "-m", "venv", str(where)],
        [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_DISTRIBUTIONS],
    )
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return binaries, f"installing took longer than {limit:.0f} s"
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines()
            return binaries, f"not installed: {lines[-1] if lines else f'exit code {done.returncode}'}"
    return binaries, ""


def _versions(binaries: Path) -> dict[str, str]:
    command = [str(binaries / "python"), "-m", "pip", "--disable-pip-version-check", "list", "--format", "json"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return {item["name"].lower(): item["version"] for item in json.loads(listed.stdout)}
