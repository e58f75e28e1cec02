"""What a name holds at a statement."""

from __future__ import annotations

import ast

import pytest

from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks

_FUNCTION = """
def forward(x, y):
    z = x
    {around}:
        return z
"""


@pytest.mark.parametrize(
    ("around", "known"),
    [("with y", True), ("if y", True), ("with y as z", False), ("with y as (a, z)", False), ("if (z := y)", False)],
)
def test_a_name_that_a_statement_binds_around_it_holds_nothing_from_above(around: str, known: bool) -> None:
    function = ast.parse(_FUNCTION.format(around=around)).body[0]
    assert isinstance(function, ast.FunctionDef)
    blocks, first, inner = Blocks(function), function.body[0], function.body[1].body[0]  # type: ignore[attr-defined]
    assert blocks.binding_before(inner, "z") is (first if known else None)
    assert blocks.bindings_before(inner, "z") == ([first] if known else None)


def _blocks(body: str) -> tuple[Blocks, ast.FunctionDef]:
    function = ast.parse(
        "def forward(x, y):\n    z = x\n" + "".join(f"    {each}\n" for each in body.split("\n"))
    ).body[0]
    assert isinstance(function, ast.FunctionDef)
    return Blocks(function), function


@pytest.mark.parametrize(
    "loop",
    [
        "for each in y:\n    z = each + z",
        "while y.sum() > 0:\n    z = y + z",
        "for each in y:\n    if each:\n        z = each\n    z += 1",
        "for each in y:\n    for other in each:\n        z = other",
    ],
)
def test_a_name_holds_what_the_rounds_of_a_loop_or_the_statement_above_gave_it(loop: str) -> None:
    blocks, function = _blocks(f"{loop}\nreturn z")
    bound = blocks.bindings_before(function.body[-1], "z")
    assigned = {each for each in ast.walk(function) if isinstance(each, ast.Assign)}
    assert set(bound or ()) == assigned


def test_a_statement_in_a_loop_follows_the_rounds_before() -> None:
    blocks, function = _blocks("for each in y:\n    print(z)\n    z = each")
    loop = function.body[1]
    assert isinstance(loop, ast.For)
    bound = blocks.bindings_before(loop.body[0], "z")
    assert set(bound or ()) == {function.body[0], loop.body[1]}
    assert blocks.binding_before(loop.body[0], "z") is None


@pytest.mark.parametrize(
    "loop",
    [
        "for each in y:\n    z = each\n    if each:\n        break\n    z = x",
        "for each in y:\n    z = each\n    if each:\n        continue\n    z = x",
        "for z in y:\n    pass",
        "for each in (z := y):\n    z = each",
        "while (z := y.sum()) > 0:\n    z = x",
        "for each in y:\n    z = each\nelse:\n    z = x",
        "for each in y:\n    with each as z:\n        pass",
        "for each in y:\n    del z",
    ],
)
def test_what_a_loop_leaves_in_a_name_may_be_unclear(loop: str) -> None:
    blocks, function = _blocks(f"{loop}\nreturn z")
    assert blocks.bindings_before(function.body[-1], "z") is None


def test_the_test_of_a_loop_is_asked_behind_each_round() -> None:
    blocks, function = _blocks("while z.sum() > 0:\n    z = y")
    assert blocks.bindings_before(function.body[1], "z") is None
