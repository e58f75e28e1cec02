"""One arm: a process that has imported torch once, a fork of it for each package, and one of that for each model.

    python -m graphmend_evaluation.others.worker --roots FOLDER --out FOLDER [--against FOLDER] [PACKAGE.MODEL...]

With `--record` the models are recorded and not measured: `FOLDER/PACKAGE/MODEL/trace.json` is the trace.
Each line of `FOLDER/results.jsonl` is one model's `Result`; a model that has one is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from graphmend_evaluation.compilations import BACKENDS, COUNTING
from graphmend_evaluation.others import stubs
from graphmend_evaluation.others.builders import MODELS, Package, load, packages
from graphmend_evaluation.others.result import append, read, result
from graphmend_evaluation.survey.row import Row
from graphmend_evaluation.survey.worker import in_fork


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the models, one package after another."""
    options = _parser().parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = set(options.models)
    done = read(options.out / "results.jsonl")
    earlier = None if options.against is None else read(options.against / "results.jsonl")
    _import()
    for package in packages(options.builders):
        keys = [f"{package.name}.{model}" for model in package.models]
        keys = [key for key in keys if key not in done and (not wanted or {key, package.name} & wanted)]
        if earlier is not None:
            keys = [key for key in keys if key in earlier and earlier[key].row.ok]
        trees = {key: [key] for key in keys} if options.tree_per_model else {package.name: keys}
        for name, same in trees.items():
            if same and (options.roots / name).is_dir():
                _in_fork(package, [key.partition(".")[2] for key in same], options.roots / name, options)
    return 0


def _in_fork(package: Package, models: Sequence[str], root: Path, options: argparse.Namespace) -> None:
    """In a process of its own, as two packages may bring modules of one name."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        try:
            _package(package, models, root.resolve(), options)
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.waitpid(process, 0)


def _package(package: Package, models: Sequence[str], root: Path, options: argparse.Namespace) -> None:
    sys.path.insert(0, str(root / package.folder))
    (options.out / package.name).mkdir(parents=True, exist_ok=True)
    stubs.install()
    stubs.stand_in(package.stubs)
    with contextlib.suppress(Exception), warnings.catch_warnings():  # a model that needs it says why it cannot
        warnings.simplefilter("ignore")
        importlib.import_module(package.imports)
    for model in models:
        row = in_fork(model, _measurement(package, root, options), options.out / package.name, options.timeout)
        kept = result(package.name, model, package.half, row)
        append(options.out / "results.jsonl", kept)
        print(package.name, f"({package.half})", kept.row.line(), flush=True)


def _measurement(package: Package, root: Path, options: argparse.Namespace) -> Callable[[str], Row]:
    def measure(model: str) -> Row:
        from graphmend_evaluation.loading import Factory
        from graphmend_evaluation.others.measuring import MeasuringOthers
        from graphmend_evaluation.others.recording import RecordingOthers

        out = options.out / package.name
        against = None if options.against is None else options.against / package.name
        warnings.simplefilter("ignore")
        factory = Factory(root, f"{package.imports}:{model}", load(package, model))
        measuring = (
            RecordingOthers(root, out, None, 1)
            if options.record
            else MeasuringOthers(root, out, against, options.calls)
        )
        measuring.backend = options.backend
        return measuring.measured(model, package.imports, factory)

    return measure


def _import() -> None:
    """All that each model would import again."""
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch._dynamo

        import graphmend_evaluation.others.recording  # noqa: F401

        # The first compilation imports as much again.
        torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(2))
        torch._dynamo.reset()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="graphmend_evaluation.others.worker", description="One arm.")
    parser.add_argument("--roots", type=Path, required=True, help="a folder with the code of each package")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results")
    parser.add_argument("--against", type=Path, help="the folder of the first arm")
    parser.add_argument("--builders", type=Path, default=MODELS, help="the folder of the builder files")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds for one model [default: 180]")
    parser.add_argument("--calls", type=int, default=1, help="calls that are compiled [default: 1]")
    parser.add_argument("--backend", choices=BACKENDS, default=COUNTING, help="what compiles the graphs")
    parser.add_argument("--record", action="store_true", help="record what a user would, and measure nothing")
    parser.add_argument("--tree-per-model", action="store_true", help="`--roots` has PACKAGE.MODEL, not PACKAGE")
    parser.add_argument("models", nargs="*", help="package.model [default: all]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
