"""Compile what a factory makes and call it with its inputs: the program behind `graphmend trace --model`.

python -m graphmend_evaluation.tracing.run_model package.module:factory
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Make the model, compile it with backend `eager`, and make its calls."""
    sys.path.insert(0, str(Path.cwd()))
    import torch

    from graphmend_evaluation.loading import load_factory
    from graphmend_evaluation.worktree import LoadError

    (name,) = arguments
    try:
        model = load_factory(Path.cwd(), name).make()
    except LoadError as error:
        print(f"graphmend: error: {error}", file=sys.stderr)
        return 2
    compiled = torch.compile(model.target, backend="eager")
    with contextlib.nullcontext() if model.gradients else torch.no_grad():
        for call in model.calls:
            call.on(compiled)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
