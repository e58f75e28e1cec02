"""What a trace turns into fixes on the study half: each model recorded, and joined with and without the trace's facts.

    python -m graphmend_evaluation.others.traced --roots FOLDER --out FOLDER [PACKAGE.MODEL...]

`OUT/PACKAGE.MODEL.json` is the trace, `OUT/sites.json` what was found. The strict counter listens in the same run, so
its events and the trace's are of one compilation and must be the same one by one.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.trace import document, join, watched
from graphmend_codemod.trace.document import OWN, Site
from graphmend_evaluation.others import stubs
from graphmend_evaluation.others.builders import MODELS, Package, load, packages

FIXED = (join.Remedy.FIX.value, join.Remedy.UNSAFE.value, join.Remedy.OPAQUE.value)


@dataclass(frozen=True)
class Judged:
    """A site of the package's own code, and what is said of it without and with the facts of the trace."""

    model: str
    path: str
    line: int
    source: str
    kind: str
    events: int
    without: str
    with_facts: str
    code: str
    reason: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the models, then judge what each trace says."""
    options = _parser().parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = set(options.models)
    judged: list[Judged] = []
    for package in packages(options.builders):
        root = options.roots / package.name
        names = [each for each in package.models if not wanted or {package.name, f"{package.name}.{each}"} & wanted]
        if package.half != "study" or not names or not root.is_dir():
            continue
        todo = [each for each in names if not (options.out / f"{package.name}.{each}.json").is_file()]
        if todo:
            _forked(package, todo, options)
        for name in names:
            target = options.out / f"{package.name}.{name}.json"
            if target.is_file():
                judged += _judged(f"{package.name}.{name}", target, root)
    (options.out / "sites.json").write_text(json.dumps([asdict(each) for each in judged], indent=1), encoding="utf-8")
    _show(judged)
    return 0


def _judged(model: str, target: Path, root: Path) -> list[Judged]:
    trace = document.read(target)
    sites = [site for site in trace.sites if site.where == OWN]
    if not sites:
        return []
    settings = Settings(root, opaque=True)
    trace = document.Trace(**{**vars(trace), "sites": tuple(sites)})
    facts = join.join(trace, settings, cache=False).answers
    bare = {path: list(found) for path, found in _bare(sites, settings).items()}
    found = []
    for site, answer in zip(sites, facts, strict=True):
        without = join.answer(site, bare, settings)
        found.append(
            Judged(
                model,
                site.place.path,
                site.place.line,
                site.source.strip(),
                site.kind,
                site.events,
                without.remedy.value,
                answer.remedy.value,
                answer.code,
                answer.reason,
            )
        )
    return found


def _bare(sites: Sequence[Site], settings: Settings) -> dict[str, list[Finding]]:
    """What `check` finds without a trace, by path."""
    paths = sorted({settings.root / site.own.path for site in sites if site.own is not None})
    found: dict[str, list[Finding]] = {}
    for finding in api.check(paths, settings, cache=False).findings:
        found.setdefault(finding.path, []).append(finding)
    return found


def _show(judged: Sequence[Judged]) -> None:
    """The numbers by what `check` said without the trace."""
    table = Counter((each.without, each.with_facts) for each in judged)
    for (without, now), count in sorted(table.items()):
        print(f"{without:16} -> {now:16} {count}")
    unfixed = [each for each in judged if each.without not in FIXED]
    turned = [each for each in unfixed if each.with_facts in FIXED]
    print(f"{len(judged)} sites, {len(unfixed)} without a fix, {len(turned)} of them with one by the trace")


# -- recording, with torch ----------------------------------------------------------------------------------------


def _forked(package: Package, names: Sequence[str], options: argparse.Namespace) -> None:
    """Each model in a process of its own, as two packages may bring modules of one name."""
    _import()
    for name in names:
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            try:
                _record(package, name, options)
            except BaseException as error:  # the package's code may raise anything; it costs its own trace
                print(f"{package.name}.{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.waitpid(process, 0)


def _import() -> None:
    import torch

    torch.set_num_threads(1)
    import graphmend_evaluation.counting
    import graphmend_evaluation.runs  # noqa: F401


def _record(package: Package, name: str, options: argparse.Namespace) -> None:
    import torch

    from graphmend_evaluation import runs
    from graphmend_evaluation.counting import BreakRecorder
    from graphmend_evaluation.loading import Factory, Model
    from graphmend_evaluation.tracing.live import trace

    warnings.simplefilter("ignore")
    root: Path = (options.roots / package.name).resolve()
    sys.path.insert(0, str(root / package.folder))
    stubs.install()
    stubs.stand_in(package.stubs)
    with contextlib.suppress(Exception):  # a model that needs it says why it cannot
        importlib.import_module(package.imports)
    made = Factory(root, f"{package.imports}:{name}", load(package, name)).make()
    model = Model(made.target, made.calls[: options.calls], made.gradients)
    counter, target = BreakRecorder(root), options.out / f"{package.name}.{name}.json"
    with trace(target, root=root) as recorded, counter.recording(len(model.calls)):
        compiled = torch.compile(model.target, backend=counter.backend, dynamic=False)
        runs.observe(model, compiled, root)
    counted, sites = counter.counts(), recorded.result.sites
    _watch(package, name, options, recorded.result, target)
    same = counted.break_events == sum(site.events for site in sites)
    print(
        f"{package.name}.{name}: {counted.break_events} events, the trace "
        f"{'the same' if same else sum(site.events for site in sites)}, {len(sites)} sites, the counter "
        f"{len(counted.sites)}"
    )


def _watch(package: Package, name: str, options: argparse.Namespace, trace: document.Trace, target: Path) -> None:
    """Make the calls once more without torch.compile, and add to the trace what the functions that broke held."""
    from graphmend_evaluation import runs
    from graphmend_evaluation.loading import Factory, Model
    from graphmend_evaluation.tracing.calls import Watcher

    root: Path = (options.roots / package.name).resolve()
    made = Factory(root, f"{package.imports}:{name}", load(package, name)).make()
    calls = made.calls[: options.calls]
    model = Model(made.target, calls * 2 if len(calls) == 1 else calls, made.gradients)
    watcher = Watcher(watched.places(trace, root))
    watcher.start()
    try:
        runs.observe(model, model.target, root)
    finally:
        watcher.stop()
    found = watched.of_records(watcher.records(), root)
    target.write_text(document.as_json(dataclasses.replace(trace, watched=found)), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="graphmend_evaluation.others.traced", description="What a trace adds.")
    parser.add_argument("--roots", type=Path, required=True, help="a folder with the code of each package")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the traces")
    parser.add_argument("--builders", type=Path, default=MODELS, help="the folder of the builder files")
    parser.add_argument("--calls", type=int, default=2, help="calls that are compiled [default: 2]")
    parser.add_argument("models", nargs="*", help="package.model [default: all of the study half]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
