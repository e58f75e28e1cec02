"""The currency between rules, rewriting and reports: frozen values that name a place, an edit, or a reason.

Positions are those of the standard `ast` module: lines count from 1, columns are UTF-8 byte offsets from 0.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple


class Safety(enum.Enum):
    """Whether a fix is applied without being asked for.

    `SAFE` keeps eager behaviour by proof or by construction, `UNSAFE` needs a human eye, `ADVICE` never edits.
    `OPAQUE` keeps eager behaviour like `SAFE`, and puts an operator into the graph that the compiler cannot look into.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    OPAQUE = "opaque"
    ADVICE = "advice"


class Span(NamedTuple):
    """A range of source text, end exclusive."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int

    def through(self, last: Span) -> Span:
        """From where this range begins to where a later one ends."""
        return self._replace(end_line=last.end_line, end_column=last.end_column)


class Original(NamedTuple):
    """The source text of `span`, word for word, moved `deeper` levels of the file's indentation to the right.

    Lines that begin inside a string literal are not moved.
    """

    span: Span
    deeper: int = 0


class CompilePath(str):
    """Text that begins a compile path, as a part of a replacement, with the conditions that its header joins by `and`.

    What is put before or behind it belongs to the path. A `negated` header guards the author's statement instead, which
    the compiler passes by where all of the conditions hold.
    """

    conditions: tuple[str, ...]
    negated: bool

    def __new__(cls, text: str, conditions: Sequence[str] = (), negated: bool = False) -> CompilePath:
        made = super().__new__(cls, text)
        made.conditions, made.negated = tuple(conditions), negated
        return made

    def __add__(self, text: str) -> CompilePath:
        return CompilePath(str.__add__(self, text), self.conditions, self.negated)

    def asking(self, further: str) -> CompilePath:
        """The same with a further condition behind the others, which are on one line."""
        last = self.conditions[-1]
        return CompilePath(self.replace(last, f"{last} and {further}", 1), [*self.conditions, further], self.negated)

    def __radd__(self, text: str) -> CompilePath:
        return CompilePath(str.__add__(text, self), self.conditions, self.negated)


class Replacement(NamedTuple):
    """`span` is replaced by `parts`, joined.

    A `str` part is our own text: newlines are `\\n`, indentation after a newline is four spaces a level and counts
    from the indentation of the line in which `span` starts. It is translated to the file's own newline and indentation.
    """

    span: Span
    parts: tuple[str | Original, ...]


class Helper(NamedTuple):
    """A module-level definition that an edit uses; placed once a file however many edits ask for it.

    `source` is dedented text with `\\n` newlines and four spaces a level, without blank lines around it. It is placed
    after the imports and after the last top-level statement that binds one of `after`, before the first use. Helpers
    that name each other get their numbers together, but for those that are `shared` by edits of all kinds. `since` is
    a function of torch that it calls and `torch_api.SINCE` lists, if that is newer than `torch.compiler.is_compiling`.
    """

    name: str
    source: str
    after: tuple[str, ...] = ()
    shared: bool = False
    since: str = ""


class EditForm(enum.Enum):
    """How an edit leaves eager mode alone.

    `BESIDE`: the author's statements stay, word for word, beside a compile path, which is proven for each edit.
    `ONE_PATH`: eager mode runs the rewritten code, which only the setting `one-path` and unsafe fixes ask for.
    """

    BESIDE = "beside"
    ONE_PATH = "one path"


class Edit(NamedTuple):
    """What a fix writes. `imports` are modules that must be bound by their own dotted name (`import torch`).

    `scriptable` says that TorchScript compiles the compile path as well: each name keeps the type that it has in the
    author's text, and nothing is written that it does not know. `since` names the newest function of torch that is
    written outside of helpers, as `torch_api.SINCE` lists it; it is empty where that is nothing of torch's. `whole`
    says that the compile path runs all of the function as one operator, so no graph reads or writes in it. `copies`
    says that each `clone()` of what it changes becomes an operator, too, which no gradient computes again. `repeats`
    says that it overwrites whole tensors with values that depend on other tensors only, so running it twice gives the
    same result. `recorded` is what the operator of a recorded run asks of what it is given: calls like those of the
    run, and no others. `raises` is False where nothing in the compile path can raise, so that no handler matters.
    `reaches` says that it mends what breaks the graph in the functions which its statement calls.
    """

    replacements: tuple[Replacement, ...]
    imports: tuple[str, ...] = ()
    helpers: tuple[Helper, ...] = ()
    form: EditForm = EditForm.BESIDE
    scriptable: bool = False
    since: str = "compiler.is_compiling"
    whole: bool = False
    copies: bool = False
    repeats: bool = False
    recorded: tuple[str, ...] = ()
    raises: bool = True
    reaches: bool = False

    @property
    def paths(self) -> tuple[CompilePath, ...]:
        """The beginnings of the compile paths that it writes."""
        return tuple(part for each in self.replacements for part in each.parts if isinstance(part, CompilePath))

    @property
    def needs(self) -> frozenset[str]:
        """The functions of torch that decide which torch the edit needs."""
        return frozenset(filter(None, (self.since, *(helper.since for helper in self.helpers))))

    @property
    def writes_path(self) -> bool:
        """True when the compiler no longer runs the text that is edited, but a compile path beside it."""
        return self.form is EditForm.BESIDE


class Finding(NamedTuple):
    """One break site: what was found, and either the edit that mends it or the condition that forbids one.

    `path` is relative to the project root, with forward slashes. `function` is the qualified name inside the module
    (`BartEncoderLayer.forward`, `outer.<locals>.inner` is written `outer.inner`). `cell` counts the cells of a notebook
    from 1; then `span` counts lines in that cell. `needs_torch` is the lowest torch, as (2, 6), that a fix waits for.
    """

    code: str
    slug: str
    path: str
    span: Span
    message: str
    safety: Safety
    function: str = ""
    edit: Edit | None = None
    declined: str | None = None
    cell: int = 0
    needs_torch: tuple[int, int] | None = None

    @property
    def place(self) -> str:
        """The path, and the cell of a notebook that the lines of `span` count in."""
        return f"{self.path}:cell {self.cell}" if self.cell else self.path

    @property
    def fixable(self) -> bool:
        """True when an edit exists, safe or not."""
        return self.edit is not None

    def is_applied(self, unsafe_fixes: bool, opaque: bool = False) -> bool:
        """Whether fixing writes the edit: a safe one, unsafe or opaque ones if asked for, one path if that was."""
        if self.edit is None or self.safety is Safety.ADVICE:
            return False
        if self.safety is Safety.OPAQUE:
            return opaque
        return self.safety is Safety.SAFE or unsafe_fixes or self.edit.form is EditForm.ONE_PATH


def why_left(finding: Finding) -> str:
    """Why a finding that is still there was not fixed."""
    if finding.declined:
        return finding.declined
    if finding.fixable and finding.safety is Safety.SAFE:
        return "its file could not be written"
    if finding.fixable and finding.safety is Safety.OPAQUE:
        return "an opaque operator: read it with `graphmend fix --opaque --diff`"
    if finding.fixable:
        return "an unsafe fix: read it with `graphmend fix --unsafe-fixes --diff`"
    return "advice: nothing is written for this site"


class Problem(NamedTuple):
    """Something that kept a file from being checked: exit code 2, one line on standard error.

    One that is `aside` is in a file that has nothing to do with torch; it is counted in the summary and costs no more.
    """

    path: str
    message: str
    line: int | None = None
    aside: bool = False

    @classmethod
    def internal(cls, path: str, error: Exception) -> Problem:
        """A mistake of graphmend itself in one file, which must not cost the others theirs."""
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        where = "" if frame is None else f" in {frame.tb_frame.f_globals.get('__name__')}, line {frame.tb_lineno}"
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        return cls(path, f"is skipped because of an internal error ({said}{where}); please report it with the file")

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.message}"
