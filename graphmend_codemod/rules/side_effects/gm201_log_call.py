"""log-call (GM201): a logger, `warnings.warn` or `print` call that TorchDynamo cannot trace.

Dynamo breaks the graph at every call of a `logging.Logger` method, of `warnings.warn` and of `print`, even where the
level is disabled. Eager mode keeps the statement, its arguments and the place that the record reports.

Loggers are what `logging.getLogger` gives, subclasses of `logging.Logger` and `logging.LoggerAdapter`, what functions
of the project return that make nothing else, in any file, and loguru's `logger`; `rank_zero_warn` and its like of
Lightning and torchmetrics are calls of this kind as well. A method that a class of the project defines itself has to do
nothing but log: one that counts its calls is left alone. Handlers and filters do not run for a message that is left
out, callers that record messages (`contextlib.redirect_stdout`, `warnings.catch_warnings(record=True)`) get none, and
what another file assigns over `print` or a method of the logger is not called.

Under `torch.compile` the call is left out: it stands under `not torch.compiler.is_compiling()`, added to the test of
the `if` that holds nothing else where that fits the line. Calls that follow each other share one guard, and a file that
imports a predicate of this meaning (`from .utils import is_torchdynamo_compiling`) keeps using it. A file that does not
import torch gets a function that asks for it where the process has imported it.

With `log-calls = "once"`, a message that is known while the graph is traced is sent once per compilation instead,
through a helper that Dynamo runs as it traces; with `log-calls = "warnings"`, only warnings and errors are. Messages
that are not known while tracing (a size would specialise the graph on it), and those in code that TorchScript compiles
as well, are left out all the same.

A function that takes no tensors, and that nothing compiled in the project calls, keeps its messages: what a package
merely offers to others (`load_image`, `save`) is called around their models more often than in them. Functions that
train models, or read or write files, count as such.
"""

from __future__ import annotations

import ast

from graphmend_codemod.core.findings import Edit, Helper, Original, Replacement
from graphmend_codemod.rules.framework.edits import CONSTANT
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.log_calls import LogCall, find_log_call, judge_arguments
from graphmend_codemod.rules.proofs.logging.log_guard import effect, guard_calls, is_kept, why_not

rule = Rule(
    __name__,
    __doc__,
    title="keep log and warning calls out of the graph",
    contract=Contract(
        cost=Cost.NONE,
        compiled_exceptions="kept, but for one that an argument of a dropped message would raise",
        compiled_logs="dropped; once per compilation where the setting `log-calls` asks for it",
        may_raise=False,
    ),
    for_own=True,
)


def helper_for(site: Site, call: LogCall) -> Helper | None:
    """The module-level function that makes `call` while the graph is traced; None where there is none."""
    if call.logger is None:
        return None
    verb = call.logger.rpartition(".")[2]
    name = f"_{verb}_while_tracing"
    source = (
        f"@{CONSTANT.name}\n"
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
    after = (call.logger.partition(".")[0], *loggers)
    return Helper(name, source, after, since="compiler.assume_constant_result")


@rule.on(ast.Expr, candidate="log")
def log_statement(site: Site, node: ast.Expr) -> Diagnostic | None:
    """A statement that is nothing but a log call."""
    call = find_log_call(site, node.value)
    if call is None:
        return None
    arguments = judge_arguments(site, call.call)
    if arguments.tensor is not None:
        return None
    message = f"`{call.what}` breaks the graph"
    reason = why_not(site, call)
    if reason is not None:
        return Diagnostic(message, declined=reason)
    helper = helper_for(site, call) if is_kept(site, call) else None
    if helper is not None:
        return Diagnostic(message, edit=_once(site, call, helper))
    reason = effect(site, call)
    if reason is not None:
        return Diagnostic(message, declined=reason)
    return Diagnostic(message, edit=guard_calls(site, node))


def _once(site: Site, call: LogCall, helper: Helper) -> Edit:
    function = call.call.func
    head = f"({helper.name} if {site.compiling} else {site.text(function)})("
    width = len(site.source.line(call.call.lineno)) - len(site.text(function)) - 1 + len(head)
    hanging = _under_callee(site, call.call)
    if call.call.lineno == call.call.end_lineno and site.is_too_long(width):
        arguments = [site.text(part) for part in [*call.call.args, *call.call.keywords]]
        replacement = Replacement(site.span(call.call), (site.call(head, arguments),))
    elif hanging is not None:
        replacement = Replacement(site.span(call.call), (f"{head}\n    ", hanging, ")"))
    else:
        replacement = Replacement(site.span(function), (head[:-1],))
    return Edit((replacement,), imports=site.imports, helpers=(CONSTANT, helper._replace(since="")))


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
def log_call_as_value(site: Site, node: ast.Assign | ast.Return) -> Diagnostic | None:
    """A log call whose (empty) result somebody takes."""
    call = find_log_call(site, node.value) if node.value is not None else None
    if call is None:
        return None
    return Diagnostic(f"`{call.what}` breaks the graph", declined="its return value is used", node=call.call)
