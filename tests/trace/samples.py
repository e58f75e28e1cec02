"""Events of a made-up run, and torch's words for its breaks: a helper three frames deep that breaks on a tensor."""

from __future__ import annotations

from pathlib import Path

from graphmend_codemod.trace import events
from graphmend_codemod.trace.collect import Collector
from graphmend_codemod.trace.document import Trace

MODEL = """\
import torch
from torch import nn


def helper(x: torch.Tensor):
    if x.sum() > 0:
        return x * 2
    return x


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        y = helper(x + 1)
        print("done")
        return y - 1
"""
TORCH = "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"


def branch(path: str, above: str = "") -> str:
    """The message of the tensor `if` in `helper`."""
    return f"""\
Graph break in user code at {path}:6
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Data-dependent branching
  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`).

      The branch condition involves a tensor computed as follows:
        # File "{path}", line 6, in helper, code: if x.sum() > 0:
  Hint: Use `torch.cond` to express dynamic control flow.

  Developer debug context: attempted to jump with TensorVariable()

 For more details, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html

User code traceback:
{above}  File "{path}", line 6, in helper
    if x.sum() > 0:
       ^^^^^^^^^^^

Traceback (most recent call last):
torch._dynamo.exc.Unsupported: Data-dependent branching
"""


def message_print(path: str, function: str) -> str:
    """The message of the `print` in `forward`, or in the part of it that goes on behind the call of `helper`."""
    return f"""\
Graph break in user code at {path}:14
Graph Break Reason: Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
  Hint: Avoid calling `print` in your code.

 For more details, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html

User code traceback:
  File "{path}", line 14, in {function}
    print("done")
    ^^^^^^^^^^^^^
"""


def compiled(frame: int, function: str, line: int, operations: int | None, path: str) -> events.Compiled:
    """A compilation that took a second, a quarter of it in vain where it has no graph."""
    return events.Compiled(frame, 0, path, line, function, operations, 1.0, 0.25, None)


def run(path: str = "model.py") -> list[events.Event]:
    """One call of `Model`: the frames that Dynamo compiles, in their order."""
    rest = "torch_dynamo_resume_in_forward_at_13"
    above = f'  File "{path}", line 13, in forward\n    y = helper(x + 1)\n        ^^^^^^^^^^^^^\n'
    x = {"type": "torch.Tensor", "dtype": "float32", "sizes": [2, 4], "device": "cpu", "requires_grad": False}
    known = (events.Known(path, "helper", {"x": x}),)
    return [
        events.Process("train.py", "", "2.13.0", "3.11.7", None),
        events.Break(0, 0, branch(path, above), known),
        compiled(0, "forward", 12, 1, path),
        events.Break(1, 0, branch(path), known),
        compiled(1, "helper", 5, 2, path),
        compiled(2, "torch_dynamo_resume_in_helper_at_6", 6, 1, path),
        events.Break(3, 0, message_print(path, rest), ()),
        compiled(3, rest, 13, None, path),
        compiled(4, "torch_dynamo_resume_in_forward_at_14", 14, 1, path),
        events.Gap(0, 0, 9, 5.0),  # before the first graph of a call nothing was broken
        events.Gap(1, 0, 10, 0.25),
        events.Gap(2, 0, 4, 0.125),
        events.Gap(4, 0, 10, 0.5),
        events.End(),
    ]


def project(folder: Path) -> Path:
    """A folder with the model below its settings."""
    (folder / "pyproject.toml").write_text("[tool.graphmend]\n")
    (folder / "model.py").write_text(MODEL)
    return folder


def traced(folder: Path, *, source: bool = True) -> Trace:
    """The trace of one run in a project."""
    collector = Collector(folder)
    collector.add([event._replace(cwd=str(folder)) if isinstance(event, events.Process) else event for event in run()])
    return collector.trace("python train.py", source=source)
