"""Guards that keep log calls out of compiled code: one for consecutive calls, spelled as the file spells it.

`if debug: print(x)` becomes `if debug and not torch.compiler.is_compiling(): print(x)` where the `if` holds nothing but
log calls; elsewhere they are indented under an `if not torch.compiler.is_compiling():` of their own. A file that
imports a predicate of this meaning (`from .utils import is_torchdynamo_compiling`) keeps using it; one that does not
import torch gets a function that asks for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_literal, last_name
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.torch_api import COMPILING_PREDICATES, PREDICATES_ELSEWHERE, PYTHON_ATTRIBUTES
from graphmend_codemod.core.findings import Edit, Helper, Original, Replacement, Span
from graphmend_codemod.core.settings import selects
from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.logging.argument_effects import effect_in, effect_of
from graphmend_codemod.rules.proofs.logging.log_calls import (
    LogCall,
    find_log_call,
    judge_arguments,
    leaves,
    why_it_is_read,
)

_WARNINGS = frozenset({"warn", "warning", "warning_once", "warning_advice", "error", "error_once", "critical"})
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_LOOSE = (ast.IfExp, ast.Lambda, ast.NamedExpr)


def why_not(site: Site, call: LogCall) -> str | None:
    """Why a log call cannot be left out of compiled code; None where it can."""
    if predicate(site) is None:
        return name_taken()
    reader = why_it_is_read(site, call)
    if reader is not None:
        return reader
    raised = _raised_after(site)
    if raised is not None:
        return raised
    if site.place.in_try and (unsure := _may_raise(site, call)) is not None:
        return f"`{unsure}` may raise inside `try`, and its exception may be caught"
    for parent in site.place.parents:
        above = site.at(parent) if isinstance(parent, ast.If) else None
        if above is not None and isinstance(parent, ast.If) and above.value(parent.test).compiling is True:
            return "it runs only under torch.compile, so a guard would drop it everywhere; delete it or move it"
    return None


def _raised_after(site: Site) -> str | None:
    """Why nothing is won where a `raise` follows in a branch that a tensor decides; None elsewhere."""
    body, position = site.place.blocks[-1]
    parent = site.place.parents[-1] if site.place.parents else None
    above = site.at(parent) if isinstance(parent, ast.If) else None
    if above is None or not isinstance(parent, ast.If) or not reads_tensor(above, parent.test):
        return None
    follows = any(isinstance(each, ast.Raise) for each in body[position:])
    return f"`{speculation.short(parent.test)}` and the `raise` after it break the graph too" if follows else None


def _may_raise(site: Site, call: LogCall) -> str | None:
    """The part of a call's arguments that may raise, or the name of the call where the filters make errors of it."""
    if call.what.endswith("warn") and any(map(_makes_errors, _filters(site))):
        return call.what
    for leaf in leaves(call.call):
        asked = leaf.value if isinstance(leaf, ast.Subscript) else leaf
        shown = isinstance(asked, ast.Attribute) and asked.attr in PYTHON_ATTRIBUTES
        if isinstance(leaf, (ast.Attribute, ast.Subscript)) and not shown and site.judge(leaf).raises is not None:
            return site.text(leaf)
    return None


def _filters(site: Site) -> list[ast.Call]:
    calls = (part for part in walk(site.evaluator.scope.node) if isinstance(part, ast.Call))
    return [part for part in calls if last_name(part.func) in {"simplefilter", "filterwarnings"}]


def _makes_errors(call: ast.Call) -> bool:
    """True for a filter of warnings with the action "error"."""
    return any(is_literal(part, "error") for part in walk(call))


def effect(site: Site, call: LogCall) -> str | None:
    """Why the arguments of a log call may not be left out with it; None where they may."""
    found = effect_in(site, call.call)
    return None if found is None else f"`{found}` in its arguments would not run under torch.compile"


def is_kept(site: Site, call: LogCall) -> bool:
    """True for a call that the setting `log-calls` sends once per compilation: its message is known while tracing."""
    wanted = site.settings.log_calls
    if wanted == "guard" or (wanted == "warnings" and call.what.rpartition(".")[2] not in _WARNINGS):
        return False
    known = call.logger is not None and judge_arguments(site, call.call).constant and not _of_error(call)
    return known and site.torch is not None and site.torch_at_import and not site.scripted


def _of_error(call: LogCall) -> bool:
    """True for a message that shows the exception at hand, which is another one, or none, while tracing."""
    told = call.what.rpartition(".")[2] == "exception"
    return told or any(word.arg in {"exc_info", "stack_info"} for word in call.call.keywords)


def guard_calls(site: Site, node: ast.stmt) -> Edit:
    """The edit that leaves a log call out of compiled code, together with those around it that may be left out."""
    calls = _neighbours(site, node)
    parent = site.place.parents[-1] if site.place.parents else None
    alone = isinstance(parent, ast.If) and calls == parent.body and not parent.orelse
    if not alone or not isinstance(parent, ast.If):
        return guard(site, calls)
    folded = _into_test(site, parent)
    if folded is None and _asks_logger(parent.test) and not site.is_elif(parent):
        return guard(site, [parent])
    return folded or guard(site, calls)


