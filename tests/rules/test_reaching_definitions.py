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
