"""What may keep an exception from going further: handlers, and context managers."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.project.summary.spelling import dotted

SWALLOWS = "may swallow"
"""How a summary notes such a context manager."""
LEAVES = frozenset({"__exit__", "__aexit__"})
OTHER_ERRORS = frozenset(
    """ImportError ModuleNotFoundError OSError IOError FileNotFoundError PermissionError ConnectionError TimeoutError
    KeyboardInterrupt SystemExit StopIteration StopAsyncIteration GeneratorExit UnicodeDecodeError UnicodeError
    OutOfMemoryError""".split()
)
"""Exceptions that no check of a tensor raises."""
_PASS_ON = ("torch.", "contextlib.nullcontext", "nullcontext", "warnings.catch_warnings", "open", "tqdm", "autocast")


def may_swallow(node: ast.FunctionDef | ast.AsyncFunctionDef, decorators: Sequence[str]) -> bool:
    """True for `__exit__` that may return something true, and for a generator that catches around its `yield`."""
    if node.name in LEAVES:
        returned = (each.value for each in ast.walk(node) if isinstance(each, ast.Return))
        return any(not _is_false(value) for value in returned)
    if not any(each.rpartition(".")[2].endswith("contextmanager") for each in decorators):
        return False
    for each in ast.walk(node):
        if isinstance(each, ast.Try) and each.handlers:
            return True
        if isinstance(each, (ast.With, ast.AsyncWith)) and not all(_passes_on(item) for item in each.items):
            return True
    return False


def _is_false(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and not value.value)


def _passes_on(item: ast.withitem) -> bool:
    made = item.context_expr
    return dotted(made.func if isinstance(made, ast.Call) else made).startswith(_PASS_ON)


def _leaves_early(node: ast.AST) -> bool:
    """True for `return`, `break` or `continue`: in `finally` they drop an exception that is on its way."""
    if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
        return True
    return not isinstance(node, _OTHER_SCOPES) and any(map(_leaves_early, ast.iter_child_nodes(node)))


_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def caught_by(node: ast.Try | ast.With | ast.AsyncWith) -> str:
    """`except ValueError`, `with suppress` for a statement that may catch what its body raises, else an empty text."""
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            names = [dotted(each) if each is not None else "" for each in kinds]
            if any(name.rpartition(".")[2] not in OTHER_ERRORS for name in names):
                return f"except {', '.join(names)}".strip()
        return "finally" if any(map(_leaves_early, node.finalbody)) else ""
    for item in node.items:
        made = item.context_expr
        spelled = dotted(made.func if isinstance(made, ast.Call) else made)
        if not spelled or spelled.startswith(_PASS_ON):
            continue
        given = made.args if isinstance(made, ast.Call) else []
        if spelled.endswith("suppress") and all(dotted(each).rpartition(".")[2] in OTHER_ERRORS for each in given):
            continue
        return f"with {spelled}"
    return ""


def may_exist(node: ast.expr) -> bool:
    """True for what is entered and not made there: `self.lock`, `LOCK`; and for `torch.device("cpu")`."""
    made = isinstance(node, ast.Call) and dotted(node.func) == "torch.device"
    return made or isinstance(node, (ast.Name, ast.Attribute))
