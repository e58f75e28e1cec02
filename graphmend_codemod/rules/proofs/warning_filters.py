"""`with warnings.catch_warnings(): warnings.simplefilter("ignore")`, which compiled code does without.

What filters leave out are warnings and no results, and compiled code hardly warns. So it leaves out the block and what
is set in it, together: a filter that is set without the block around it would stay.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

CATCHES = "warnings.catch_warnings"
SETS = frozenset({"warnings.simplefilter", "warnings.filterwarnings"})
_ACTIONS = frozenset({"ignore", "default", "always", "module", "once"})
_TRACED = ("torch.", "builtins.", "math.")


def droppable(site: Site, statement: ast.stmt) -> tuple[ast.Call, ...]:
    """What the block of a statement sets; NotProven where either may do more than choose what is shown."""
    block = statement if isinstance(statement, ast.With) else _block_around(site, statement)
    if block is None:
        raise NotProven("no `with warnings.catch_warnings()` around it ends it; manually set it before compiling")
    made = next((item for item in block.items if _is_catch(site, item.context_expr)), None)
    if made is None or made.optional_vars is not None or made.context_expr.args or made.context_expr.keywords:  # type: ignore[attr-defined]
        raise NotProven("what is caught is used; manually do that outside of compiled code")
    plain = [each.value for each in walk_scope(site.evaluator.scope.node) if isinstance(each, ast.Expr)]
    filters: list[ast.Call] = []
    for part in ast.walk(block):
        if isinstance(part, ast.Call) and site.resolve(part.func) in SETS:
            filters.append(part)
        if isinstance(part, ast.Call) and part is not made.context_expr:
            _prove_call(site, part, any(part is each for each in plain))
        elif isinstance(part, (ast.Attribute, ast.Name)) and site.resolve(part) == "warnings.filters":
            raise NotProven("the code reads the filters of warnings; manually do that outside of compiled code")
    return tuple(filters)


def _prove_call(site: Site, call: ast.Call, alone: bool) -> None:
    """A call in the block sets a filter by itself, or is traced with what it calls and sets none."""
    called = site.resolve(call.func)
    if called in SETS:
        action = call.args[0] if call.args else None
        if not alone or not isinstance(action, ast.Constant) or action.value not in _ACTIONS:
            raise NotProven(f"`{short(call)}` may make exceptions of warnings; manually set it before compiling")
    elif (called is not None and not called.startswith(_TRACED)) or _is_method(site, call.func):
        raise NotProven(f"`{short(call)}` may set a filter that the block ends; manually call it outside of the block")


def _is_method(site: Site, function: ast.expr) -> bool:
    """True for a method of the instance, which is no layer."""
    facts = site.evaluator.scope.class_facts
    own = is_attribute(function, site.evaluator.scope.self_name)
    return own and facts is not None and function.attr in facts.methods  # type: ignore[attr-defined]


def _is_catch(site: Site, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and site.resolve(node.func) == CATCHES


def _block_around(site: Site, statement: ast.stmt) -> ast.With | None:
    """The innermost such block that holds a statement."""
    blocks = (each for each in walk_scope(site.evaluator.scope.node) if isinstance(each, ast.With))
    around = [each for each in blocks if any(part is statement for part in ast.walk(each))]
    catches = [each for each in around if any(_is_catch(site, item.context_expr) for item in each.items)]
    return max(catches, key=lambda each: each.lineno, default=None)
