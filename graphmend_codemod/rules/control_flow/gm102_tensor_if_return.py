"""tensor-if-return (GM102): a data-dependent early `return`.

The frame ends in two places and Dynamo cannot know which, so the graph breaks at the test. `torch.where` selects
between the two results on the device. The select goes in front of the original statements, under
`torch.compiler.is_compiling()` and the same conditions as for GM101, and without messages that the branch sends; eager
mode runs what was there. So does the
setting `one-path = true`. A few assignments before the last `return` are computed in any case, and so they may have no
effects either.
"""

from __future__ import annotations

import ast
import copy
import re
from typing import cast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.liveness import is_seen_elsewhere
from graphmend_codemod.analysis.patterns import mentions
from graphmend_codemod.core.findings import Safety, Span
from graphmend_codemod.rules.framework.edits import in_front, one_path
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import (
    BRANCH_MESSAGES,
    EIGHT_BITS,
    Contract,
    Cost,
    Diagnostic,
    Rule,
)
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition, split
from graphmend_codemod.rules.proofs.logging.skipped_messages import without_messages
from graphmend_codemod.rules.proofs.select.assumptions import Facts
from graphmend_codemod.rules.proofs.select.gradient_sources import gradient_leaves
from graphmend_codemod.rules.proofs.select.select_proof import judge
from graphmend_codemod.rules.proofs.select.select_text import values_of, where, where_taken
from graphmend_codemod.rules.proofs.select.selection import Assignment, Branch, Selection, under_static

rule = Rule(
    code="GM102",
    slug="tensor-if-return",
    title="select the returned value with torch.where",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="both results are computed, and one is selected",
        compiled_logs=BRANCH_MESSAGES,
        compiled_exceptions=EIGHT_BITS,
    ),
)


_RESULT = "the result"
_MOST_BEFORE = 6
_LARGEST = 300


@rule.on(ast.If, candidate="test")
def early_return(site: Site, node: ast.If) -> Diagnostic | None:
    """`if t: return A` with `return B` in the `else` or right behind it."""
    *before, end = node.body
    if not isinstance(end, ast.Return) or not all(isinstance(each, (ast.Expr, ast.If)) for each in before):
        return None
    if without_messages(site, before):
        return None
    if split(site, node.test) is None:
        return None
    message = f"data-dependent early return: `{speculation.short(node.test)}`"
    try:
        exits, last = _exits(site, node)
        selection = Selection(site, node, under_static(site, exits), (_RESULT,))
        return _verdict(message, selection, _with_statements(selection, judge(selection), last[:-1]), last)
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))


def _exits(site: Site, node: ast.If) -> tuple[list[Branch], list[ast.stmt]]:
    found: list[Branch] = []
    current: ast.stmt = node
    where_is: Site | None = site
    while isinstance(current, ast.If) and where_is is not None:
        condition = split(where_is, current.test)
        body = without_messages(where_is, current.body)
        if condition is None or len(body) != 1:
            raise NotProven("the code after the branch is not a plain `return`")
        if found and condition.static:
            raise NotProven("a Python condition selects between later branches")
        found.append(_exit(condition, body[0], where_is.at(body[0]) or where_is))
        rest = current.orelse or where_is.following()
        if not rest:
            raise NotProven("the function continues after the branch without a `return`")
        current = rest[0]
        where_is = where_is.at(current)
    if where_is is None:
        raise NotProven("the code after the branch is not reached by torch.compile")
    return _last(found, current, where_is)


def _last(found: list[Branch], first: ast.stmt, site: Site) -> tuple[list[Branch], list[ast.stmt]]:
    """The arms with the last one, and its statements: it may assign variables before it returns."""
    block = [first, *site.following()]
    end = next((number for number, each in enumerate(block) if not _assigns(each)), len(block) - 1)
    if not end or end > _MOST_BEFORE or not isinstance(block[end], ast.Return):
        return [*found, _exit(None, first, site)], [first]
    for each in block[:end]:
        name = each.targets[0].id  # type: ignore[attr-defined]
        if is_seen_elsewhere(site.evaluator.scope.node.body, name):
            raise NotProven(f"`{name}`, which the code after the branch assigns, may be read by another function")
    result = _in_place_of(_returned(block[end]), block[:end])
    return [*found, Branch(None, (Assignment(block[end], _RESULT, result),), dict(site.place.env))], block[: end + 1]


def _assigns(statement: ast.stmt) -> bool:
    plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return plain and isinstance(statement.targets[0], ast.Name)  # type: ignore[attr-defined]


