"""One model's speed in one worktree: the child processes that `measuring` starts.

    python -m graphmend_evaluation.speed.child ROLE --out FOLDER [--root WORKTREE --model package.module:factory] ...

Roles: `seed` compiles something trivial, so that its caches can be copied to others; `probe` saves weights and inputs
and says what there is to measure; `cold` makes the first calls of a fresh process; `steady` warms up and then answers
requests, one line of JSON each, on the pipes `--requests` and `--answers`. The other roles write `FOLDER/result.json`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend_evaluation import child_process
from graphmend_evaluation.worktree import add_to_path, own_versions

if TYPE_CHECKING:
    from graphmend_evaluation.speed import timing

COLD_CALLS = 4


class Child:
    """What the roles share: options, the stage for a reader of a killed process's remains, and the model."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder: Path = options.out

    def stage(self, text: str) -> None:
        """Say what is being done."""
        (self.folder / "stage").write_text(text, encoding="utf-8")

    def load(self) -> Any:
        """The model on its device, with the pinned weights and inputs.

        Raises `LoadError`.
        """
        self.stage("importing")
        root = self.options.root.resolve()
        add_to_path(root, self.options.model)
        import torch

        from graphmend_evaluation.loading import load_factory
        from graphmend_evaluation.speed import timing

        torch.set_num_threads(self.options.threads)
        factory = load_factory(root, self.options.model)
        model = factory.make()
        if self.options.role == "probe":
            timing.save_pins(model, self.folder)
        else:
            timing.load_pins(model, self.options.pins)
        return timing.moved(timing.with_calls(model, self.options.calls), timing.device(self.options.device))

    def seed(self) -> dict[str, Any]:
        """Compile something trivial. Says which backend works here."""
        from graphmend_evaluation.speed import timing

        self.stage("compiling something trivial")
        backend, remark = timing.usable_backend(self.options.backend)
        device = timing.device(self.options.device)
        timing.compile_something(backend, device)
        gpu = {"gpu": timing.gpu_name(device), "gpu_uuid": timing.gpu_uuid(device)}
        return {"backend": backend, "remark": remark, "device": device, **gpu}

    def probe(self) -> dict[str, Any]:
        """Save weights and inputs. Says which calls return in eager mode."""
        model = self.load()  # first: the worktree's own modules come before what is installed
        from graphmend_evaluation.speed import timing

        self.stage("running in eager mode")
        usable, errors = timing.usable_calls(model)
        versions = own_versions(self.options.root.resolve())
        return {"calls": usable, "errors": errors, "versions": [*versions, *timing.more_versions(self.options.device)]}

    def cold(self) -> dict[str, Any]:
        """The first calls, each apart."""
        model = self.load()  # first: the worktree's own modules come before what is installed
        from graphmend_evaluation.speed import timing

        self.stage("compiling something trivial")
        timing.compile_something(self.options.backend, model.device)
        self.stage("making the first calls")
        return timing.cold_calls(model, self.options.backend, COLD_CALLS)

    def steady(self) -> None:
        """Answer requests until the pipe is closed."""
        model: timing.Placed | None = None
        served: dict[str, timing.Served] = {}

        def answer(request: Mapping[str, Any]) -> Any:
            nonlocal model
            configuration, wanted = request["of"], request["ask"]
            if model is None:
                model = self.load()
            from graphmend_evaluation.speed import timing

            if configuration not in served:
                served[configuration] = timing.Served(model, configuration, self.folder)
            self.stage("warming up" if wanted == "warm_up" else f"answering {wanted}")
            return getattr(served[configuration], wanted)(**request["with"])

        child_process.serve(self.options.requests, self.options.answers, answer)


def main(arguments: list[str] | None = None) -> int:
    """Play the role."""
    options = _parser().parse_args(arguments)
    child_process.begin(options)
    # Processor seconds of a pool of compiler processes could not be told apart from other waiting.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    child = Child(options)
    if options.role == "steady":
        child.steady()
        return 0
    child_process.write_json(options.out / "result.json", child_process.outcome(getattr(child, options.role)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = child_process.parser("speed.child", "Measure one model's speed.", one_model=False)
    parser.add_argument("role", choices=("seed", "probe", "cold", "steady"))
    parser.add_argument("--pins", type=Path, help="a folder with weights and inputs")
    parser.add_argument("--calls", type=_numbers, help="which of the factory's calls, counted from 0")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--backend", default="inductor", help="for torch.compile")
    parser.add_argument("--threads", type=int, default=1, help="of torch, on the CPU")
    child_process.add_pipes(parser)
    return parser


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
