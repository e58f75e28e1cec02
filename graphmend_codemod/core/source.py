"""One source file, as its author wrote it and as Python reads it: text, syntax tree, suppressions."""

from __future__ import annotations

import ast
import codecs
import os
import re
import stat
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.core.findings import Span

if TYPE_CHECKING:
    from tokenize import TokenInfo

_NEWLINE = re.compile(r"\r\n?|\n")
_TWO_LINES = re.compile(rb"[^\r\n]*(?:\r\n?|\n)?[^\r\n]*")
_DECLARED = re.compile(rb"coding[:=][ \t]*([-\w.]+)")
_UTF_8 = re.compile(rb"(?i)utf[-_]8")
_BOM = b"\xef\xbb\xbf"
# Patterns that few runs need are compiled where they are used: the commit hook would wait for each.
_BLOCK = (
    r"(?m)^([ \t]*)(?:(?:def|class|if|elif|else|for|while|with|try|except|finally|async|match|case)\b|\))"
    r"[^\r\n]*:[ \t]*(?:#[^\r\n]*)?(?:\r\n?|\n)\1([ \t]+)[^\s#]"
)
_BLOCKS_TO_LOOK_AT = 64
_NO_MEMORY = "cannot be read: out of memory"
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe is not waited for
SUPPRESSION_MARK = "graphmend:"
SUPPRESSION = r"#\s*graphmend:\s*(?:(skip-file)|ignore(?:\s*\[([^\]]{0,999})\])?)(?![\w-]|\s*[\[(:=]|\s*GM\d)"
# Text is read up to a size that no program has, and parsed up to one that takes some seconds.
MOST_READ = 16 * 2**20
MOST_PARSED = 4 * 2**20
MOST_CONFIGURED = 2 * 2**20  # of a file that settings or requirements are read from
SHORTEST_LIMIT, LONGEST_LIMIT = 79, 120  # of lines that are written
# Of Python's own encodings: these take time by the square of the length, or are for pieces of text alone.
_NOT_FOR_FILES = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})


