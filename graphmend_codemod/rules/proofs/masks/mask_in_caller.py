"""A mask or None, chosen by a method whose caller alone knows how many positions there are.

`kept = self._choose(mask, cache)`, where `_choose` ends with `if cache.started() or torch.all(mask == 1): kept = None`:
the compile path stands around the call. It asks for the shape of the mask there, and answers all but the test of ones.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.patterns import is_name, operands_of
from graphmend_codemod.analysis.scope import dotted, parameter_names, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import beside, under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import local_names
from graphmend_codemod.rules.proofs.masks.all_ones_test import AllOnesTest, of_dtype
from graphmend_codemod.rules.proofs.masks.mask_uses import MaskUses
from graphmend_codemod.rules.proofs.masks.position_counts import companion_of
from graphmend_codemod.rules.proofs.memory.reaching_definitions import blocks_of

_UNKNOWN = "cannot infer the size of the tensor it multiplies; the sizes may differ when the mask is None"


def is_left_to_eager(calls: ModuleCalls, function: Definition) -> bool:
    """True where each call of a method stands beside a compile path already."""
    callers = calls.callers(function)
    return bool(callers) and all(_beside_path(caller, call) for caller, call in callers)


def edit_in_caller(site: Site, uses: MaskUses, function: Definition, question: AllOnesTest, comment: str) -> Edit:
    """Two paths around the only call of the method that asks; NotProven with the condition that fails.

    The uses of what the method returns have been followed.
    """
    callers = uses.calls.callers(function)
    if len(callers) != 1 or not _only_chooses(function, question):
        raise NotProven(_UNKNOWN)
    (caller, call) = callers[0]
    statement = blocks_of(uses.calls, caller).statement_of(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        raise NotProven(f"the result of `{short(call)}` is not assigned to a variable")
    asked = {part.id for each in question.others for part in walk_in_layers(each) if isinstance(part, ast.Name)}
    if all(each.node.args.args[:1] and each.node.args.args[0].arg == "self" for each in (caller, function)):
        asked -= {"self"}
    given = function.arguments(call)
    renamed = next((each for each in sorted(asked | {question.mask}) if not is_name(given.get(each), each)), None)
    if renamed is not None:
        raise NotProven(f"`{renamed}` of `{function.qualname}` has another name in `{caller.qualname}`")
    tensor = companion_of(uses, caller, statement)
    if tensor is None:
        raise NotProven(_UNKNOWN)
    _demand_names(site, caller)
    mask, torch = question.mask, site.torch
    conditions = [site.compiling, *uses.conditions(caller), f"isinstance({tensor}, {torch}.Tensor)"]
    known = (
        f"isinstance({mask}, {torch}.Tensor)",
        of_dtype(site, mask, question.dtypes),
        f"{mask}.shape == {tensor}.shape[:2]",
    )
    conditions.append(_none_or(site, mask, known) if question.may_be_none else " and ".join(known))
    others = [f"({site.text(each)})" if isinstance(each, ast.IfExp) else site.text(each) for each in question.others]
    kept = f"None if {' or '.join(others)} else {mask}" if others else mask
    target = site.text(statement.targets[0])
    line = f"{target} = {kept}"
    if site.is_too_long(site.indentation(1) + len(line)):
        line = f"{target} = (\n        {kept}\n    )"
    header = site.header("if", conditions)
    path = under(header, comment, line) + "\nelse:\n    "
    return beside(site, site.span(statement), (path, site.original(statement, 1)))


def _none_or(site: Site, mask: str, known: tuple[str, ...]) -> str:
    """`(mask is None or (... and ...))`, one a line where that is too long."""
    whole = f"({mask} is None or ({' and '.join(known)}))"
    if not site.is_too_long(site.indentation(1) + len(f"and {whole}")):
        return whole
    lines = "".join(f"\n            {'and ' if number else ''}{each}" for number, each in enumerate(known))
    return f"(\n        {mask} is None\n        or ({lines}\n        )\n    )"


def _only_chooses(function: Definition, question: AllOnesTest) -> bool:
    """True if the method only chooses between the mask and None, and decides from its arguments alone."""
    node = function.node
    body = list(node.body)
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        del body[0]
    if len(body) == 3 and isinstance(body[0], ast.Assign) and is_name(body[0].value, question.mask):
        del body[0]
    if len(body) != 2 or not isinstance(body[0], ast.If) or not isinstance(body[1], ast.Return) or body[0].orelse:
        return False
    test = body[0].test
    last = test.values[-1] if isinstance(test, ast.BoolOp) else test
    if any((each.lineno, each.col_offset) >= (last.lineno, last.col_offset) for each in question.others):
        return False  # what is asked first may say whether the rest can be asked
    names = parameter_names(node)
    asked = {part.id for each in question.others for part in walk_in_layers(each) if isinstance(part, ast.Name)}
    bound = [part for each in body for part in walk_in_layers(each) if isinstance(part, ast.NamedExpr)]
    plain = not (node.decorator_list or node.args.vararg or node.args.kwarg or bound)
    return plain and not isinstance(node, ast.AsyncFunctionDef) and asked | {question.mask} <= names


def _demand_names(site: Site, caller: Definition) -> None:
    """NotProven where the caller has another torch."""
    root = (site.torch or "").partition(".")[0]
    taken = {root, "isinstance"} & local_names(caller.node)
    if taken:
        raise NotProven(f"the name `{min(taken)}` means something else in `{caller.qualname}`")


def _beside_path(caller: Definition, call: ast.Call) -> bool:
    """True for a call in the `else` of `if torch.compiler.is_compiling() and ...`."""
    for node in walk_in_layers(caller.node):
        if not isinstance(node, ast.If):
            continue
        test = node.test
        tests = operands_of(test, ast.And)
        asks = any(isinstance(each, ast.Call) and (dotted(each.func) or "").endswith("is_compiling") for each in tests)
        if asks and any(part is call for each in node.orelse for part in walk_in_layers(each)):
            return True
    return False
