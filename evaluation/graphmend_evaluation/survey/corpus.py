"""Measure the rows of a list, each a class of transformers and a mode: as installed, with safe, opaque, unsafe fixes.

    python -m graphmend_evaluation.survey.corpus ROWS [--sample N] [--recorded ROUNDS] [--work FOLDER]

A line of ROWS is `Class eval` or `Class train`; `#` begins a comment. Rows are taken in a random order that is the same
each time, so that what was measured until an interruption is a fair sample; the same command goes on. Another version
of graphmend fixes anew, and measures the fixed arms again. With `--recorded` the last arm is not that of unsafe fixes:
each row that opaque ones leave broken is recorded and fixed alone. Exit codes: 0 no problem, 1 a row has another eager
result or fails after the fixes, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphmend_codemod.core.cache import own_version
from graphmend_evaluation.isolation import torch_is_installed
from graphmend_evaluation.paper import prepare
from graphmend_evaluation.survey import corpus_page, corpus_recorded
from graphmend_evaluation.survey.__main__ import about_this_run, worker_environment
from graphmend_evaluation.survey.row import Row, read

ARMS = {
    "base": (),
    "safe": ("--no-unsafe-fixes", "--no-opaque"),
    "opaque": ("--no-unsafe-fixes", "--opaque"),
    "unsafe": ("--unsafe-fixes", "--opaque"),
}
"""Names of the arms and the options of `graphmend fix` that make them."""
UNSAFE = "unsafe"
MODES = ("eval", "train")
_AT_A_TIME = 60


class RowsError(prepare.PrepareError):
    """The file of rows cannot be used. The text is one line: what, where, way out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except prepare.PrepareError as error:
        print(f"corpus: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("corpus: interrupted; the same command goes on", file=sys.stderr)
        return 130


def read_rows(path: Path) -> tuple[str, ...]:
    """`Class:mode` of each line. Raises `RowsError` for a file that cannot be read and for a line of another form."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RowsError(f"{path} cannot be read: {error}") from error
    rows = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[1] not in MODES or not words[0].isidentifier():
            raise RowsError(f"{path}:{number}: a line is a class and a mode, such as `BartModel eval`")
        rows.append(":".join(words))
    return tuple(dict.fromkeys(rows))


def drawn(rows: Sequence[str], sample: int | None, seed: int) -> list[str]:
    """The first `sample` rows of a random order that `seed` decides, all of them for None."""
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    return shuffled if sample is None else shuffled[:sample]


def _run(options: argparse.Namespace) -> int:
    if not torch_is_installed():
        raise prepare.PrepareError("torch is not installed; install graphmend with its extra `eval`")
    listed = read_rows(options.rows)
    rows = drawn(listed, options.sample, options.seed)
    work: Path = options.work.resolve()
    recorded: dict[str, corpus_recorded.Recorded] = {}
    for start in range(0, len(rows), _AT_A_TIME):
        recorded |= _measure(rows[start : start + _AT_A_TIME], work, options)
    measured = {name: {row.type: row for row in read(work / f"rows-{name}" / "results.jsonl")} for name in ARMS}
    arms = [name for name in ARMS if name != UNSAFE or not options.recorded]
    found = [
        corpus_page.Measured(row, **{name: measured[name].get(row) for name in arms}, recorded=recorded.get(row))
        for row in rows
        if row in measured["base"]
    ]
    folder: Path = options.results or work
    folder.mkdir(parents=True, exist_ok=True)
    about = {**about_this_run(), "rows": f"{len(found)} tried of {len(listed)} listed, in random order"}
    if options.recorded:
        about["recorded"] = f"up to {options.recorded} times, while it breaks"
    page = folder / f"{about['date'].partition(' ')[0]}-corpus{'-recorded' if options.recorded else ''}.md"
    page.write_text(corpus_page.markdown(found, about), encoding="utf-8")
    text = json.dumps({"about": about, "rows": [each.to_json() for each in found]}, indent=1)
    page.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    print(f"\n{corpus_page.answer(found)}\nThe table is {page}")
    return 1 if any(each.problems for each in found) else 0


def _arm(name: str, work: Path, keep: bool) -> Path:
    """The folder of an arm; a fixed one is made anew by another version of graphmend, unless it is to be kept."""
    folder, made_by = work / name, work / f"{name}-made-by"
    if name == "base":
        if not folder.is_dir():
            prepare.new_folder(work)
            print("Putting the installed transformers package into a git repository", flush=True)
            prepare.copy_installed("transformers", folder)
        return folder
    if made_by.is_file() and (keep or made_by.read_text(encoding="utf-8") == own_version()):
        return folder
    for old in (folder, work / f"rows-{name}"):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(work / "base", folder)
    print(" ".join(("graphmend fix", *ARMS[name])), flush=True)
    command = [sys.executable, "-m", "graphmend_codemod", "fix", str(folder), "--exit-zero", "--quiet", *ARMS[name]]
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise prepare.PrepareError("graphmend fix failed; see its message above")
    made_by.write_text(own_version(), encoding="utf-8")
    return folder


def _measure(rows: Sequence[str], work: Path, options: argparse.Namespace) -> dict[str, corpus_recorded.Recorded]:
    """Each arm for the rows that still break in the arm before it. What recorded runs make of those that are left."""

    def worker(root: Path, out: Path, waiting: Sequence[str], *more: str) -> None:
        _work(root, out, waiting, options, "--against", str(work / "rows-base"), *more)

    wanted: Sequence[str] = rows
    for name in ARMS:
        if name == UNSAFE and options.recorded:
            return corpus_recorded.measured(work, wanted, options.recorded, worker, keep=options.keep_measured)
        root = _arm(name, work, options.keep_measured)
        out = work / f"rows-{name}"
        done = {row.type for row in read(out / "results.jsonl")}
        waiting = [row for row in wanted if row not in done]
        if waiting and name == "base":
            _work(root, out, waiting, options)
        elif waiting:
            worker(root, out, waiting)
        wanted = list(_broken(read(out / "results.jsonl"), set(wanted)))
    return {}


def _work(root: Path, out: Path, rows: Sequence[str], options: argparse.Namespace, *more: str) -> None:
    command = [sys.executable, "-m", "graphmend_evaluation.survey.worker", "--root", str(root), "--out", str(out)]
    command += ["--timeout", str(options.timeout), "--calls", str(options.calls), "--classes", *more, *rows]
    if subprocess.run(command, env=worker_environment(out), check=False).returncode != 0:
        raise prepare.PrepareError("the worker ended early; the same command goes on with what is missing")


def _broken(rows: Sequence[Row], wanted: set[str]) -> Iterator[str]:
    return (row.type for row in rows if row.type in wanted and row.ok and row.breaks)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphmend_evaluation.survey.corpus",
        description="Count graph breaks in small models of the listed classes and modes, as installed and fixed.",
    )
    parser.add_argument("rows", type=Path, help="a file of lines such as `BartModel eval`")
    parser.add_argument("--sample", type=int, help="only the first so many rows of a random order [default: all]")
    parser.add_argument("--seed", type=int, default=0, help="of that order [default: 0]")
    parser.add_argument(
        "--recorded",
        type=int,
        nargs="?",
        const=1,
        default=0,
        metavar="ROUNDS",
        help="fix each row that is left with a trace of it, and once more while it breaks [default: once]",
    )
    parser.add_argument("--keep-measured", action="store_true", help="also what other versions of graphmend fixed")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one row [default: 120]")
    parser.add_argument("--calls", type=int, default=1, help="calls that are compiled [default: 1]")
    parser.add_argument("--work", type=Path, default=Path(".corpus"), help="a folder of its own [default: .corpus]")
    parser.add_argument("--results", type=Path, help="where the dated page goes [default: the work folder]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
