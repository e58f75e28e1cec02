"""Recognise log calls: loggers, `warnings.warn`, `print`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import all_given, is_name
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.values import Origin, Value, ValueKind
from graphmend_codemod.project.index.facts import IndexView
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.own_methods import LOG_METHODS, acts_itself

LOGGER_FACTORIES = frozenset(
    """logging.getLogger transformers.utils.logging.get_logger diffusers.utils.logging.get_logger
    datasets.utils.logging.get_logger huggingface_hub.utils.logging.get_logger accelerate.logging.get_logger
    detectron2.utils.logger.setup_logger fvcore.common.file_io.get_logger absl.logging.get_absl_logger""".split()
)
_LOGURU = "loguru.logger"
_OF_LOGURU = LOG_METHODS - {"warn", "log"} | {"success", "trace"}
_MESSAGES = frozenset(
    f"{module}.{function}"
    for module in (
        "lightning_utilities.core.rank_zero",
        "lightning_fabric.utilities.rank_zero",
        "lightning.fabric.utilities.rank_zero",
        "lightning.pytorch.utilities",
        "lightning.pytorch.utilities.rank_zero",
        "pytorch_lightning.utilities",
        "pytorch_lightning.utilities.rank_zero",
        "torchmetrics.utilities",
        "torchmetrics.utilities.prints",
    )
    for function in ("rank_zero_warn", "rank_zero_info", "rank_zero_debug", "rank_zero_deprecation")
)
"""Functions of libraries that only tell something."""
_REDIRECTIONS = frozenset({"contextlib.redirect_stdout", "contextlib.redirect_stderr"})
LOGGER_CLASSES = frozenset({"logging.Logger", "logging.LoggerAdapter"})
LOG_FUNCTIONS = frozenset(f"logging.{method}" for method in LOG_METHODS if "_" not in method)


class LogCall(NamedTuple):
    """A call that only tells. `what` names it for messages; `logger` is the module-level name a helper may use."""

    call: ast.Call
    what: str
    logger: str | None


def find_log_call(site: Site, node: ast.expr) -> LogCall | None:
    """The call in `node`, if it is one that TorchDynamo breaks on and that returns nothing of use."""
    if not isinstance(node, ast.Call):
        return None
    qualified = site.resolve(node.func)
    if qualified in {"warnings.warn", "builtins.print"} or qualified in LOG_FUNCTIONS | _MESSAGES:
        spelled = site.text(node.func)
        root = spelled.partition(".")[0]
        return LogCall(node, spelled, None if site.evaluator.scope.is_local(root) else spelled)
    if isinstance(node.func, ast.Attribute) and node.func.attr in LOG_METHODS | _OF_LOGURU:
        owner = node.func.value
        known = _OF_LOGURU if site.resolve(owner) == _LOGURU else LOG_METHODS if _is_logger(site, owner) else ()
        if node.func.attr in known:
            module_level = isinstance(owner, ast.Name) and not site.evaluator.scope.is_local(owner.id)
            spelled = site.text(node.func)
            return LogCall(node, spelled, spelled if module_level else None)
    return None


def _is_logger(site: Site, owner: ast.expr) -> bool:
    value = site.value(owner)
    if is_name(owner, site.evaluator.scope.self_name):
        return False  # a logger's own method, which no call reaches that is left out
    if value.instance_of is not None:
        return makes_logger(site, value.instance_of)
    qualified = site.resolve(owner)
    if qualified is not None and dotted(owner) is not None:
        home, _, name = qualified.rpartition(".")
        fact = site.evaluator.scope.index.global_fact(home, name)
        return fact is not None and fact.callee is not None and makes_logger(site, fact.callee)
    if isinstance(owner, ast.Call):
        qualified = site.resolve(owner.func)
        return qualified is not None and makes_logger(site, qualified)
    return False


def makes_logger(site: Site, qualified: str) -> bool:
    """True when calling `qualified` gives a logger, or `qualified` is a logger's class."""
    if qualified in LOGGER_FACTORIES or qualified in LOGGER_CLASSES:
        return True
    index = site.evaluator.scope.index
    if _is_logger_class(index, qualified):
        return True
    facts = index.function(qualified)
    if facts is None:
        return False
    return facts.logger or (facts.returns is not None and _is_logger_class(index, facts.returns))


