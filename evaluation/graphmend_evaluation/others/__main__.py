"""Measure models of other packages before and after `graphmend fix`; print the totals of both halves.

    python -m graphmend_evaluation.others [--models vit_pytorch.cait,...] [--mirrors FOLDER] [--no-fix | --recorded]

What is measured stays in the work folder: the same command goes on where it was interrupted. Another version of the
evaluation measures anew, another version of graphmend fixes and measures the second arm anew. With `--recorded` that
arm is made with a recorded run of each model. Exit codes: 0 no
problem, 1 a model has another eager result or fails after the fixes, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import graphmend_evaluation
from graphmend_codemod.core.cache import own_version
from graphmend_evaluation.compilations import BACKENDS, COUNTING
from graphmend_evaluation.isolation import torch_is_installed
from graphmend_evaluation.others import arms, draw, page, sources
from graphmend_evaluation.others.builders import MODELS, BuilderError, Package, packages
from graphmend_evaluation.others.result import read
from graphmend_evaluation.paper.prepare import PrepareError

_LATER = ("after", "recorded*", "after-recorded*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except (PrepareError, BuilderError) as error:
        print(f"others: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("others: interrupted; the same command goes on", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    if not torch_is_installed():
        raise PrepareError(
            "torch is not installed; install graphmend with its extra `eval`: pip install '.[eval]' in a checkout"
        )
    work: Path = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    (work / ".gitignore").write_text("*\n", encoding="utf-8")
    if not options.keep_measured:
        _forget_older(work, options.recorded, options.backend)
    wanted = [] if options.models is None else options.models.split(",")
    known = _wanted(packages(options.builders), wanted)
    ready = _fetch(known, work, options.mirrors)
    arms.measure(work / "base", work / "before", wanted, options)
    names = {package.name for package in ready}
    found = {k: v for k, v in read(work / "before" / "results.jsonl").items() if v.package in names}
    drawn = draw.drawn(found.values())
    keys = [each.key for each in drawn if not wanted or each.package in wanted or each.key in wanted]
    arm = arms.Arm({}, {})
    if not options.no_fix and keys:
        broken = [package for package in ready if any(key.startswith(f"{package.name}.") for key in keys)]
        make = arms.recorded if options.recorded else arms.fixed
        arm = make(broken, keys, work, options)
    pairs = [page.Pair(found[key], arm.after.get(key), arm.silent.get(key), arm.has(key)) for key in keys]
    about = page.about_this_run(len(known), len(found), _what_fixes(options))
    if options.backend != COUNTING:
        about["backend"] = options.backend
    if options.results is not None:
        print("The table is", page.write(pairs, about, options.results, _suffix(options)))
    print("\n".join(page.totals(pairs)))
    return 1 if any(pair.problems for pair in pairs) else 0


def _suffix(options: argparse.Namespace) -> str:
    rounds = f"-{options.recorded}" if options.recorded > 1 else ""
    recorded = f"-recorded{rounds}" if options.recorded else ""
    return recorded + (f"-{options.backend}" if options.backend != COUNTING else "")


def _what_fixes(options: argparse.Namespace) -> str:
    if options.no_fix:
        return "none"
    recorded = ["--opaque", "--trace trace.json"] if options.recorded else []
    fix = f"`{' '.join(['graphmend fix', *recorded, *options.fix_options.split()])}`"
    if not options.recorded:
        return fix
    return (
        f"{fix} of each model alone, with what `graphmend trace --calls` records of it: its call twice, a second one "
        "where the builder has it, and the first with twice as many rows where it takes that"
        + (f"; up to {options.recorded} times, while it breaks" if options.recorded > 1 else "")
    )


def _wanted(known: Sequence[Package], wanted: Sequence[str]) -> list[Package]:
    names = {name.partition(".")[0] for name in wanted}
    unknown = sorted(names - {package.name for package in known})
    if unknown:
        raise PrepareError(f"there is no builder file for {', '.join(unknown)}")
    return [package for package in known if not names or package.name in names]


def _forget_older(work: Path, rounds: int, backend: str) -> None:
    """Remove what another version of the evaluation, or another backend, measured; the second arm also for another
    version of graphmend, and for another number of rounds, as code of the exam is not kept for more of them."""
    evaluation = own_version(str(Path(graphmend_evaluation.__file__).parent))
    evaluation += f" {backend}" if backend != COUNTING else ""
    marks = [("evaluation-version", evaluation, ("before", *_LATER)), ("graphmend-version", own_version(), _LATER)]
    marks += [("rounds", str(rounds), _LATER[1:])] if rounds else []
    for name, now, outdated in marks:
        mark = work / name
        if mark.is_file() and mark.read_text(encoding="utf-8") == now:
            continue
        for arm in (each for pattern in outdated for each in work.glob(pattern)):
            shutil.rmtree(arm, ignore_errors=True)
        mark.write_text(now, encoding="utf-8")


def _fetch(known: Sequence[Package], work: Path, mirrors: Path | None) -> list[Package]:
    """The packages whose code is there. One that cannot be had costs only its own models."""
    ready = []
    for package in known:
        try:
            sources.before(package, work / "base", mirrors)
            ready.append(package)
        except PrepareError as error:
            print(error, file=sys.stderr)
    return ready


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphmend_evaluation.others",
        description="Count graph breaks in models of other packages, before and after graphmend fix.",
    )
    parser.add_argument("--models", help="comma-separated packages or package.model [default: all]")
    parser.add_argument("--no-fix", action="store_true", help="only find out which models break")
    parser.add_argument("--fix-options", default="", help="more options for graphmend fix, such as --unsafe-fixes")
    parser.add_argument(
        "--recorded",
        type=int,
        nargs="?",
        const=1,
        default=0,
        metavar="ROUNDS",
        help="fix each model with a trace of it, `fix --opaque --trace`, and once more while it breaks [default: once]",
    )
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default=COUNTING,
        help="what compiles the graphs; counting runs them as they are, in a tenth of the time [default: counting]",
    )
    parser.add_argument("--builders", type=Path, default=MODELS, help="the folder of the builder files")
    parser.add_argument("--mirrors", type=Path, help="a folder with OWNER+NAME/repo git directories, to clone nothing")
    parser.add_argument("--keep-measured", action="store_true", help="also what other versions of graphmend measured")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds for one model [default: 180]")
    parser.add_argument("--work", type=Path, default=Path(".others"), help="a folder of its own [default: .others]")
    parser.add_argument("--results", type=Path, help="a folder for the dated table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
