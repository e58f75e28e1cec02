"""Measure models of other packages before and after `graphmend fix`; print the totals of both halves.

    python -m graphmend_evaluation.others [--models vit_pytorch.cait,...] [--mirrors FOLDER] [--no-fix]

What is measured stays in the work folder: the same command goes on where it was interrupted. Another version of the
evaluation measures anew, another version of graphmend fixes and measures the second arm anew. Exit codes: 0 no
problem, 1 a model has another eager result or fails after the fixes, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import graphmend_evaluation
from graphmend_codemod.core.cache import own_version
from graphmend_evaluation.isolation import clean_environment, torch_is_installed
from graphmend_evaluation.others import draw, page, sources
from graphmend_evaluation.others.builders import MODELS, BuilderError, Package, packages
from graphmend_evaluation.others.result import Result, covered, read, silent_events
from graphmend_evaluation.paper.prepare import PrepareError
from graphmend_evaluation.survey.row import Row


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
        _forget_older(work)
    wanted = [] if options.models is None else options.models.split(",")
    known = _wanted(packages(options.builders), wanted)
    ready = _fetch(known, work, options.mirrors)
    _measure(work, "before", None, wanted, options)
    names = {package.name for package in ready}
    found = {k: v for k, v in read(work / "before" / "results.jsonl").items() if v.package in names}
    drawn = draw.drawn(found.values())
    keys = [each.key for each in drawn if not wanted or each.package in wanted or each.key in wanted]
    after: dict[str, Result] = {}
    silent: dict[str, int] = {}
    if not options.no_fix and keys:
        broken = [package for package in ready if any(key.startswith(f"{package.name}.") for key in keys)]
        silent = _fix(broken, keys, work, options)
        _measure(work, "after", work / "before", keys, options)
        after = read(work / "after" / "results.jsonl")
    pairs = [page.Pair(found[key], after.get(key), silent.get(key)) for key in keys]
    about = page.about_this_run(len(known), len(found))
    if options.results is not None:
        print("The table is", page.write(pairs, about, options.results))
    print("\n".join(page.totals(pairs)))
    return 1 if any(pair.problems for pair in pairs) else 0


def _wanted(known: Sequence[Package], wanted: Sequence[str]) -> list[Package]:
    names = {name.partition(".")[0] for name in wanted}
    unknown = sorted(names - {package.name for package in known})
    if unknown:
        raise PrepareError(f"there is no builder file for {', '.join(unknown)}")
    return [package for package in known if not names or package.name in names]


def _forget_older(work: Path) -> None:
    """Remove what another version of the evaluation measured; the second arm also for another version of graphmend."""
    parts = Path(graphmend_evaluation.__file__).parent
    for name, folder, arms in (("evaluation", parts, ("before", "after")), ("graphmend", None, ("after",))):
        mark, now = work / f"{name}-version", own_version(str(folder)) if folder else own_version()
        if mark.is_file() and mark.read_text(encoding="utf-8") == now:
            continue
        for arm in arms:
            shutil.rmtree(work / arm, ignore_errors=True)
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


def _fix(broken: Sequence[Package], keys: Sequence[str], work: Path, options: argparse.Namespace) -> dict[str, int]:
    """Make the second arm, and say how many events of each model are on a line without a finding."""
    silent: dict[str, int] = {}
    version = own_version()
    for package in broken:
        base = work / "base" / package.name
        sources.after(package, base, work / "head", version, options.fix_options.split())
        file, mark = work / "head" / f"{package.name}.findings.json", f"{version} {package.source}"
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        if kept.get("made_by") != mark:
            kept = {"made_by": mark, "findings": sources.findings(base)}
            file.write_text(json.dumps(kept), encoding="utf-8")
        spans = covered(base, kept["findings"], work / "head" / package.name)
        for key in keys:
            owner, _, model = key.partition(".")
            if owner == package.name:
                row = json.loads((work / "before" / owner / model / "row.json").read_text(encoding="utf-8"))
                silent[key] = silent_events(Row.from_json(row), spans)
    return silent


def _measure(work: Path, arm: str, against: Path | None, models: Sequence[str], options: argparse.Namespace) -> None:
    roots = work / ("base" if against is None else "head")
    command = [sys.executable, "-m", "graphmend_evaluation.others.worker", "--roots", str(roots)]
    command += ["--out", str(work / arm), "--builders", str(options.builders), "--timeout", str(options.timeout)]
    command += [] if against is None else ["--against", str(against)]
    environment = {**clean_environment(None, work), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    if subprocess.run([*command, *models], env=environment, check=False).returncode:
        raise PrepareError("the measuring process ended early; the same command goes on with what is missing")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphmend_evaluation.others",
        description="Count graph breaks in models of other packages, before and after graphmend fix.",
    )
    parser.add_argument("--models", help="comma-separated packages or package.model [default: all]")
    parser.add_argument("--no-fix", action="store_true", help="only find out which models break")
    parser.add_argument("--fix-options", default="", help="more options for graphmend fix, such as --unsafe-fixes")
    parser.add_argument("--builders", type=Path, default=MODELS, help="the folder of the builder files")
    parser.add_argument("--mirrors", type=Path, help="a folder with OWNER+NAME/repo git directories, to clone nothing")
    parser.add_argument("--keep-measured", action="store_true", help="also what other versions of graphmend measured")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds for one model [default: 180]")
    parser.add_argument("--work", type=Path, default=Path(".others"), help="a folder of its own [default: .others]")
    parser.add_argument("--results", type=Path, help="a folder for the dated table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
