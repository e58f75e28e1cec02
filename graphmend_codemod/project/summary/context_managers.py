"""What may keep an exception from going further: handlers, and context managers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.project.summary.spelling import dotted

SWALLOWS = "may swallow"
"""How a summary notes such a context manager."""
THROUGH = "enters "
"""How it notes, with the name, another manager that a generator enters around its `yield`."""
PASSES_ON = "as the base class"
"""How it notes an `__exit__` that returns what that of the base class returns."""
LEAVES = frozenset({"__exit__", "__aexit__"})
OTHER_ERRORS = frozenset(
    """ImportError ModuleNotFoundError OSError IOError FileNotFoundError PermissionError ConnectionError TimeoutError
    KeyboardInterrupt SystemExit StopIteration StopAsyncIteration GeneratorExit UnicodeDecodeError UnicodeError
    OutOfMemoryError""".split()
)
"""Exceptions that no check of a tensor raises."""
_ENTERS = frozenset({"enter_context", "enter_async_context"})
_PASS_ON = ("torch.", "contextlib.nullcontext", "nullcontext", "warnings.catch_warnings", "open", "tqdm", "autocast")


def swallowing(node: ast.FunctionDef | ast.AsyncFunctionDef, decorators: Sequence[str]) -> Iterator[str]:
    """Marks of `__exit__` that may return something true, and of a generator that may catch around its `yield`.

    `THROUGH` and a name for another manager that the generator enters around it: that one decides. `PASSES_ON` where
    the base class does.
    """
    if node.name in LEAVES:
        values = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and not _is_false(each.value)]
        if any(map(_asks_base, values)):
            yield PASSES_ON
        if not all(map(_asks_base, values)):
            yield SWALLOWS
        return
    if not any(each.rpartition(".")[2].endswith("contextmanager") for each in decorators):
        return
    for each in ast.walk(node):
        if isinstance(each, (ast.Try, ast.With, ast.AsyncWith)) and any(map(_yields, each.body)):
            for by in catchers(each):
                word, _, spelled = by.partition(" ")
                yield f"{THROUGH}{spelled}" if word == "with" else SWALLOWS


def _yields(node: ast.AST) -> bool:
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        return True
    return not isinstance(node, _OTHER_SCOPES) and any(map(_yields, ast.iter_child_nodes(node)))


def _is_false(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and not value.value)


def _asks_base(value: ast.expr | None) -> bool:
    """True for `super().__exit__(...)`, awaited as well."""
    value = value.value if isinstance(value, ast.Await) else value
    return isinstance(value, ast.Call) and dotted(value.func) in {f"super().{name}" for name in LEAVES}


def _leaves_early(node: ast.AST) -> bool:
    """True for `return`, `break` or `continue`: in `finally` they drop an exception that is on its way."""
    if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
        return True
    return not isinstance(node, _OTHER_SCOPES) and any(map(_leaves_early, ast.iter_child_nodes(node)))


_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """True for a handler that ends with `raise` on all ways and changes nothing that lasts: the exception goes on.

    What it raises may be of another type, and who catches that catches what this body calls as well.
    """
    changes = any(
        isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load)
        for part in ast.walk(handler)
    )
    return _ends_in_raise(handler.body) and not changes and not any(map(_leaves_early, handler.body))


def _ends_in_raise(body: Sequence[ast.stmt]) -> bool:
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _ends_in_raise(last.body) and _ends_in_raise(last.orelse)
    return isinstance(last, ast.Raise)


def catchers(node: ast.Try | ast.With | ast.AsyncWith) -> Iterator[str]:
    """`except ValueError`, `with suppress` for what may catch what the body of a statement raises."""
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            names = [dotted(each) if each is not None else "" for each in kinds]
            if any(name.rpartition(".")[2] not in OTHER_ERRORS for name in names) and not _raises_again(handler):
                yield f"except {', '.join(names)}".strip()
        if any(map(_leaves_early, node.finalbody)):
            yield "finally"
        return
    for item in node.items:
        for made in _entered(item, node):
            spelled = dotted(made.func if isinstance(made, ast.Call) else made)
            if not spelled or spelled.startswith(_PASS_ON):
                continue
            given = made.args if isinstance(made, ast.Call) else []
            if spelled.endswith("suppress") and all(dotted(each).rpartition(".")[2] in OTHER_ERRORS for each in given):
                continue
            yield f"with {spelled}"


def _entered(item: ast.withitem, node: ast.With | ast.AsyncWith) -> list[ast.expr]:
    """What a statement enters: for `ExitStack() as stack` the arguments of `stack.enter_context(...)` in it.

    Where the stack is used in another way, and may hold more, it stands for itself.
    """
    made, name = item.context_expr, item.optional_vars
    if not isinstance(made, ast.Call) or not dotted(made.func).endswith("ExitStack"):
        return [made]
    if name is None:
        return []
    if not isinstance(name, ast.Name):
        return [made]
    calls = [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and _is(part.func.value, name.id)
    ]
    uses = sum(_is(part, name.id) for part in ast.walk(node)) - 1
    plain = all(each.func.attr in _ENTERS and len(each.args) == 1 for each in calls)  # type: ignore[attr-defined]
    return [each.args[0] for each in calls] if plain and len(calls) == uses else [made]


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def may_exist(node: ast.expr) -> bool:
    """True for what is entered and not made there: `self.lock`, `LOCK`; and for `torch.device("cpu")`."""
    made = isinstance(node, ast.Call) and dotted(node.func) == "torch.device"
    return made or isinstance(node, (ast.Name, ast.Attribute))