def _is_logger_class(index: IndexView, qualified: str) -> bool:
    """True for a class of the standard library's loggers, and one of the project that inherits from such a class."""
    if qualified in LOGGER_CLASSES:
        return True
    facts = index.class_facts(qualified)
    return facts is not None and any(each in LOGGER_CLASSES for each in facts.bases)


def why_it_is_read(site: Site, call: LogCall) -> str | None:
    """Who reads what a call says, so that it has to be said in every call; None for streams and handlers."""
    if (does_more := acts_itself(site, call.call)) is not None:
        return does_more
    for word in call.call.keywords:
        if word.arg == "file" and site.resolve(word.value) not in {"sys.stdout", "sys.stderr"}:
            return f"`{site.text(word.value)}` captures the printed text"
    for parent in site.place.parents:
        for item in parent.items if isinstance(parent, (ast.With, ast.AsyncWith)) else ():
            context = item.context_expr
            qualified = site.resolve(context.func) if isinstance(context, ast.Call) else None
            given = {word.arg for word in context.keywords} if isinstance(context, ast.Call) else set()
            records = qualified == "warnings.catch_warnings" and "record" in given
            if qualified in _REDIRECTIONS or records:
                return f"`{site.text(context)}` captures the message"
    return None


class Arguments(NamedTuple):
    """What the arguments of a log call hold: a tensor for certain, or only values that compile time knows."""

    tensor: ast.expr | None
    constant: bool
    reason: str


def judge_arguments(site: Site, call: ast.Call) -> Arguments:
    """Look at all arguments, into f-strings, `%` and `.format`."""
    tensor, reason = None, ""
    for part in leaves(call):
        value = site.value(part)
        if value.kind is ValueKind.TENSOR:
            tensor = tensor or part
        if not reason:
            reason = _why_not_constant(site, part, value)
    return Arguments(tensor, not reason, reason)


def leaves(call: ast.Call) -> Iterator[ast.expr]:
    """The values in the arguments of a log call, in f-strings, `%` and `.format` as well."""
    stack: list[ast.expr] = all_given(call)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.JoinedStr):
            stack.extend(part.value for part in node.values if isinstance(part, ast.FormattedValue))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)):
            stack.extend([node.left, node.right])
        elif isinstance(node, (ast.Tuple, ast.List)):
            stack.extend(node.elts)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            stack.extend(all_given(node))
        elif not isinstance(node, ast.Constant):
            yield node


def _why_not_constant(site: Site, node: ast.expr, value: Value) -> str:
    text = site.text(node)
    if _is_class_name(site, node):
        return ""
    if value.is_python and value.origin in {Origin.CONSTANT, Origin.CONFIG}:
        return ""
    if value.is_python and value.callee is not None and value.origin is Origin.OTHER and "." in value.callee:
        return ""
    if value.origin is Origin.SHAPE:
        return f"`{text}` is a size; formatting it would specialise the graph on its value (recompilations)"
    if value.kind is ValueKind.TENSOR:
        return f"`{text}` is a tensor"
    return f"`{text}` may not be a constant while Dynamo traces"


def _is_class_name(site: Site, node: ast.expr) -> bool:
    """`self.__class__`, `type(self)` and their `__name__`."""
    if isinstance(node, ast.Attribute) and node.attr in {"__name__", "__qualname__", "__class__"}:
        return node.attr == "__class__" or _is_class_name(site, node.value)
    return isinstance(node, ast.Call) and site.resolve(node.func) == "builtins.type" and len(node.args) == 1
