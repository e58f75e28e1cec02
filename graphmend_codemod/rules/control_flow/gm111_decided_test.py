"""decided-test (GM111): a test on a tensor in front of a Python test that would decide alone.

`if (x < 0).any() and self.check:` reads the device even where `self.check` is False. `if torch.rand([]) < self.drop:`
skips a layer at random, and never does where `self.drop` is 0, as in most configurations: no draw is below 0. Dynamo
meets the tensor first, and ends the graph.

Under `torch.compile` what Python knows is asked first, in front of the test, which stays word for word. Dynamo folds
it while it traces, and where it decides nothing, the test breaks the graph as before. Numbers are drawn as often as in
eager mode: a draw inside the test stays, though a backend may leave out one that nothing reads (AOTAutograd does, and
draws other numbers after it, as Inductor does anyway). What is skipped may have no effects; an exception that it would
raise is not raised. A draw has to come from `torch.rand`, `random.random()` or `random.uniform(0, 1)`, through a name
that holds nothing else. Where another rule writes a compile path whose header asks for such a flag, the test stays
behind that path, and asks the flag first as well: with the flag on the other side, the path is not taken.

Where the bound is above 0 and the model trains, the draw does decide, and this rule writes nothing for it: no form in
one graph is what eager mode does. GM112 has one as an unsafe fix, and says in what it differs.

A test of a NumPy array, `remainder = np.array(x.shape[2:]) % self.patch > 0` and `if remainder.any():`, is decided by
the Python integers that the array is made of, where the statements right above compute it from them.
"""

from __future__ import annotations

import ast
import re

from graphmend_codemod.analysis import speculation
from graphmend_codemod.core.findings import CompilePath, Edit, Original, Span
from graphmend_codemod.rules.framework.edits import beside
from graphmend_codemod.rules.framework.rule import FLOAT_WARNING, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.deciding_operands import Decision, decision, only_tested

rule = Rule(
    __name__,
    __doc__,
    title="test Python values before tensors",
    contract=Contract(
        cost=Cost.NONE,
        compiled_exceptions="an exception that the skipped test itself would raise is not raised",
        compiled_logs=FLOAT_WARNING,
        compiled_state="kept; a backend may leave out a random number that nothing reads",
    ),
    yields=True,
)


@rule.on(ast.If, ast.While, ast.IfExp, ast.Assert, candidate="test")
def decided(site: Site, node: ast.If | ast.While | ast.IfExp | ast.Assert) -> Diagnostic | None:
    """`if x.any() and self.flag:`, `if torch.rand([]) < self.layerdrop:`."""
    return _verdict(site, node.test)


