"""Numbers that are read out of a tensor in every call, and used in some: `n = int(self.steps)` and `if self.training:`.

Where a test of Python says that nothing uses the number, the compile path does not read it.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.symbols.skipped_code import never_read

_CASTS = frozenset({"builtins.int", "builtins.float"})
_COPIES = frozenset("cpu detach clone float double long int squeeze item".split())
_REDUCTIONS = frozenset("max min sum mean".split())
_OF_ANY = (ast.Eq, ast.NotEq)
_COMPARISONS = (*_OF_ANY, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COMMENT = "# Nothing uses the number where this is so, and to read it back would end the graph."


class _Reading(NamedTuple):
    """A name or attribute that a number is read from, the methods in between, innermost first, and a cast if any.

    With `compared`, the methods are those of a comparison of it with a number.
    """

    owner: ast.expr
    methods: tuple[str, ...]
    cast: str | None
    compared: ast.cmpop | None = None


def not_read(site: Site, node: ast.Assign) -> Edit | None:
    """The edit that leaves `n = t.item()` out of compiled code where a test says that nothing uses `n`.

    NotProven where it may raise an error.
    """
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or site.torch is None or site.place.in_try:
        return None
    if (reading := _reading(site, node.value)) is None:
        return None
    unused = never_read(site, node, target.id)
    if not unused:
        return None
    conditions = [site.compiling, *unused, *_raises_nothing(site, reading)]
    return two_paths(site, node, conditions, [_COMMENT, f"{target.id} = None"])


def _reading(site: Site, node: ast.expr) -> _Reading | None:
    """What `t.item()` and `int(t.cpu().data)` read; None for what may do anything else."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return _below(node, None)
    cast = site.resolve(node.func)
    if cast not in _CASTS or len(node.args) != 1:
        return None
    given = node.args[0]
    found = _below(given, cast)
    if found is None or found.methods:
        return found
    is_data = isinstance(given, ast.Attribute) and given.attr == "data"
    return found if is_data or site.value(given).kind is ValueKind.TENSOR else None


def _below(node: ast.expr, cast: str | None) -> _Reading | None:
    """A name or attribute under methods that compute or copy: nobody can tell that they did not run."""
    methods: list[str] = []
    while isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        if isinstance(node, ast.Attribute):
            node = node.value
            continue
        called = node.func
        if not isinstance(called, ast.Attribute) or called.attr not in _COPIES | _REDUCTIONS:
            return None
        if node.args or node.keywords:
            return None
        methods.insert(0, called.attr)
        node = called.value
    compared: ast.cmpop | None = None
    given: ast.expr = node
    if isinstance(given, ast.Compare) and _REDUCTIONS.intersection(methods) == {"sum"}:
        if len(given.ops) != 1 or type(given.ops[0]) not in _COMPARISONS or not _is_plain(given.comparators[0]):
            return None
        node, compared = given.left, given.ops[0]
    return None if dotted(node) is None else _Reading(node, tuple(methods), cast, compared)


def _is_plain(node: ast.expr) -> bool:
    """True for a number that any tensor can be compared with: a longer integer has no dtype."""
    value = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    found = value.value if isinstance(value, ast.Constant) else None
    return isinstance(found, float) or (isinstance(found, int) and found < 2**31)


def _raises_nothing(site: Site, reading: _Reading) -> list[str]:
    """Conditions under which eager mode reads the number without an error; NotProven where there are none."""
    text, methods = site.operand(reading.owner), reading.methods
    asked = [f"isinstance({site.text(reading.owner)}, {site.torch}.Tensor)"]
    if reading.compared is not None:  # how many there are is a number in any case
        return asked if type(reading.compared) in _OF_ANY else [*asked, f"not {text}.is_complex()"]
    reduced = next((each for each in methods if each in _REDUCTIONS), None)
    if reduced is None:
        asked.append(f"{text}.numel() == 1")
    elif reduced in {"max", "min"}:
        asked.append(f"{text}.numel() > 0")
    of_floats = "mean" in methods and {"float", "double"}.isdisjoint(methods[: methods.index("mean")])
    of_integers = reading.cast == "builtins.int" and {"int", "long"}.isdisjoint(methods)  # `int` refuses nan and inf
    if of_integers and "mean" in methods:
        raise NotProven(f"`{short(reading.owner)}` may hold nan, of which there is no integer")
    if of_floats or of_integers:
        asked.append(f"{'' if of_floats else 'not '}{text}.is_floating_point()")
    if not of_floats and (reading.cast is not None or not {"max", "min"}.isdisjoint(methods)):
        asked.append(f"not {text}.is_complex()")
    return asked
