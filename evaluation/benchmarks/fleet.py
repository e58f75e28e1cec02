"""What a fleet of repositories takes: `python evaluation/benchmarks/fleet.py --real FOLDER_OF_CLONES`.

Writes docs/fleet-scale.md and the raw numbers. Exit code 0 when all went well and two workers are 1.7 times as fast as
one, 1 when they are not, 2 when it could not be measured. Takes about ten minutes on two cores with nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import tracemalloc
from dataclasses import asdict, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import fleet_page, outcome
from benchmarks.commands import ROOT, environment_of
from benchmarks.corpus import copy
from benchmarks.fleet_corpus import exported, found_in, generate, git
from benchmarks.fleet_outcome import Baseline, FleetOutcome, Requests
from benchmarks.fleet_runs import FleetRun, Ground, cluster
from benchmarks.timing import RunError, timed

from graphmend_codemod import __version__
from graphmend_codemod.fleet.jobs import CHECK, Options, Order
from graphmend_codemod.fleet.sources import Target

_MANY = 10_000
_TOKEN = "benchmark"


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the page and the numbers, return the exit code."""
    options = _options(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="graphmend-benchmark-") as folder:
            found = measure(Path(folder), options)
    except RunError as error:
        print(f"fleet: error: a measured command failed: {error}", file=sys.stderr)
        return 2
    options.results.mkdir(parents=True, exist_ok=True)
    raw = options.results / f"{found.machine.date}-fleet.json"
    raw.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    shown = os.path.relpath(raw, ROOT) if raw.is_relative_to(ROOT) else raw.name
    text = fleet_page.render(found, shown)
    options.page.write_text(text, encoding="utf-8")
    print(text)
    return 0 if found.met else 1


def measure(folder: Path, options: argparse.Namespace) -> FleetOutcome:
    """Everything, with `folder` to work in. RunError when graphmend fails at it."""
    load_before = outcome.load()
    _say(f"writing {options.generated} repositories")
    generate(folder / "generated", options.generated)
    # A copy: an edit of the checkout while this runs must not change what is measured.
    copy(ROOT / "graphmend_codemod", folder / "checkout" / "graphmend_codemod")
    environment = {**environment_of(folder / "cache"), "PYTHONPATH": str(folder / "checkout")}
    ground = Ground(folder, environment)
    made, real = found_in(folder / "generated"), found_in(*options.real) if options.real else ()
    baselines = (_baseline("generated", made, ground), *([_baseline("real", real, ground)] if real else []))
    everything = _listed(folder / "all.txt", (*made, *real))
    total = len(made) + len(real)
    runs = []
    for workers in (1, 2):
        _say(f"local processes, {workers} at a time")
        run, _ = ground.run(f"local {workers}", everything, workers, total)
        runs.append(run)
    if options.dask:
        runs += [_on_dask(ground, everything, workers, total) for workers in (1, 2)]
    served, requests = _served(ground, made[: options.served], made[: options.pull_requests])
    return FleetOutcome(
        machine=outcome.machine(load_before),
        graphmend=f"{__version__} ({outcome.commit_of(ROOT)})",
        baselines=baselines,
        runs=tuple(runs),
        served=served,
        requests=requests,
        orders=_orders(),
    )


def _baseline(name: str, targets: tuple[Target, ...], ground: Ground) -> Baseline:
    """Each repository checked by a command of its own, one after the other."""
    _say(f"`graphmend check` for each of {len(targets)} {name} repositories")
    with tempfile.TemporaryDirectory(dir=ground.folder) as folder:
        roots, known = exported(targets, Path(folder))
        command = (sys.executable, "-m", "graphmend_codemod", "check", "--no-cache", "--jobs", "1")
        runs = [timed(command, folder=root, environment=ground.environment, codes=(0, 1, 2))[0] for root in roots]
    return Baseline(
        name, len(targets), known.files, known.size, sum(run.wall for run in runs), sum(r.cpu for r in runs)
    )


