"""python-int-in-tensor (GM410): Python integers are put into a tensor and used only as slice bounds.

`n = torch.IntTensor([self.wide])` and then `x[:, : n[0]]`, here or in a function that gets the number or the
tensor, breaks the graph to read back what was known. Code for TorchScript hands over numbers in this way, as in the
gated activation of WaveNets. Under `torch.compile` the number stands in the place of the tensor's element, or a list in
that of the tensor: the slice is the same. Eager mode reads the tensor, as before.

An array of NumPy, `bounds = np.array(self.ranges[name])`, is a tensor for Dynamo as well. Where its elements bound
slices and do nothing else, the compile path has a tuple of the same numbers, if they are integers in a tuple or list.

It is done where every use is known: numbers and tensor are handed to functions of this module alone, without decorators
but for `torch.jit.script`, whose Python text Dynamo traces, and bound nothing but slices there. The compile path is for
Dynamo alone: other tracers call a scripted function as it is.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import calls_in, tree_of
from graphmend_codemod.analysis.scope import FunctionNode, children, dotted, walk, walk_scope
from graphmend_codemod.core.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, local_names
from graphmend_codemod.rules.proofs.calls.unique_callee import SureCalls, assigned_outside
from graphmend_codemod.rules.proofs.numbers.integer_arrays import NoIntegers, array_of, tuple_in_front
from graphmend_codemod.rules.proofs.numbers.number_bounds import Bounds

_SETUP = """
import numpy as np
import torch
from torch import nn


def gated(x, channels):
    return torch.tanh(x[:, :channels]) * torch.sigmoid(x[:, channels:])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = 3
        self.ranges = {"first": (0, 2), "second": [2, 6]}

    def forward(self, x: torch.Tensor):
        ...
        return x
