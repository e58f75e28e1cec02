"""An early return and all that the function does behind it, as two inner functions of which one result is selected.

What `early_returns.py` reads are assignments; here the code may have branches, checks and calls of other functions, as
far as it only computes. It stays as its author wrote it, so nothing is known of its result before it is computed.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Sequence

from graphmend_codemod.analysis.liveness import is_seen_elsewhere
from graphmend_codemod.analysis.patterns import is_name, names_bound
from graphmend_codemod.analysis.scope import FunctionNode, of_kind, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.speculation import is_bound_above
from graphmend_codemod.core.findings import Edit, Helper, Original
from graphmend_codemod.rules.framework.edits import beside, under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of
from graphmend_codemod.rules.proofs.calls.only_computing import OnlyComputing, names_read
from graphmend_codemod.rules.proofs.conditions.condition import Condition, split
from graphmend_codemod.rules.proofs.conditions.type_conditions import tensor_facts
from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write_by_callers

_LARGEST = 200
_COMMENT = "# What either `return` gives, before it is known which one is taken."
_MAY_RUN = '''\
def _both_may_run(given, own) -> bool:
    """Whether code that eager mode skips may run with these values: known while tracing.

    They are numbers, texts, None, and tensors with elements on one device; those of `own` take no gradient.
    """
    plain = (int, float, str, type(None))
    tensors = [each for each in (*given, *own) if isinstance(each, torch.Tensor)]
    return (
        all(isinstance(each, plain) or isinstance(each, torch.Tensor) for each in (*given, *own))
        and all(each.numel() > 0 and each.device == tensors[0].device for each in tensors)
        and not any(isinstance(each, torch.Tensor) and each.requires_grad for each in own)
    )'''
_APART = '''\
def _gradients_where(condition, given):
    """What is given, with no gradient where the condition does not hold, so that no nan comes back either."""
    return [
        torch.where(condition.to(each.device), each, each.detach())
        if isinstance(each, torch.Tensor) and each.requires_grad
        else each
        for each in given
    ]'''
_ALIKE = '''\
def _selects_alike(condition, one, other) -> bool:
    """Whether `torch.where` gives either tensor as it is: known while tracing."""
    tensors = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return tensors and all(
        getattr(one, what) == getattr(other, what) for what in ("shape", "dtype", "device")
    ) and one.device == condition.device'''
MAY_RUN = Helper("_both_may_run", _MAY_RUN, shared=True)
APART = Helper("_gradients_where", _APART, shared=True)
_HELPERS = (MAY_RUN, APART, Helper("_selects_alike", _ALIKE, shared=True))


def edit(site: Site, node: ast.If, condition: Condition) -> Edit:
    """The compile path in front of an early `return`; NotProven where what follows may do more than compute."""
    demand_torch(site)
    function, rest = site.evaluator.scope.node, _rest(site, node)
    _demand_condition(condition)
    demand_own_names(site, [*node.body, *rest])
    own = site.evaluator.scope.self_name
    code = OnlyComputing(site)
    given = parameter_names(function) | set(site.place.env)
    attributes = code.demand(node.body, own, given) | code.demand(rest, own, given)
    early, late = (_Arm(site, function, each) for each in (node.body, rest))
    asked = [*(site.operand_of_and(each) for each in condition.static), *condition.facts]
    asked += [each for tensor in condition.tensors for each in tensor_facts(site, tensor)]
    asked += _asserted(site, rest)
    if function.args.kwarg is not None and function.args.kwarg.arg in early.free | late.free:
        asked.append(f"not {function.args.kwarg.arg}")
    demand_no_write_by_callers(site)
    values = tuple_of(dict.fromkeys([*early.parameters, *late.parameters]))
    given_on = [ast.Name(each, ast.Load()) for each in dict.fromkeys([*early.parameters, *late.parameters])]
    asked += site.keeps_graph(given_on)
    asked.append(site.call("_both_may_run(", [values, own_values(site, attributes)], deeper=1))
    return _written(site, node, condition, asked, early, late)


def _rest(site: Site, node: ast.If) -> list[ast.stmt]:
    """What the function does behind the branch, to its end."""
    if node.orelse or site.is_elif(node) or len(site.place.blocks) != 1 or site.place.in_loop:
        raise NotProven("the branch is inside of other ones; return early at the top level of the function")
    body, position = site.place.blocks[0]
    rest = list(body[position + 1 :])
    if not rest:
        raise NotProven("nothing follows the branch")
    if sum(1 for statement in rest for _ in walk(statement)) > _LARGEST:
        raise NotProven("what the code after the branch computes is too much to compute in any case")
    last = rest[-1]
    if isinstance(last, ast.Return) and not _may_be_tensor(last.value):
        raise NotProven("what is returned is no tensor")
    if _has_branch(site, rest):
        raise NotProven("the code after the branch has a data-dependent branch of its own")
    if _has_branch(site, node.body):
        raise NotProven("the branch has a data-dependent branch of its own")
    return rest


def _has_branch(site: Site, statements: Iterable[ast.stmt]) -> bool:
    """True where a tensor decides what runs: each inner function would break the graph there, in every call."""
    for statement in (part for each in statements for part in walk(each) if isinstance(part, ast.stmt)):
        where = site.at(statement)
        asking = [part for part in walk(statement) if isinstance(part, (ast.If, ast.IfExp, ast.While))]
        if where is not None and any(split(where, each.test) is not None for each in asking):
            return True
    return False


def _demand_condition(condition: Condition) -> None:
    for reason in (condition.skipped, condition.hazards.impure):
        if reason is not None:
            raise NotProven(reason)


class _Arm:
    """Statements as an inner function: its `parameters` are the locals that they read, but for `free` ones."""

    def __init__(self, site: Site, function: FunctionNode, statements: Sequence[ast.stmt]) -> None:
        self.statements = statements
        stored = stored_in(statements)
        before = _bound_before(site, names_read(statements), stored)
        kept = {site.evaluator.scope.self_name, function.args.kwarg.arg if function.args.kwarg else None}
        if before & stored & kept:
            raise NotProven(f"`{min(before & stored & kept, key=str)}` is bound again")
        self.free = before & {each for each in kept if each is not None}
        self.parameters = sorted(before - self.free, key=lambda name: _first_read(statements, name))

    def lines(self, site: Site, name: str) -> list[str | Original]:
        """Its text, one level deeper than the branch."""
        first, last = self.statements[0], self.statements[-1]
        moved = 2 - (0 if site.span(first).start_column == site.span(site.place.statement).start_column else 1)
        return [
            f"\n    def {name}({', '.join(self.parameters)}):\n        ",
            Original(site.span(first).through(site.span(last)), moved),
            "\n",
        ]


def _bound_before(site: Site, read: set[str], stored: set[str]) -> set[str]:
    """Of the names that statements read those that are bound before them; what they bind themselves may be, too."""
    found = known_before(site, read - stored)
    for name in read & stored:
        with contextlib.suppress(NotProven):
            found |= known_before(site, {name})
    return found


def _first_read(statements: Sequence[ast.stmt], name: str) -> tuple[int, int]:
    parts = (part for each in statements for part in walk(each) if is_name(part, name))
    return min((part.lineno, part.col_offset) for part in parts)


def _asserted(site: Site, rest: Sequence[ast.stmt]) -> list[str]:
    """What the rest asserts of names that it has not bound yet: where that fails, eager mode returns early first."""
    found: list[str] = []
    bound: set[str] = set()
    for statement in rest:
        if isinstance(statement, ast.Assert):
            parts = list(walk(statement.test))
            plain = not any(isinstance(part, (ast.Call, ast.Subscript, ast.Attribute)) for part in parts)
            if plain and not any(isinstance(part, ast.Name) and part.id in bound for part in parts):
                found.append(site.operand_of_and(statement.test))
        elif not isinstance(statement, (ast.Assign, ast.AugAssign)):
            break
        bound |= {part.id for part in of_kind(walk_scope(statement), ast.Name) if isinstance(part.ctx, ast.Store)}
    return found


def known_before(site: Site, names: Iterable[str]) -> set[str]:
    """The locals among names that are certainly bound before the site; NotProven where one may not be."""
    function, scope, line = site.evaluator.scope.node, site.evaluator.scope, site.place.statement.lineno
    local = {each for each in names if scope.is_local(each) or each in scope.closure}
    known = {each for each in local if each in parameter_names(function) or site.is_bound(each)}
    known |= {each for each in local if is_bound_above(function, each, line)}
    if unknown := (local - known) | (local & set(scope.closure)):
        raise NotProven(f"cannot infer what `{min(unknown)}` holds before the branch")
    return known


def own_values(site: Site, attributes: Iterable[str]) -> str:
    """The tuple of these attributes of the instance; NotProven where reading one may raise, or do more."""
    found = [f"{site.evaluator.scope.self_name}.{each}" for each in sorted(attributes)]
    for each in found:
        hazards = site.judge(ast.parse(each, mode="eval").body)
        if (reason := hazards.impure or hazards.raises) is not None:
            raise NotProven(reason)
    return tuple_of(found)


def demand_own_names(site: Site, statements: Iterable[ast.stmt]) -> None:
    """NotProven where another function may see what statements bind: an inner function binds names of its own."""
    function = site.evaluator.scope.node
    for name in sorted(stored_in(statements)):
        if not site.evaluator.scope.is_local(name) or is_seen_elsewhere(function.body, name):
            raise NotProven(f"`{name}`, which the code after the branch assigns, may be read by another function")


def stored_in(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that statements bind."""
    return {name for each in statements for name in names_bound(each)}


