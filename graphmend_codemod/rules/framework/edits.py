"""The shapes of edits, and the answer that carries one.

A compile path stands beside the author's statement, which is kept word for word, or one path in its place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from graphmend_codemod.analysis.patterns import asks_for_none
from graphmend_codemod.analysis.scope import body_of, dotted, walk
from graphmend_codemod.core.findings import CompilePath, Edit, EditForm, Helper, Original, Replacement, Span
from graphmend_codemod.rules.framework.conditions import expression
from graphmend_codemod.rules.framework.reasons import NotProven, with_way_out
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site

Parts = Sequence[str | Original]
CONSTANT = Helper(
    "_constant_while_tracing",
    """\
def _constant_while_tracing(function):
    \"\"\"`torch.compiler.assume_constant_result`, which would import the compiler with this file.\"\"\"
    function._dynamo_marked_constant = True
    return function""",
    shared=True,
)
"""The decorator of helpers that torch.compile calls while it traces, and whose result it takes for a constant.

torch's own is the same but for `import torch._dynamo`: a second of CPU time for whoever imports the file, compiled or
not. Source: torch 2.13, `torch/compiler/__init__.py` and `torch/_dynamo/decorators.py`.
"""
_BEFORE = "# What either branch writes, before it is known which one is taken."


def judged(message: str, edit: Callable[[], Edit], way_out: str = "") -> Diagnostic:
    """The answer of a match: with what `edit` makes, or with the reason for which it raises `NotProven`.

    `way_out` says what to do by hand, where the reason does not.
    """
    try:
        return Diagnostic(message, edit=edit())
    except NotProven as reason:
        return Diagnostic(message, declined=with_way_out(str(reason), way_out))


def beside(site: Site, span: Span, parts: Parts, *, scriptable: bool = False) -> Edit:
    """The edit that writes `parts`, the author's text and a compile path or condition beside it, at one place."""
    return Edit((Replacement(span, tuple(parts)),), imports=site.imports, scriptable=scriptable)


def one_path(site: Site, span: Span, parts: Parts) -> Edit:
    """The edit after which eager mode runs what is written as well."""
    return Edit(
        (Replacement(span, tuple(parts)),), imports=site.imports, form=EditForm.ONE_PATH, scriptable=True, since=""
    )


def two_paths(
    site: Site,
    statements: ast.stmt | Sequence[ast.stmt],
    conditions: Sequence[str],
    lines: Sequence[str],
    *,
    imports: tuple[str, ...] | None = None,
    helpers: Sequence[Helper] = (),
    scriptable: bool = False,
) -> Edit:
    """The edit that puts one statement, or neighbouring ones, under the `else` of a compile path; see `path_beside`."""
    path = path_beside(site, statements, conditions, lines)
    imports = site.imports if imports is None else imports
    return Edit((path,), imports=imports, helpers=tuple(helpers), scriptable=scriptable)


def path_beside(
    site: Site, statements: ast.stmt | Sequence[ast.stmt], conditions: Sequence[str], lines: Sequence[str]
) -> Replacement:
    """`lines` where all conditions hold, else the author's statements, which may be those of another function.

    A header that is made already, such as that of `asks_compiler`, may stand for the conditions.
    """
    statements = [statements] if isinstance(statements, ast.stmt) else statements
    whole = site.span(statements[0]).through(site.span(statements[-1]))
    here = site.but(place=site.place._replace(statement=statements[0]))
    header = conditions if isinstance(conditions, CompilePath) else here.header("if", conditions)
    return Replacement(whole, (under(header, *lines) + "\nelse:\n    ", Original(whole, 1)))


def path_before_body(site: Site, comment: str, conditions: Sequence[str], result: str) -> Replacement:
    """The first statement of the function around the site, behind a compile path that returns `result`."""
    first = body_of(site.evaluator.scope.node)[0]
    header = site.reached(first, "the function").header("if", conditions)
    path = f"{comment}\n" + under(header, f"return {result}") + "\n"
    return Replacement(site.span(first), (path, site.original(first)))


def holding(site: Site, edit: Edit, nodes: Iterable[ast.expr]) -> Edit:
    """The edit, beside which no other one is made that takes nodes for what they are before it."""
    kept = (Replacement(site.span(each), (site.original(each),)) for each in nodes)
    return edit._replace(replacements=(*edit.replacements, *kept))


def before_if(site: Site, node: ast.stmt, path: Parts, *, scriptable: bool = False) -> Edit:
    """The edit that puts the header and the lines of `path` before an `if`, whose own text follows as `elif`."""
    return beside(site, site.span(node), (*path, "\nel", site.original(node)), scriptable=scriptable)


def under(header: CompilePath, *lines: str) -> CompilePath:
    """The header of a compile path and the lines below it."""
    return header + "".join(f"\n    {line}" for line in lines)


def asks_compiler(asked: str) -> CompilePath:
    """The header of a compile path that asks for nothing but the compiler, also in a loop of many rounds."""
    return CompilePath(f"if {asked}:", [asked])