"""

rule = Rule(
    code="GM410",
    slug="python-int-in-tensor",
    title="keep the bounds of slices in a list",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(cost=Cost.NONE, compiled_state=ASKS_CLASSES),
    examples=(
        Example(
            before="""
            channels = torch.IntTensor([self.wide])
            x = gated(x, channels[0])
            """,
            after="""
            channels = torch.IntTensor([self.wide])
            if torch.compiler.is_dynamo_compiling() and isinstance(self.wide, int):
                # The number itself: it would have to be read out of the tensor.
                x = gated(x, self.wide)
            else:
                x = gated(x, channels[0])
            """,
            setup=_SETUP,
            inputs=("torch.ones(2, 6)", "torch.ones(4, 6)"),
        ),
        Example(
            before="""
            bounds = np.array(self.ranges["second"])
            x = x[:, bounds[0] : bounds[1]]
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(self.ranges["second"], (tuple, list))
                and all(isinstance(n, int) for n in self.ranges["second"])
            ):
                # The number itself: it would have to be read out of the tensor.
                bounds = tuple(self.ranges["second"])
            else:
                bounds = np.array(self.ranges["second"])
            x = x[:, bounds[0] : bounds[1]]
            """,
            setup=_SETUP,
            inputs=("torch.ones(2, 6)", "torch.ones(4, 7)"),
        ),
        Declined(
            source="""
            bounds = np.array(self.ranges["second"])
            x = x[:, bounds[0] : bounds[1]] + bounds.sum()
            """,
            because="`bounds` may be used as an array",
            setup=_SETUP,
        ),
        Declined(
            source="""
            channels = torch.IntTensor([self.wide])
            x = gated(x, channels[0]) + channels
            """,
            because="`gated(x, channels[0]) + channels` in `Model.forward` may need a Tensor",
            setup=_SETUP,
        ),
        Declined(
            source="""
            channels = torch.LongTensor([x.sum()])
            x = gated(x, channels[0])
            """,
            because="cannot infer that `x.sum()` is an integer",
            setup=_SETUP,
        ),
        Clean(
            source="""
            channels = torch.IntTensor([self.wide])
            x = x + channels[0]
            """,
            setup=_SETUP,
        ),
    ),
)


class _Unknown(Exception):
    """Why a number stays in its tensor; the text is the condition that failed."""


_MAKES = frozenset({"torch.IntTensor", "torch.LongTensor"})
_COMMENT = "# The number itself: it would have to be read out of the tensor."
_COUNTS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)


@rule.on(ast.Assign, candidate="value", words=("IntTensor", "LongTensor"), here=True)
def made_of_numbers(site: Site, node: ast.Assign) -> Verdict | None:
    """`n = torch.IntTensor([self.wide])`, of which `n[0]` bounds a slice."""
    target, call = node.targets[0], node.value
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or not isinstance(call, ast.Call):
        return None
    given = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if site.resolve(call.func) not in _MAKES or not isinstance(given, ast.List) or not given.elts:
        return None
    calls = calls_in(site.source.text)
    function = calls.at(site.evaluator.scope.node.lineno)
    if function is None:
        return None
    sure = SureCalls(calls, assigned_outside(tree_of(site.source.text)))
    bounds = Bounds(sure, function, target.id, len(given.elts))
    if not bounds.slices:
        return None
    message = f"stores slice bounds in a tensor (device sync): `{speculation.short(call)}`"
    try:
        certain = CertainCalls(site, calls)
        certain.follow_all(certain.start(), [function], sure.links)
        return Verdict(message, edit=_edit(site, bounds, given.elts, certain.conditions()))
    except (_Unknown, NotProven) as reason:
        return Verdict(message, declined=str(reason))


@rule.on(ast.Assign, words=("array", "asarray"), here=True)
def array_of_numbers(site: Site, node: ast.Assign) -> Verdict | None:
    """`n = np.array(self.sizes[key])`, of which `n[0]` bounds a slice."""
    made = array_of(site, node)
    if made is None:
        return None
    message = f"stores slice bounds in an array, which is a tensor for Dynamo: `{speculation.short(node.value)}`"
    try:
        return Verdict(message, edit=tuple_in_front(site, node, *made, _COMMENT))
    except NoIntegers as reason:
        return Verdict(message, declined=str(reason))


def _edit(site: Site, bounds: Bounds, elements: list[ast.expr], classes: list[str]) -> Edit:
    """The statements that use the tensor, each with a compile path in front that has the numbers."""
    if bounds.reason is not None:
        raise _Unknown(bounds.reason)
    function = bounds.function.node
    taken = {"isinstance", "int"} & local_names(function)
    if site.torch is None or taken:
        raise _Unknown(name_taken(min(taken, default="torch")))
    asked = [name for element in elements for name in _numbers(function, element)]
    conditions = [f"{site.torch}.compiler.is_dynamo_compiling()"]
    conditions += [*dict.fromkeys(f"isinstance({each}, int)" for each in asked), *classes]
    texts = [site.text(element) for element in elements]
    tight = [
        f"({text})" if isinstance(element, ast.BinOp) else text for element, text in zip(elements, texts, strict=True)
    ]
    parents = {id(child): parent for parent in walk_scope(function) for child in children(parent)}
    written: dict[ast.stmt, dict[int, tuple[ast.expr, str]]] = {}
    for use in bounds.uses:
        text = tight[ast.literal_eval(use.slice)] if isinstance(use, ast.Subscript) else f"[{', '.join(texts)}]"
        statement: ast.AST = use
        while not isinstance(statement, ast.stmt):
            statement = parents[id(statement)]
        if not isinstance(statement, _SIMPLE):
            raise _Unknown(f"`{speculation.short(use)}` is in the header of a statement; assign it to a variable first")
        written.setdefault(statement, {})[id(use)] = (use, text)
    replacements = [_two_paths(site, conditions, statement, parts) for statement, parts in written.items()]
    return Edit(tuple(replacements), imports=site.imports)


def _two_paths(
    site: Site, conditions: list[str], statement: ast.stmt, parts: dict[int, tuple[ast.expr, str]]
) -> Replacement:
    header = f"if {' and '.join(conditions)}:"
    if statement.col_offset + len(header) > site.line_limit:
        header = "if (\n    " + "\n    and ".join(conditions) + "\n):"
    path = f"{header}\n    {_COMMENT}\n    {site.but(written=parts).text(statement)}\nelse:\n    "
    return Replacement(site.span(statement), (path, site.original(statement, 1)))


def _numbers(function: FunctionNode, node: ast.expr) -> list[str]:
    """The names that have to hold integers for an expression to be one, which nothing in the function changes."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _COUNTS):
        return [*_numbers(function, node.left), *_numbers(function, node.right)]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return []
    path = (dotted(node) or "").split(".")
    if not path[0] or (len(path) > 1 and path[0] != "self"):
        raise _Unknown(f"cannot infer that `{speculation.short(node)}` is an integer")
    for part in walk(function):
        own = isinstance(part, ast.Attribute) and part.attr in path and not isinstance(part.ctx, ast.Load)
        if own or (isinstance(part, ast.Name) and part.id == path[0] and not isinstance(part.ctx, ast.Load)):
            raise _Unknown(f"`{ast.unparse(node)}` may change between the tensor and its use")
    return [ast.unparse(node)]
