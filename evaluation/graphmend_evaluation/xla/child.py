"""One model in one worktree under torch_xla, in one mode: the child process that `measuring` starts.

    python -m graphmend_evaluation.xla.child --mode openxla|lazy|check --out FOLDER --root WORKTREE --model ...

`check` leaves in `FOLDER/result.json` which versions there are. The other modes answer requests, one line of JSON each,
on the pipes `--requests` and `--answers`. Without `--pins` the weights and inputs are saved in `FOLDER` for later runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend_evaluation import child_process
from graphmend_evaluation.worktree import LoadError, add_to_path

if TYPE_CHECKING:
    from graphmend_evaluation.xla.running import Running

HOW_TO_INSTALL = (
    "torch_xla is not installed for {python}: install graphmend with its extra in an environment of its own, "
    "pip install 'graphmend[xla]', and pass that environment's interpreter with --python"
)


def main(arguments: list[str] | None = None) -> int:
    """Say which versions there are, or answer requests until the pipe is closed."""
    options = _parser().parse_args(arguments)
    child_process.begin(options)
    os.environ.setdefault("PJRT_DEVICE", "CPU")
    if options.mode == "check":
        child_process.write_json(options.out / "result.json", child_process.outcome(_check))
        return 0
    running: Running | None = None

    def answer(request: Mapping[str, Any]) -> Any:
        nonlocal running
        if running is None:
            running = _load(options)
        return getattr(running, request["ask"])(**request["with"])

    child_process.serve(options.requests, options.answers, answer)
    return 0


def _check() -> dict[str, Any]:
    try:
        import torch
        import torch_xla
    except ModuleNotFoundError:
        raise LoadError(HOW_TO_INSTALL.format(python=sys.executable)) from None
    except ImportError as error:
        raise LoadError(f"torch_xla does not fit torch for {sys.executable}: {error}; both must be 2.9") from error
    versions = {"python": sys.version.split()[0], "torch": torch.__version__, "torch_xla": torch_xla.__version__}
    return {"versions": list(versions.items()), "device": os.environ["PJRT_DEVICE"]}


def _load(options: argparse.Namespace) -> Running:
    stage = options.out / "stage"
    stage.write_text("importing", encoding="utf-8")
    root = options.root.resolve()
    add_to_path(root, options.model)
    import torch

    from graphmend_evaluation.loading import load_factory, load_pins, save_pins
    from graphmend_evaluation.xla.running import Running

    torch.set_num_threads(1)
    factory = load_factory(root, options.model)
    model = factory.make()
    if options.pins is None:
        save_pins(model, options.out)
    else:
        load_pins(model, options.pins)
    stage.write_text(f"running with {options.mode}", encoding="utf-8")
    return Running(model, options.mode, root)


def _parser() -> argparse.ArgumentParser:
    parser = child_process.parser("xla.child", "One model under torch_xla.", one_model=False)
    parser.add_argument("--mode", choices=("check", "openxla", "lazy"), required=True)
    child_process.add_pipes(parser)
    parser.add_argument("--pins", type=Path, help="a folder with weights and inputs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
