"""What `graphmend trace` costs a program: pairs of runs, one of them recorded, in CPU seconds of all its processes.

    python evaluation/benchmarks/trace_overhead.py --pairs 6
    python evaluation/benchmarks/trace_overhead.py --pairs 6 -- python train.py --epochs 1

The order within a pair alternates, each run compiles in one process and with caches of its own. Without a command two
programs are run: one that compiles and makes three training steps, and one that calls compiled code 3,000 times.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphmend_codemod.trace import run

PROGRAMS = {
    "compiles": """
        import torch
        from torch import nn

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)

            def forward(self, x):
                x = self.layer(x)
                if x.abs().max() > 1e4:
                    x = x.clamp(-1e4, 1e4)
                return x

        torch.manual_seed(0)
        model = nn.Sequential(Block(), Block())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        compiled = torch.compile(model)
        for _ in range(3):
            optimizer.zero_grad()
            compiled(torch.randn(4, 16, 64)).square().mean().backward()
            optimizer.step()
    """,
    "calls": """
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(64, 64)

            def forward(self, x):
                for _ in range(4):
                    x = self.layer(x).relu()
                    if x.sum() > 1e6:
                        x = x / 2
                return x

        compiled = torch.compile(Model(), backend="eager")
        with torch.no_grad():
            for _ in range(3000):
                compiled(torch.ones(8, 64))
    """,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pairs and print each and their medians."""
    options = _parser().parse_args(arguments)
    given = [word for word in options.command if word != "--"]
    with tempfile.TemporaryDirectory() as folder:
        for name, command in [("the command", given)] if given else list(_programs(Path(folder))):
            print(f"{name}: CPU seconds without and with the recorder")
            ratios = []
            for number in range(options.pairs):
                found = {recorded: _seconds(command, recorded) for recorded in _order(number)}
                ratios.append(found[True] / found[False])
                print(f"  {found[False]:8.2f} {found[True]:8.2f}  {ratios[-1]:.3f}", flush=True)
            print(
                f"  median ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True
            )
    return 0


def _programs(folder: Path) -> Iterator[tuple[str, list[str]]]:
    for name, text in PROGRAMS.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        yield name, [sys.executable, str(folder / f"{name}.py")]


def _order(number: int) -> tuple[bool, bool]:
    return (False, True) if number % 2 == 0 else (True, False)


def _seconds(command: Sequence[str], recorded: bool) -> float:
    """CPU seconds that a run of the command took, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as caches:
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=caches, TORCHINDUCTOR_COMPILE_THREADS="1")
        if recorded:
            code = run.run(command, Path.cwd()).exit_code
        else:
            code = subprocess.run(command, check=False).returncode
    if code:
        raise SystemExit(f"the program ended with exit code {code}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trace_overhead.py", description="What `graphmend trace` costs a program.")
    parser.add_argument("--pairs", type=int, default=6, help="pairs of runs [default: 6]")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the program, behind `--` [default: two of our own]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
