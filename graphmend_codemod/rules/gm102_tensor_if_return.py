"""tensor-if-return (GM102): an early `return` that a tensor's value decides.

The frame ends in two places and Dynamo cannot know which, so the graph breaks at the test. `torch.where` selects
between the two results on the device. The same proof as for GM101 is asked for; without it, the select stands in
front of the original statements under `torch.compiler.is_compiling()`.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.evaluate import Env
from graphmend_codemod.analysis.narrowing import rename_dtype
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.analysis.values import Kind, Value
from graphmend_codemod.findings import Edit, Replacement, Safety, Span
from graphmend_codemod.rules.base import Clean, Contract, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.conditions import Condition, split
from graphmend_codemod.rules.selection import NotSelectable, where
from graphmend_codemod.rules.site import Site

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor = None):
        ...
"""

rule = Rule(
    code="GM102",
    slug="tensor-if-return",
    title="select the returned value with torch.where",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(),
    examples=(
        Example(
            before="""
            if x.isnan().any():
                return torch.nan_to_num(x)
            return x.clone()
            """,
            after="""
            return torch.where(x.isnan().any(), torch.nan_to_num(x), x.clone())
            """,
            setup=_SETUP,
            inputs=("torch.ones(3)", "torch.full((3,), float('nan'))"),
        ),
        Example(
            before="""
            if x.sum() > 0:
                return x.sqrt()
            return x
            """,
            after="""
            if (
                torch.compiler.is_compiling()
                and x.is_floating_point()
                and not torch.is_grad_enabled()
            ):
                return torch.where(x.sum() > 0, x.sqrt(), x)
            elif x.sum() > 0:
                return x.sqrt()
            return x
            """,
            setup=_SETUP,
            inputs=("torch.ones(3)", "-torch.ones(3)"),
        ),
        Declined(
            source="""
            if (x > 0).all():
                return None
            return x
            """,
            because="is not known to be a tensor",
            setup=_SETUP,
        ),
        Clean(
            source="""
            if mask is None:
                return x
            return x * 2
            """,
            setup=_SETUP,
        ),
    ),
)


class _Exit(NamedTuple):
    """One way out: the condition under which it is taken (None for the last), the value returned."""

    condition: Condition | None
    value: ast.expr
    env: Env


@rule.on(ast.If, candidate="test")
def early_return(site: Site, node: ast.If) -> Verdict | None:
    """`if t: return A` with `return B` in the `else` or right behind it."""
    if not (len(node.body) == 1 and isinstance(node.body[0], ast.Return)):
        return None
    if split(site, node.test) is None:
        return None
    message = f"returns early by the value of a tensor: `{purity.short(node.test)}`"
    if site.torch is None:
        return Verdict(message, declined="the name `torch` is taken by something else in this module")
    try:
        exits, last = _exits(site, node)
        return Verdict(message, edit=_edit(site, node, exits, last))
    except NotSelectable as reason:
        return Verdict(message, declined=str(reason))


def _exits(site: Site, node: ast.If) -> tuple[list[_Exit], ast.stmt]:
    found: list[_Exit] = []
    current: ast.stmt = node
    where_is: Site | None = site
    while isinstance(current, ast.If) and where_is is not None:
        condition = split(where_is, current.test)
        if condition is None or len(current.body) != 1:
            raise NotSelectable("what follows is no plain `return`")
        if condition.several is not None:
            raise NotSelectable(f"`{condition.several}` may hold more than one element")
        found.append(_Exit(condition, _returned(current.body[0]), _env(where_is, current.body[0])))
        rest = current.orelse or where_is.following()
        if not rest:
            raise NotSelectable("the function goes on behind the branch without a `return`")
        current = rest[0]
        where_is = where_is.at(current)
    if where_is is None:
        raise NotSelectable("what follows is not reached by the compiler")
    found.append(_Exit(None, _returned(current), where_is.place.env))
    return found, current


def _env(site: Site, statement: ast.stmt) -> Env:
    inner = site.at(statement)
    return (inner or site).place.env