def _written(site: Site, node: ast.If, condition: Condition, asked: Sequence[str], early: _Arm, late: _Arm) -> Edit:
    names = {each: site.free_name(each) for each in ("early", "late", "condition", "if_early", "if_late")}
    chosen, one, other = names["condition"], names["if_early"], names["if_late"]
    lines = [
        f"{chosen} = {condition.choice}",
        site.call(
            f"{one} = {names['early']}(", [f"*_gradients_where({chosen}, {tuple_of(early.parameters)})"], deeper=1
        ),
        site.call(
            f"{other} = {names['late']}(", [f"*_gradients_where(~{chosen}, {tuple_of(late.parameters)})"], deeper=1
        ),
    ]
    header = site.header("if", [site.compiling, *asked])
    alike = f"_selects_alike({chosen}, {one}, {other})"
    taken = under(
        site.header("if", [site.compiling, *asked, alike]), f"return {site.torch}.where({chosen}, {one}, {other})"
    )
    parts = (
        under(header, _COMMENT),
        *early.lines(site, names["early"]),
        *late.lines(site, names["late"]),
        "".join(f"\n    {line}" for line in lines) + "\n",
        taken,
        "\nel",
        site.original(node),
    )
    return beside(site, site.span(node), parts)._replace(helpers=_HELPERS)


def is_taken(node: ast.If) -> bool:
    """True for a branch that ends in `return` of something that may be a tensor."""
    end = node.body[-1]
    return isinstance(end, ast.Return) and _may_be_tensor(end.value)


def _may_be_tensor(value: ast.expr | None) -> bool:
    written_out = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.ListComp)
    return value is not None and not isinstance(value, written_out)