class SourceError(Exception):
    """A file that cannot be read, understood or written. Its text is one line that does not repeat the path."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Suppressions(NamedTuple):
    """What a file's own comments ask for: skip it all, or ignore codes on logical lines.

    An entry of `ignored` is (first line, last line, code prefixes); an empty prefix covers every code.
    """

    skip_file: bool = False
    ignored: tuple[tuple[int, int, tuple[str, ...]], ...] = ()


class SourceFile:
    """A source file. `text` is decoded with every newline as it is in the file, and without the byte order mark.

    Lines and columns are those of `ast`: `\\n`, `\\r\\n` and `\\r` end a line, columns count UTF-8 bytes.
    """

    def __init__(self, path: str, raw: bytes, text: str, encoding: str) -> None:
        self.path = path
        self.raw = raw
        self.text = text
        self.encoding = encoding

    @classmethod
    def read(cls, path: Path, root: Path) -> SourceFile:
        """Read a file from disk; SourceError if that is not possible or it cannot be decoded."""
        return cls.from_bytes(read_bytes(path), path, root)

    @classmethod
    def below(cls, root: str, path: str) -> SourceFile:
        """The same for a path that is relative to `root` already, and normal. Both are text: it is faster."""
        return cls.decoded(read_bytes(os.path.join(root, path)), path)

    @classmethod
    def from_bytes(cls, raw: bytes, path: Path, root: Path) -> SourceFile:
        """The file as it would be if `raw` stood at `path`; SourceError if it cannot be decoded."""
        absolute, folder = os.path.abspath(path), os.path.join(os.path.abspath(root), "")
        inside = absolute.startswith(folder)
        relative = absolute[len(folder) :] if inside else os.path.relpath(absolute, folder)
        return cls.decoded(raw, relative.replace(os.sep, "/"))

    @classmethod
    def decoded(cls, raw: bytes, path: str) -> SourceFile:
        """The file at a path that is relative already; SourceError if it cannot be decoded."""
        encoding = _encoding(raw)
        try:
            text = raw.decode(encoding)
            lossless = encoding.startswith("utf-8") or text.encode(encoding, "replace") == raw
        except UnicodeDecodeError as error:
            line = len(_NEWLINE.findall(raw[: error.start].decode("latin-1"))) + 1
            raise SourceError(
                f"is not {encoding} text ({error.reason}); save it as UTF-8 or declare its encoding", line
            ) from error
        except MemoryError as error:
            raise SourceError(_NO_MEMORY) from error
        except Exception as error:  # whatever a codec raises, it is one line about this file
            raise SourceError(f"cannot be decoded as {encoding}: {error}; save it as UTF-8", 1) from error
        if not lossless:
            raise SourceError(f"its encoding {encoding} cannot be written back unchanged; save it as UTF-8", 1)
        return cls(path, raw, text, encoding)

    @cached_property
    def newline(self) -> str:
        """The newline that most lines end with; the first one in the file when counts are equal, `\\n` without any."""
        if "\r" not in self.text:
            return "\n"
        return Counter(end.group() for end in _NEWLINE.finditer(self.text)).most_common(1)[0][0]

    @cached_property
    def indent(self) -> str:
        """One level of this file's indentation, four spaces if it has none."""
        counts: Counter[str] = Counter()
        for number, block in enumerate(re.finditer(_BLOCK, self.text)):
            counts[block[2]] += 1
            if number == _BLOCKS_TO_LOOK_AT:
                break
        return counts.most_common(1)[0][0] if counts else "    "

    @cached_property
    def line_limit(self) -> int:
        """The longest line that the file itself has, within reason."""
        # What graphmend writes is not the author's style, and rules that run one by one see what others wrote.
        ours = ("is_compiling()", "once per compilation:")
        long = (line for line in self.lines if len(line) > SHORTEST_LIMIT and not any(each in line for each in ours))
        return min(max(map(len, long), default=SHORTEST_LIMIT), LONGEST_LIMIT)

    def is_too_long(self, width: int) -> bool:
        """True for a line longer than `line_limit`, which is looked for in the file only where that matters."""
        return width > SHORTEST_LIMIT and (width > LONGEST_LIMIT or width > self.line_limit)

    def parse(self) -> ast.Module:
        """The syntax tree, made anew at every call; SourceError if Python cannot parse the text or it is too large."""
        if len(self.raw) > MOST_PARSED:
            raise SourceError(f"is larger than {MOST_PARSED >> 20} MiB, which is not parsed; split it or exclude it")
        return parse_text(self.text, self.path)

    @cached_property
    def lines(self) -> Sequence[str]:
        """The lines without what ends them; the last one is empty where the file ends with a newline."""
        return self.text.split("\n") if "\r" not in self.text else _NEWLINE.split(self.text)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset into `text` at which each line begins."""
        if "\r" not in self.text:
            return (0, *accumulate(map((1).__add__, map(len, self.lines))))[:-1]
        return (0, *(end.end() for end in _NEWLINE.finditer(self.text)))

    @cached_property
    def _ascii(self) -> bool:
        return self.text.isascii()

    def offset(self, line: int, utf8_column: int) -> int:
        """The offset into `text` of an `ast` position. ValueError if the file has no such position."""
        starts = self.line_starts
        if not 0 < line <= len(starts) or utf8_column < 0:
            raise ValueError(f"line {line}, column {utf8_column} is not in the file")
        start = starts[line - 1]
        stop = starts[line] if line < len(starts) else len(self.text)
        column = utf8_column if self._ascii else len(self.text[start:stop].encode()[:utf8_column].decode())
        if start + column > stop:
            raise ValueError(f"line {line}, column {utf8_column} is not in the file")
        return start + column

    def line(self, number: int) -> str:
        """The text of a line without what ends it."""
        return self.lines[number - 1]

    def line_at(self, offset: int) -> int:
        """The number of the line that holds this offset into `text`."""
        return bisect_right(self.line_starts, offset)

    def segment(self, span: Span) -> str:
        """The text of a span. ValueError if it is not in the file."""
        start = self.offset(span.start_line, span.start_column)
        return self.text[start : self.offset(span.end_line, span.end_column)]

    def encode(self, text: str) -> bytes:
        """Bytes of a changed text, in this file's encoding and with its byte order mark."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise SourceError(f"the fixed text cannot be written as {self.encoding}; save it as UTF-8") from error

    def with_text(self, text: str) -> SourceFile:
        """The same file with another text. SourceError if its encoding cannot hold it."""
        return SourceFile(self.path, self.encode(text), text, self.encoding)

    def tokens(self) -> Iterator[TokenInfo]:
        """The tokens, columns in characters; SourceError where the text cannot be split into tokens."""
        import io
        import tokenize

        normalized = self.text if "\r" not in self.text else _NEWLINE.sub("\n", self.text)
        try:
            yield from tokenize.generate_tokens(io.StringIO(normalized).readline)
        except SyntaxError as error:
            raise SourceError(f"cannot be split into tokens: {error.msg}", error.lineno) from error
        except tokenize.TokenError as error:
            raise SourceError(f"cannot be split into tokens: {error.args[0]}", error.args[1][0]) from error

    @cached_property
    def suppressions(self) -> Suppressions:
        """What the file's comments ask for. SourceError if it has such comments and cannot be split into tokens."""
        if SUPPRESSION_MARK not in self.text:
            return Suppressions()
        ignored: list[tuple[int, int, tuple[str, ...]]] = []
        for first, last, comments in self.logical_lines():
            for comment in comments:
                for match in re.finditer(SUPPRESSION, comment.string):
                    if match[1]:
                        return Suppressions(skip_file=True)
                    codes = ("",) if match[2] is None else tuple(filter(None, re.split(r"[\s,]+", match[2])))
                    ignored.append((first, last, codes))
        return Suppressions(ignored=tuple(ignored))

    def logical_lines(self) -> Iterator[tuple[int, int, list[TokenInfo]]]:
        """First line, last line and comments of each logical line; a comment alone on its line is one of its own."""
        import tokenize

        first: int | None = None
        comments: list[TokenInfo] = []
        aside = {tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.NL}
        for token in self.tokens():
            if token.type == tokenize.COMMENT and first is None:
                yield token.start[0], token.start[0], [token]
            elif token.type == tokenize.COMMENT:
                comments.append(token)
            elif token.type == tokenize.NEWLINE:
                yield token.start[0] if first is None else first, token.start[0], comments
                first, comments = None, []
            elif first is None and token.type not in aside:
                first = token.start[0]

    def suppressed(self, span: Span, code: str) -> bool:
        """True if a comment asks to leave this finding out: any comment on the logical line where it starts."""
        found = self.suppressions
        return found.skip_file or any(
            first <= span.start_line <= last and code.startswith(codes) for first, last, codes in found.ignored
        )


