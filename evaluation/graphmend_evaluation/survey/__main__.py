"""Survey all model types of the installed transformers package, before and after a migration.

    python -m graphmend_evaluation.survey [--migrate | --head FOLDER] [--types bert,t5] [--sample N] [--jobs N]

What is measured stays in the work folder: the same command goes on where it was interrupted. Another version of the
evaluation measures anew; another version of graphmend, or `--unsafe-fixes`, migrates anew and measures the changed arm
again. Exit codes: 0 no problem, 1 a type has another eager result or fails after the migration, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import git

import graphmend_evaluation
from graphmend_codemod.core.cache import own_version
from graphmend_evaluation.isolation import clean_environment, torch_is_installed
from graphmend_evaluation.machine import this_machine
from graphmend_evaluation.paper import prepare
from graphmend_evaluation.survey import table
from graphmend_evaluation.survey.row import MODES, read

_LIST = "from graphmend_evaluation.survey.types import model_types\nprint(' '.join(t.name for t in model_types()))"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except prepare.PrepareError as error:
        print(f"survey: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("survey: interrupted; the same command goes on", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    if not torch_is_installed():
        raise prepare.PrepareError(
            "torch is not installed; install graphmend with its extra `eval`: pip install '.[eval]' in a checkout"
        )
    work: Path = options.work.resolve()
    base, head = _arms(options, work)
    _forget_older_measurements(work, options.mode)
    types = _types(options, work, base)
    for name, root, against in (("before", base, None), ("after", head, work / "before")):
        if root is not None:
            print(f"Measuring {len(types)} model types {name} the migration, {options.jobs} at a time", flush=True)
            _measure(types, root, work / name, against, options)
    wanted = set(types)
    rows = [
        each
        for each in table.pairs(read(work / "before" / "results.jsonl"), read(work / "after" / "results.jsonl"))
        if each.before.type in wanted
    ]
    about = about_this_run()
    about["mode"] = MODES[options.mode]
    if options.migrate:
        about["migrated"] = "with unsafe fixes, too" if options.unsafe_fixes else "with safe fixes only"
    written = write(rows, about, options.results or work / "results")
    print(f"\n{table.totals(rows)}\nThe table is {written}")
    return 1 if any(each.problems for each in rows) else 0


def _arms(options: argparse.Namespace, work: Path) -> tuple[Path, Path | None]:
    """Folders of both arms, those of an earlier run where there are any."""
    before, after = work / "base", work / "head"
    if not before.is_dir():
        prepare.new_folder(work)
        print("Putting the installed transformers package into a git repository", flush=True)
        repository = prepare.copy_installed("transformers", work / "repository")
        repository.git.worktree("add", "--quiet", "--detach", str(before), repository.head.commit.hexsha)
    if options.head is not None:
        return before, options.head.resolve()
    if not options.migrate:
        return before, None
    unsafe = ("--unsafe-fixes",) if options.unsafe_fixes else ()
    made_by, now = work / "migrated-by", " ".join((own_version(), *unsafe))
    if after.is_dir() and made_by.is_file() and made_by.read_text(encoding="utf-8") == now:
        return before, after
    repository = git.Repo(work / "repository")
    forget_migration(repository, work)
    print(" ".join(("Migrating it: graphmend migrate", *unsafe)), flush=True)
    changed, _ = prepare.migrate(repository, unsafe)
    arm = prepare.BRANCH if changed else repository.head.commit.hexsha
    repository.git.worktree("add", "--quiet", "--detach", str(after), arm)
    made_by.write_text(now, encoding="utf-8")
    return before, after


def forget_migration(repository: git.Repo, work: Path) -> None:
    """Remove the changed arm of an earlier run with what was measured of it."""
    for name in ("head", "after"):
        shutil.rmtree(work / name, ignore_errors=True)
    repository.git.worktree("prune")
    if prepare.BRANCH in repository.heads:
        repository.delete_head(prepare.BRANCH, force=True)


def _forget_older_measurements(work: Path, mode: str) -> None:
    """Remove what another version of the evaluation measured, which may have looked at less, or in another mode."""
    measured_by = work / "measured-by"
    now = f"{own_version(str(Path(graphmend_evaluation.__file__).parent))} {mode}"
    if measured_by.is_file() and measured_by.read_text(encoding="utf-8") == now:
        return
    for name in ("before", "after"):
        shutil.rmtree(work / name, ignore_errors=True)
    measured_by.write_text(now, encoding="utf-8")


def _types(options: argparse.Namespace, work: Path, root: Path) -> list[str]:
    """The types that were asked for. Raises `PrepareError` for one that does not exist."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{_LIST}"],
        env=worker_environment(work),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    known = done.stdout.split()
    if not known:
        raise prepare.PrepareError("the auto mappings of transformers cannot be read: does the package import?")
    wanted = known if options.types is None else [name.strip() for name in options.types.split(",")]
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise prepare.PrepareError(f"transformers has no model type {', '.join(unknown)}")
    if options.sample is not None and options.sample < len(wanted):
        step = len(wanted) / max(1, options.sample)
        wanted = [wanted[int(number * step)] for number in range(max(1, options.sample))]
    return wanted


