"""One model of one worktree, compiled in several ways: the child process that `compiling` starts.

    python -m graphmend_evaluation.compile_ways --root WORKTREE --model package.module:factory --out FOLDER --ways JSON

The model runs in eager mode once, then compiled in a fork for each way, with the same weights and inputs. A way that
kills its fork costs only itself. `FOLDER/compilations.json` is written anew after each way.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphmend_evaluation import child_process
from graphmend_evaluation.compilations import INDUCTOR, Compilations, Compiled, Way
from graphmend_evaluation.measure import ModelRun, RunError
from graphmend_evaluation.results import CallResult, Counts, Status, from_json, to_json

if TYPE_CHECKING:
    from graphmend_evaluation.loading import Factory

RESULT = "compilations.json"


class _Ways(ModelRun):
    """A model's compilations in the making."""

    def compile(self, ways: Sequence[Way], *, only_if_broken: bool) -> Compilations:
        """Eager mode, then each way. With `only_if_broken` the first must leave a break for the others to be asked."""
        started = time.monotonic()
        found = Compilations(self.model, Status.OK, "", 0.0)
        try:
            factory = self._factory()
            self._stage("running in eager mode")
            versions, _ = self._fork(lambda: self._eager(factory))
            found = replace(found, versions=tuple((str(name), str(version)) for name, version in versions))
            for way in ways:
                compiled = self._one(factory, way)
                seconds = round(time.monotonic() - started, 3)
                found = replace(found, compiled=(*found.compiled, compiled), seconds=seconds)
                self.write(found)
                if only_if_broken and found.compiled[0].breaks == 0:
                    break
        except RunError as error:
            found = replace(found, status=error.status, message=str(error))
        return replace(found, seconds=round(time.monotonic() - started, 3))

    def write(self, compilations: Compilations) -> None:
        """The result as far as it goes."""
        child_process.write_json(self.folder / RESULT, to_json(compilations), indent=1)

    def _one(self, factory: Factory, way: Way) -> Compiled:
        self._stage(f"compiling: {way.name}")
        started = time.monotonic()
        try:
            answer = self._fork(lambda: self._compile(factory, way))
        except RunError as error:
            return Compiled(way, error.status, str(error), round(time.monotonic() - started, 3))
        counts = from_json(Counts, answer["counts"])
        calls = tuple(from_json(CallResult, call) for call in answer["calls"])
        return Compiled(way, Status.OK, "", round(time.monotonic() - started, 3), counts, calls)

    def _compile(self, factory: Factory, way: Way) -> Any:
        import torch

        from graphmend_evaluation import runs
        from graphmend_evaluation.counting import BreakRecorder
        from graphmend_evaluation.loading import load_pins

        model = factory.make()
        load_pins(model, self.folder)
        recorder = BreakRecorder(factory.root)
        backend = recorder.inductor if way.backend == INDUCTOR else recorder.backend
        flags = dict.fromkeys(way.flags, True)
        with recorder.recording(len(model.calls)), torch._dynamo.config.patch(flags):
            compiled = torch.compile(model.target, backend=backend, dynamic=way.dynamic)
            observed = runs.observe(model, compiled, factory.root)
        counts = recorder.counts()
        runs.save(observed, self.folder / "compiled.pt")
        return {"counts": to_json(counts), "calls": to_json(self._calls())}


def main(arguments: list[str] | None = None) -> int:
    """Compile, and write `compilations.json`. Exit code 0 when there is a result, whatever it says."""
    options = _parser().parse_args(arguments)
    child_process.begin(options)
    arm = _Ways(options.root.resolve(), options.model, options.out.resolve(), None)
    ways = [from_json(Way, each) for each in json.loads(options.ways)]
    arm.write(arm.compile(ways, only_if_broken=options.only_if_broken))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = child_process.parser("compile_ways", "Compile one model in several ways.")
    parser.add_argument("--ways", required=True, help="a JSON array of compilations.Way")
    parser.add_argument("--only-if-broken", action="store_true", help="stop when the first way leaves no break")
    return parser


if __name__ == "__main__":
    sys.exit(main())
