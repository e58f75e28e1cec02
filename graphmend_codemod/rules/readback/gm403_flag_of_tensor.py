"""flag-of-tensor (GM403): a tensor is converted to a Python bool that is tested later.

`bad = mask.any().item()` breaks the graph where it stands, whatever `if bad:` does. Where all that the flag decides is
an error or which values some names get, torch.compile can do that with the 0-dim tensor (GM101, GM102 and GM301 write
it), so under `torch.compile` the flag stays a tensor. Eager mode reads it back, as before.

A flag that is handed to other functions chooses code deeper down, and the reason names where.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import children, walk, walk_in_layers, walk_scope
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.core.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.registry import worth_asking
from graphmend_codemod.rules.framework.rule import (
    FLOAT_WARNING,
    Clean,
    Contract,
    Cost,
    Declined,
    Example,
    Rule,
    Verdict,
)
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.proven import own_memory, tensor_facts

_SETUP = """
import torch
from torch import nn


class Part(nn.Module):
    def forward(self, x, masked):
        if masked:
            x = x[x > 0]
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        ...
        return x
"""

rule = Rule(
    code="GM403",
    slug="flag-of-tensor",
    title="keep a flag as a tensor",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="the code under the flag is compiled for both values",
        compiled_logs=FLOAT_WARNING,
    ),
    examples=(
        Example(
            before="""
            masked = mask.any().item()
            if masked:
                raise ValueError("masked")
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(mask, torch.Tensor)
                and mask.dtype == torch.bool
            ):
                # A 0-dim tensor: its truth would have to be read back to Python.
                masked = mask.any()
            else:
                masked = mask.any().item()
            if masked:
                raise ValueError("masked")
            """,
            setup=_SETUP,
        ),
        Example(
            before="""
            masked = bool(mask.all())
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and isinstance(mask, torch.Tensor)
                and mask.dtype == torch.bool
            ):
                # A 0-dim tensor: its truth would have to be read back to Python.
                masked = mask.all()
            else:
                masked = bool(mask.all())
            """,
            setup="""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        ...
        if torch.compiler.is_compiling():
            x = x + x * masked
        elif masked:
            x = x + x
        return x
