"""Migrate the installed transformers package and measure the rows of the published table before and after.

    python -m graphmend_evaluation.paper [--rows t5,bart-float16] [--inductor] [--flags advice] [--results FOLDER]
    python -m graphmend_evaluation.paper --full --random-weights [--rows t5-small,bart-base] [--device cpu]
    python -m graphmend_evaluation.paper --render evaluation/paper --page docs/published-table.md

Exit codes: 0 every row was measured and nothing but breaks has changed, 1 a row has a problem, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphmend_evaluation.isolation import Policy, in_parallel, torch_is_installed
from graphmend_evaluation.paper import files, full, hub, page, prepare, table
from graphmend_evaluation.paper.rows import ROWS, Row, UnknownRow, choose
from graphmend_evaluation.paper.running import Options, measure_rows
from graphmend_evaluation.speed.options import SpeedOptions

_HUB_NAMES = tuple(model.name for model in hub.HUB_MODELS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        if options.render is not None:
            return page.write(options.render, options.page)
        return _run_full(options) if options.full else _run(options)
    except (prepare.PrepareError, UnknownRow, full.FullError, files.FileError) as error:
        print(f"paper: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paper: interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    rows, models = _chosen(options.rows)
    _need_torch()
    started = time.monotonic()
    work = prepare.new_folder(options.work)
    arms, ready, not_run = _arms(options, work, models)
    policy = full.with_snapshots(Policy(timeout=options.timeout), dict(os.environ), work / "snapshots")
    wanted = Options(jobs=options.jobs, inductor=options.inductor, flags=options.flags == "advice")
    all_rows = (*rows, *(model.row for model in ready))
    results = measure_rows(all_rows, arms, work / "measurements", policy, wanted, _say) if all_rows else ()
    print()
    for line in table.lines(results):
        print(line)
    for each in not_run:
        print(f"{each.model}: not run: {each.reason}")
    folder = options.results or work / "results"
    about = table.about_this_run(results)
    about["migrated"] = "with unsafe fixes, too" if options.unsafe_fixes else "with safe fixes only"
    seconds = time.monotonic() - started
    if options.update:
        results, not_run = files.merged(folder, results, not_run)
    else:
        about["whole run"] = f"{seconds:.0f} s with the migration, {options.jobs} models at a time"
    files.write_table(results, not_run, about, folder)
    print(f"\n{seconds:.0f} s. The table and all measurements are in {folder}")
    print(f"The migrated repository is {arms.repository}, its branch {prepare.BRANCH}")
    return 1 if any(measured.problems for measured in results) else 0


def _run_full(options: argparse.Namespace) -> int:
    models = full.choose(options.rows)
    _need_torch()
    device = full.usable_device(options.device)
    work = prepare.new_folder(options.work)
    origins = full.weights(models, work / "snapshots", random=options.random_weights)
    arms, _, _ = _arms(options, work, ())
    policy = full.with_snapshots(Policy(timeout=options.timeout), dict(os.environ), work / "snapshots")
    speed = SpeedOptions(
        device=device,
        cold=options.cold,
        rounds=options.rounds,
        processes=1 if options.one_process else 2,
        arms_at_once=options.full_jobs is not None,
    )
    seed = work / "measurements" / "seed"
    run = full.Run(arms.before, arms.after, policy, speed, _say, seed, options.sizes, counts=not options.no_counts)
    found: dict[int, full.FullRow] = {}
    written, about = threading.Lock(), table.about_this_run(())

    def measure(number: int, policy: Policy) -> None:
        model = models[number]
        folder = work / "measurements" / f"{number:02d}"
        row = full.measure(replace(run, policy=policy), model, origins[model], folder)
        with written:
            found[number] = row
            target = options.results or work / "results"
            rows = [found[each] for each in sorted(found)]
            files.write_full(files.merged_full(target, rows) if options.update else rows, about, target)
        _say(f"[{len(found)}/{len(models)}] {model}: {'measured' if row.ok else row.trouble}")

    jobs = 1 if options.full_jobs is None else options.full_jobs
    in_parallel(measure, len(models), jobs=jobs, policy=policy)
    rows = [found[each] for each in sorted(found)]
    print(f"All measurements are in {options.results or work / 'results'}")
    return 0 if all(row.ok for row in rows) else 1


def _chosen(names: str | None) -> tuple[tuple[Row, ...], tuple[hub.HubModel, ...]]:
    """Rows that run from what is installed, and models of the hub."""
    if names is None:
        return ROWS, hub.HUB_MODELS
    wanted = [name.strip() for name in names.split(",")]
    own = ",".join(name for name in wanted if name not in _HUB_NAMES)
    rows = choose(own) if own or not any(name in _HUB_NAMES for name in wanted) else ()
    return rows, tuple(model for model in hub.HUB_MODELS if model.name in wanted)


def _arms(
    options: argparse.Namespace, work: Path, models: Sequence[hub.HubModel]
) -> tuple[prepare.Arms, list[hub.HubModel], list[hub.NotRun]]:
    """The installed package before, and after the migration; or after `--head`'s hand-made edits."""
    _say("Putting the installed transformers package into a git repository")
    access = hub.Access(options.trust_remote_code, dict(options.revision), options.hub_folder)
    ready, not_run = hub.fetch(models, access, work / "repository", work / "snapshots")
    repository = prepare.copy_installed("transformers", work / "repository")
    if options.head is not None:
        arms = prepare.check_out(repository, work, changed=False)
        return replace(arms, after=options.head.resolve(), changed=True), ready, not_run
    unsafe = ("--unsafe-fixes",) if options.unsafe_fixes else ()
    _say(" ".join(("Migrating it: graphmend migrate", *unsafe)))
    changed, said = prepare.migrate(repository, unsafe)
    print("".join(f"  {line}\n" for line in said.splitlines() if line), end="", flush=True)
    return prepare.check_out(repository, work, changed=changed), ready, not_run


