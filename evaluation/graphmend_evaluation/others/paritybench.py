"""ParityBench: modules from many repositories, in generated files; what breaks before and after `graphmend fix`.

    python -m graphmend_evaluation.others.paritybench --half study --files 300 [--mirror GITDIR] [--opaque]

Files are taken in an order that the seed draws, so the first so many of a half are a sample of it; an interrupted run
goes on. The files stay in the work folder. Of the exam half only totals are printed. Exit codes as of the others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from graphmend_codemod.core.cache import own_version
from graphmend_evaluation.others.builders import SPLIT_SEED, half
from graphmend_evaluation.paper.prepare import PrepareError

SOURCE = "https://github.com/jansel/pytorch-jit-paritybench"
COMMIT = "e0644afa3550bdaf5602c986062e68859fa948b0"
MEMORY_BYTES = 8 * 2**30

Rows = list[dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except PrepareError as error:
        print(f"paritybench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paritybench: interrupted; the same command goes on", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    from graphmend_evaluation.others import paritybench_child as child

    work: Path = options.work.resolve()
    base = _files(work, options.mirror)
    names = sample([path.name for path in base.glob("test_*.py")], options.half, options.skip + options.files)
    names = names[options.skip :]
    child.preimport()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    ends = time.monotonic() + 60 * options.minutes
    before = work / f"{options.half}-before.jsonl"
    after = work / f"{options.half}-after{'-opaque' * options.opaque}.jsonl"
    version = own_version()
    if options.arm != "after":
        for name in _missing(names, before, "", ends):
            rows = child.in_fork(base / name, work / "child.jsonl", options.timeout, None)
            _append(before, name, rows, "")
    first, second = _read(before, ""), _read(after, version)
    if options.arm != "before":
        for name in _missing([name for name in names if name in first], after, version, ends):
            second[name] = _after(name, first[name], base, options)
            _append(after, name, second[name], version)
    summary = totals({name: first[name] for name in names if name in first}, second)
    print(f"{options.half}: {summary['text']}")
    if options.results is not None:
        _write(options, summary, {name: first[name] for name in names if name in first}, second)
    return 1 if summary["eager differs"] else 0


def sample(files: Iterable[str], wanted: str, count: int) -> list[str]:
    """The first `count` files of a half, in the order that the seed draws."""
    mine = [name for name in files if half(f"paritybench {name}") == wanted]
    return sorted(mine, key=lambda name: hashlib.sha256(f"{SPLIT_SEED} {name}".encode()).digest())[:count]


def _after(name: str, before: Rows, base: Path, options: argparse.Namespace) -> Rows:
    """The rows after the fixes: where they change nothing those of before, else all cases that ran are run again."""
    from graphmend_evaluation.others import paritybench_child as child

    work: Path = options.work.resolve()
    limit: int = options.timeout
    folder = work / "head"
    folder.mkdir(exist_ok=True)
    text = (base / name).read_text(encoding="utf-8")
    target = folder / name
    target.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "graphmend_codemod", "fix", "--no-cache", "--jobs", "1", str(target)]
    command += ["--opaque"] * options.opaque
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        return [{"case": -1, "status": "graphmend fails", "why": done.stderr.strip()[-200:]}]
    if target.read_text(encoding="utf-8") == text:
        return before
    ran = frozenset(int(row["case"]) for row in before if row["status"] == "ok")
    if not ran:
        return before
    rows = child.in_fork(target, work / "child.jsonl", limit, ran)
    known = {row["case"]: row.get("eager") for row in before}
    other = {row["case"]: row for row in rows if row["status"] == "ok" and row["eager"] != known[row["case"]]}
    if other:
        # The clock, memory that nothing initialised, `uuid.uuid4()`: what the unchanged file does not give again is no
        # difference of the fix.
        for again in child.in_fork(base / name, work / "child.jsonl", limit, frozenset(other)):
            row = other[again["case"]]
            if again["status"] == "ok" and again["eager"] != known[again["case"]]:
                row["eager"] = known[again["case"]]
                row["compiled"] = again["compiled"] and row["compiled"]
    return rows


def totals(before: dict[str, Rows], after: dict[str, Rows]) -> dict[str, Any]:
    """The numbers of one half."""
    ran = {(name, row["case"]): row for name, rows in before.items() for row in rows if row["status"] == "ok"}
    again = {(name, row["case"]): row for name, rows in after.items() for row in rows if row["status"] == "ok"}
    broken = [key for key, row in ran.items() if row["events"]]
    compared = [key for key, row in ran.items() if key[0] in after]
    still = [key for key in compared if key not in again or again[key]["events"]]
    differs = [key for key in compared if key in again and again[key]["eager"] != ran[key]["eager"]]
    lost = [key for key in compared if key not in again]
    worse = [k for k in compared if k in again and again[k]["compiled"] is not None and ran[k]["compiled"] is None]
    whole = sum(not any(row["events"] for row in rows if row["status"] == "ok") for rows in _ran(before))
    numbers = {
        "files": len(before),
        "files with a module that runs": len(_ran(before)),
        "files without a break before": whole,
        "modules": sum(row["case"] >= 0 for rows in before.values() for row in rows),
        "modules that run": len(ran),
        "modules that break before": len(broken),
        "break events before": sum(ran[key]["events"] for key in broken),
        "modules compared": len(compared),
        "modules that break before, of those": sum(bool(ran[key]["events"]) for key in compared),
        "modules that break after, of those": len(still),
        "break events after": sum(again[key]["events"] for key in compared if key in again),
        "eager differs": len(differs),
        "runs no more": len(lost),
        "compiled newly wrong": len(worse),
    }
    return {**numbers, "text": ", ".join(f"{name} {number}" for name, number in numbers.items())}


def _ran(rows: dict[str, Rows]) -> list[Rows]:
    return [each for each in rows.values() if any(row["status"] == "ok" for row in each)]


def _files(work: Path, mirror: Path | None) -> Path:
    """The generated files of the commit, one folder."""
    base = work / "base"
    if base.is_dir():
        return base
    work.mkdir(parents=True, exist_ok=True)
    (work / ".gitignore").write_text("*\n", encoding="utf-8")
    clone = mirror or work / "clone.git"
    if not clone.is_dir():
        _git("clone", "--quiet", "--bare", SOURCE, str(clone))
    archive = work / "files.tar"
    _git(f"--git-dir={clone}", "archive", f"--output={archive}", COMMIT, ":(glob)generated/test_*.py")
    with tarfile.open(archive) as files:
        files.extractall(work / "extracted", filter="data")
    archive.unlink()
    return (work / "extracted" / "generated").rename(base)


def _git(*arguments: str) -> None:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PrepareError(f"{SOURCE} cannot be had: {done.stderr.strip()[-300:]}")


def _missing(names: Sequence[str], path: Path, version: str, ends: float) -> Iterable[str]:
    """Names without rows, while there is time."""
    done = _read(path, version)
    for name in names:
        if name not in done and time.monotonic() < ends:
            yield name


def _read(path: Path, version: str) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        data = json.loads(line)
        if data["version"] == version:
            found[data["file"]] = data["rows"]
    return found


def _append(path: Path, name: str, rows: Rows, version: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"file": name, "version": version, "rows": rows}) + "\n")


def _write(
    options: argparse.Namespace, summary: dict[str, Any], before: dict[str, Rows], after: dict[str, Rows]
) -> None:
    """Totals, and of the study half names and places of modules that break."""
    options.results.mkdir(parents=True, exist_ok=True)
    broken = []
    kinds: Counter[str] = Counter()
    for name, rows in before.items() if options.half == "study" else ():
        later = {row["case"]: row for row in after.get(name, [])}
        for row in rows:
            if row["status"] == "ok" and row["events"]:
                now = later.get(row["case"], {}).get("events")
                kinds.update({site[3]: site[4] for site in row["sites"]})
                broken.append({"file": name, "class": row["class"], "before": row["events"], "after": now})
    data = {
        "source": SOURCE,
        "commit": COMMIT,
        "half": options.half,
        "totals": {name: value for name, value in summary.items() if name != "text"},
        "kinds": dict(kinds.most_common()),
        "broken": broken,
    }
    target = options.results / f"paritybench-{options.half}{'-opaque' * options.opaque}.json"
    target.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphmend_evaluation.others.paritybench", description="ParityBench."
    )
    parser.add_argument("--half", choices=("study", "exam"), default="study", help="[default: study]")
    parser.add_argument("--files", type=int, default=300, help="how many files of the half [default: 300]")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many [default: 0]")
    parser.add_argument("--opaque", action="store_true", help="apply fixes with opaque operators as well")
    parser.add_argument("--arm", choices=("before", "after"), help="only this one [default: both]")
    parser.add_argument("--mirror", type=Path, help="a git directory with the commit, to clone nothing")
    parser.add_argument("--minutes", type=float, default=600, help="begin no file after this time [default: 600]")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for one module [default: 60]")
    parser.add_argument("--work", type=Path, default=Path(".paritybench"), help="a folder [default: .paritybench]")
    parser.add_argument("--results", type=Path, help="a folder for the totals")
    return parser


if __name__ == "__main__":
    sys.exit(main())
