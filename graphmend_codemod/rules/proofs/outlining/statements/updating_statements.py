"""A statement that only changes tensors of the instance as one opaque operator, in a method that does more.

`if self.initialized.item() == 0: self.start(x); self.initialized.fill_(1)` in a `forward`. Eager mode keeps the
statement; the operator is that of methods that change state (`state_updates`) and holds a copy of it.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import names_bound, stored_names
from graphmend_codemod.analysis.scope import walk, walk_scope
from graphmend_codemod.core.findings import Edit, Helper, Original, Replacement
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import (
    KNOWS_NAMES,
    OF_A_CLASS,
    def_line,
    demand_movable,
    moved,
    operator_name,
)
from graphmend_codemod.rules.proofs.outlining.functions.state_updates import (
    decorating,
    demand_class,
    edit_of,
    update_of,
)
from graphmend_codemod.rules.proofs.outlining.statements.outlined_statements import FORMS, Names, check_around, is_bound

_COMMENT = "# torch.compile cannot trace this statement: it calls it as one operator."


def edit(site: Site) -> Edit:
    """The compile path in front of the innermost statement that only changes tensors of the instance, or NotProven."""
    owner = site.class_name
    if not owner or site.function != f"{owner}.{site.evaluator.scope.node.name}" or not site.evaluator.scope.self_name:
        raise NotProven("the code is in no method")
    demand_torch(site)
    demand_class(site, owner)
    check_around(site)
    reasons: list[NotProven] = []
    for body, position in reversed(site.place.blocks):
        try:
            return _edit_of(site.reached(body[position]), body[position])
        except NotProven as reason:
            reasons.append(reason.anew())
    raise reasons[0].anew()


def _edit_of(site: Site, statement: ast.stmt) -> Edit:
    if isinstance(statement, ast.If) and site.is_elif(statement):
        raise NotProven("the statement is an `elif`")
    demand_movable(walk(statement), (ast.Return, ast.Break, ast.Continue), FORMS, KNOWS_NAMES | OF_A_CLASS)
    bound = stored_names([statement, *walk_scope(statement)])
    if (later := next(filter(site.live_after, sorted(bound)), None)) is not None:
        raise NotProven(f"`{later}` is read behind the statement")
    names = Names(site, [statement])
    own = site.evaluator.scope.self_name or ""
    if (unbound := next((each for each in names.given if not is_bound(site, each)), None)) is not None:
        raise NotProven(f"`{unbound}` may be unbound before the statement")
    update = update_of(site, names.function, own, names.given, names_bound(statement))
    operator = operator_name(site, f"update_in_{site.evaluator.scope.node.name}")
    text = [
        f"@{decorating(update)}",
        def_line(operator, [own, *names.given]),
        f'    """A statement of `{site.function}` as one operator for torch.compile."""',
        moved(site, [statement]),
    ]
    header = site.header("if", update.conditions)
    path = f"{_COMMENT}\n" + under(header, f"{operator}({', '.join([own, *names.given])})")
    span = site.span(statement)
    rest = ("\nel", Original(span)) if isinstance(statement, ast.If) else ("\nelse:\n    ", Original(span, 1))
    helper = Helper(operator, "\n".join(text), after=("_one_update",))
    return edit_of(site, Replacement(span, (path, *rest)), update, helper)