""",
            inputs=("torch.ones(2), torch.tensor([True, False])", "torch.ones(2), torch.tensor([True, True])"),
        ),
        Declined(
            source="""
            masked = mask.any().item()
            x = self.part(x, masked)
            """,
            because="`masked` chooses code in `Part.forward`",
            setup=_SETUP,
        ),
        Declined(
            source="""
            masked = mask.any().item()
            x = x * int(masked)
            """,
            because="is used as a Python value in `int(masked)`",
            setup=_SETUP,
        ),
        Clean(
            source="""
            masked = mask.any()
            """,
            setup=_SETUP,
        ),
    ),
)

_COMMENT = "# A 0-dim tensor: its truth would have to be read back to Python."


@rule.on(ast.Assign, words=("item", "bool"), here=True)
def flag(site: Site, node: ast.Assign) -> Verdict | None:
    """`flag = t.any().item()`."""
    target = node.targets[0]
    tensor = _truth_of(site, node.value)
    if tensor is None or len(node.targets) != 1 or not isinstance(target, ast.Name):
        return None
    message = f"converts a tensor to a Python bool (device sync): `{speculation.short(node.value)}`"
    reason = _why_not(site, target.id)
    if reason is None and not site.value(tensor).is_single:
        reason = f"cannot infer that `{speculation.short(tensor)}` is a 0-dim Tensor"
    if reason is None:
        reason = _left_to_python(site, target.id, tensor)
    if reason is not None:
        return Verdict(message, declined=reason)
    try:
        facts, kept = _as_bool(site, tensor)
    except NotProven as unproven:
        return Verdict(message, declined=str(unproven))
    header = site.header("if", [site.compiling, *facts])
    path = f"{header}\n    {_COMMENT}\n    {target.id} = {kept}\nelse:\n    "
    parts = (path, site.original(node, 1))
    return Verdict(message, edit=Edit((Replacement(site.span(node), parts),), imports=site.imports))


def _as_bool(site: Site, tensor: ast.expr) -> tuple[list[str], str]:
    """What must hold for the flag to be a tensor, and the text of a 0-dim bool tensor of its own memory.

    `any` and `all` of uint8 are uint8, of which `~` is no negation.
    """
    facts = tensor_facts(site, tensor)
    kept = own_memory(site, tensor, site.text(tensor))
    asked = tensor.func.value if isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) else tensor
    if isinstance(tensor, ast.Call) and site.resolve(tensor.func) is not None and tensor.args:
        asked = tensor.args[0]
    known = site.value(asked).dtype == BOOL or isinstance(tensor, (ast.Compare, ast.Name, ast.Attribute))
    return facts, kept if known else f"{kept}.bool()"


def _truth_of(site: Site, node: ast.expr) -> ast.expr | None:
    """`t` for `t.item()` and `bool(t)`, where `t` is a 0-dim bool tensor."""
    inner = node
    while isinstance(inner, ast.Call) and not inner.keywords:
        if isinstance(inner.func, ast.Attribute) and inner.func.attr == "item" and not inner.args:
            inner = inner.func.value
        elif len(inner.args) == 1 and site.resolve(inner.func) == "builtins.bool":
            inner = inner.args[0]
        else:
            break
    if inner is node:
        return None
    value = site.value(inner)
    known = value.is_single and value.dtype == BOOL
    read = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"
    if read and isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and not inner.args:
        known = known or (inner.func.attr in {"any", "all"} and not value.is_python)
    return inner if known else None


def _why_not(site: Site, name: str) -> str | None:
    if site.torch is None:
        return name_taken()
    function = site.evaluator.scope.node
    uses = [each for each in walk(function) if isinstance(each, ast.Name) and each.id == name]
    if sum(not isinstance(each.ctx, ast.Load) for each in uses) != 1:
        return f"`{name}` is bound in several places"
    deeper = _decides_deeper(site, name)
    if deeper is not None:
        return deeper
    allowed: set[int] = set()
    for node in walk_scope(function):
        there = site.at(node) if isinstance(node, ast.If) else None
        if there is not None and isinstance(node, ast.If) and there.value(node.test).compiling:
            # A compile path takes the flag as the tensor that it is there.
            allowed |= {id(part) for statement in node.body for part in walk_in_layers(statement)}
        elif isinstance(node, ast.If) and all(map(_selects, [*node.body, *node.orelse])):
            allowed |= {id(part) for part in _operands(node.test)}
            allowed |= {id(part) for each in node.body if isinstance(each, ast.Raise) for part in walk_in_layers(each)}
        elif isinstance(node, ast.Assert):
            allowed |= {id(part) for part in _operands(node.test)}
    reads = [each for each in uses if isinstance(each.ctx, ast.Load)]
    for each in reads:
        if id(each) not in allowed:
            around = next((node for node in walk(function) if each in children(node)), each)
            return f"`{name}` is used as a Python value in `{speculation.short(around)}`"
    return None if reads else f"`{name}` is never read"


def _left_to_python(site: Site, name: str, tensor: ast.expr) -> str | None:
    """Why a test on the flag would break the graph if the flag were a tensor: then the break would only move there."""
    value = site.value(tensor)._replace(dtype=BOOL)
    function = next(each for each in site.summary.functions if each.qualname == site.function)
    for node in walk_scope(site.evaluator.scope.node):
        if not isinstance(node, (ast.If, ast.Assert)) or name not in {
            part.id for part in walk_in_layers(node.test) if isinstance(part, ast.Name)
        }:
            continue
        there = site.at(node)
        if there is None or there.value(node.test).compiling:
            continue
        asked = worth_asking(node.__class__.__name__, function.candidates, site.evaluator.scope.outline.words)
        as_tensor = there.with_env({**there.place.env, name: value})
        verdicts = [verdict for rule, each in asked if (verdict := _safe(rule, each.match(as_tensor, node)))]
        if any(verdict.edit is not None for verdict in verdicts):
            continue
        if verdicts or isinstance(node, ast.If):
            why = f": {verdicts[0].declined}" if verdicts else ""
            return f"`{speculation.short(node.test)}` would break the graph in its place{why}"
    return None


def _safe(rule: Rule, verdict: Verdict | None) -> Verdict | None:
    """The verdict of a rule that can fix what it finds, and is not asked for apart."""
    return verdict if verdict is not None and rule.safety_of(verdict) is Safety.SAFE else None


def _selects(statement: ast.stmt) -> bool:
    """True for what a tensor can decide as well: errors, results, and values of names."""
    plain = isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
    return plain or isinstance(statement, (ast.Raise, ast.Return))


def _operands(test: ast.expr) -> list[ast.expr]:
    if isinstance(test, ast.BoolOp):
        return [part for operand in test.values for part in _operands(operand)]
    return _operands(test.operand) if isinstance(test, ast.UnaryOp) else [test]


def _decides_deeper(site: Site, name: str) -> str | None:
    """The reason that names the function in which the flag decides, if it is handed to one of this module."""
    function = site.evaluator.scope.node
    given = [
        node
        for node in walk_scope(function)
        if isinstance(node, ast.Call)
        and any(
            isinstance(part, ast.Name) and part.id == name for part in [*node.args, *(w.value for w in node.keywords)]
        )
    ]
    if not given:
        return None
    from graphmend_codemod.analysis.callgraph import Definition, calls_in  # a commit hook waits for it

    calls = calls_in(site.source.text)
    todo = [(Definition(site.function, function, site.function.rpartition(".")[0]), name)]
    seen: set[tuple[str, str]] = set()
    while todo:
        caller, held = todo.pop(0)
        if (caller.qualname, held) in seen:
            continue
        seen.add((caller.qualname, held))
        tests = [node.test for node in walk_scope(caller.node) if isinstance(node, ast.If)]
        decided = any(isinstance(part, ast.Name) and part.id == held for test in tests for part in walk_in_layers(test))
        if decided and len(seen) > 1:
            return (
                f"`{name}` chooses code in `{caller.qualname}`; manually let a Python value choose there, or "
                "compute both results and select one with `torch.where`"
            )
        for node in walk_scope(caller.node):
            callee = calls.callee(caller, node) if isinstance(node, ast.Call) else None
            if callee is not None and isinstance(node, ast.Call):
                for parameter, argument in callee.arguments(node).items():
                    if isinstance(argument, ast.Name) and argument.id == held:
                        todo.append((callee, parameter))
    return f"`{name}` is used as a Python value in `{speculation.short(given[0])}`"