def _on_dask(ground: Ground, listed: Path, workers: int, total: int) -> FleetRun:
    _say(f"Dask, {workers} worker{'s' if workers > 1 else ''}")
    (ground.folder / "tmp").mkdir(exist_ok=True)
    environment = {**ground.environment, "TMPDIR": str(ground.folder / "tmp")}
    with cluster(workers, environment) as idle:
        pass
    with cluster(workers, environment) as running:
        run, _ = ground.run(f"dask {workers}", listed, workers, total, scheduler=running.address, pids=running.pids)
    return replace(run, cpu=run.cpu + running.cpu, cpu_start=idle.cpu)


def _served(
    ground: Ground, checked: tuple[Target, ...], proposed: tuple[Target, ...]
) -> tuple[tuple[FleetRun, ...], tuple[Requests, ...]]:
    """From addresses: git over HTTP and a fake of GitHub, both in this process."""
    from tests.forge.github_fake import GitHubFake, Repo
    from tests.forge.server import running

    root = ground.folder / "served"
    root.mkdir()
    runs, requests = [], []
    ground = Ground(ground.folder, {**ground.environment, "GITHUB_TOKEN": _TOKEN})
    with running(root) as server:
        server.users[_TOKEN] = "bot"
        fake = server.api = GitHubFake(server)
        for target in {*checked, *proposed}:
            path = f"octo/{target.name.rpartition('/')[2]}"
            _serve(Path(target.location), root / f"{path}.git")
            fake.repos[path] = Repo(path)
        cache = ("--object-cache", str(ground.folder / "objects"))
        here = ("--forge", "github")
        for name, more in (("fetched", ()), ("fetched, cold cache", cache), ("fetched, warm cache", cache)):
            _say(f"{len(checked)} repositories {name}")
            listed = _listed(ground.folder / "checked.txt", checked, server.url)
            before = server.sent
            run, _ = ground.run(name, listed, 2, len(checked), *here, *more)
            runs.append(replace(run, fetched=server.sent - before))
        for name in ("opened", "unchanged"):
            _say(f"{len(proposed)} pull requests {name}")
            listed = _listed(ground.folder / "proposed.txt", proposed, server.url)
            server.seen.clear()
            api = ("--api-url", fake.url)
            run, rows = ground.run(f"pr {name}", listed, 2, len(proposed), *here, *api, action="pr")
            asked = sum("/api/v3/" in line for line in server.seen)
            writing = sum("/api/v3/" in line and not line.startswith("GET") for line in server.seen)
            many = sum(row.status == name for row in rows)
            requests.append(Requests(name, many, asked, writing, len(server.seen) - asked, run.wall, run.cpu))
    return tuple(runs), tuple(requests)


def _serve(clone: Path, bare: Path) -> None:
    git(clone, "clone", "--quiet", "--bare", ".", str(bare))
    git(bare, "config", "http.receivepack", "true")
    git(bare, "config", "uploadpack.allowFilter", "true")


def _listed(file: Path, targets: tuple[Target, ...], url: str = "") -> Path:
    lines = [f"{url}/octo/{one.name.rpartition('/')[2]}" if url else one.location for one in targets]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def _orders() -> int:
    """Bytes that the orders for ten thousand repositories take."""
    tracemalloc.start()
    kept = [
        Order(f"octo/repository-{number}", f"https://github.com/octo/repository-{number}", Options(CHECK))
        for number in range(_MANY)
    ]
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size if kept else 0


def _say(text: str) -> None:
    print(f"fleet: {text}", file=sys.stderr, flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", type=int, default=200, help="how many repositories to generate")
    parser.add_argument(
        "--real", type=Path, action="append", default=[], help="a folder of clones, which are only read"
    )
    parser.add_argument("--dask", action=argparse.BooleanOptionalAction, default=True, help="measure a cluster, too")
    parser.add_argument("--served", type=int, default=60, help="how many are checked from addresses")
    parser.add_argument("--pull-requests", type=int, default=20, help="how many get a pull request on a fake forge")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "fleet-scale.md", help="the Markdown page")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "evaluation" / "benchmarks" / "results", help="folder of the raw numbers"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
