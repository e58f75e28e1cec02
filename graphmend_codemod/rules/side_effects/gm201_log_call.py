"""log-call (GM201): a logger, `warnings.warn` or `print` call that TorchDynamo cannot trace.

Dynamo breaks the graph at every call of a `logging.Logger` method, of `warnings.warn` and of `print`, even where the
level is disabled. Eager mode keeps the statement, its arguments and the place that the record reports.

Under `torch.compile` a message that is known while the graph is traced is sent once per compilation, through a helper
that Dynamo runs as it traces (`torch.compiler.assume_constant_result`). With `log-calls = "guard"`, and for every
message that is not known then (sizes would specialise the graph on them), the call is left out of the compiled code.
So it is in code that TorchScript compiles as well, which cannot compile the helper.
"""

from __future__ import annotations

import ast

from graphmend_codemod.core.findings import Edit, Helper, Original, Replacement, Safety, Span
from graphmend_codemod.rules.framework.rule import Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.argument_effects import effect_in
from graphmend_codemod.rules.proofs.logging.logcalls import LogCall, find_log_call, judge_arguments, why_it_is_read

_SETUP = """
import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask=None):
        ...
        return self.linear(x)
"""

rule = Rule(
    code="GM201",
    slug="log-call",
    title="keep log and warning calls out of the graph",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(
        cost=Cost.NONE, compiled_logs="once per compilation, or dropped where the message is not known while tracing"
    ),
    examples=(
        Example(
            before="""
            if mask is None:
                logger.warning("No mask given, everything is attended to.")
            """,
            after="""
            if mask is None:
                (_warning_while_tracing if torch.compiler.is_compiling() else logger.warning)(
                    "No mask given, everything is attended to."
                )
            """,
            setup=_SETUP,
            inputs=("torch.ones(2, 4)",),
        ),
        Example(
            before="""
            logger.info(f"got {x.shape[0]} rows")
            """,
            after="""
            if not torch.compiler.is_compiling():
                logger.info(f"got {x.shape[0]} rows")
            """,
            setup=_SETUP,
            inputs=("torch.ones(2, 4)",),
        ),
        Declined(
            source="""
            with contextlib.redirect_stdout(io.StringIO()) as said:
                print("shape", x.dtype)
            """,
            because="reads what is said",
            setup=_SETUP.replace("import logging", "import contextlib\nimport io\nimport logging", 1),
        ),
        Declined(
            source="""
            seen = logger.warning("twice")
            """,
            because="its result is used",
            setup=_SETUP,
        ),
        Clean(
            source="""
            if not torch.compiler.is_compiling():
                logger.warning("only in eager mode")
            """,
            setup=_SETUP,
        ),
    ),
)


def helper_for(site: Site, call: LogCall) -> Helper | None:
    """The module-level function that makes `call` while the graph is traced."""
    if call.logger is None:
        return None
    verb = call.logger.rpartition(".")[2]
    name = f"_{verb}_while_tracing"
    source = (
        "@{torch}.compiler.assume_constant_result\n"
        f"def {name}(*args, **kwargs):\n"
        f'    """Call `{call.logger}` once per compilation: torch.compile runs this while it traces the graph."""\n'
        f"    {call.logger}(*args, **kwargs)"
    )
    loggers = [
        binding.name
        for binding in site.summary.bindings
        if binding.value is not None and binding.value.spelled.rpartition(".")[2] in {"getLogger", "get_logger"}
    ]
    # All helpers of a module stand together, behind its loggers.
    return Helper(name, source, after=(call.logger.partition(".")[0], *loggers))


