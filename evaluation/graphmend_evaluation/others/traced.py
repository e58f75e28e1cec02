"""What a trace turns into fixes on the study half: each model recorded, and joined with and without the trace's facts.

    python -m graphmend_evaluation.others.traced --roots FOLDER --out FOLDER [PACKAGE.MODEL...]

`OUT/PACKAGE/MODEL/trace.json` is the trace, `OUT/sites.json` what was found. The strict counter listens in the same
run, so its events and the trace's are of one compilation and must be the same one by one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.trace import document, join
from graphmend_codemod.trace.document import OWN, Site
from graphmend_evaluation.others import result, worker
from graphmend_evaluation.others.builders import MODELS, packages
from graphmend_evaluation.recording_rounds import TRACE

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
    wanted = set(options.models)
    names = {
        f"{package.name}.{model}": options.roots / package.name
        for package in packages(options.builders)
        for model in package.models
        if package.half == "study" and (not wanted or {package.name, f"{package.name}.{model}"} & wanted)
    }
    judged: list[Judged] = []
    if names:
        places = ["--roots", str(options.roots), "--out", str(options.out), "--builders", str(options.builders)]
        worker.main([*places, "--record", *names])
        for key, row in ((each.key, each.row) for each in result.read(options.out / "results.jsonl").values()):
            if row.compiled is not None:
                print(f"{key}: the counter has {row.breaks} events, and {row.compiled}")
    for name, root in names.items():
        target = options.out / name.replace(".", "/") / TRACE
        if target.is_file():
            judged += _judged(name, target, root)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="graphmend_evaluation.others.traced", description="What a trace adds.")
    parser.add_argument("--roots", type=Path, required=True, help="a folder with the code of each package")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the traces")
    parser.add_argument("--builders", type=Path, default=MODELS, help="the folder of the builder files")
    parser.add_argument("models", nargs="*", help="package.model [default: all of the study half]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
