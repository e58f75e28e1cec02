"""Where a replacement stands: shared lines, `elif`, comments, overlaps; and when it is not made."""

from __future__ import annotations

import ast
import sys

import pytest

from graphmend_codemod.core.findings import Edit, EditForm, Original, Replacement, Span
from graphmend_codemod.core.source import SourceError
from graphmend_codemod.rewriting import apply
from tests.rewriting.tools import (
    block,
    edit,
    from_text,
    made,
    node_at,
    original,
    refused,
    span_of,
    statement,
    two_paths,
)

# One of several statements on a line


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("a; b; c\n", "b", "a\nif compiling():\n    fast()\nelse:\n    b\nc\n"),
        ("a; b ;c  # d\n", "a", "if compiling():\n    fast()\nelse:\n    a\nb\nc  # d\n"),
        ("a; b ;  # c\n", "b", "a\nif compiling():\n    fast()\nelse:\n    b  # c\n"),
        ("a;\n", "a", "if compiling():\n    fast()\nelse:\n    a\n"),
        ("if t: a\n", "a", "if t:\n    if compiling():\n        fast()\n    else:\n        a\n"),
        ("if t: a; b  # c\nelse: d\n", "b",
         "if t:\n    a\n    if compiling():\n        fast()\n    else:\n        b  # c\nelse: d\n"),
        ("if t: a\nelse: b\nc\n", "b",
         "if t: a\nelse:\n    if compiling():\n        fast()\n    else:\n        b\nc\n"),
        ("try: a\nexcept E: b\nfinally: c\n", "b",
         "try: a\nexcept E:\n    if compiling():\n        fast()\n    else:\n        b\nfinally: c\n"),
        ("class A:\n  def f(x): return x\n", "return x",
         "class A:\n  def f(x):\n    if compiling():\n      fast()\n    else:\n      return x\n"),
        ("match x:\n    case 1: a\n", "a",
         "match x:\n    case 1:\n        if compiling():\n            fast()\n        else:\n            a\n"),
        ("with c: a = (1,\n 2); b\n", "b",
         "with c:\n    a = (1,\n 2)\n    if compiling():\n        fast()\n    else:\n        b\n"),
    ],
)  # fmt: skip
def test_a_compound_replacement_gets_lines_of_its_own(text: str, target: str, expected: str) -> None:
    source = from_text(text)
    assert made(source, two_paths(statement(source, target))) == expected


def test_a_simple_replacement_stays_on_the_line() -> None:
    source = from_text("if t: a = 1; log('b'); c\n")
    assert made(source, edit(statement(source, "log"), "say()")) == "if t: a = 1; say(); c\n"


def test_two_statements_of_one_line_take_two_passes() -> None:
    source = from_text("a; b\n")
    both = [two_paths(statement(source, "a")), two_paths(statement(source, "b"))]
    first = apply(source, both)
    assert (first.applied, len(first.skipped)) == ((0,), 1)
    again = source.with_text(first.text)
    again_b = [node for node in ast.walk(again.parse()) if isinstance(node, ast.Expr)][-1]
    assert made(again, two_paths(again_b)).count("fast()") == 2


# elif


def test_an_elif_that_becomes_one_if_stays_an_elif() -> None:
    source = from_text("if a:\n    b\nelif t:\n    c\nelif d:\n    e\nelse:\n    f\ng\n")
    assert made(source, two_paths(node_at(source, "elif t", ast.If))) == block(
        """
        if a:
            b
        elif compiling():
            fast()
        else:
            if t:
                c
            elif d:
                e
            else:
                f
        g
        """
    )


def test_an_elif_that_becomes_something_else_moves_into_an_else() -> None:
    source = from_text("if a:\n  b\nelif t:  # why\n  c = 1\nd\n")
    assert made(source, edit(node_at(source, "elif t", ast.If), "c = where(t, 1, c)")) == (
        "if a:\n  b\nelse:\n  # why\n  c = where(t, 1, c)\nd\n"
    )