@rule.on(ast.Expr, candidate="log")
def log_statement(site: Site, node: ast.Expr) -> Verdict | None:
    """A statement that is nothing but a log call."""
    call = find_log_call(site, node.value)
    if call is None:
        return None
    arguments = judge_arguments(site, call.call)
    if arguments.tensor is not None:
        return None
    message = f"`{call.what}` breaks the graph"
    if site.torch is None:
        return Verdict(message, declined="the name `torch` is taken by something else in this module")
    reader = why_it_is_read(site, call)
    if reader is not None:
        return Verdict(message, declined=reader)
    helper = helper_for(site, call)
    known = arguments.constant and site.torch_at_import and not site.scripted and not _of_error(call)
    if site.settings.log_calls == "guard" or helper is None or not known:
        effect = effect_in(site, call.call)
        if effect is not None:
            return Verdict(message, declined=f"`{effect}` in its arguments would no longer happen under torch.compile")
        return Verdict(message, edit=guard(site, node))
    return Verdict(message, edit=_once(site, call, helper))


def guard(site: Site, node: ast.stmt) -> Edit:
    """The statement under `if not torch.compiler.is_compiling():`."""
    parts = (f"if not {site.compiling}:\n    ", site.original(node, 1))
    return Edit((Replacement(site.span(node), parts),), imports=site.imports)


def guard_test(site: Site, node: ast.If) -> Edit:
    """The statement with `not torch.compiler.is_compiling()` before its test, so that the compiler reads neither."""
    word = "elif" if site.is_elif(node) else "if"
    parts = (f"{word} not {site.compiling} and ", *_asked(site, node, word))
    return Edit((Replacement(site.span(node), parts),), imports=site.imports)


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


def _of_error(call: LogCall) -> bool:
    """True for a message that shows the exception at hand, which is another one, or none, while tracing."""
    told = call.what.rpartition(".")[2] == "exception"
    return told or any(word.arg in {"exc_info", "stack_info"} for word in call.call.keywords)


def _once(site: Site, call: LogCall, helper: Helper) -> Edit:
    function = call.call.func
    head = f"({helper.name} if {site.compiling} else {site.text(function)})("
    filled = Helper(helper.name, helper.source.replace("{torch}", site.torch or "torch"), helper.after)
    width = len(site.source.line(call.call.lineno)) - len(site.text(function)) - 1 + len(head)
    hanging = _under_callee(site, call.call)
    if call.call.lineno == call.call.end_lineno and site.is_too_long(width):
        arguments = [site.text(part) for part in [*call.call.args, *call.call.keywords]]
        replacement = Replacement(site.span(call.call), (site.call(head, arguments),))
    elif hanging is not None:
        replacement = Replacement(site.span(call.call), (f"{head}\n    ", hanging, ")"))
    else:
        replacement = Replacement(site.span(function), (head[:-1],))
    return Edit((replacement,), imports=site.imports, helpers=(filled,))


def _under_callee(site: Site, call: ast.Call) -> str | Original | None:
    """The arguments of a call that begin on the line of the callee and go on below it, for a line of their own.

    Lines that stand under the first argument stay under it.
    """
    spans = sorted(site.span(part) for part in [*call.args, *call.keywords])
    if not spans or spans[0].start_line != call.func.end_lineno or call.lineno == call.end_lineno:
        return None
    if "#" in site.source.segment(site.span(call)):
        return None
    first, last = spans[0], max(span[2:] for span in spans)
    whole = first._replace(end_line=last[0], end_column=last[1])
    text = site.source.segment(whole)
    lines = text.splitlines()
    if len(lines) == 1 or "\\" in text or '"""' in text or "'''" in text or any("\t" in line for line in lines):
        return Original(whole, 1)
    column = len(site.source.line(first.start_line).encode()[: first.start_column].decode())
    depths = [max(0, len(line) - len(line.lstrip()) - column) for line in lines[1:]]
    moved = [" " * (4 + depth) + line.strip() for depth, line in zip(depths, lines[1:], strict=True)]
    return "\n".join([lines[0].rstrip(), *moved])


@rule.on(ast.Assign, ast.Return, candidate="log", when=lambda node: isinstance(node.value, ast.Call))
def log_call_as_value(site: Site, node: ast.Assign | ast.Return) -> Verdict | None:
    """A log call whose (empty) result somebody takes."""
    call = find_log_call(site, node.value) if node.value is not None else None
    if call is None:
        return None
    return Verdict(f"`{call.what}` breaks the graph", declined="its result is used", node=call.call)
