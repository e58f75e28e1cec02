"""Questions about one expression."""

from __future__ import annotations

import ast

import pytest

from graphmend_codemod.analysis import patterns


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize("text", ["len(x)", "x.shape[0]", "x.size(0)"])
def test_the_number_of_rows_is_that_of_a_name(text: str) -> None:
    assert patterns.counted(_parsed(text)) == "x"


@pytest.mark.parametrize("text", ["len(x[0])", "x.shape[1]", "x.size(-1)", "x.size()", "x.shape[False]", "lens(x)"])
def test_other_sizes_are_no_number_of_rows(text: str) -> None:
    assert patterns.counted(_parsed(text)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m.bool().expand(x.shape)", True),
        ("m.expand(x.size())", True),
        ("m.expand_as(x)", True),
        ("m.expand(y.shape)", False),
        ("m.expand(x.shape, 2)", False),
        ("m.expand(x.size(0))", False),
        ("m.expand(size=x.shape)", False),
        ("m.view(x.shape)", False),
    ],
)
def test_an_expanded_mask_has_the_shape_of_what_it_is_expanded_to(text: str, expected: bool) -> None:
    assert patterns.is_name(patterns.expanded_like(_parsed(text)), "x") is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list[int]", True),
        ("typing.List[Tuple[int, int]]", True),
        ("Sequence[list[int]]", True),
        ("list[Sequence[int]]", False),
        ("list[float]", False),
        ("list[list[list[int]]]", False),
        ("dict[int, int]", False),
    ],
)
def test_lists_of_integers_and_of_pairs_of_them_are_known_by_their_annotation(text: str, expected: bool) -> None:
    assert patterns.holds_integers(_parsed(text)) is expected


@pytest.mark.parametrize(
    ("text", "bound", "alone", "whole"),
    [
        ("x = 1", ["x"], True, True),
        ("x = y = 1", ["x", "y"], False, True),
        ("x += 1", ["x"], False, False),
        ("x, y = z", ["(x, y)"], False, False),
        ("print(x)", [], False, False),
    ],
)
def test_what_an_assignment_binds(text: str, bound: list[str], alone: bool, whole: bool) -> None:
    statement = ast.parse(text).body[0]
    assert [ast.unparse(each) for each in patterns.targets_of(statement)] == bound
    assert patterns.binds_alone(statement, "x") is alone
    assert (isinstance(statement, ast.Assign) and patterns.is_target(statement, "x")) is whole


def test_a_statement_is_found_by_its_place_in_another_tree_of_the_file() -> None:
    text = "def f(x):\n    if x: x = 1\n    return x\n"
    one, other = ast.parse(text).body[0], ast.parse(text).body[0]
    assert isinstance(one, ast.FunctionDef)
    assert isinstance(other, ast.FunctionDef)
    branch = one.body[0]
    assert isinstance(branch, ast.If)
    assert patterns.same_statement(other, branch) is other.body[0]
    assert patterns.same_statement(other, branch.body[0]) is other.body[0].body[0]  # type: ignore[attr-defined]
    assert patterns.same_statement(ast.parse("def f(x):\n  pass\n").body[0], branch) is None