def read_bytes(path: Path | str, most: int = MOST_READ, way_out: str = "; exclude it") -> bytes:
    """A file's content. SourceError for what is no regular file, has more than `most` bytes or cannot be read."""
    try:
        handle = os.open(path, _READ)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise SourceError("is not a regular file")
            if status.st_size > most:
                raise SourceError(f"is larger than {most >> 20} MiB, which is not read{way_out}")
            with open(handle, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(handle)
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise SourceError(_NO_MEMORY) from error


def _encoding(raw: bytes) -> str:
    """The encoding that PEP 263 gives to a file; SourceError for an unknown or contradictory one."""
    head = _TWO_LINES.match(raw).group()  # type: ignore[union-attr]  # it matches any bytes
    if b"coding" not in head or (head.isascii() and all(map(_UTF_8.fullmatch, _DECLARED.findall(head)))):
        return "utf-8-sig" if raw.startswith(_BOM) else "utf-8"
    import io
    import tokenize

    lines = io.BytesIO(head.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    try:
        encoding = tokenize.detect_encoding(lines.readline)[0]
        if codecs.lookup(encoding).name in _NOT_FOR_FILES:
            raise LookupError(f"{encoding} is not a text encoding; save it as UTF-8")
    except (SyntaxError, LookupError, ValueError) as error:
        raise SourceError(f"cannot be decoded: {error}", 1) from error
    return encoding


def with_known_statements(tree: ast.Module, text: str) -> ast.Module:
    """The tree of `text`, where `except*` is what `except` is to every analysis; nothing is ever written from there."""
    if "except*" in text or "except *" in text:
        for node in ast.walk(tree):
            if node.__class__.__name__ == "TryStar":  # Python 3.10 knows none
                node.__class__ = ast.Try
    return tree


def parse_text(text: str, path: str = "<text>") -> ast.Module:
    """The syntax tree of a text, without a word about its escapes; SourceError if Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return with_known_statements(ast.parse(text, path), text)
    except SyntaxError as error:
        hint = "; is it Python 2?" if "Missing parentheses in call to" in (error.msg or "") else ""
        raise SourceError(f"cannot be parsed: {error.msg}{hint}", error.lineno) from error
    except RecursionError as error:
        raise SourceError("cannot be parsed: its expressions are nested too deeply") from error
    except MemoryError as error:  # also Python's word for a parser that is too deep in something
        raise SourceError(
            "cannot be parsed: its expressions are nested too deeply, or there is no memory for it"
        ) from error
    except ValueError as error:
        raise SourceError(f"cannot be parsed: {error}") from error
