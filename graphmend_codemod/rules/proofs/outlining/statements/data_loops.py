"""A `while` loop whose number of rounds depends on data as one opaque operator.

Each round has to give the names that it binds tensors of the shapes and dtypes that they had before, so how many rounds
there are does not matter to the shapes of the results. A function that the compile path calls asks for this while
tracing: it traces one round and uses only its shapes and dtypes.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import aliasing, speculation, torch_api
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.project.summary.computing import OPERATIONS
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of
from graphmend_codemod.rules.proofs.memory.shared_memory import SharedMemory
from graphmend_codemod.rules.proofs.outlining.custom_op import definition_before, functions, moved, nested
from graphmend_codemod.rules.proofs.outlining.effects import held_functions
from graphmend_codemod.rules.proofs.outlining.effects.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.functions.shape_parts import READ_DATA
from graphmend_codemod.rules.proofs.outlining.texts.functions import SAME

_COMMENT = "# torch.compile cannot trace this loop: it calls it as one operator."
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.NamedExpr)


def edit(site: Site, loop: ast.While) -> Edit:
    """The compile path in front of the loop. NotProven where an operator would show."""
    demand_torch(site)
    if any("_function_operator(" in ast.unparse(each) for each in site.evaluator.scope.node.decorator_list):
        raise NotProven("the loop is in an operator")
    if loop.orelse or any(isinstance(part, _LEAVES) for part in walk(loop)):
        raise NotProven("the loop is left in its middle")
    bound, others = _names(site, loop)
    names = [*bound, *others]
    _check_effects(site, loop, names)
    rounds = site.free_name(f"_{site.evaluator.scope.node.name.strip('_')}_rounds")
    given = ", ".join(names)
    conditions = [
        f"{site.torch}.compiler.is_dynamo_compiling()",
        f"_fits_a_function({given})",
        f"_have_one_form({tuple_of(bound)}, {rounds}_once({given}))",
    ]
    lines = [_COMMENT, f"{', '.join(bound)} = {rounds}({given})"]
    helpers = _helpers(site, loop, rounds, bound, names)
    return two_paths(site, loop, conditions, lines, imports=("torch",), helpers=helpers)


def _names(site: Site, loop: ast.While) -> tuple[list[str], list[str]]:
    """The locals that a round changes, and those that the loop only reads."""
    stored: set[str] = set()
    read: set[str] = set()
    for part in walk(loop):
        if isinstance(part, ast.Name) and site.evaluator.scope.is_local(part.id):
            (read if isinstance(part.ctx, ast.Load) else stored).add(part.id)
    own = site.evaluator.scope.self_name
    if own in read:
        raise NotProven(f"the loop reads `{own}`; manually give what it reads a name before")
    first = {name for name in stored if not site.is_bound(name) and name not in site.place.env}
    if any(site.live_after(name) for name in first):
        raise NotProven("a name is bound in the loop alone, and used after it")
    bound = sorted(stored - first)
    if not bound:
        raise NotProven("the loop changes nothing")
    return bound, sorted(read - stored)


def _check_effects(site: Site, loop: ast.While, names: list[str]) -> None:
    """NotProven where a round does more than compute tensors, or where torch.compile could not trace one."""
    args = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    effects = FunctionEffects(site)
    for name in sorted(effects.changed(ast.FunctionDef("loop", args, [loop], []))):
        raise NotProven(f"the loop changes `{name}` in place")
    todo: list[ast.stmt] = list(loop.body)
    seen: set[int] = set()
    while todo:
        statement = todo.pop()
        if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
            raise NotProven(f"`{speculation.short(statement)}` in a round may depend on data")
        for part in walk(statement):
            called = held_functions.plain(site, part.func) if isinstance(part, ast.Call) else None
            if called is not None and id(called) not in seen:
                seen.add(id(called))
                todo += called.body
            elif called is None:
                _check_traced(site, part)
    _check_later(site, loop, names)


def _check_traced(site: Site, part: ast.AST) -> None:
    if isinstance(part, ast.Call):
        name = torch_api.torch_function(site.resolve_global(part.func))
        if name is None and isinstance(part.func, ast.Attribute):
            name = part.func.attr
        known = name in (OPERATIONS | torch_api.RETURNS_TENSOR) - aliasing.RANDOM - READ_DATA
        if not known or (name == "where" and len(part.args) == 1):
            raise NotProven(f"`{speculation.short(part)}` in a round may depend on data")
    plain = (ast.Constant, ast.Slice, ast.UnaryOp, ast.Tuple)
    if isinstance(part, ast.Subscript) and not isinstance(part.slice, plain):
        raise NotProven(f"`{speculation.short(part)}` in a round may depend on data")


def _check_later(site: Site, loop: ast.While, names: list[str]) -> None:
    """NotProven where memory of the loop's names is changed in place: what the operator gives back shares none.

    Eager mode hands on what a name held before where no round runs.
    """
    calls = calls_in(site.source.text)
    function = calls.at(site.evaluator.scope.node.lineno)
    if function is None:
        raise NotProven("the loop is in a nested function")
    SharedMemory(site, calls).demand_no_write(function, loop, set(names))
    for part in walk(site.evaluator.scope.node):
        target: ast.AST | None = None
        if isinstance(part, ast.AugAssign):
            target = part.target
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            target = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_"):
            target = part.func.value
        if target is not None and all_names(target) & set(names):
            raise NotProven(f"`{speculation.short(part)}` may change a tensor that another name shares")


def _helpers(site: Site, loop: ast.While, rounds: str, bound: list[str], names: list[str]) -> tuple[Helper, ...]:
    given, result, once = ", ".join(names), ", ".join(bound), f"{rounds}_once"
    one_round = [f"def {once}({given}):", '    """One round of the loop."""', moved(site, loop.body)]
    one_round.append(f"    return {tuple_of(bound)}")
    whole = [
        f"@_function_operator(shapes=lambda {result}, *others: [{result}]{nested(len(bound))})",
        f"def {rounds}({given}):",
        '    """All rounds of the loop as one operator for torch.compile."""',
        moved(site, [loop]),
        f"    return {result}",
    ]
    before = definition_before(site)
    return (
        *functions(site, gradient=True),
        Helper("_have_one_form", SAME, shared=True),
        Helper(once, "\n".join(one_round), after=before),
        Helper(rounds, "\n".join(whole), after=(*before, "_function_operator")),
    )