@rule.on(ast.Assign, words=("rand", "random", "uniform", "rand_like"), candidate="test")
def kept(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`skip = self.training and drawn < self.layerdrop`, where `skip` is only tested."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    if not isinstance(node.value, (ast.BoolOp, ast.Compare)) or not only_tested(site, node.targets[0].id):
        return None
    return _verdict(site, node.value)


def _verdict(site: Site, test: ast.expr) -> Diagnostic | None:
    found = decision(site, test)
    if found is None:
        return None
    message = f"data-dependent test that Python values alone may decide: `{speculation.short(test)}`"
    if isinstance(found, str):
        return Diagnostic(message, declined=found, node=test)
    return Diagnostic(message, edit=_edit(site, test, found), node=test)


def _edit(site: Site, test: ast.expr, found: Decision) -> Edit:
    first, word = _asked_first(site, found, " and "), "or" if found.outcome else "and"
    start, end = _place(site, found)
    splits = isinstance(found.part, _LOOSE) or (isinstance(found.part, ast.BoolOp) and found.part is test)
    original: tuple[str | Original, ...] = (Original(start.through(end)),)
    original = ("(", *original, ")") if splits else original
    own = _in_brackets(site, found.part)
    below = first
    if site.is_too_long(site.indentation(1) + len(first)):
        below = _asked_first(site, found, "\n        and ")
    if start.start_line != end.end_line:
        return _replaced(site, start, end, (first + f"\n{word} ", *original))
    if not site.is_too_long(len(site.source.line(start.start_line)) + len(first) + len("  or ()")):
        parts = (first + f" {word} ", *original)
        return _replaced(site, start, end, ("(", *parts, ")") if found.alone and not own else parts)
    if own and (found.alone or found.part is test):
        return _replaced(site, start, end, ("\n    " + below + f"\n    {word} ", *original, "\n"))
    if found.alone or found.part is test:
        return _replaced(site, start, end, ("(\n    " + below + f"\n    {word} ", *original, "\n)"))
    if found.around is test and (test.lineno == test.end_lineno or not _in_brackets(site, test)):
        return _on_lines_of_their_own(site, test, (start, end), below + f"\n    {word} ", word)
    broken = test.lineno != test.end_lineno and _in_brackets(site, test)
    between = _new_line(site, test, end.end_line) if broken else " "
    return _replaced(site, start, end, (first + f"{between}{word} ", *original))


def _new_line(site: Site, test: ast.expr, number: int) -> str:
    """A new line behind line `number` of a test of several lines, indented as the line that comes next there."""
    line = site.source.line(min(number + 1, test.end_lineno or number))
    return "\n" + " " * (len(line) - len(line.lstrip()) - site.indentation())


def _asked_first(site: Site, found: Decision, between: str) -> CompilePath:
    """What is asked in front of the part, on one line where its conditions are joined by a plain `and`."""
    asked = [site.compiling, *found.asked]
    brackets = ("(\n        ", "\n    )") if "\n" in between else ("(", ")")
    text = f"{'' if found.outcome else 'not '}{brackets[0]}{between.join(asked)}{brackets[1]}"
    return CompilePath(text, asked, negated=True)


def _on_lines_of_their_own(site: Site, test: ast.expr, part: tuple[Span, Span], first: str, word: str) -> Edit:
    """The operands before `part`, what is asked first, and the rest."""
    whole, (start, end) = site.span(test), part
    before = site.source.segment(whole._replace(end_line=start.start_line, end_column=start.start_column)).rstrip()
    head: tuple[str | Original, ...] = ()
    if before:
        kept = len(before.removesuffix(word).rstrip().encode())
        head = (
            Original(whole._replace(end_line=whole.start_line, end_column=whole.start_column + kept)),
            f"\n    {word} ",
        )
    own = Original(start.through(end))
    rest = Original(whole._replace(start_line=end.end_line, start_column=end.end_column))
    opening, closing = ("\n    ", "\n") if _in_brackets(site, test) else ("(\n    ", "\n)")
    return _replaced(site, whole, whole, (opening, *head, first, own, rest, closing))


_LOOSE = (ast.IfExp, ast.Lambda, ast.NamedExpr)


def _place(site: Site, found: Decision) -> tuple[Span, Span]:
    """Where the part begins and ends, with its brackets where it is an operand."""
    own = site.span(found.part)
    if found.around is None:
        return own, own
    operands = found.around.values
    number = next(position for position, each in enumerate(operands) if each is found.part)
    before, whole = site.span(operands[number - 1]), site.span(found.around)
    line, column = (before.end_line, before.end_column) if number else whole[:2]
    between = site.source.segment(Span(line, column, own.start_line, own.start_column))
    brackets = re.search(r"\(*$", between)
    opened = len(brackets[0]) if brackets else 0
    after = site.source.line(own.end_line).encode()[own.end_column :]
    if not after.startswith(b")" * opened):
        return own, own
    return own._replace(start_column=own.start_column - opened), own._replace(end_column=own.end_column + opened)


def _replaced(site: Site, start: Span, end: Span, parts: tuple[str | Original, ...]) -> Edit:
    span = start.through(end)
    return beside(site, span, parts, scriptable=True)


def _in_brackets(site: Site, node: ast.expr) -> bool:
    """True where the node stands in brackets of its own, or begins a line."""
    before = site.source.line(node.lineno).encode()[: node.col_offset].decode().rstrip()
    after = site.source.line(node.end_lineno or node.lineno).encode()[node.end_col_offset :].decode().lstrip()
    return not before or (before.endswith("(") and after[:1] in ("", ")"))
