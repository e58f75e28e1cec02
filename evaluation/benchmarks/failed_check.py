"""What a check on the device does to a process when it fails: `python evaluation/benchmarks/failed_check.py`.

`graphmend fix` writes `torch._assert_async` for `if (x < 0).any(): raise` (GM301). Each way of compiling has a process
of its own, since a failed assertion leaves a CUDA context that cannot be used any more. For each step it prints what
came back, and after how many milliseconds. Exit code 1 if a failed check goes unnoticed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

WAYS = ("eager", "aot_eager", "inductor", "reduce-overhead")
_PATIENCE = 300
_WARM_UPS = 4


def main() -> int:
    """Try each way in a process of its own."""
    unnoticed = False
    for way in WAYS:
        command = [sys.executable, __file__, way]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(f"{way}: nothing came back: {done.stderr.strip()[-300:]}")
            continue
        found = json.loads(lines[0])
        print(way)
        for step, (answer, milliseconds) in found.items():
            print(f"  {step}: {answer} ({milliseconds:.2f} ms)")
        said = [line for line in done.stderr.splitlines() if "ssert" in line]
        print(f"  lines about it on standard error: {len(said)}{', the first: ' + said[0][:160] if said else ''}")
        unnoticed = unnoticed or all(answer == "returned" for answer, _ in found.values())
    return 1 if unnoticed else 0


def steps(way: str) -> dict[str, tuple[str, float]]:
    """Calls of a compiled module with a good input, with a bad one, and what can be done afterwards."""
    import torch

    class Checked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(512, 512)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch._assert_async(~(x < 0).any(), "x must not be negative")
            return torch.relu(self.linear(x))

    device = "cuda" if torch.cuda.is_available() else "cpu"
    module = Checked().to(device)
    good = torch.rand(64, 512, device=device)
    bad = good.clone()
    bad[0, 0] = -1
    options = {"mode": way} if way == "reduce-overhead" else {"backend": way}
    call = torch.compile(module, fullgraph=True, **options)  # type: ignore[call-overload]

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    found = {}

    def step(name: str, run: Callable[[], object]) -> None:
        began = time.perf_counter()
        try:
            run()
            answer = "returned"
        except Exception as error:  # whatever the device makes of it
            answer = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
        found[name] = (answer, (time.perf_counter() - began) * 1000)

    with torch.no_grad():
        for _ in range(_WARM_UPS):
            call(good)
        wait()
        step("a call with the bad input", lambda: call(bad))
        step("the next call, without waiting", lambda: call(good))
        step("waiting for the device", wait)
        step("a later call", lambda: call(good).sum().item())
        step("work on the processor", lambda: torch.ones(2).sum().item())
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(steps(sys.argv[1])), flush=True)
        os._exit(0)  # a context with a failed assertion complains while it is taken down
    sys.exit(main())