def _returned(statement: ast.stmt) -> ast.expr:
    if isinstance(statement, ast.Return) and statement.value is not None:
        return statement.value
    if isinstance(statement, ast.Return):
        raise NotSelectable("one branch returns None")
    raise NotSelectable(f"`{purity.short(statement)}` stands between the branch and the last `return`")


def _judge(site: Site, exits: list[_Exit], floating: frozenset[str]) -> tuple[purity.Verdict, list[Value]]:
    verdict, values = purity.FREE, []
    for position, way in enumerate(exits):
        env = dict(way.env)
        for text in floating:
            value = site.evaluator.value(ast.parse(text, mode="eval").body, env)
            if value.dtype is None:
                raise NotSelectable(f"the dtype of `{text}` is not known")
            rename_dtype(env, value.dtype, f"float:{value.dtype}")
        if way.condition is not None:
            verdict = verdict & way.condition.verdict
            if position:
                for tensor in way.condition.tensors:
                    verdict = verdict & purity.judge(site.evaluator, tensor, env)._replace(finite=True)
        verdict = verdict & purity.judge(site.evaluator, way.value, env)
        value = site.evaluator.value(way.value, env)
        if value.kind is not Kind.TENSOR or value.optional:
            raise NotSelectable(f"`{purity.short(way.value)}` is not known to be a tensor")
        values.append(value)
    if verdict.impure:
        raise NotSelectable(verdict.impure)
    return verdict, values


def _is_own(site: Site, way: _Exit, value: Value) -> bool:
    """True when nothing else can tell the returned tensor from a copy of it."""
    if isinstance(way.value, ast.Name):
        in_context = any(isinstance(parent, (ast.With, ast.AsyncWith)) for parent in site.place.parents)
        return site.sole_owner(way.value.id) and not in_context
    return site.is_fresh(value)


def _edit(site: Site, node: ast.If, exits: list[_Exit], last: ast.stmt) -> Edit:
    verdict, values = _judge(site, exits, frozenset())
    floating = verdict.needs_floating
    if any(value.dtype != values[0].dtype for value in values):
        names = {part.id for way in exits for part in walk_in_layers(way.value) if isinstance(part, ast.Name)}
        floating |= {
            name for name in names if (known := site.place.env.get(name)) and known.is_tensor and not known.is_floating
        }
    if floating:
        verdict, values = _judge(site, exits, floating)
    for what in ("dtype", "shape"):
        if any(getattr(value, what) != getattr(values[0], what) for value in values):
            raise NotSelectable(f"the results may differ in {what}")
    conditions = [way.condition for way in exits if way.condition is not None]
    static = conditions[0].static
    if any(condition.static for condition in conditions[1:]):
        raise NotSelectable("a static condition decides between later branches")
    facts = [f"{text}.is_floating_point()" for text in sorted(floating)]
    facts += [fact for condition in conditions for fact in condition.facts]
    if not verdict.finite and not site.no_grad:
        facts.append(f"not {site.torch}.is_grad_enabled()")
    texts = [condition.text for condition in conditions]
    results = [site.text(way.value) for way in exits]
    reached = [site.roots(way.value, way.env) for way in exits]
    same_leaves = all(found == reached[0] for found in reached)
    if not same_leaves and not site.no_grad and f"not {site.torch}.is_grad_enabled()" not in facts:
        facts.append(f"not {site.torch}.is_grad_enabled()")
    facts += site.keeps_graph(way.value for way in exits)
    owned = all(_is_own(site, way, value) for way, value in zip(exits, values, strict=True))
    plain = not (facts or static or verdict.raises or site.is_elif(node) or site.flow.splits) and owned
    if plain:
        whole = Span(node.lineno, node.col_offset, last.end_lineno or 0, last.end_col_offset or 0)
        end = site.span(node) if node.orelse else whole
        around = ast.Pass(
            lineno=end.start_line, col_offset=end.start_column, end_lineno=end.end_line, end_col_offset=end.end_column
        )
        comments = [part for comment in site.comments(around) for part in (comment, "\n")]
        select = where(site, "return ", texts, results, 0)
        return Edit((Replacement(end, (*comments, select)),), imports=site.imports)
    conjuncts = [*(site.operand_of_and(operand) for operand in static), *facts]
    return site.in_front(node, conjuncts, [where(site, "return ", texts, results, 1)])