def with_inner(edit: Edit, inner: Edit) -> Edit | None:
    """`edit` with what `inner` writes in the author's statement that it keeps behind a compile path.

    None where the header of that path asks nothing of what `inner` asks first, where `inner` lies elsewhere, or where
    it draws.
    """
    if len(edit.replacements) != 1 or len(inner.replacements) != 1:
        return None
    (span, parts), (place, written) = edit.replacements[0], inner.replacements[0]
    if not edit.paths or not inner.paths or not (_names(inner.paths[0]) & _names(edit.paths[0])):
        return None
    asked = [expression(each) for each in inner.paths[0].conditions]
    if any(asks_for_none(test) and isinstance(test.left, ast.Call) for test in asked):
        return None
    if place.start_line != span.start_line and any("\n" in part for part in written if isinstance(part, str)):
        return None
    for number, part in enumerate(parts):
        if isinstance(part, Original) and part.span[:2] <= place[:2] and place[2:] <= part.span[2:]:
            before = Original(part.span._replace(end_line=place.start_line, end_column=place.start_column), part.deeper)
            after = Original(part.span._replace(start_line=place.end_line, start_column=place.end_column), part.deeper)
            line = "\n" + "    " * part.deeper
            within = [
                Original(each.span, part.deeper) if isinstance(each, Original) else each.replace("\n", line)
                for each in written
            ]
            whole = (*parts[:number], before, *within, after, *parts[number + 1 :])
            return edit._replace(replacements=(Replacement(span, whole),))
    return None


_EVERYWHERE = frozenset({"torch.compiler.is_compiling", "isinstance", "torch.Tensor"})


def _names(path: CompilePath) -> set[str]:
    """Names and attributes in the conditions of a path, but for those that every header has."""
    parts = [part for each in path.conditions for part in walk(expression(each))]
    owners = {id(part.value) for part in parts if isinstance(part, ast.Attribute)}
    names = {dotted(part) for part in parts if isinstance(part, ast.expr) and id(part) not in owners}
    return {name for name in names if name is not None} - _EVERYWHERE


def line_of(site: Site, node: ast.stmt) -> str:
    """The statement with what is `written` in it, one level deeper; what it assigns is broken where it is too long."""
    line = site.text(node)
    if not isinstance(node, ast.Assign) or not site.is_too_long(site.indentation(1) + len(line)):
        return line
    targets, text = "".join(f"{site.text(target)} = " for target in node.targets), site.text(node.value)
    if isinstance(node.value, ast.Tuple):
        return f"{targets}(\n{''.join(f'        {site.text(each)},{chr(10)}' for each in node.value.elts)}    )"
    value = node.value if id(node.value) not in site.written else ast.parse(f"({text})", mode="eval").body
    inner = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
    if isinstance(value, ast.Call) and not (value.args or value.keywords) and isinstance(inner, ast.Call):
        return f"{targets}{site.broken(text, 1)}"  # `f(x).detach()`
    if not isinstance(value, ast.Call):
        broken = site.broken(text, 1) if site.is_too_long(site.indentation(2) + len(text)) else text
        return f"{targets}{broken}" if broken.startswith("(\n") else f"{targets}(\n        {text}\n    )"
    pieces: list[str] = []
    for each in (value.func, *_given(value)):
        own = value is node.value
        pieces.append(site.text(each) if own else ast.get_source_segment(f"({text})", each) or "")
    broken = site.call(f"{targets}{pieces[0]}(", pieces[1:], deeper=1)
    first, _, rest = broken.partition("\n")
    widest = max(site.indentation(1) + len(first), *map(len, rest.split("\n")))
    return broken if not site.is_too_long(widest) or 2 * widest < len(line) else line


def _given(call: ast.Call) -> list[ast.expr | ast.keyword]:
    """Arguments in order of the source."""
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return sorted(given, key=lambda each: (each.lineno, each.col_offset))


def in_front(site: Site, node: ast.stmt, conditions: Sequence[str], body: Parts) -> Edit:
    """The edit that puts a compile path before an `if`, whose own text follows as `elif`.

    `conditions` come behind `torch.compiler.is_compiling()`; `body` is the path, indented one level.
    """
    header = site.header("elif" if site.is_elif(node) else "if", [site.compiling, *conditions])
    return before_if(site, node, (header + "\n    ", *body), scriptable=True)


def computed_in_front(
    site: Site, node: ast.stmt, known: Sequence[str], lines: Sequence[str], facts: Sequence[str], body: Sequence[str]
) -> Edit:
    """The edit that computes `lines` under `known` conditions, and puts a compile path before an `if`.

    The path is taken where what was computed agrees with `facts`.
    """
    if not lines or site.is_elif(node):
        return in_front(site, node, [*known, *facts], ["\n    ".join([*lines, *body])])._replace(scriptable=False)
    first = under(site.header("if", [site.compiling, *known]), _BEFORE, *lines) + "\n"
    header = site.header("if", [site.compiling, *known, *facts])
    return before_if(site, node, (first, under(header, *body)))