def _measure(types: Sequence[str], root: Path, out: Path, against: Path | None, options: argparse.Namespace) -> None:
    """One worker for each job, with every n-th of the types that have no row yet."""
    done = {row.type for row in read(out / "results.jsonl")}
    waiting = [name for name in types if name not in done]
    workers = []
    for number in range(options.jobs):
        mine = waiting[number :: options.jobs]
        if not mine:
            continue
        command = [sys.executable, "-m", "graphmend_evaluation.survey.worker", "--root", str(root), "--out", str(out)]
        command += ["--timeout", str(options.timeout), "--calls", str(options.calls)]
        command += [] if against is None else ["--against", str(against)]
        command += [] if options.dtype is None else ["--dtype", options.dtype]
        command += ["--mode", options.mode]
        workers.append(subprocess.Popen([*command, *mine], env=worker_environment(out)))
    try:
        codes = [worker.wait() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    if any(codes):
        raise prepare.PrepareError("a worker of the survey ended early; the same command goes on with what is missing")


def worker_environment(folder: Path) -> dict[str, str]:
    """Variables for a worker that keeps its files in `folder`."""
    package_parent = Path(__file__).resolve().parents[2]
    return {**clean_environment(None, folder), "PYTHONPATH": str(package_parent)}


def about_this_run() -> dict[str, str]:
    """Versions, machine and date."""
    machine = this_machine()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "python": sys.version.split()[0],
        "torch": importlib.metadata.version("torch"),
        "transformers": importlib.metadata.version("transformers"),
        "machine": f"{machine.processor}, {machine.cores} cores, {machine.system}",
    }


def write(rows: Sequence[table.Pair], about: dict[str, str], folder: Path) -> Path:
    """Write the page and the rows into dated files. The page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{about['date'].partition(' ')[0]}.md"
    page.write_text(table.markdown(rows, about), encoding="utf-8")
    text = json.dumps(table.as_json(rows, about), indent=1)
    page.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    return page


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphmend_evaluation.survey",
        description="Count graph breaks in small models of all types of the installed transformers package.",
    )
    arm = parser.add_mutually_exclusive_group()
    arm.add_argument("--migrate", action="store_true", help="migrate the package, and measure it again")
    arm.add_argument("--head", type=Path, help="measure this folder, with a transformers package in it, as changed arm")
    parser.add_argument("--unsafe-fixes", action="store_true", help="migrate with unsafe fixes, too")
    parser.add_argument("--types", help="comma-separated model types [default: all]")
    parser.add_argument("--sample", type=int, help="only so many types, from all over the alphabet")
    parser.add_argument("--jobs", type=int, default=1, help="types measured at a time [default: 1]")
    parser.add_argument("--timeout", type=float, default=90.0, help="seconds for one type [default: 90]")
    parser.add_argument("--calls", type=int, default=1, help="calls that are compiled [default: 1]")
    parser.add_argument("--dtype", help="such as float16 [default: float32]")
    parser.add_argument("--mode", choices=MODES, default="eval", help="what is measured [default: eval]")
    parser.add_argument("--train", dest="mode", action="store_const", const="train", help="the same as --mode train")
    parser.add_argument("--work", type=Path, default=Path(".survey"), help="a folder of its own [default: .survey]")
    parser.add_argument("--results", type=Path, help="where the dated table goes [default: results in the work folder]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