def _asks_logger(test: ast.expr) -> bool:
    """True for `logger.isEnabledFor(level)`, which breaks the graph as the message does."""
    calls = (part for part in walk(test) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    return any(part.func.attr in {"isEnabledFor", "getEffectiveLevel"} for part in calls)  # type: ignore[attr-defined]


def guard(site: Site, statements: Sequence[ast.stmt]) -> Edit:
    """Statements that follow each other under `if not torch.compiler.is_compiling():`."""
    asked = _predicate(site)
    first, last = site.span(statements[0]), site.span(statements[-1])
    whole = first.through(last)
    return _beside(asked, whole, (f"if not {asked.text}:\n    ", Original(whole, 1)))


def guard_test(site: Site, node: ast.If) -> Edit:
    """The statement with `not torch.compiler.is_compiling()` before its test, so that the compiler reads neither."""
    word = "elif" if site.is_elif(node) else "if"
    asked = _predicate(site)
    parts = (f"{word} not {asked.text} and ", *_asked(site, node, word))
    return _beside(asked, site.span(node), parts)


def _beside(asked: Predicate, span: Span, parts: tuple[str | Original, ...]) -> Edit:
    return Edit(
        (Replacement(span, parts),),
        imports=asked.imports,
        helpers=asked.helpers,
        scriptable=not asked.helpers,
        since=asked.since,
    )


def _predicate(site: Site) -> Predicate:
    return predicate(site) or Predicate(site.compiling, site.imports)


def _neighbours(site: Site, node: ast.stmt) -> list[ast.stmt]:
    """The statement with the log calls right before and after it that can share its guard."""
    known: list[ast.stmt] | None = site.flow.answers.get(("log calls", id(node), 0))
    if known is not None:
        return known
    body, position = site.place.blocks[-1]
    if body[position] is not node:
        return [node]
    first = last = position
    while first > 0 and _may_share(site, body[first - 1], body[first]):
        first -= 1
    while last + 1 < len(body) and _may_share(site, body[last + 1], body[last]):
        last += 1
    calls = list(body[first : last + 1])
    site.flow.answers.update({("log calls", id(each), 0): calls for each in calls})
    return calls


def _may_share(site: Site, other: ast.stmt, beside: ast.stmt) -> bool:
    own_line = other.lineno > (beside.end_lineno or 0) or (other.end_lineno or 0) < beside.lineno
    return own_line and site.remembered("guarded log call", other, lambda: _is_guarded(site, other), anywhere=True)


def _is_guarded(site: Site, other: ast.stmt) -> bool:
    """True for a log call that gets a guard where it is met by itself."""
    there = site.at(other)
    call = find_log_call(there, other.value) if there is not None and isinstance(other, ast.Expr) else None
    if there is None or call is None or is_kept(there, call):
        return False
    code = "GM201" if judge_arguments(there, call.call).tensor is None else "GM202"
    path = site.source.path
    if not selects(site.settings, code, path) or site.source.suppressed(site.span(other), code):
        return False
    return why_not(there, call) is None and effect(there, call) is None


def _into_test(site: Site, node: ast.If) -> Edit | None:
    """The edit that adds the guard to the test of the `if` that holds the calls; None where the line is too long."""
    above = site.at(node)
    start, test = site.span(node), site.span(node.test)
    if above is None or not start.start_line == test.start_line == test.end_line:
        return None
    word = "elif" if site.is_elif(node) else "if"
    line = site.source.line(start.start_line).encode()
    colon = line.find(b":", test.end_column)
    if colon < 0 or line[test.end_column : colon].strip(b") \t"):
        return None
    asked = _predicate(site)
    tested = line[start.start_column + len(word) : colon].decode().strip()
    closed = tested.startswith("(") and test.start_column > start.start_column + len(word) + 1
    if site.is_too_long(len(line.decode().rstrip()) + len(f" and not {asked.text}")):
        return None
    loose = isinstance(node.test, _LOOSE) or (isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or))
    tested = f"({tested})" if loose and not closed else tested
    first = _asks_logger(node.test) or (_may_be_tensor(above, node.test) and effect_of(above, node.test) is None)
    header = f"{word} not {asked.text} and {tested}" if first else f"{word} {tested} and not {asked.text}"
    rest = Original(Span(start.start_line, colon, start.end_line, start.end_column))
    return _beside(asked, start, (header, rest))


def _may_be_tensor(site: Site, test: ast.expr) -> bool:
    """True for a test that compares or computes something which may be a tensor."""
    for part in walk(test):
        if isinstance(part, ast.Compare):
            strings = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in part.comparators)
            suspect = isinstance(part.ops[0], _COMPARISONS) and not strings
        else:
            suspect = isinstance(part, ast.Call)
        if suspect and isinstance(part, ast.expr) and not site.value(part).is_python:
            return True
    return False


