"""Functions that do nothing but check a condition: `def check(ok, message): torch._check(ok, lambda: message)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.project.summary.spelling import dotted

CHECKS = "checks:"
"""How a summary notes such a function: then come places and names of condition and message, and when it checks."""
TORCH_CHECKS = {
    "torch._check": (0, 1),
    "torch._check_value": (0, 1),
    "torch._check_index": (0, 1),
    "torch._check_type": (0, 1),
    "torch._check_with": (1, 2),
    "torch._check_tensor_all": (0, 1),
    "torch._check_tensor_all_with": (1, 2),
}
"""Functions of torch that check, with the places of their condition and message."""
_ALL = ("torch._check_tensor_all", "torch._check_tensor_all_with")
_KINDS = frozenset({"callable", "isinstance"})
_SWITCHES = frozenset({"os.getenv", "os.environ.get"})


def noted(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """The note for a function that returns nothing and only raises where one of its parameters is false, else None.

    It may be switched off by a variable of the environment, whose test the note ends with; it may take functions for
    the condition and the message, and hand both to others that check.
    """
    if isinstance(node, ast.AsyncFunctionDef) or node.decorator_list or node.args.vararg or node.args.kwarg:
        return None
    names = [each.arg for each in [*node.args.posonlyargs, *node.args.args]]
    body = list(node.body)
    switch = ""
    for statement in list(body):
        found = _switch(statement)
        if found is not None:
            switch = f"{switch} and {found}" if switch else found
            body.remove(statement)
    checked: set[str] = set()
    if not body or not all(_is_harmless(each, checked, names) for each in body) or not _always_checks(body[-1]):
        return None
    if len(checked) != 1 or not checked <= set(names):
        return None
    (condition,) = checked
    message = next((name for name in names if name.startswith(("msg", "message", "error_message"))), "")
    every = "all" if any(dotted(call.func) in _ALL for call in _calls(node)) else "one"
    places = f"{names.index(condition)} {names.index(message) if message else -1}"
    return f"{CHECKS}{places} {condition} {message or '-'} {every} {switch}"


def _switch(node: ast.stmt) -> str | None:
    """When `if os.getenv("NO_CHECKS"): return` goes on."""
    if not isinstance(node, ast.If) or node.orelse or len(node.body) != 1:
        return None
    only = node.body[0]
    if not isinstance(only, ast.Return) or only.value is not None:
        return None
    asked = node.test.left if isinstance(node.test, ast.Compare) else node.test
    known = isinstance(asked, ast.Call) and dotted(asked.func) in _SWITCHES
    others = [*asked.args, *getattr(node.test, "comparators", [])] if isinstance(asked, ast.Call) else []
    plain = known and not asked.keywords and all(isinstance(each, ast.Constant) for each in others)  # type: ignore[attr-defined]
    if not plain:
        return None
    text = ast.unparse(node.test)
    equals = isinstance(node.test, ast.Compare) and [*map(type, node.test.ops)] == [ast.Eq]
    text = text.replace(" == ", " != ") if equals and text.count(" == ") == 1 else f"not ({text})"
    return text if '"' in text else text.replace("'", '"')


def _is_harmless(node: ast.stmt, checked: set[str], names: list[str]) -> bool:
    """True for a check, whose condition is added to `checked`, and for what prepares one.

    It may call its parameters (`names`), which stand for a condition or a message; any other call may have effects.
    """
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
        return True
    if isinstance(node, ast.FunctionDef):
        only = node.body[0]
        return len(node.body) == 1 and isinstance(only, ast.Return) and isinstance(only.value, ast.Name)
    if isinstance(node, ast.Assign):
        called = node.value.func if isinstance(node.value, ast.Call) and not node.value.args else None
        given = isinstance(called, ast.Name) and called.id in names
        return all(isinstance(each, ast.Name) for each in node.targets) and (given or isinstance(node.value, ast.Name))
    condition = _condition(node)
    if condition is not None:
        checked.add(condition)
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Call) and not node.test.args and not node.orelse:
        # `if is_tracing():` checks in another way.
        *checks, last = node.body
        leaves = isinstance(last, ast.Return) and last.value is None
        return (
            leaves
            and bool(checks)
            and _always_checks(checks[-1])
            and all(_is_harmless(each, checked, names) for each in checks)
        )
    if isinstance(node, ast.If) and _asks_kind(node.test):
        return all(_is_harmless(each, checked, names) for each in [*node.body, *node.orelse])
    return False


def _condition(node: ast.stmt) -> str | None:
    """The name that a statement checks."""
    asked: ast.expr | None = None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and dotted(node.value.func) in TORCH_CHECKS:
        place, _ = TORCH_CHECKS[dotted(node.value.func)]
        asked = node.value.args[place] if len(node.value.args) > place else None
    elif isinstance(node, ast.Assert):
        asked = node.test
    elif isinstance(node, ast.If) and not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
        asked = node.test.operand if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not) else None
    return asked.id if isinstance(asked, ast.Name) else None


def _always_checks(node: ast.stmt) -> bool:
    if _condition(node) is not None:
        return True
    both = isinstance(node, ast.If) and node.orelse
    return bool(both) and all(_always_checks(part[-1]) for part in (node.body, node.orelse))  # type: ignore[attr-defined]


def _asks_kind(test: ast.expr) -> bool:
    asked = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(asked, ast.Call) and dotted(asked.func) in _KINDS


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))
