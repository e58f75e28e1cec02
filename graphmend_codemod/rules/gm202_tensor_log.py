"""tensor-log (GM202): a log, warning or print call with a tensor among its arguments.

To show the tensor the graph has to end: its values are needed in Python. Eager mode keeps the statement as it is; under
`torch.compile` the call is left out of the compiled code.
"""

from __future__ import annotations

import ast

from graphmend_codemod.findings import Safety
from graphmend_codemod.rules.base import Clean, Contract, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.gm201_log_call import guard
from graphmend_codemod.rules.logcalls import effect_in, find_log_call, judge_arguments, why_it_is_read
from graphmend_codemod.rules.site import Site

_SETUP = """
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        ...
        return x + 1
"""

rule = Rule(
    code="GM202",
    slug="tensor-log",
    title="keep calls that print tensors out of the graph",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(compiled_logs="dropped"),
    examples=(
        Example(
            before="""
            print("mean", x.mean())
            """,
            after="""
            if not torch.compiler.is_compiling():
                print("mean", x.mean())
            """,
            setup=_SETUP,
            inputs=("torch.ones(3)",),
        ),
        Declined(
            source="""
            print("next", x.add_(1))
            """,
            because="would no longer happen under torch.compile",
            setup=_SETUP,
        ),
        Clean(
            source="""
            message = f"{x.shape}"
            """,
            setup=_SETUP,
        ),
    ),
)


@rule.on(ast.Expr, candidate="log")
def tensor_log(site: Site, node: ast.Expr) -> Verdict | None:
    """A statement that is nothing but a log call, with a tensor in it."""
    call = find_log_call(site, node.value)
    if call is None or judge_arguments(site, call.call).tensor is None:
        return None
    message = f"`{call.what}` with a tensor breaks the graph"
    if site.torch is None:
        return Verdict(message, declined="the name `torch` is taken by something else in this module")
    reader = why_it_is_read(site, call)
    if reader is not None:
        return Verdict(message, declined=reader)
    effect = effect_in(site, call.call)
    if effect is not None:
        return Verdict(message, declined=f"`{effect}` in its arguments would no longer happen under torch.compile")
    return Verdict(message, edit=guard(site, node))
