"""Integers that NumPy sorts and makes unique, where only their numbers are used: `for axis in np.unique(axes)`."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import dotted, parents_in, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.compile_paths import in_front
from graphmend_codemod.rules.proofs.numbers.integer_arrays import whole_numbers

_COMMENT = "# The same integers in a list: an array would be a tensor, and its elements no numbers."
_INTEGERS = frozenset({"builtins.int", "numpy.int64"})
_ITERATES = frozenset({"builtins.sorted", "builtins.reversed", "builtins.list", "builtins.tuple"})


def unique_numbers(site: Site, node: ast.Assign) -> ast.expr | None:
    """`axes` in `unique = np.unique(axes).astype(int)`."""
    call = node.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "astype":
        whole = len(call.args) == 1 and not call.keywords and site.resolve(call.args[0]) in _INTEGERS
        call = call.func.value if whole else call
    if not isinstance(call, ast.Call) or site.resolve(call.func) != "numpy.unique":
        return None
    plain = len(call.args) == 1 and not call.keywords and len(node.targets) == 1
    named = plain and isinstance(node.targets[0], ast.Name) and dotted(call.args[0]) is not None
    return call.args[0] if named else None


def list_in_front(site: Site, node: ast.Assign, given: ast.expr) -> Edit:
    """The statement with a list in place of the array under `torch.compile`; NotProven if anything can tell."""
    target = node.targets[0]
    assert isinstance(target, ast.Name)
    each = site.free_name("n", "number", "axis")
    exact = f"all(-(2**63) <= {each} < 2**63 for {each} in {site.text(given)})"  # else an array of floats, or unsigned
    conditions = [site.compiling, *whole_numbers(site, given), exact]
    if (taken := next((each for each in ("sorted", "set") if not _is_builtin(site, each)), None)) is not None:
        raise NotProven(name_taken(taken))
    _demand_only_numbers(site, node, target.id)
    lines = [_COMMENT, f"{target.id} = sorted(set({site.text(given)}))"]
    return Edit((in_front(site, [node], conditions, lines),), imports=site.imports)


def _is_builtin(site: Site, name: str) -> bool:
    return site.resolve(ast.Name(name, ast.Load())) == f"builtins.{name}"


def _demand_only_numbers(site: Site, node: ast.Assign, name: str) -> None:
    """NotProven unless the function reads only `int(n)` of each element `n`, and the number of elements."""
    function = site.evaluator.scope.node
    parents = parents_in(function)
    own = {id(part) for part in ast.walk(node)}
    steps: set[str] = set()
    for part in walk(function):
        if not is_name(part, name) or id(part) in own:
            continue
        above = parents[id(part)]
        if isinstance(above, ast.Call) and site.resolve(above.func) == "builtins.len":
            continue
        iterates = isinstance(above, ast.Call) and site.resolve(above.func) in _ITERATES and above.args[:1] == [part]
        loop = parents[id(above)] if iterates else above
        iterated = isinstance(loop, (ast.For, ast.comprehension)) and loop.iter in (above, part)
        if not isinstance(part.ctx, ast.Load) or not iterated or not isinstance(loop.target, ast.Name):  # type: ignore[attr-defined]
            raise NotProven(f"`{short(above)}` may need an array; use a list of its numbers")
        steps.add(loop.target.id)  # type: ignore[attr-defined]
    for part in walk(function):
        if isinstance(part, ast.Name) and part.id in steps and isinstance(part.ctx, ast.Load):
            call = parents[id(part)]
            if not isinstance(call, ast.Call) or site.resolve(call.func) != "builtins.int" or len(call.args) != 1:
                raise NotProven(f"`{short(call)}` may need a number of NumPy; write `int({part.id})`")
