"""untraced (GM703): code that breaks the graph and that no rule rewrites.

Sizes that come from the data, numbers that are read back to Python, recurrent layers, modules that are made while
`forward` runs, calls that Dynamo refuses whatever they are given: each is named with what can be done about it by hand.
Where another rule looks at the same statement, that rule's reason is given in place of this one.

Code without annotations is judged by what its file says: what the callers of a function give it, what its callees
return, what a container or an attribute was given. That is a guess, so it is worded as one, and an edit asks anew.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import all_names, is_attribute
from graphmend_codemod.analysis.scope import children, parameter_names, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.project.index.facts import AttributeFact, AttributeKind
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.outlining.texts.numbers import HELPERS
from graphmend_codemod.rules.proofs.untraced import places as untraced
from graphmend_codemod.rules.proofs.untraced.guessed_breaks import guessed_at, seeming
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced
from graphmend_codemod.rules.proofs.untraced.tests import tested

rule = Rule(
    __name__,
    __doc__,
    title="report code that Dynamo cannot trace",
    safety=Safety.ADVICE,
    contract=Contract(cost=Cost.NONE),
)

_AS_IF = "rewrite it as `if` statements, so that a rule can fix it"
_IN_LAMBDA = "make the lambda a function, so that a rule can fix it, or select with `torch.where`"
_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.While, ast.For, ast.Assert, ast.With, ast.Match,
)  # fmt: skip


@rule.on(*_STATEMENTS, lines=untraced.lines)
def not_traced(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """The first break site that the statement itself evaluates, in order of the source."""
    if site.function in HELPERS:
        return None
    for node in untraced.suspects(site).of(statement):
        each = untraced.break_at(site, node) or guessed_at(site, node)
        if each is not None and any(part is node for part in untraced.evaluated(site, statement)):
            return Diagnostic(each.message, declined=each.advice)
    return None


@rule.on(ast.With)
def enters(site: Site, statement: ast.With) -> Diagnostic | None:
    """`with self.lock:`."""
    found = (entered(site, item.context_expr) for item in statement.items)
    each = next((one for one in found if one is not None), None)
    return Diagnostic(each.message, declined=each.advice, node=each.node) if each is not None else None


@rule.on(ast.If, ast.While, ast.Assert, ast.IfExp, candidate="test")
def test_on_something(site: Site, statement: ast.If | ast.While | ast.Assert | ast.IfExp) -> Diagnostic | None:
    """`if x.sum() == 0`."""
    each = tested(site, statement.test) or seeming(site, statement.test)
    return Diagnostic(each.message, declined=each.advice) if each is not None else None


def _gives_lambda(node: ast.Assign | ast.Expr | ast.Return) -> bool:
    return node.value is not None and any(isinstance(each, ast.Lambda) for each in (node.value, *children(node.value)))


@rule.on(ast.Assign, ast.Expr, ast.Return, candidate="test", when=_gives_lambda)
def test_in_lambda(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """`f = lambda y: y.sin() if (x > 0).any() else y`, where the test reads nothing that the lambda is given."""
    inside = (each for each in untraced.evaluated(site, statement) if isinstance(each, ast.Lambda))
    for made in sorted(inside, key=lambda each: (each.lineno, each.col_offset)):
        own = parameter_names(made)
        for part in walk_in_layers(made.body):
            if isinstance(part, ast.IfExp) and own.isdisjoint(all_names(part.test)):
                each = tested(site, part.test) or seeming(site, part.test)
                if each is not None or reads_tensor(site, part.test):
                    message = each.message if each is not None else f"data-dependent branch: `{short(part.test)}`"
                    return Diagnostic(f"{message} (in a lambda)", declined=_IN_LAMBDA, node=part)
    return None


@rule.on(ast.Match)
def matched(site: Site, statement: ast.Match) -> Diagnostic | None:
    """`case (a, b) if x.sum() > 0:`, and `match x.argmax(): case 0:`."""
    message = "data-dependent branch in a `match` statement"
    for case in statement.cases:
        guard = case.guard
        if guard is None or site.value(guard).is_python:
            continue
        if reads_tensor(site, guard) or tested(site, guard) is not None or seeming(site, guard) is not None:
            return Diagnostic(f"{message}: `{short(guard)}`", declined=_AS_IF, node=guard)
    values = any(isinstance(part, ast.MatchValue) for case in statement.cases for part in ast.walk(case.pattern))
    if values and site.value(statement.subject).is_tensor:
        return Diagnostic(f"{message}: `{short(statement.subject)}`", declined=_AS_IF, node=statement.subject)
    return None


@rule.on(ast.Expr, candidate="test", when=lambda node: isinstance(node.value, ast.BoolOp))
def test_for_effect(site: Site, statement: ast.Expr) -> Diagnostic | None:
    """`x.sum() > 3 and print(x)`."""
    assert isinstance(statement.value, ast.BoolOp)
    first = statement.value.values[0]
    if not site.value(first).is_tensor:
        each = tested(site, first)
        return Diagnostic(each.message, declined=each.advice) if each is not None else None
    message = f"data-dependent branch: `{short(first)}`"
    return Diagnostic(message, declined="rewrite it as an `if` statement, so that a rule can fix it")


# Context managers that exist before `with` enters them: Dynamo traces those that are made where they are entered

_TRACED = frozenset({"contextlib.nullcontext"})


def entered(site: Site, node: ast.expr) -> Untraced | None:
    """`with self.lock:`, `with LOCK:`, `with torch.device("cpu"):`."""
    if isinstance(node, ast.Call):
        if site.resolve(node.func) != "torch.device":
            return None
        advice = "Dynamo does not trace it; manually give `device=` to what makes tensors"
        return Untraced(node, "enters a device as a context manager", advice)
    fact = _fact(site, node)
    if fact is None or fact.callee in _TRACED or fact.kind is AttributeKind.CONSTANT:
        return None
    advice = (
        "Dynamo traces a context manager only where it is made; manually make it in the `with` statement, "
        "or leave it out under `torch.compiler.is_compiling()`"
    )
    return Untraced(node, "enters a context manager that was made elsewhere", advice)


def _fact(site: Site, node: ast.expr) -> AttributeFact | None:
    """How an attribute of the instance, or a name of the module, came to be."""
    scope = site.evaluator.scope
    if is_attribute(node, scope.self_name):
        return scope.attribute(node.attr)
    if isinstance(node, ast.Name) and not scope.is_local(node.id):
        return scope.index.global_fact(site.summary.name, node.id)
    return None
