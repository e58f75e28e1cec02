"""Whether an attribute that is read in two statements holds the same in both."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.rules.framework.site import Site

_HARMLESS = frozenset(f"builtins.{each}" for each in "len range int float bool min max sum abs isinstance".split())


def why_it_may_change(site: Site, name: str, lines: range) -> str | None:
    """What may give the attribute `name` another value on these lines of the function; None if nothing does.

    Only torch's functions, methods of tensors, and a few of Python's own are known to leave attributes alone; a call of
    a layer may run hooks.
    """
    if any(is_loud_property(site.evaluator, each) for each in name.split(".")[1:]):
        return f"`{name}` is a property that may do more than read; assign it to a variable first"
    for part in ast.walk(site.evaluator.scope.node):
        if getattr(part, "lineno", 0) not in lines:
            continue
        stored = isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load)
        attributes = isinstance(part, ast.Attribute) or (
            stored and any(isinstance(each, ast.Attribute) for each in ast.walk(part))
        )
        if (stored and attributes) or (isinstance(part, ast.Call) and not _leaves_alone(site, part)):
            return f"`{short(part)}` may change `{name}`; assign it to a variable first"
    return None


def _leaves_alone(site: Site, call: ast.Call) -> bool:
    qualified = site.resolve(call.func)
    if qualified is None and isinstance(call.func, ast.Attribute):
        owner = site.value(call.func.value)
        return owner.is_tensor or isinstance(call.func.value, ast.Call) or call.func.attr in {"size", "dim", "numel"}
    return qualified in _HARMLESS or torch_function(qualified) is not None
