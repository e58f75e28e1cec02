"""Original text at another depth: every byte but the indentation of code lines stays."""

from __future__ import annotations

import ast

import pytest

from graphmend_codemod.core.findings import Original, Span
from tests.rewriting.tools import block, edit, from_text, made, node_at, original, span_of, statement, two_paths


def test_a_block_moves_right_with_its_comments_and_blank_lines() -> None:
    source = from_text(
        block(
            """
            def forward(self, x):
                if x.any():  # guard
                    # why

                    x = x + 1  # step

                else:
                    x = g(
                        x,
                        1,
                    )
                return x
            """
        )
    )
    assert made(source, two_paths(statement(source, "if x.any"))) == block(
        """
        def forward(self, x):
            if compiling():
                fast()
            else:
                if x.any():  # guard
                    # why

                    x = x + 1  # step

                else:
                    x = g(
                        x,
                        1,
                    )
            return x
        """
    )


def test_blank_lines_keep_the_white_space_they_have() -> None:
    source = from_text("if t:\n    a\n\n  \n\t\n    b\n")
    moved = made(source, two_paths(statement(source, "if t")))
    assert moved.endswith("    if t:\n        a\n\n  \n\t\n        b\n")


def test_lines_inside_strings_stay_where_they_are() -> None:
    source = from_text(
        'if t:\n    a = """\n  one\n    two\n"""\n    b = "x\\\n  y"\n    c = f"""{\n  a\n}"""\n'
        "    d = (\"p\"\n    \"q\")\n    e = rb'''\n r'''\n"
    )
    assert made(source, two_paths(statement(source, "if t"))) == (
        'if compiling():\n    fast()\nelse:\n    if t:\n        a = """\n  one\n    two\n"""\n        b = "x\\\n  y"\n'
        '        c = f"""{\n  a\n}"""\n        d = ("p"\n        "q")\n        e = rb\'\'\'\n r\'\'\'\n'
    )


def test_backslash_continuations_and_lines_left_of_the_block_move_along() -> None:
    source = from_text("def f():\n    if t:\n        a = 1 + \\\n  2\n# outside\n        b = [\n1,\n        ]\n")
    assert made(source, two_paths(statement(source, "if t"))).endswith(
        "        if t:\n            a = 1 + \\\n      2\n    # outside\n            b = [\n    1,\n            ]\n"
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("unit", ["    ", "  ", "\t"])
def test_our_text_takes_newline_and_indentation_of_the_file(newline: str, unit: str) -> None:
    def spelled(text: str) -> str:
        return text.replace("    ", unit).replace("\n", newline)

    source = from_text(spelled("class A:\n    def f(self):\n        if t:\n            a\n"))
    assert made(source, two_paths(statement(source, "if t"))) == spelled(
        "class A:\n    def f(self):\n        if compiling():\n            fast()\n        else:\n            if t:\n"
        "                a\n"
    )


def test_each_line_keeps_its_own_newline_in_a_file_that_mixes_them() -> None:
    source = from_text("if t:\r\n    a\n    b\r\nc\n\r\nd\r\n")
    assert made(source, two_paths(statement(source, "if t"))) == (
        "if compiling():\r\n    fast()\r\nelse:\r\n    if t:\r\n        a\n        b\r\nc\n\r\nd\r\n"
    )


def test_a_block_with_another_unit_than_the_file_is_moved_to_where_it_lands() -> None:
    source = from_text("if a:\n    b\nif c:\n    d\ndef f():\n\tif t:\n\t\tx\n")
    assert made(source, two_paths(statement(source, "if t"))).endswith(
        "def f():\n\tif compiling():\n\t    fast()\n\telse:\n\t    if t:\n\t    \tx\n"
    )


def test_a_body_moves_left_out_of_its_block() -> None:
    source = from_text('def f():\n    if t:\n        a = """\nx\n        """\n\n        b = g(\n   1)\n    c\n')
    guard = node_at(source, "if t", ast.If)
    first, last = span_of(guard.body[0]), span_of(guard.body[-1])
    body = Original(Span(first.start_line, first.start_column, last.end_line, last.end_column), -1)
    assert made(source, edit(guard, body)) == 'def f():\n    a = """\nx\n        """\n\n    b = g(\n1)\n    c\n'


def test_a_form_feed_stays_before_the_indentation() -> None:
    source = from_text("def f():\n    if t:\n\f        a\n\f\n        b\n")
    assert made(source, two_paths(statement(source, "if t"))).endswith(
        "        if t:\n\f            a\n\f\n            b\n"
    )


def test_an_expression_is_kept_word_for_word() -> None:
    source = from_text("x = f(a , # one\n      'b')\n")
    call = node_at(source, "f(a", ast.Call)
    assert made(source, edit(call, "g(", original(call), ")")) == "x = g(f(a , # one\n      'b'))\n"


def test_a_byte_order_mark_an_encoding_cookie_and_a_missing_final_newline_stay() -> None:
    marked = from_text(b"\xef\xbb\xbfif t:\r\n  a = '\xc3\xa9'")
    assert marked.encode(made(marked, two_paths(statement(marked, "if t")))) == (
        b"\xef\xbb\xbfif compiling():\r\n  fast()\r\nelse:\r\n  if t:\r\n    a = '\xc3\xa9'"
    )
    cookie = from_text(b"# coding: latin-1\nif '\xe9': a; b = '\xe9'  # \xe9\n")
    assert cookie.encode(made(cookie, two_paths(statement(cookie, "if ")))) == (
        b"# coding: latin-1\nif compiling():\n    fast()\nelse:\n    if '\xe9': a; b = '\xe9'  # \xe9\n"
    )


def test_columns_after_wide_characters_are_bytes() -> None:
    source = from_text("é = '😀'; x = f(a)  # ü\n")
    call = node_at(source, "f(a", ast.Call)
    assert made(source, edit(call, "g(", original(call), ")")) == "é = '😀'; x = g(f(a))  # ü\n"


def test_definitions_move_with_their_decorators_and_docstrings() -> None:
    source = from_text('if t:\n    @d(\n        1)\n    def f():\n        """One.\n\n        Two.\n        """\n')
    moved = made(source, two_paths(statement(source, "if t")))
    assert moved.endswith(
        '    if t:\n        @d(\n            1)\n        def f():\n            """One.\n\n        Two.\n        """\n'
    )
    assert ast.dump(ast.parse(moved).body[0].orelse[0]) == ast.dump(ast.parse(source.text).body[0])  # type: ignore[attr-defined]


def test_moving_there_and_back_gives_the_same_bytes() -> None:
    text = "def f():\n\tif t:\t# c\n# left\n\t\ta = (1,\n2)\n\n \n\t\tb\n"
    source = from_text(text)
    node = statement(source, "if t")
    there = source.with_text(made(source, edit(node, "if True:\n    ", original(node, 1))))
    outer = node_at(there, "if True", ast.If)
    assert span_of(outer) != span_of(outer.body[0])
    assert made(there, edit(outer, original(outer.body[0], -1))) == text
