"""Random numbers that a round of a loop compares with a bound, to skip a layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_within, names_bound
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.deciding_operands import Decision, decision, is_number
from graphmend_codemod.rules.proofs.conditions.random_draws import draw_of, is_draw, unwrapped


class Draw(NamedTuple):
    """`compared` is the test of a number from `torch.rand`; `number` is the bound, `left` whether the draw is left."""

    compared: ast.Compare
    draw: ast.expr
    number: ast.expr
    left: bool


def draws_in(site: Site, body: Sequence[ast.stmt]) -> list[Draw]:
    """The comparisons of random numbers with bounds in the statements, without those of inner loops."""
    found = []
    for statement, node in _comparisons(body):
        here = site.at(statement)
        if here is None or len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
            continue
        for draw, number, left in ((node.left, node.comparators[0], True), (node.comparators[0], node.left, False)):
            if is_draw(here, draw) and is_number(here, number) and not isinstance(number, ast.Constant):
                found.append(Draw(node, unwrapped(draw), number, left))
    return found


def _comparisons(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.Compare]]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from ((statement, node) for node in ast.walk(statement.test) if isinstance(node, ast.Compare))
            yield from _comparisons([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Assign):
            yield from ((statement, node) for node in ast.walk(statement.value) if isinstance(node, ast.Compare))


def drawn_in(site: Site, loop: ast.For) -> Draw | None:
    """The one random number that a round of the loop compares with a bound, where the bound is asked for already."""
    drawn = [each for each in draws_in(site, loop.body) if not _waits(site, loop, each)]
    return drawn[0] if len(drawn) == 1 else None


def _waits(site: Site, loop: ast.For, drawn: Draw) -> bool:
    """True where a test asks nothing of the bound before the number: another rule is about to write that."""
    for statement in ast.walk(loop):
        if isinstance(statement, (ast.If, ast.Assign)):
            test = statement.test if isinstance(statement, ast.If) else statement.value
            here = site.at(statement)
            if here is not None and is_within(drawn.compared, test):
                return isinstance(decision(here, test), Decision)
    return True


def message_of(drawn: Draw) -> str:
    """What a finding says."""
    return f"skips a layer by a random number: `{short(drawn.compared)}`"


def compared_text(site: Site, drawn: Draw, number: str) -> str:
    """The comparison, with a tensor in the place of its element."""
    sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(drawn.compared.ops[0])]
    draw = site.text(drawn.draw)
    return f"{draw} {sign} {number}" if drawn.left else f"{number} {sign} {draw}"


def is_of_torch(site: Site, drawn: Draw) -> bool:
    """True where the number is a tensor, so that it selects in a graph."""
    return all(isinstance(call, ast.Call) and site.resolve(call.func) == "torch.rand" for call in _calls(site, drawn))


def is_scalar(site: Site, drawn: Draw) -> bool:
    """True for `torch.rand([])`, which has no dimension; `torch.rand(1)` has one."""
    given = [call.args for call in _calls(site, drawn) if isinstance(call, ast.Call)]
    return all(len(each) == 1 and isinstance(each[0], (ast.List, ast.Tuple)) and not each[0].elts for each in given)


def _calls(site: Site, drawn: Draw) -> list[ast.expr | None]:
    """The calls that draw the number."""
    made = [drawn.draw]
    if isinstance(drawn.draw, ast.Name):
        assigned = [node for node in walk_scope(site.evaluator.scope.node) if isinstance(node, ast.Assign)]
        made = [node.value for node in assigned if names_bound(node) == {drawn.draw.id}]
    return [draw_of(site, each) for each in made]