def test_a_replacement_may_spell_elif_itself_and_put_the_original_behind_el() -> None:
    source = from_text("if a:\n    b\nelif t:  # why\n    c\nelse:\n    d\n")
    node = node_at(source, "elif t", ast.If)
    expected = "elif compiling():\n    fast()\nelif t:  # why\n    c\nelse:\n    d\n"
    assert made(source, edit(node, "elif compiling():\n    fast()\nel", original(node))) == f"if a:\n    b\n{expected}"
    assert made(source, edit(node, "if compiling():\n    fast()\nel", original(node))) == f"if a:\n    b\n{expected}"
    alone = from_text("if t:\n    c\n")
    node = node_at(alone, "if t", ast.If)
    assert made(alone, edit(node, "if u:\n    e\nel", original(node))) == "if u:\n    e\nelif t:\n    c\n"


def test_the_test_of_an_elif_is_replaced_in_place() -> None:
    source = from_text("if a:\n    b\nelif t.any():\n    c\n")
    assert made(source, edit(node_at(source, "t.any()", ast.Call), "u")) == "if a:\n    b\nelif u:\n    c\n"


# Comments


def test_comments_of_replaced_code_are_kept_above_it() -> None:
    source = from_text(
        block(
            """
            def f():
                if t:  # overflow
                    # clamp for half precision
                    x = clamp(x)  # noqa: E501
                else:
                    # nothing to do
                    x = x  # end
                return x
            """
        )
    )
    assert made(source, edit(statement(source, "if t"), "x = where(t, clamp(x), x)")) == block(
        """
        def f():
            # overflow
            # clamp for half precision
            # nothing to do
            x = where(t, clamp(x), x)  # end
            return x
        """
    )


def test_comments_for_tools_go_with_their_code() -> None:
    source = from_text("if t:  # type: ignore[misc]\n    a  # pragma: no cover\n    b\n")
    assert made(source, edit(statement(source, "if t"), "c")) == "c\n"


def test_a_comment_inside_a_replaced_expression_is_kept_above_the_statement() -> None:
    source = from_text("def f():\n    return g(1,  # one\n             2)\n")
    assert made(source, edit(node_at(source, "g(", ast.Call), "h()")) == "def f():\n    # one\n    return h()\n"


def test_the_comment_that_ends_a_statement_stays_with_it() -> None:
    source = from_text("def f():\n    if t: x = 1  # tail\n    return x\n")
    node = statement(source, "if t")
    moved = made(source, edit(node, "if not compiling():\n    ", original(node, 1), "\nelse:\n    fast()"))
    assert moved == (
        "def f():\n    if not compiling():\n        if t: x = 1  # tail\n    else:\n        fast()\n    return x\n"
    )


def test_comments_at_the_end_of_a_block_move_with_it() -> None:
    source = from_text("def f():\n    if t:\n        a  # tail\n\n        # end of block\n\n    # next\n    return x\n")
    node = statement(source, "if t")
    assert made(source, two_paths(node)) == (
        "def f():\n    if compiling():\n        fast()\n    else:\n        if t:\n            a  # tail\n\n"
        "            # end of block\n\n    # next\n    return x\n"
    )
    assert (
        made(source, edit(node, "b")) == "def f():\n    b  # tail\n\n    # end of block\n\n    # next\n    return x\n"
    )


# Insertions


def test_nothing_is_replaced_where_text_is_only_inserted() -> None:
    source = from_text("def f():\n    a\n    b  # c\n")
    at = span_of(statement(source, "b"))
    before = Span(at.start_line, at.start_column, at.start_line, at.start_column)
    assert made(source, edit(before, "new = 1\n")) == "def f():\n    a\n    new = 1\n    b  # c\n"


# Overlaps


def test_the_earlier_of_two_overlapping_edits_is_made() -> None:
    source = from_text("if t:\n    log()\nx\n")
    inner, outer = two_paths(statement(source, "log")), two_paths(statement(source, "if t"))
    applied = apply(source, [inner, outer])
    assert applied.applied == (1,)
    assert applied.skipped == ((0, "it overlaps with an earlier edit; run `graphmend fix` again"),)


