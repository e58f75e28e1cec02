"""What a rule sees of the place it looks at: the node, its surroundings, and answers about them."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TypeVar

from graphmend_codemod.analysis import gradients, speculation
from graphmend_codemod.analysis.dataflow import Flow
from graphmend_codemod.analysis.gradients import roots
from graphmend_codemod.analysis.interpreter import Env, Evaluator
from graphmend_codemod.analysis.liveness import live_after
from graphmend_codemod.analysis.program_points import Place
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.values import Value
from graphmend_codemod.core.findings import Edit, Original, Replacement, Span
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.project.summary.records import ModuleSummary

T = TypeVar("T")
TORCH_NAMES = ("torch", "th", "T", "pt")
_LONGEST_LINE = 120
_BEFORE = "# What either branch writes, before it is known which one is taken."
_SHORTEST_LIMIT = 79
_LINE_BREAK = r"(?:(?<=[(\[{])[ \t]*()[\r\n]+\s*)|(?:,?[ \t]*[\r\n]+\s*()(?=[)\]}]))|(?:[ \t]*[\r\n]+\s*)"
_BINDS = r"\bNAME\s*:=|^[ \t]*case\s[^\n#]*\bNAME\b(?!\.)[^\n#]*:|\bglobals\(\)\[[\"']NAME[\"']\]"
_SCRIPTS = r"jit\.(?:(?:is_scripting|export)\b|script\()"


@lru_cache(maxsize=4)
def _longest_line(text: str) -> int:
    # What graphmend writes is not the author's style, and rules that run one by one see what others wrote.
    long = [line for line in text.splitlines() if len(line) > _SHORTEST_LIMIT]
    return max(
        [len(line) for line in long if "is_compiling()" not in line and "once per compilation:" not in line], default=0
    )


@lru_cache(maxsize=16)
def _is_bound_again(text: str, name: str) -> bool:
    return re.search(_BINDS.replace("NAME", name), text, re.MULTILINE) is not None


@lru_cache(maxsize=4)
def is_scripted(text: str) -> bool:
    """True for a file whose code is written for TorchScript as well, which compiles less Python than runs."""
    return re.search(_SCRIPTS, text) is not None


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


class Site:
    """A node in a function that Dynamo reaches. `place` is the statement that holds it."""

    def __init__(
        self,
        node: ast.AST,
        place: Place,
        flow: Flow,
        evaluator: Evaluator,
        source: SourceFile,
        summary: ModuleSummary,
        settings: Settings,
        function: str,
        written: Mapping[int, tuple[ast.expr, str]] | None = None,
    ) -> None:
        self.node = node
        self.place = place
        self.flow = flow
        self.evaluator = evaluator
        self.source = source
        self.summary = summary
        self.settings = settings
        self.function = function
        self.written: Mapping[int, tuple[ast.expr, str]] = written or {}

    def but(
        self,
        *,
        node: ast.AST | None = None,
        place: Place | None = None,
        written: Mapping[int, tuple[ast.expr, str]] | None = None,
    ) -> Site:
        """The same site but for what is given."""
        return Site(
            self.node if node is None else node,
            self.place if place is None else place,
            self.flow,
            self.evaluator,
            self.source,
            self.summary,
            self.settings,
            self.function,
            self.written if written is None else written,
        )

    def remembered(self, question: str, node: ast.AST, answer: Callable[[], T], *, anywhere: bool = False) -> T:
        """`answer()`, worked out once for this question about this node where names hold what they hold here.

        With `anywhere`, the answer does not depend on what names hold.
        """
        key = (question, id(node), 0 if anywhere else id(self.place.env))
        known = self.flow.answers.get(key)
        if known is None:
            known = self.flow.answers[key] = (answer(), self.place.env)
        found: T = known[0]
        return found

    # questions

    def value(self, node: ast.expr) -> Value:
        """What `node` is, before the statement runs."""
        return self.evaluator.value(node, self.place.env)

    def resolve(self, node: ast.expr) -> str | None:
        """The qualified name of what `node` spells."""
        return self.evaluator.resolve(node, self.place.env)

    def resolve_global(self, node: ast.expr) -> str | None:
        """The qualified name of what `node` spells at the top level of the module."""
        name = dotted(node)
        return self.evaluator.scope.resolve_global(name) if name is not None else None

    def judge(self, node: ast.expr) -> speculation.Verdict:
        """Whether `node` may be evaluated although eager would not."""
        return speculation.judge(self.evaluator, node, self.place.env).unconditional

    def live_after(self, name: str) -> bool:
        """True when the value `name` has after the statement may be read."""
        return live_after(self.place, name)

    def sole_owner(self, name: str) -> bool:
        """True when nothing but the local `name` refers to its tensor or its storage."""
        value = self.place.env.get(name)
        if value is None or not value.is_tensor or not self.is_fresh(value) or value.token in self.place.leaked:
            return False
        return all(other.token != value.token for key, other in self.place.env.items() if key != name)

    def is_fresh(self, value: Value) -> bool:
        """True when no other object shared the tensor's storage when the value was made."""
        if value.fresh:
            self.flow.demand_leaks()
        return value.fresh

    def roots(self, node: ast.expr, env: Env) -> frozenset[str]:
        """Names of the tensors, attributes and calls that a gradient of `node` may reach."""
        self.flow.demand_leaks()
        return roots(self.evaluator, node, env)

    def roots_of(self, value: Value) -> frozenset[str]:
        """The same for a tensor that was worked out already."""
        self.flow.demand_leaks()
        if value.roots is not None:
            return value.roots
        return frozenset({value.token} if value.grad and value.token else ())

    def is_bound(self, name: str) -> bool:
        """True when the local `name` certainly has a value."""
        value = self.place.env.get(name)
        return value is not None and (value.is_tensor or value.is_python or value.optional)

    @cached_property
    def torch(self) -> str | None:
        """How this module spells `torch`; None when its name is taken by something else."""
        scope = self.evaluator.scope
        for name in TORCH_NAMES:
            if not scope.is_local(name) and scope.resolve_global(name) == "torch" and self.stays(name):
                return name
            value = self.place.env.get(name)
            # A name of a function around this one may be bound again before this one is called.
            if name in scope.locals and value is not None and value.callee == "torch":
                return name
        free = not scope.is_local("torch") and scope.resolve_global("torch") is None
        return "torch" if free else None

    def stays(self, name: str) -> bool:
        """True for a name of the module that nothing deletes or binds again, but to None where torch is missing."""
        bindings = [binding for binding in self.summary.bindings if binding.name == name]
        others = [each for each in bindings if each.kind != "import"]
        written = any(each.name == name and not each.receiver for each in self.summary.writes)
        if written or _is_bound_again(self.source.text, name):
            return False
        if not others:
            return True
        without = all(each.value is not None and each.value.text == "None" for each in others)
        return without and all(binding.conditional for binding in bindings)

    @cached_property
    def torch_at_import(self) -> bool:
        """True when `torch` is bound at the top level whatever happens, so that a decorator may use it."""
        name = self.torch
        if name is None or self.evaluator.scope.is_local(name):
            return False
        bindings = [binding for binding in self.summary.bindings if binding.name == name]
        return bool(self.imports) or any(not binding.conditional for binding in bindings)

    @property
    def imports(self) -> tuple[str, ...]:
        """Modules that an edit has to import for `self.torch` to be bound."""
        scope = self.evaluator.scope
        bound = scope.is_local("torch") or scope.resolve_global("torch") is not None
        return () if self.torch != "torch" or bound else ("torch",)

    def in_front(self, node: ast.stmt, conditions: Sequence[str], body: Sequence[str | Original]) -> Edit:
        """The edit that puts a compile path before an `if`, whose own text follows as `elif`.

        `conditions` come behind `torch.compiler.is_compiling()`; `body` is the path, indented one level.
        """
        is_elif = self.is_elif(node)
        header = self.header("elif" if is_elif else "if", [self.compiling, *conditions]) + "\n    "
        parts = (header, *body, "\nel", self.original(node))
        return Edit((Replacement(self.span(node), parts),), imports=self.imports)

    def computed_in_front(
        self, node: ast.stmt, known: Sequence[str], lines: Sequence[str], facts: Sequence[str], body: Sequence[str]
    ) -> Edit:
        """The edit that computes `lines` under `known` conditions, and puts a compile path before an `if`.

        The path is taken where what was computed agrees with `facts`.
        """
        if not lines or self.is_elif(node):
            return self.in_front(node, [*known, *facts], ["\n    ".join([*lines, *body])])
        first = "\n    ".join([self.header("if", [self.compiling, *known]), _BEFORE, *lines])
        header = self.header("if", [self.compiling, *known, *facts]) + "\n    "
        parts = (f"{first}\n{header}", "\n    ".join(body), "\nel", self.original(node))
        return Edit((Replacement(self.span(node), parts),), imports=self.imports)

    def is_elif(self, node: ast.stmt) -> bool:
        """True for an `if` statement that is spelled `elif`."""
        start = self.span(node)
        return (
            self.source.segment(start._replace(end_line=start.start_line, end_column=start.start_column + 4)) == "elif"
        )

    @property
    def compiling(self) -> str:
        """The expression that is true while torch.compile traces."""
        return f"{self.torch}.compiler.is_compiling()"

    @cached_property
    def scripted(self) -> bool:
        """True where TorchScript compiles the function as well: its file says so, or another file of the project."""
        if is_scripted(self.source.text):
            return True
        scope = self.evaluator.scope
        return scope.index.is_scripted(self.summary.path, self.function, scope.node.lineno)

    @cached_property
    def no_grad(self) -> bool:
        """True when the statement certainly runs without gradients."""
        if self.sets_gradient_mode:
            return False
        contexts = [
            item.context_expr
            for parent in reversed(self.place.parents)
            if isinstance(parent, (ast.With, ast.AsyncWith))
            for item in reversed(parent.items)
        ]
        return gradients.certainly_off([*contexts, *reversed(self.evaluator.scope.node.decorator_list)], self.resolve)

    @property
    def sets_gradient_mode(self) -> bool:
        """True where a statement of the file may turn gradients on or off: only a condition knows what holds."""
        return gradients.set_by_statement(self.source.text)

    def keeps_graph(self, kept: Iterable[ast.expr]) -> list[str]:
        """Conditions under which no tensor among these loses its graph to a select that runs without gradients."""
        inside = any(isinstance(parent, (ast.With, ast.AsyncWith)) for parent in self.place.parents)
        inside = inside or self.sets_gradient_mode
        if not inside and not self.no_grad:
            return []
        values = {node.id: self.place.env.get(node.id) for node in kept if isinstance(node, ast.Name)}
        names = sorted(name for name, value in values.items() if value is not None and value.is_tensor and value.grad)
        if self.no_grad:
            return [f"not {name}.requires_grad" for name in names]
        return [f"({self.torch}.is_grad_enabled() or not {name}.requires_grad)" for name in names]

    def free_name(self, *wishes: str) -> str:
        """The first of `wishes`, numbered if need be, that means nothing in this function or module."""
        scope = self.evaluator.scope
        for number in range(1, 100):
            for wish in wishes:
                name = wish if number == 1 else f"{wish}_{number}"
                if not scope.is_local(name) and scope.resolve_global(name) is None:
                    return name
        raise AssertionError("a function binds a hundred names of one stem")

    def at(self, statement: ast.stmt) -> Site | None:
        """The same questions asked at another statement of the function; None where Dynamo does not get to."""
        place = self.flow.places.get(id(statement))
        return None if place is None else self.but(node=statement, place=place)

    def with_env(self, env: Env) -> Site:
        """The same site if names held what `env` says."""
        return self.but(place=self.place._replace(env=env))

    def following(self) -> list[ast.stmt]:
        """The statements after this one in its block."""
        body, position = self.place.blocks[-1]
        return list(body[position + 1 :])

    # text

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
        return min(max(_longest_line(self.source.text), _SHORTEST_LIMIT), _LONGEST_LINE)

    def is_too_long(self, width: int) -> bool:
        """True for a line longer than `line_limit`, which is looked for in the file only where that matters."""
        return width > _SHORTEST_LIMIT and (width > _LONGEST_LINE or width > self.line_limit)

    def indentation(self, deeper: int = 0) -> int:
        """Columns before a statement `deeper` levels below this one."""
        return self.place.statement.col_offset + 4 * deeper

    def header(self, word: str, conditions: Sequence[str]) -> str:
        """`word` and the conditions, one a line where they are too long for one; ends with the colon."""
        line = f"{word} {' and '.join(conditions)}:"
        if len(conditions) == 1 or not self.is_too_long(self.indentation() + len(line)):
            return line
        lines = [f"    {'and ' if number else ''}{each}" for number, each in enumerate(conditions)]
        return "\n".join([f"{word} (", *lines, "):"])

    def negated(self, conditions: Sequence[str]) -> str:
        """`not (...)` as a condition of a header, one a line where they are too long for one."""
        line = f"not ({' and '.join(conditions)})"
        if not self.is_too_long(self.indentation(1) + len(f"and {line}")):
            return line
        inside = [f"{'and ' if number else ''}{each}" for number, each in enumerate(conditions)]
        indented = "".join(f"\n        {each}".replace("\n    )", "\n        )") for each in inside)
        return f"not ({indented}\n    )"

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
        if fits or len(arguments) == 1:
            return f"{before}\n{inner}{together}\n{'    ' * deeper}{after}"
        lines = "".join(f"{inner}{argument},\n" for argument in arguments)
        return f"{before}\n{lines}{'    ' * deeper}{after}"