class _Inlined(ast.NodeTransformer):
    """Puts what names were assigned in their place; a scope of its own may bind them anew."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)):
            raise NotProven(f"`{speculation.short(node)}` runs between the branch and the last `return`")
        found: ast.AST = super().visit(node)
        return found


def _in_place_of(returned: ast.expr, made: list[ast.stmt]) -> ast.expr:
    """What is returned, computed from what names hold before the assignments, each of which has no other use."""
    values: dict[str, ast.expr] = {}
    for each in made:
        target, value = each.targets[0].id, each.value  # type: ignore[attr-defined]
        values[target] = cast("ast.expr", _Inlined(dict(values)).visit(copy.deepcopy(value)))
    result = cast("ast.expr", _Inlined(values).visit(copy.deepcopy(returned)))
    if not all(_is_read_next(made[number:], returned) for number in range(len(made))):
        raise NotProven("the code after the branch assigns a variable that nothing reads")
    if sum(1 for _ in ast.walk(result)) > _LARGEST:
        raise NotProven("what the code after the branch computes is too much to compute in any case")
    return result


def _is_read_next(made: list[ast.stmt], returned: ast.expr) -> bool:
    """True where what the first statement assigns is read before it is assigned again: so the result depends on it."""
    name = made[0].targets[0].id  # type: ignore[attr-defined]
    for each in made[1:]:
        if mentions(each.value, name):  # type: ignore[attr-defined]
            return True
        if each.targets[0].id == name:  # type: ignore[attr-defined]
            return False
    return mentions(returned, name)


def _exit(condition: Condition | None, statement: ast.stmt, site: Site) -> Branch:
    return Branch(condition, (Assignment(statement, _RESULT, _returned(statement)),), dict(site.place.env))


def _returned(statement: ast.stmt) -> ast.expr:
    if isinstance(statement, ast.Return) and statement.value is not None:
        return statement.value
    if isinstance(statement, ast.Return):
        raise NotProven(
            "one branch returns None; where the other sets up buffers once, manually call it before compiling and test "
            "a Python bool that is kept beside them"
        )
    raise NotProven(
        f"`{speculation.short(statement)}` runs between the branch and the last `return`; "
        "manually compute both results and select with `torch.where`"
    )


def _with_statements(selection: Selection, facts: Facts, made: list[ast.stmt]) -> Facts:
    """The facts where statements stand before the last `return`: arguments are not selected inside of them."""
    if not made:
        return facts
    names = {each.targets[0].id for each in made} - set(selection.site.place.env)  # type: ignore[attr-defined]
    for condition in facts.conditions:
        for name in names & set(re.findall(r"[^\W\d]\w*", condition)):
            raise NotProven(f"`{name}` is assigned after the branch, and the compile path has to ask for it before")
    off: tuple[str, ...] = ()
    if any(not isinstance(each, ast.Name) for each in _leaves(selection, facts)):
        off = (f"not {selection.site.torch}.is_grad_enabled()",)
    return facts._replace(conditions=tuple(dict.fromkeys([*facts.conditions, *off])), one_path=False)


def _leaves(selection: Selection, facts: Facts) -> list[ast.expr]:
    """What the last result is computed of that has to be selected as well, for a finite gradient."""
    position, arm = len(selection.arms) - 1, selection.arms[-1]
    if (position, _RESULT) not in facts.cut:
        return []
    return gradient_leaves(selection.site, arm.assignments[-1].value, arm.env)


def _verdict(message: str, selection: Selection, facts: Facts, last: list[ast.stmt]) -> Diagnostic:
    site, node = selection.site, selection.node
    conditions = [arm.condition for arm in selection.arms if arm.condition is not None]
    texts = [condition.choice for condition in conditions]
    static = [site.operand_of_and(operand) for operand in conditions[0].static]
    if site.settings.one_path and facts.one_path and not (static or site.is_elif(node)):
        whole = Span(node.lineno, node.col_offset, last[-1].end_lineno or 0, last[-1].end_col_offset or 0)
        end = site.span(node) if node.orelse else whole
        around = ast.Pass(
            lineno=end.start_line, col_offset=end.start_column, end_lineno=end.end_line, end_col_offset=end.end_column
        )
        comments = [part for comment in site.comments(around) for part in (comment, "\n")]
        select = where(site, "return ", texts, values_of(selection, facts, _RESULT, texts), 0)
        return Diagnostic(message, edit=one_path(site, end, (*comments, select)), safety=Safety.UNSAFE)
    made = last[:-1]
    named: list[str] = []
    if facts.cut or made:
        for position, text in enumerate(texts):
            texts[position] = site.free_name("condition" if len(texts) == 1 else f"condition_{position + 1}")
            named.append(f"{texts[position]} = {text}\n    ")
    values = values_of(selection, facts, _RESULT, texts)
    if made:
        # What is returned early reads names as they are before they are assigned again.
        for position, text in enumerate(values[:-1]):
            values[position] = site.free_name("early" if len(texts) == 1 else f"early_{position + 1}")
            named.append(f"{values[position]} = {text}\n    ")
        names = dict.fromkeys(each.id for each in _leaves(selection, facts) if isinstance(each, ast.Name))
        named += [f"{name} = {where_taken(site, name, len(texts), texts)}\n    " for name in names]
        named += [f"{site.text(each)}\n    " for each in made]
        values[-1] = site.text(_returned(last[-1]))
    select = where(site, "return ", texts, values, 1)
    return Diagnostic(message, edit=in_front(site, node, [*static, *facts.conditions], [*named, select]))