def test_neighbours_are_made_together_whatever_their_order() -> None:
    source = from_text("a\nb\nc\n")
    edits = [edit(statement(source, name), f"{name}{name}") for name in "cab"]
    assert made(source, *edits) == "aa\nbb\ncc\n"


def test_an_edit_is_made_as_a_whole_or_not_at_all() -> None:
    source = from_text("a\nb\nc\n")
    replaced = tuple(Replacement(span_of(statement(source, name)), ("z",)) for name in "ac")
    pair = Edit(replaced, form=EditForm.ONE_PATH)
    applied = apply(source, [pair, edit(statement(source, "c"), "d")])
    assert (applied.text, applied.applied) == ("z\nb\nz\n", (0,))


# What is not made


@pytest.mark.parametrize(
    ("target", "part", "reason"),
    [
        ("b + c", "d if e", "cannot be parsed"),
        ("b + c", "d or e", "would also change other code near line 1"),
        ("a = ", "a = 1\nq = 2)", "cannot be parsed"),
        ("a = ", "a = (1", "cannot be parsed"),
        ("b + c", "d  # e", "would also change other code"),
        ("b + c", "d\nq = 1", "would also change other code"),
    ],
)
def test_an_edit_that_changes_more_than_its_place_is_not_made(target: str, part: str, reason: str) -> None:
    source = from_text("a = b + c and f; g = 1\nh = [\n]\n")
    kind: type[ast.stmt | ast.expr] = ast.Assign if target == "a = " else ast.BinOp
    assert reason in refused(source, edit(node_at(source, target, kind), part))


def test_a_statement_that_leaves_its_block_is_noticed() -> None:
    source = from_text("if a:\n    b\n    c\nd\n")
    guard = node_at(source, "if a", ast.If)
    last = span_of(guard.body[1])
    reaching_out = Span(
        guard.body[0].end_lineno or 0, guard.body[0].end_col_offset or 0, last.end_line, last.end_column
    )
    assert "would also change other code" in refused(source, edit(reaching_out, Original(Span(2, 5, 3, 0), 0), "c"))


def test_one_bad_edit_does_not_keep_the_others_out() -> None:
    source = from_text("a\nb\nc\n")
    edits = [edit(statement(source, name), "(" if name == "b" else "z") for name in "abc"]
    applied = apply(source, edits)
    assert (applied.text, applied.applied, applied.skipped[0][0]) == ("z\nb\nz\n", (0, 2), 1)


@pytest.mark.parametrize("span", [Span(9, 0, 9, 1), Span(1, 5, 1, 9), Span(1, 1, 1, 0), Span(3, 0, 3, 1)])
def test_a_place_that_is_not_in_the_file_is_refused(span: Span) -> None:
    assert refused(from_text("a\n"), edit(span, "b"))


def test_a_definition_without_its_decorators_is_refused() -> None:
    source = from_text("@d\ndef f(): pass\n")
    assert "decorators" in refused(source, two_paths(statement(source, "def f")))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="ast knows positions inside f-strings")
def test_an_expression_inside_an_f_string_is_refused_where_its_place_is_not_known() -> None:
    source = from_text('x = f"{a.item()}"\n')
    assert "f-string" in refused(source, edit(Span(1, 7, 1, 15), "b"))


def test_text_that_the_encoding_cannot_hold_is_refused() -> None:
    source = from_text(b"# coding: latin-1\nx = 1\n")
    assert "cannot be written as iso-8859-1" in refused(source, edit(statement(source, "x"), "x = '😀'"))


def test_a_file_that_does_not_parse_is_an_error_of_the_file() -> None:
    with pytest.raises(SourceError):
        apply(from_text("x = (\n"), [])


def test_no_edits_change_nothing() -> None:
    source = from_text("x = 1\r\n")
    assert apply(source, []).text == source.text