def _asked(site: Site, node: ast.If, word: str) -> list[str | Original]:
    """The statement behind `if`, its test in parentheses where `and` would split it."""
    span, test = site.span(node), site.span(node.test)
    rest = Original(Span(test.end_line, test.end_column, span.end_line, span.end_column))
    head = Span(span.start_line, span.start_column + len(word), test.start_line, test.start_column)
    text = site.source.segment(head)
    if text.strip():
        first = head._replace(start_column=head.start_column + len(text) - len(text.lstrip(" \t")))
        return [Original(first), site.original(node.test), rest]
    if not isinstance(node.test, ast.BoolOp):
        loose = isinstance(node.test, (ast.IfExp, ast.NamedExpr))
        return ["(", site.original(node.test), ")", rest] if loose else [site.original(node.test), rest]
    if isinstance(node.test.op, ast.Or):
        return ["(", site.original(node.test), ")", rest]
    # Behind another `and`, the operands of this one are no expression of their own.
    pieces: list[str | Original] = []
    line, column = test.start_line, test.start_column
    for operand in node.test.values:
        end = site.span(operand)
        pieces.append(Original(Span(line, column, end.end_line, end.end_column)))
        line, column = end.end_line, end.end_column
    return [*pieces, Original(Span(line, column, test.end_line, test.end_column)), rest]


# How a file asks whether torch.compile traces: as it does elsewhere, by torch, or without torch

_WITHOUT_TORCH = Helper(
    "_is_torch_compiling",
    '''def _is_torch_compiling():
    """True while torch.compile traces. Does not import torch: where nobody has, nothing is compiled."""
    if sys.modules.get("torch") is not None:
        import torch

        if hasattr(torch, "compiler"):
            return torch.compiler.is_compiling()
    return False''',
)


class Predicate(NamedTuple):
    """How the file asks whether torch.compile traces, and what has to be imported and defined for it.

    `since` is the function of torch that answers; it is empty where the project has one of its own.
    """

    text: str
    imports: tuple[str, ...] = ()
    helpers: tuple[Helper, ...] = ()
    since: str = "compiler.is_compiling"


def predicate(site: Site) -> Predicate | None:
    """The file's own predicate where it imports one, else `torch.compiler.is_compiling()`; None without `torch`."""
    if not site.scripted:
        for binding in site.summary.bindings:
            if binding.kind == "import" and binding.name in PREDICATES_ELSEWHERE and _is_predicate(site, binding.name):
                return Predicate(f"{binding.name}()", since="")
        if _is_without_torch(site):
            return Predicate(f"{_WITHOUT_TORCH.name}()", ("sys",), (_WITHOUT_TORCH,), since="")
    return None if site.torch is None else Predicate(site.compiling, site.imports)


def _is_predicate(site: Site, name: str) -> bool:
    scope = site.evaluator.scope
    bindings = [binding for binding in site.summary.bindings if binding.name == name]
    if len(bindings) != 1 or bindings[0].conditional or scope.is_local(name) or not site.stays(name):
        return False
    qualified = scope.resolve_global(name)
    if qualified is None or qualified in COMPILING_PREDICATES:
        return qualified is not None
    facts = scope.index.function(qualified)
    return facts is not None and facts.compiling_predicate


def _is_without_torch(site: Site) -> bool:
    """True for a module that imports torch for types alone, if at all, and does not use the name of the helper."""
    bound = [each for each in site.summary.bindings if each.kind == "import" and not each.for_types]
    if any(each.target.replace(":", ".").partition(".")[0] == "torch" for each in bound):
        return False
    scope, text = site.evaluator.scope, site.source.text
    if scope.is_local("torch") or (scope.resolve_global("torch") not in (None, "torch")) or scope.is_local("sys"):
        return False
    return _WITHOUT_TORCH.source in text or re.search(rf"\b{_WITHOUT_TORCH.name}\b", text) is None


# Branches without their messages: what a compile path leaves out of a branch that it stands for


def without_messages(site: Site, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a branch but for those that only tell something, and may be left out of compiled code.

    That are log calls, and `if verbose: print(...)` around nothing else.
    """
    return [statement for statement in body if not _only_tells(site, statement)]


def _only_tells(site: Site, statement: ast.stmt) -> bool:
    if not isinstance(statement, (ast.Expr, ast.If)):
        return False
    there = site.at(statement)
    if there is None:
        return False
    if isinstance(statement, ast.If):
        told = all(_only_tells(site, each) for each in statement.body)
        return told and not statement.orelse and effect_of(there, statement.test) is None
    call = find_log_call(there, statement.value)
    return call is not None and why_not(there, call) is None and effect(there, call) is None
