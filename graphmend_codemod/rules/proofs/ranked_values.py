"""`min` and `max` with a key, which Dynamo traces for constants alone.

A helper compares the keys as Python does: the first of several wins, and a nan is neither smaller nor larger.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import elements_of, has_stars, is_none
from graphmend_codemod.analysis.scope import parameters
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.twin import Twin, either

_TEXT = '''
def _{name}_while_tracing(*given, key):
    """`{name}(..., key=key)` for torch.compile, which traces it for constants alone."""
    values, ranks = [], []
    for value in given[0] if len(given) == 1 else given:
        values.append(value)
        ranks.append(key(value))
    if not values:
        return {name}(values, key=key)
    best = 0
    for place in range(1, len(values)):
        if ranks[place] {sign} ranks[best]:
            best = place
    return values[best]'''
_SIGNS = {"builtins.min": "<", "builtins.max": ">"}


def ranked(site: Site, statement: ast.stmt, call: ast.Call) -> Twin | None:
    """A helper in the place of `min`; None for what Dynamo traces, and for keys that are tensors: it breaks there, too.

    NotProven for a call that gets more than a key.
    """
    qualified = site.resolve(call.func) or ""
    words = {word.arg: word.value for word in call.keywords}
    if qualified not in _SIGNS or is_none(words.get("key")) or not call.args or _is_of_constants(site, call):
        return None
    if isinstance(key := words.get("key"), ast.Lambda) and gives_tensor(site, key.body):
        return None
    if has_stars(call) or len(words) > 1:
        raise NotProven("it is given more than values and a key; manually take the first of `sorted`")
    name = qualified.rpartition(".")[2]
    text = _TEXT.format(name=name, sign=_SIGNS[qualified]).strip("\n")
    return either(
        site, statement, call, f"_{name}_while_tracing", (Helper(f"_{name}_while_tracing", text, shared=True),)
    )


def gives_tensor(site: Site, body: ast.expr) -> bool:
    """True for a lambda that gives a tensor, or computes with a method that only tensors have."""
    called = (each.func for each in ast.walk(body) if isinstance(each, ast.Call) and not each.args)
    reduced = (isinstance(each, ast.Attribute) and each.attr in {"sum", "mean", "norm", "item"} for each in called)
    return any(reduced) or site.value(body).is_tensor


def _is_of_constants(site: Site, call: ast.Call) -> bool:
    """True for what Dynamo computes: of numbers and strings that are written out, of a range, and of a list of strings.

    Sizes may be symbols, which it does not compute with, so a list of integers may be none.
    """
    values = call.args[0] if len(call.args) == 1 else ast.Tuple(call.args)
    if isinstance(values, ast.Call):
        return site.resolve(values.func) == "builtins.range"
    if isinstance(values, ast.Name):
        return _holds_strings(site, values.id)
    listed = isinstance(values, (ast.List, ast.Tuple, ast.Set))
    return listed and all(isinstance(part, (ast.Constant, ast.UnaryOp)) for part in values.elts)  # type: ignore[attr-defined]


def _holds_strings(site: Site, name: str) -> bool:
    """True for a parameter that is annotated as `list[str]`."""
    kinds = [each.annotation for each in parameters(site.evaluator.scope.node) if each.arg == name]
    listed = [elements_of(each.slice) for each in kinds if isinstance(each, ast.Subscript)]
    return any(len(parts) == 1 and site.resolve(parts[0]) == "builtins.str" for parts in listed)
