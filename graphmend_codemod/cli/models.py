"""Options that say which models to evaluate, for every command that does."""

from __future__ import annotations

import argparse
from pathlib import Path

from graphmend_codemod.cli import options
from graphmend_codemod.evaluation.port import Wanted

_GIB = 2**30


def add_evaluate_option(parser: argparse.ArgumentParser) -> None:
    """Whether to evaluate, for commands that have other things to do."""
    parser.add_argument(
        "--evaluate",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="compile the models before and after [default: where torch is installed]",
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Where models come from, and what they may use."""
    group = parser.add_argument_group("models", "A factory takes no arguments and returns the module and its inputs.")
    group.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="MODULE:FACTORY",
        help="a model to evaluate, repeatable; replaces the configured models",
    )
    group.add_argument(
        "--from-tests",
        metavar="ARGS",
        help="run the repository's tests with these pytest arguments, and evaluate the changed modules that they call",
    )
    group.add_argument(
        "--huggingface",
        action="store_true",
        help="evaluate small models of the changed modeling files of transformers, with random weights",
    )
    group.add_argument(
        "--huggingface-id",
        action="append",
        default=[],
        metavar="ID[@REVISION]",
        help="a model from the Hugging Face Hub with real weights, repeatable; needs the network",
    )
    group.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="allow models from the Hub to run their own code (trust_remote_code)",
    )
    _add_limits(group)
    group.add_argument(
        "--flags", action="store_true", help="also try Dynamo's capture flags on what still breaks, as advice"
    )
    group.add_argument(
        "--xla-python", type=Path, metavar="PYTHON", help="an interpreter with torch_xla: also count HLO graphs"
    )
    group.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="reuse measurements of the same code from an earlier run",
    )


def _add_limits(group: argparse._ArgumentGroup) -> None:
    """How long a model may run, with what, and how much time is spent on speed."""
    group.add_argument(
        "--model-timeout",
        type=options.above_zero,
        metavar="SECONDS",
        help="time limit per model in seconds [default: 600]",
    )
    group.add_argument(
        "--model-memory",
        type=options.above_zero,
        metavar="GIB",
        help="memory limit per model in GiB [default: 80%% of all]",
    )
    group.add_argument(
        "--sandbox",
        action="store_true",
        help="run models in bubblewrap (Linux): no network, and write access to their own folders only",
    )
    group.add_argument("--speed", action="store_true", help="also measure cold start, latency and memory")
    group.add_argument(
        "--speed-budget",
        type=options.above_zero,
        metavar="SECONDS",
        help="approximate seconds to time one model [default: 300]",
    )


def wanted(args: argparse.Namespace) -> Wanted:
    """What the options ask for."""
    return Wanted(
        named=tuple(args.model),
        from_tests=args.from_tests,
        huggingface=args.huggingface,
        hub=tuple(args.huggingface_id),
        trust_remote_code=args.trust_remote_code,
        timeout=args.model_timeout,
        memory=None if args.model_memory is None else int(args.model_memory * _GIB),
        sandbox=args.sandbox,
        jobs=options.workers(args),
        speed=args.speed or args.speed_budget is not None,
        speed_budget=args.speed_budget,
        flags=args.flags,
        xla_python=args.xla_python,
        resume=args.resume,
    )
