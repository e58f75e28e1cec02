"""How fast graphmend is, against `ast.parse`, its targets and other tools: `python evaluation/benchmarks/speed.py`.

Writes docs/benchmarks.md and the raw numbers beside it. Exit code 0 when every target is met, 1 when one is missed,
2 when it could not be measured.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import outcome, page
from benchmarks.commands import ROOT, Measurement, environment_of
from benchmarks.corpus import copy, make_corpus
from benchmarks.outcome import Outcome, Peer
from benchmarks.peers import measure_peers
from benchmarks.timing import RunError

from graphmend_codemod import __version__


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the page and the numbers, return the exit code."""
    options = _options(arguments)
    package = options.package or _installed_package("transformers")
    if package is None or not package.is_dir():
        print(
            f"speed: error: no package at {options.package or 'transformers'}; give --package FOLDER", file=sys.stderr
        )
        return 2
    if options.wheel is not None and not zipfile.is_zipfile(options.wheel):
        print(f"speed: error: {options.wheel} is no wheel; `make wheel` builds one", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="graphmend-speed-") as folder:
            found = measure(package.resolve(), Path(folder), options)
    except RunError as error:
        print(f"speed: error: a measured command failed: {error}", file=sys.stderr)
        return 2
    _write(found, options)
    return 0 if found.met else 1


def measure(package: Path, folder: Path, options: argparse.Namespace) -> Outcome:
    """Everything about one package, with `folder` to work in. RunError when graphmend fails at it."""
    load_before = outcome.load()
    _say(f"copying {package} into a git repository")
    corpus = make_corpus(package, folder / "repository")
    environment = environment_of(folder / "cache")
    versions = _versions(package)
    # A copy: an edit of the checkout while this runs must not change what is measured.
    copy(ROOT / "graphmend_codemod", folder / "checkout" / "graphmend_codemod")
    compiled = None
    if options.wheel is not None:
        compiled = folder / "wheel"
        with zipfile.ZipFile(options.wheel) as wheel:
            wheel.extractall(compiled)
    measurement = Measurement(corpus, folder / "checkout", environment, _say, compiled)
    measurement.package(options.repetitions)
    measurement.edited(options.repetitions)
    clean_files = measurement.clean_files(options.clean_files, options.short_repetitions)
    measurement.files_with_sites(options.files_with_sites, options.repetitions)
    targets, not_measured = measurement.targets(clean_files)
    peers: tuple[Peer, ...] = ()
    if options.peers:
        peers = measure_peers(
            corpus,
            folder,
            environment,
            sample_files=options.peer_sample,
            repetitions=options.peer_repetitions,
            limit=options.peer_limit,
            say=_say,
        )
    return Outcome(
        machine=outcome.machine(load_before),
        versions=versions,
        corpus={"files": len(corpus.files), "lines": corpus.lines, "bytes": corpus.size},
        same_findings=measurement.same_findings,
        targets=targets,
        not_measured=not_measured,
        clean_files=clean_files,
        peers=peers,
        runs={name: tuple(runs) for name, runs in measurement.runs.items()},
    )


def _write(found: Outcome, options: argparse.Namespace) -> None:
    options.results.mkdir(parents=True, exist_ok=True)
    options.page.parent.mkdir(parents=True, exist_ok=True)
    raw = options.results / f"{found.machine.date}-speed.json"
    document = asdict(found)
    for target, written in zip(found.targets, document["targets"], strict=True):
        written["met"] = target.met
    raw.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    text = page.render(found, os.path.relpath(raw, ROOT) if raw.is_relative_to(ROOT) else raw.name)
    options.page.write_text(text, encoding="utf-8")
    print(text)


def _versions(package: Path) -> dict[str, str]:
    versions = {"Python": platform.python_version(), "graphmend": f"{__version__} ({outcome.commit_of(ROOT)})"}
    for name in dict.fromkeys((package.name, "joblib")):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _installed_package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def _say(text: str) -> None:
    print(f"speed: {text}", file=sys.stderr, flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, help="folder of the package [default: the installed transformers]")
    parser.add_argument("--wheel", type=Path, help="a wheel of graphmend with its analysis compiled (`make wheel`)")
    parser.add_argument("--repetitions", type=int, default=5, help="rounds over the package")
    parser.add_argument("--clean-files", type=int, default=5, help="how many clean files go through `graphmend fix`")
    parser.add_argument("--files-with-sites", type=int, default=3, help="how many files with a fix go through it")
    parser.add_argument("--short-repetitions", type=int, default=20, help="runs for each clean file")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure other tools, too")
    parser.add_argument("--peer-sample", type=int, default=60, help="files for tools too slow for the whole package")
    parser.add_argument("--peer-repetitions", type=int, default=3, help="runs of each tool, fewer if it is slow")
    parser.add_argument("--peer-limit", type=float, default=600.0, help="seconds after which a tool is stopped")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md", help="the Markdown page")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "evaluation" / "benchmarks" / "results", help="folder of the raw numbers"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
