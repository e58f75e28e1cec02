"""The source text around a site, and how what is written there is laid out."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from graphmend_codemod.analysis.program_points import ProgramPoint
from graphmend_codemod.core.findings import CompilePath, Original, Span
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.rules.framework.conditions import conjuncts, once

_LINE_BREAK = r"(?:(?<=[(\[{])[ \t]*()[\r\n]+\s*)|(?:,?[ \t]*[\r\n]+\s*()(?=[)\]}]))|(?:[ \t]*[\r\n]+\s*)"


@lru_cache(maxsize=4)
def _folded(segment: str, node: ast.AST) -> str | None:
    """An expression with string literals on one line, spelled as it is; None where that does not work."""
    if not isinstance(node, ast.expr) or isinstance(node, ast.Starred):
        return None
    folded = re.sub(_LINE_BREAK, lambda found: " " if found[1] is None and found[2] is None else "", segment)
    try:
        same = ast.dump(ast.parse(f"({folded})", mode="eval").body) == ast.dump(node)
    except SyntaxError:
        return None
    return folded if same and "\n" not in folded else None


class SiteText:
    """The text of a statement, and the lines that replace it. What is `written` goes in the place of nodes, by id."""

    def __init__(self, place: ProgramPoint, source: SourceFile, written: Mapping[int, tuple[ast.expr, str]]) -> None:
        self.place = place
        self.source = source
        self.written = written

    def is_elif(self, node: ast.stmt) -> bool:
        """True for an `if` statement that is spelled `elif`."""
        start = self.span(node)
        return (
            self.source.segment(start._replace(end_line=start.start_line, end_column=start.start_column + 4)) == "elif"
        )

    def span(self, node: ast.AST) -> Span:
        """The place of a node in the source."""
        return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def original(self, node: ast.AST, deeper: int = 0) -> Original:
        """The node's own source text as a part of a replacement."""
        return Original(self.span(node), deeper)

    def text(self, node: ast.AST) -> str:
        """The node's source text on one line, as its author spelled it where that is possible."""
        segment = self._exchanged(node) if self.written else self.source.segment(self.span(node))
        if "\n" not in segment and "\r" not in segment:
            return segment
        if isinstance(node, ast.keyword):
            return f"{node.arg}={self.text(node.value)}" if node.arg is not None else f"**{self.text(node.value)}"
        if segment != self.source.segment(self.span(node)):
            return ast.unparse(ast.parse(segment if isinstance(node, ast.stmt) else f"({segment})"))
        if "#" in segment or '"' in segment or "'" in segment or "\\" in segment:
            return _folded(segment, node) or ast.unparse(node)
        folded = re.sub(r"\s*[\r\n]+\s*", " ", segment)
        return re.sub(r",?\s+([)\]}])", r"\1", re.sub(r"([(\[{])\s+", r"\1", folded))

    def _exchanged(self, node: ast.AST) -> str:
        """The node's source text with what is `written` in the place of parts of it."""
        source, whole = self.source, self.span(node)
        start = source.offset(whole.start_line, whole.start_column)
        end = source.offset(whole.end_line, whole.end_column)
        found = []
        for part, text in self.written.values():
            span = self.span(part)
            first, last = (
                source.offset(span.start_line, span.start_column),
                source.offset(span.end_line, span.end_column),
            )
            if start <= first and last <= end:
                found.append((first, -last, text))
        pieces, at = [], start
        for first, last, text in sorted(found):
            if first >= at:
                pieces += [source.text[at:first], text]
                at = -last
        return "".join([*pieces, source.text[at:end]])

    def comments(self, node: ast.AST, kept: tuple[ast.AST, ...] = ()) -> list[str]:
        """Comments on the lines of `node` that stand outside the `kept` nodes, in order."""
        found = []
        first = self.source.segment(self.span(node))
        if "#" not in first:
            return []
        reader = io.StringIO(first).readline
        offset = node.lineno - 1  # type: ignore[attr-defined]
        import tokenize  # a commit hook waits for it

        with contextlib.suppress(tokenize.TokenError, IndentationError):
            for token in tokenize.generate_tokens(reader):
                line = token.start[0] + offset
                inside = any(part.lineno <= line < part.end_lineno for part in kept)  # type: ignore[attr-defined]
                if token.type == tokenize.COMMENT and not inside:
                    found.append(token.string)
        return found

    def operand(self, node: ast.expr) -> str:
        """The node's text, in parentheses where it would bind weaker than `|` and `&` around it."""
        text = self.text(node)
        tight = isinstance(node, (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant))
        return text if tight else f"({text})"

    def operand_of_and(self, node: ast.expr) -> str:
        """The node's text, in parentheses where `and` would split it."""
        text = self.text(node)
        loose = isinstance(node, (ast.IfExp, ast.Lambda, ast.NamedExpr))
        return f"({text})" if loose or (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)) else text

    @property
    def line_limit(self) -> int:
        """The longest line that the file itself has, within reason."""
        return self.source.line_limit

    def is_too_long(self, width: int) -> bool:
        """True for a line longer than `line_limit`, which is looked for in the file only where that matters."""
        return self.source.is_too_long(width)

    def indentation(self, deeper: int = 0) -> int:
        """Columns before a statement `deeper` levels below this one."""
        return self.place.statement.col_offset + 4 * deeper

    def header(self, word: str, conditions: Sequence[str], *, negated: bool = False) -> CompilePath:
        """`word` and the conditions, one a line where they are too long for one; ends with the colon.

        The header asks that not all of them hold where it is `negated`. What stands there twice is asked once.
        """
        conditions = [*once(conditions)]
        return CompilePath(self._header(word, conditions, negated), conditions, negated)

    def _header(self, word: str, conditions: list[str], negated: bool) -> str:
        joined = " and ".join(conditions)
        line = f"{word} not ({joined}):" if negated else f"{word} {joined}:"
        if (len(conditions) == 1 and not negated) or not self.is_too_long(self.indentation() + len(line)):
            return line
        long = [self.is_too_long(self.indentation(1) + len(f"and {each}")) for each in conditions]
        apart = [
            part for each, cut in zip(conditions, long, strict=True) for part in (conjuncts(each) if cut else [each])
        ]
        lines = [f"    {'and ' if number else ''}{each}" for number, each in enumerate(apart)]
        return "\n".join([f"{word} not (" if negated else f"{word} (", *lines, "):"])

    def call(self, before: str, arguments: list[str], *, deeper: int = 0, after: str = ")") -> str:
        """`before` + arguments + `after`, broken the way black breaks a call where one line would be too long.

        `before` ends with the opening bracket. `deeper` is the depth of the line, counted from this statement.
        """
        line = f"{before}{', '.join(arguments)}{after}"
        if not self.is_too_long(self.indentation(deeper) + len(line)):
            return line
        inner = "    " * (deeper + 1)
        together = ", ".join(arguments)
        fits = "\n" not in together and not self.is_too_long(self.indentation(deeper + 1) + len(together))
        if fits or (len(arguments) == 1 and "\n" in together):
            return f"{before}\n{inner}{together}\n{'    ' * deeper}{after}"
        lines = "".join(f"{inner}{self.broken(argument, deeper + 1, bare=True)},\n" for argument in arguments)
        if len(arguments) == 1:
            lines = f"{inner}{self.broken(together, deeper + 1, bare=True)}\n"
        return f"{before}\n{lines}{'    ' * deeper}{after}"

    def broken_line(self, text: str, deeper: int) -> str:
        """A simple statement on one line, whose value is broken where the line would be too long."""
        if not self.is_too_long(self.indentation(deeper) + len(text)) or not text.isascii():
            return text
        try:
            node = ast.parse(text).body[0]
        except SyntaxError:  # the header of a compound statement
            return text
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            target = node.targets[-1] if isinstance(node, ast.Assign) else node.target
            at = text.index("=", target.end_col_offset) + 1
        elif isinstance(node, ast.Expr):
            return self.broken(text, deeper)
        else:
            return text
        return f"{text[:at]} {self.broken(text[at:].strip(), deeper)}"

    def broken(self, text: str, deeper: int, *, bare: bool = False) -> str:
        """An expression on one line, broken at its operator or in its call where the line would be too long.

        Brackets are put around an operator but where it is `bare`, since there are some around it already.
        """
        if "\n" in text or not self.is_too_long(self.indentation(deeper) + len(text) + 1):
            return text
        name, sign, value = text.partition("=")
        if sign and name.isidentifier() and not value.startswith("="):  # a keyword of a call
            return f"{name}={self.broken(value, deeper)}"
        if text.startswith("*"):
            return text
        node = ast.parse(text, mode="eval").body
        if not text.isascii() or isinstance(node, ast.GeneratorExp):
            return text
        if node.col_offset:  # in brackets of its own
            inside = self.broken(text[node.col_offset : node.end_col_offset], deeper)
            return inside if "\n" in inside else text
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.BinOp):
            at = node.operand.col_offset
            sign = text[:at].rstrip("( ")
            return f"{sign}{self.broken(text[len(sign) :], deeper)}" if len(sign) == 1 else text
        if isinstance(node, ast.BinOp):
            return self._broken_operator(text, node, deeper, bare=bare)
        if isinstance(node, ast.IfExp):
            return _conditional(text, node, deeper, bare=bare)
        if isinstance(node, ast.Call) and not (node.args or node.keywords) and isinstance(node.func, ast.Attribute):
            end = node.func.value.end_col_offset  # `f(x).flatten()`
            return f"{self.broken(text[:end], deeper)}{text[end:]}" if isinstance(node.func.value, ast.Call) else text
        plain = isinstance(node, ast.Call) and (node.args or node.keywords) and text.endswith(")")
        if not plain or not isinstance(node, ast.Call):
            return text
        given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        given.sort(key=lambda each: each.col_offset)
        opening = text.index("(", node.func.end_col_offset or 0) + 1
        arguments = [text[each.col_offset : each.end_col_offset] for each in given]
        if text[opening : given[0].col_offset].strip() or "(" in text[given[-1].end_col_offset : -1]:
            return text  # brackets of its own around an argument
        return self.call(text[:opening], arguments, deeper=deeper)

    def _broken_operator(self, text: str, node: ast.BinOp, deeper: int, *, bare: bool) -> str:
        """See `broken`: each operand on a line of its own, and all of a sum at one depth."""
        inner, outer = "    " * (deeper + 1), "    " * deeper
        between = text[node.left.end_col_offset : node.right.col_offset]
        sign = between.strip(" ()")
        cut = (node.left.end_col_offset or 0) + between.index(sign)
        left, right = text[:cut].rstrip(), text[cut + len(sign) :].lstrip()
        sums = (ast.Add, ast.Sub)
        chain = isinstance(node.op, sums) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, sums)
        if bare:
            return f"{self.broken(left, deeper, bare=chain)}\n{outer}{sign} {self.broken(right, deeper)}"
        parts = self.broken(left, deeper + 1, bare=chain), self.broken(right, deeper + 1)
        return f"(\n{inner}{parts[0]}\n{inner}{sign} {parts[1]}\n{outer})"


def tuple_of(parts: Iterable[str]) -> str:
    """The text of a tuple."""
    found = [*parts]
    return f"({', '.join(found)}{',' if len(found) == 1 else ''})"


def tuple_of_words(words: Iterable[str]) -> str:
    """The text of a tuple of strings."""
    return tuple_of(f'"{word}"' for word in words)


def _conditional(text: str, node: ast.IfExp, deeper: int, *, bare: bool) -> str:
    """`a if test else b`, each part on a line of its own; unchanged where a part has parentheses around it."""
    ends = [0, node.body.end_col_offset or 0, node.test.end_col_offset or 0, node.orelse.end_col_offset or 0]
    starts = [node.body.col_offset, node.test.col_offset, node.orelse.col_offset, len(text)]
    between = [text[end:start].strip() for end, start in zip(ends, starts, strict=True)]
    if between != ["", "if", "else", ""]:
        return text
    inner, outer = "    " * (deeper + (not bare)), "    " * deeper
    body, test, orelse = (text[start:end] for start, end in zip(starts[:3], ends[1:], strict=True))
    lines = f"{body}\n{inner}if {test}\n{inner}else {orelse}"
    return lines if bare else f"(\n{inner}{lines}\n{outer})"