def _need_torch() -> None:
    if not torch_is_installed():
        raise prepare.PrepareError(
            "torch is not installed; install graphmend with its extra `eval`: pip install '.[eval]' in a checkout"
        )


def _say(line: str) -> None:
    print(line, flush=True)


def _sizes(text: str) -> tuple[str, ...]:
    found = tuple(each.strip() for each in text.split(","))
    if not set(found) <= set(full.SIZES):
        raise argparse.ArgumentTypeError(f"{text!r} is not one, many or one,many")
    return found


def _revision(text: str) -> tuple[str, str]:
    name, equals, commit = text.partition("=")
    if not (equals and commit) or name not in _HUB_NAMES:
        raise argparse.ArgumentTypeError(f"MODEL=COMMIT is needed, MODEL one of {', '.join(_HUB_NAMES)}")
    return name, commit


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphmend_evaluation.paper",
        description="Migrate the installed transformers package and measure rows of the published table.",
    )
    names = ", ".join((*(row.name for row in ROWS), *_HUB_NAMES))
    parser.add_argument("--rows", help=f"comma-separated, of: {names}; with --full published names [default: all]")
    parser.add_argument(
        "--work", type=Path, default=Path(".demo"), help="a folder of its own, emptied first [default: .demo]"
    )
    parser.add_argument("--results", type=Path, help="where the dated table goes [default: results in the work folder]")
    parser.add_argument("--unsafe-fixes", action="store_true", help="migrate with unsafe fixes, too")
    parser.add_argument("--update", action="store_true", help="keep the rows of today's table that are not run now")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="models measured at a time")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one model [default: 600]")
    parser.add_argument("--head", type=Path, help="measure this folder as the changed arm instead of migrating")
    parser.add_argument(
        "--inductor", action="store_true", help="also compile with Inductor and compare with eager mode"
    )
    parser.add_argument(
        "--flags", choices=("none", "advice"), default="none", help="try capture flags on rows that still break"
    )
    network = parser.add_argument_group("rows that need the model hub")
    network.add_argument("--trust-remote-code", action="store_true", help="run code that comes from the hub")
    network.add_argument(
        "--revision", type=_revision, action="append", default=[], metavar="MODEL=COMMIT", help="may be repeated"
    )
    network.add_argument("--hub-folder", type=Path, help="a folder with each model's files, instead of the network")
    real = parser.add_argument_group("real sizes")
    real.add_argument("--full", action="store_true", help="the models at their real size, with times, on a GPU")
    real.add_argument("--random-weights", action="store_true", help="without pretrained weights, and without network")
    real.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    defaults = SpeedOptions()
    real.add_argument("--cold", type=int, default=defaults.cold, help="fresh processes an arm; 0: no cold start")
    real.add_argument("--rounds", type=int, default=defaults.rounds, help="blocks of calls; 0: no steady state")
    real.add_argument("--one-process", action="store_true", help="one long-lived process an arm instead of two")
    real.add_argument("--sizes", type=_sizes, default=full.SIZES, help="batches to time [default: one,many]")
    real.add_argument("--no-counts", action="store_true", help="only times: breaks are not counted on the processor")
    real.add_argument(
        "--together",
        dest="full_jobs",
        type=int,
        help="models that compile at the same time, each on two cores; every model is timed alone [default: 1]",
    )
    shown = parser.add_argument_group("the page")
    shown.add_argument("--render", type=Path, metavar="FOLDER", help="only write the page from the newest dated files")
    shown.add_argument("--page", type=Path, default=Path("docs/published-table.md"), help="[default: %(default)s]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
