"""Whatever the file looks like: statements that move say the same, and all other bytes stay."""

from __future__ import annotations

import ast
import importlib.util
import random
import re
import sys
import tokenize
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphmend_codemod.core.findings import Edit
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.rewriting import apply
from graphmend_codemod.rewriting.concrete import verify_concrete
from tests.rewriting.tools import edit, from_text, original, span_of

_SIMPLE = [
    "a = 1",
    "b = f(a,\n  1)",
    "c = [  # first\n# left\n      2,\n\n    3]",
    'd = """x\n  y\n\t z"""',
    'e = "p\\\n q"',
    "g = 1 + \\\n     2",
    'h = f"{a}" "é" r"\\d"',
    "j = rb'''\n x''' b'x'",
    "pass",
    "return a",
    "del a, b",
    "assert a, '😀'",
    "i = f'''{a\n  }\n {{ ''' if a else ('s'\n's')",
    "import torch",
    "lambda: (yield)",
]
if sys.version_info >= (3, 12):  # quotes, comments and newlines of their own inside the braces
    _SIMPLE += ['k = f"{f"{\n  a}" + """\n x"""}"', "l = f'{a  # why\n   !r}'", "m = f'''{'''\n'''\n}\n'''"]
_HEADERS = [
    "if a:",
    "while a:  # why",
    "for a in (1,\n   2):",
    "with a as b, \\\n  c:",
    "def f(a,\n b=1):",
    "class A(\n    B\n):",
    "@d(1,\n 2)\ndef g(): # no space",
    "try:",
]
_CLAUSES = {"if a:": ["elif b:", "else:"], "while a:  # why": ["else:"], "try:": ["except E:", "finally :"]}
_BETWEEN = ["", "", "", "  ", "# {}", "\f", "    # deep", "# graphmend: ignore"]
_DEEPEST = 3


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A program with blocks, one-liners, comments, odd continuation lines, and one or several kinds of newline."""
    unit = draw(st.sampled_from(["    ", "  ", "\t", " "]))
    newlines = draw(st.sampled_from([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"], ["\n", "\r\n", "\r"]]))

    def block(depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(draw(st.integers(1, 3))):
            lines += statement(depth)
            if draw(st.booleans()):
                lines.append(draw(st.sampled_from(_BETWEEN)))
        return lines

    def suite(header: str, depth: int) -> list[str]:
        lines = "\n".join(unit * depth + part for part in re.split(r"\n(?=def)", header)).split("\n")
        if "#" in header or (depth < _DEEPEST and draw(st.booleans())):
            return [*lines, *block(depth + 1)]
        on_one_line = [text for text in _SIMPLE if "#" not in text]
        statements = "; ".join(draw(st.lists(st.sampled_from(on_one_line), min_size=1, max_size=2)))
        tail = draw(st.sampled_from(["", ";", " # tail", "; # tail"]))
        return [*lines[:-1], *f"{lines[-1]} {statements}{tail}".split("\n")]

    def statement(depth: int) -> list[str]:
        if depth > _DEEPEST or draw(st.integers(0, 2)):
            tail = draw(st.sampled_from(["", "", ";", "  # tail", " ; a", "; b # tail"]))
            return (unit * depth + draw(st.sampled_from(_SIMPLE)) + tail).split("\n")
        header = draw(st.sampled_from(_HEADERS))
        lines = suite(header, depth)
        clauses = _CLAUSES.get(header, [])
        for clause in clauses[: draw(st.integers(1 if header == "try:" else 0, len(clauses)))]:
            lines += suite(clause, depth)
        return lines

    text = "".join(line + draw(st.sampled_from(newlines)) for line in block(0))
    return text if draw(st.booleans()) else text.rstrip("\r\n")


def _statements(source: SourceFile) -> list[ast.stmt]:
    """All statements but decorated ones, whose own place leaves the decorators out."""
    nodes = [node for node in ast.walk(source.parse()) if isinstance(node, ast.stmt)]
    return [node for node in nodes if not getattr(node, "decorator_list", ())]


def _alone(source: SourceFile, node: ast.stmt) -> bool:
    """True if only white space stands before the statement in its line, and it is no `elif`."""
    start = source.offset(node.lineno, node.col_offset)
    before = source.text[source.line_starts[node.lineno - 1] : start]
    return not before.strip() and not source.text.startswith("elif", start)


def _wrapped(node: ast.stmt) -> Edit:
    return edit(node, "if True:\n    ", original(node, 1))


def _wrapper(there: SourceFile, node: ast.stmt) -> ast.If:
    """The `if` that stands where a statement stood."""
    for other in ast.walk(there.parse()):
        if isinstance(other, ast.If) and (other.lineno, other.col_offset) == (node.lineno, node.col_offset):
            return other
    raise AssertionError(f"no `if` at line {node.lineno}")


def _words(source: SourceFile) -> list[str]:
    """What is left of a text without its white space and semicolons."""
    layout = {tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    return [token.string for token in source.tokens() if token.type not in layout and token.string != ";"]


@settings(max_examples=150, deadline=None)
@given(programs(), st.randoms(use_true_random=False))
def test_a_moved_statement_says_the_same_and_everything_else_stays(text: str, rng: random.Random) -> None:
    source = from_text(text)
    nodes = _statements(source)
    assume(nodes)
    node = rng.choice(nodes)
    wrapped = _wrapped(node)
    applied = apply(source, [wrapped])
    assert applied.skipped == ()
    moved = source.with_text(applied.text)
    found = [other for other in ast.walk(moved.parse()) if isinstance(other, ast.If) and other.lineno >= node.lineno]
    assert any(ast.dump(other.body[0]) == ast.dump(node) for other in found)
    expected = _words(source)
    for word in _words(moved):
        if expected and word == expected[0]:
            del expected[0]
        else:
            assert word in ("if", "True", ":", "else")
    assert expected in ([], ["elif"])


@settings(max_examples=150, deadline=None)
@given(programs(), st.randoms(use_true_random=False))
def test_bytes_around_a_moved_statement_stay(text: str, rng: random.Random) -> None:
    source = from_text(text)
    nodes = [node for node in _statements(source) if _alone(source, node)]
    assume(nodes)
    node = rng.choice(nodes)
    moved = apply(source, [_wrapped(node)]).text
    span = span_of(node)
    start, end = source.offset(span.start_line, span.start_column), source.offset(span.end_line, span.end_column)
    assert moved[:start] == text[:start]
    rest_of_line_and_comments = re.compile(r"[^\r\n]*(?:\s|#[^\r\n]*)*").match(text, end)
    assert rest_of_line_and_comments
    assert moved.endswith(text[rest_of_line_and_comments.end() :])


@settings(max_examples=100, deadline=None)
@given(programs(), st.randoms(use_true_random=False))
def test_moving_there_and_back_gives_the_same_bytes(text: str, rng: random.Random) -> None:
    source = from_text(text)
    compound = [node for node in _statements(source) if hasattr(node, "body") and _alone(source, node)]
    assume(compound)
    node = rng.choice(compound)
    there = source.with_text(apply(source, [_wrapped(node)]).text)
    outer = _wrapper(there, node)
    assert apply(there, [edit(outer, original(outer.body[0], -1))]).text == text


@settings(max_examples=100, deadline=None)
@given(programs(), st.randoms(use_true_random=False))
def test_many_edits_at_once_are_made_or_wait(text: str, rng: random.Random) -> None:
    source = from_text(text)
    nodes = _statements(source)
    assume(nodes)
    rng.shuffle(nodes)
    wrapped = [_wrapped(node) for node in nodes]
    applied = apply(source, wrapped)
    assert applied.applied
    assert all("run `graphmend fix` again" in reason for _, reason in applied.skipped)
    assert len(applied.applied) + len(applied.skipped) == len(nodes)
    ours = [other for other in ast.walk(source.with_text(applied.text).parse()) if isinstance(other, ast.If)]
    theirs = [other for other in ast.walk(source.parse()) if isinstance(other, ast.If)]
    assert len(ours) == len(theirs) + len(applied.applied)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(programs(), st.randoms(use_true_random=False), st.booleans())
def test_moved_statements_pass_the_proof_over_concrete_trees(text: str, rng: random.Random, many: bool) -> None:
    source = from_text(text)
    nodes = _statements(source)
    assume(nodes)
    wrapped = [_wrapped(node) for node in (rng.sample(nodes, len(nodes)) if many else [rng.choice(nodes)])]
    applied = apply(source, wrapped)
    verify_concrete(source, source.with_text(applied.text), [wrapped[number] for number in applied.applied])


@pytest.mark.slow
def test_statements_of_real_models_say_the_same_after_they_moved() -> None:
    transformers = importlib.util.find_spec("transformers")  # found, not imported: only its text is needed
    if transformers is None or transformers.origin is None:
        pytest.skip("transformers is not installed")
    files = sorted(Path(transformers.origin).parent.glob("models/*/modeling_*.py"))
    rng = random.Random(20)
    moved = 0
    for file in rng.sample(files, 25):
        source = SourceFile.read(file, file.parent)
        if rng.random() < 0.3:
            source = source.with_text(source.text.replace("\n", "\r\n"))
        for node in rng.sample([node for node in _statements(source) if _alone(source, node)], 6):
            applied = apply(source, [_wrapped(node)])
            assert applied.skipped == (), (file, node.lineno)
            there = source.with_text(applied.text)
            outer = _wrapper(there, node)
            assert ast.dump(outer.body[0]) == ast.dump(node)
            back = apply(there, [edit(outer, original(outer.body[0], -1))])
            assert back.text == source.text, (file, node.lineno)
            moved += 1
    assert moved == 150
