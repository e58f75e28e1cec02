"""Functions that do nothing but check a condition: `def check(ok, message): torch._check(ok, lambda: message)`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

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


class CheckNote(NamedTuple):
    """What a summary notes of such a function: where and how a call gives it the condition and the message.

    `every` is true where all elements of a tensor are checked. `switch` says when it checks at all, by variables of the
    environment. It raises where `flag`, a parameter, is true. Where a variable of its module switches it off, `probe`
    is true: called with False for the condition and the flag, it is false exactly where it is switched on.
    """

    place: int
    told: int
    condition: str
    message: str
    every: bool
    flag: str
    flag_place: int
    probe: bool
    switch: str

    @classmethod
    def read(cls, text: str) -> CheckNote:
        """The note that `written` gave."""
        place, told, condition, message, kind, flag, flag_place, probe, *rest = text.removeprefix(CHECKS).split(" ")
        places = int(place), int(told), condition, message.strip("-")
        return cls(*places, kind == "all", flag.strip("-"), int(flag_place), probe == "probe", " ".join(rest))

    def written(self) -> str:
        """The note as text, in one line."""
        kind, probe = "all" if self.every else "one", "probe" if self.probe else "-"
        names = f"{self.condition} {self.message or '-'} {kind} {self.flag or '-'} {self.flag_place} {probe}"
        return f"{CHECKS}{self.place} {self.told} {names} {self.switch}"


def noted(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """The note for a function that only raises where one of its parameters is false, else None.

    It may be switched off by a variable of the environment, whose test the note ends with, or of its module; it may
    take functions for the condition and the message, and hand both to others that check. What it returns is a constant.
    """
    if isinstance(node, ast.AsyncFunctionDef) or node.decorator_list or node.args.vararg or node.args.kwarg:
        return None
    defaults = _parameters(node)
    names = list(defaults)
    body, switch, own = _without_switches(node.body, names)
    flags = {flag: each for each in body if (flag := _flag(each)) is not None}
    if len(flags) > 1 or not flags.keys() <= set(names):
        return None
    flag = next(iter(flags), "")
    if (flag and not _is_constant(defaults[flag], True)) or (own and not (flag and _answers_false(flags[flag], body))):
        return None
    checked: set[str] = set()
    if body and isinstance(body[-1], ast.Return) and _answer(body[-1]) is not None:
        body.pop()
    if not body or not all(_is_harmless(each, checked, names) for each in body) or not _always_checks(body[-1]):
        return None
    if len(checked) != 1 or not checked <= set(names) - {flag}:
        return None
    (condition,) = checked
    if own and (node.args.posonlyargs or any(defaults[name] is None for name in names if name != condition)):
        return None  # it cannot be asked by names, with these two alone
    message = next((name for name in names if name.startswith(("msg", "message", "error_message"))), "")
    every = any(dotted(call.func) in _ALL for call in _calls(node))
    places = [_place(node, each) for each in (condition, message, flag)]
    return CheckNote(places[0], places[1], condition, message, every, flag, places[2], own, switch).written()


def _parameters(node: ast.FunctionDef) -> dict[str, ast.expr | None]:
    """The parameters of a function, with their defaults."""
    given = [*node.args.posonlyargs, *node.args.args]
    without = [None] * (len(given) - len(node.args.defaults))
    found = dict(zip((each.arg for each in given), [*without, *node.args.defaults], strict=True))
    return found | dict(zip((each.arg for each in node.args.kwonlyargs), node.args.kw_defaults, strict=True))


def _place(node: ast.FunctionDef, name: str) -> int:
    """The position at which a call gives a parameter, -1 if it gives it by name alone."""
    names = [each.arg for each in [*node.args.posonlyargs, *node.args.args]]
    return names.index(name) if name in names else -1


def _without_switches(body: list[ast.stmt], names: list[str]) -> tuple[list[ast.stmt], str, bool]:
    """The statements but for the tests that switch the check off, those of the environment, and if there are others."""
    kept, switch, own = list(body), "", False
    stored = {part.id for each in body for part in ast.walk(each) if isinstance(part, ast.Name) and _binds(part)}
    for statement in body:
        if _condition(statement) is not None:
            break  # what comes behind a check switches nothing off
        found = _switch(statement)
        if found is not None:
            switch = f"{switch} and {found}" if switch else found
        elif not _own_switch(statement, {*names, *stored}):
            continue
        own = own or found is None
        kept.remove(statement)
    return kept, switch, own


def _binds(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _own_switch(node: ast.stmt, names: Collection[str]) -> bool:
    """True for `if not CHECKS_ENABLED: return True`, perhaps only where TorchScript does not compile."""
    if not isinstance(node, ast.If) or node.orelse or len(node.body) != 1:
        return False
    test, only = node.test, node.body[0]
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if asked is not test and isinstance(asked, ast.Call) and dotted(asked.func) == "torch.jit.is_scripting":
        return _own_switch(only, names)
    root = dotted(asked).partition(".")[0] if isinstance(asked, (ast.Name, ast.Attribute)) else ""
    return bool(root) and root not in names and isinstance(only, ast.Return) and _is_constant(only.value, True)


def _flag(node: ast.stmt) -> str | None:
    """The name that chooses between an exception and an answer: `if not ok: if raises: raise ...`."""
    if not isinstance(node, ast.If) or node.orelse or _denied(node.test) is None:
        return None
    inner = node.body[0]
    chooses = isinstance(inner, ast.If) and not inner.orelse and _only_raises(inner.body)
    asked = inner.test if chooses and isinstance(inner, ast.If) else None
    return asked.id if isinstance(asked, ast.Name) else None


def _answers_false(node: ast.stmt, body: list[ast.stmt]) -> bool:
    """True for a check that answers False, or nothing, where it does not raise."""
    rest = node.body[1:] if isinstance(node, ast.If) else []
    if not rest:
        return node is body[-1]
    only = rest[0]
    return len(rest) == 1 and isinstance(only, ast.Return) and _answer(only) in (False, None)


def _answer(node: ast.Return) -> object:
    """The constant that a function returns; a string for anything else."""
    if node.value is None:
        return None
    return node.value.value if isinstance(node.value, ast.Constant) else "..."


def _is_constant(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _only_raises(body: list[ast.stmt]) -> bool:
    """True for an exception, perhaps with its message made before."""
    *before, last = body
    return isinstance(last, ast.Raise) and all(map(_tells, before))


def _tells(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return all(map(_tells, [*node.body, *node.orelse]))
    return isinstance(node, ast.Assign) and all(isinstance(each, ast.Name) for each in node.targets)


def _denied(test: ast.expr) -> str | None:
    """`ok` of `not ok`."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    return inner.id if isinstance(inner, ast.Name) else None


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
        given = called if isinstance(called, ast.Name) and called.id in names else None
        stored = [each.id for each in node.targets if isinstance(each, ast.Name)]
        if not set(stored).isdisjoint(names):
            return given is not None and stored == [given.id]  # `ok = ok()`: else it would be another condition
        return len(stored) == len(node.targets) and (given is not None or isinstance(node.value, ast.Name))
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
    elif isinstance(node, ast.If) and not node.orelse and (_only_raises(node.body) or _flag(node) is not None):
        return _denied(node.test)
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
