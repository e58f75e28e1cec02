"""Calls that do nothing but check: which argument is the condition, and its spelling for the device."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import all_given, is_literal, size_asked
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.values import BOOL, ValueKind
from graphmend_codemod.project.summary.check_functions import TORCH_CHECKS, CheckNote
from graphmend_codemod.rules.framework.site import Site

_SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class Checked(NamedTuple):
    """What a call checks: `every` for all elements of a tensor, and only where all of `switches` are true.

    `rest` is what else the call is given, which eager mode computes at each call.
    """

    condition: ast.expr
    message: ast.expr | None
    every: bool = False
    switches: tuple[str, ...] = ()
    rest: tuple[ast.expr, ...] = ()


class Counted(NamedTuple):
    """A comparison that counts chosen rows, on the device, and what has to hold for it."""

    text: str
    facts: tuple[str, ...]
    impure: str | None


def may_check(node: ast.Expr) -> bool:
    """True for a call that is given something to check: a look at the node alone."""
    call = node.value
    if not isinstance(call, ast.Call) or not dotted(call.func):
        return False
    given = all_given(call)
    return any(isinstance(each, (ast.Compare, ast.Call, ast.UnaryOp, ast.BinOp)) for each in given)


def checked(site: Site, call: ast.Call) -> Checked | None:
    """What a call checks, None for one that may do anything else.

    Known are torch's own, and functions of the project that do nothing but check one parameter.
    """
    qualified = site.resolve(call.func)
    if qualified is None or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = {word.arg: word.value for word in call.keywords}
    if None in given:
        return None
    note = _torch_note(qualified) if qualified in TORCH_CHECKS else _note_of(site, qualified)
    if note is None or not _raises(call, given, note):
        return None
    found = _argument(call, given, note.place, note.condition)
    said = _argument(call, given, note.told, note.message)
    if found is None or isinstance(found, ast.Lambda):
        return None
    if qualified in TORCH_CHECKS and not note.every and site.value(found).is_tensor:
        return None  # torch raises a TypeError, whatever the tensor holds
    switches = [note.switch] if note.switch else []
    if note.probe:
        asked = "False" if note.place == 0 else f"{note.condition}=False"
        switches.append(f"not {site.text(call.func)}({asked}, {note.flag}=False)")
    told = said.body if isinstance(said, ast.Lambda) else said
    rest = tuple(each for each in all_given(call) if each is not found and not isinstance(each, ast.Lambda))
    return Checked(found, told, note.every, tuple(switches), rest)


def _torch_note(qualified: str) -> CheckNote:
    place, told = TORCH_CHECKS[qualified]
    return CheckNote(place, told, "cond", "message", "_all" in qualified, "", -1, False, "")


def _note_of(site: Site, qualified: str) -> CheckNote | None:
    """What is known of a function of the project, None where another may be put into its place."""
    index = site.evaluator.scope.index
    facts = index.function(qualified)
    if facts is None or not facts.check:
        return None
    name = qualified.rpartition(".")[2]
    replaced = any(write.receiver and write.receiver != "self" for _, write in index.writers(name))
    return None if replaced else CheckNote.read(facts.check)


def _raises(call: ast.Call, given: Mapping[str | None, ast.expr], note: CheckNote) -> bool:
    """False where the call may want an answer in the place of an exception."""
    asked = _argument(call, given, note.flag_place, note.flag) if note.flag else None
    return asked is None or (isinstance(asked, ast.Constant) and asked.value is True)


def _argument(call: ast.Call, given: Mapping[str | None, ast.expr], place: int, name: str) -> ast.expr | None:
    if 0 <= place < len(call.args):
        return call.args[place]
    return given.get(name)


def counted(site: Site, node: ast.expr) -> Counted | None:
    """`x[mask].numel() == n` as `mask.sum() == n`; None for anything else."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in _SIGNS:
        return None
    sides = [node.left, node.comparators[0]]
    found = [_count(site, each) for each in sides]
    if all(each is None for each in found):
        return None
    texts: list[str] = []
    facts: list[str] = []
    impure = None
    for side, count in zip(sides, found, strict=True):
        texts.append(site.operand(side) if count is None else count[0])
        facts += [] if count is None else count[1]
        impure = impure or (site.judge(side).impure if count is None else None)
    return Counted(f"{texts[0]} {_SIGNS[type(node.ops[0])]} {texts[1]}", tuple(dict.fromkeys(facts)), impure)


def _count(site: Site, node: ast.expr) -> tuple[str, list[str]] | None:
    """How many elements or rows of `x[mask]` there are, and when."""
    chosen, elements = _chosen(site, node)
    if not isinstance(chosen, ast.Subscript) or not _is_plain(chosen.value) or not _is_plain(chosen.slice):
        return None
    mask, rows = site.value(chosen.slice), site.value(chosen.value)
    numbers = mask.dtype != BOOL and (mask.dtype or "").startswith("torch.")
    if mask.kind is ValueKind.PYTHON or rows.kind is ValueKind.PYTHON or numbers:
        return None
    facts = []
    for part, value in ((chosen.value, rows), (chosen.slice, mask)):
        if value.kind is not ValueKind.TENSOR or value.hint or site.flow.splits:
            facts.append(f"isinstance({site.text(part)}, {site.torch}.Tensor)")
    text = site.text(chosen.slice)
    facts += [f"{text}.dtype == {site.torch}.bool"] if mask.dtype != BOOL else []
    facts += [f"{text}.shape == {site.text(chosen.value)}.shape"] if elements else []
    return f"{text}.sum()", facts


def _chosen(site: Site, node: ast.expr) -> tuple[ast.expr | None, bool]:
    """`x[mask]` of `x[mask].numel()`, with True, and of `len(x[mask])` or `x[mask].shape[0]`, with False."""
    if (asked := size_asked(node)) is not None:
        return asked[0] if is_literal(asked[1], 0) else None, False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return (node.func.value, True) if node.func.attr == "numel" and not node.args else (None, False)
    length = isinstance(node, ast.Call) and len(node.args) == 1 and site.resolve(node.func) == "builtins.len"
    return node.args[0] if length else None, False  # type: ignore[attr-defined]


def _is_plain(node: ast.expr) -> bool:
    return bool(dotted(node))
