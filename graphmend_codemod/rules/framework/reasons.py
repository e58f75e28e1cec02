"""Why a fix is declined: how a proof says so, and reasons that several rules give, with the way out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.speculation import short

if TYPE_CHECKING:
    from graphmend_codemod.rules.framework.site import Site


class NotProven(Exception):
    """Raised where a proof fails; its text is the reason for declining the fix, with a way out."""

    def anew(self) -> NotProven:
        """The same reason to keep or to raise later: the frames that a raised one refers to hold whole syntax trees."""
        return type(self)(*self.args)


AS_OPERATOR = "manually make the loop one operator with `torch.library.custom_op`"
"""The way out of a loop that cannot be outlined."""


def with_way_out(reason: str, way_out: str) -> str:
    """The reason, with a way out where it names none itself."""
    return reason if not way_out or ";" in reason else f"{reason}; {way_out}"


def demand_torch(site: Site) -> None:
    """NotProven unless importing the module binds torch, also by another name: helpers are made at that time."""
    if site.torch is None or not site.torch_at_import:
        raise NotProven(name_taken() if site.torch is None else "`torch` may not be bound when the module is imported")


def name_taken(name: str = "torch") -> str:
    """The fix needs `name`, and this module binds it to something other than the module or builtin."""
    return f"this module uses the name `{name}` for something else; rename that"


def cannot_infer_tensor(site: Site, node: ast.expr) -> str:
    """Nothing in the source shows that `node` is a Tensor; says which annotation would."""
    reason = f"cannot infer that `{short(node)}` is a Tensor"
    source = _annotated(node)
    if isinstance(source, ast.Attribute):
        return f"{reason}; annotate the attribute in the class: `{source.attr}: torch.Tensor`"
    if source is None or not site.evaluator.scope.is_local(source.id):
        return f"{reason}; assign it to an annotated variable first: `value: torch.Tensor = ...`"
    return f"{reason}; annotate `{source.id}: torch.Tensor`"


def _annotated(node: ast.expr) -> ast.Name | ast.Attribute | None:
    """The variable, or the attribute of `self`, whose type decides the type of `node`."""
    while not isinstance(node, ast.Name):
        if is_attribute(node, "self"):
            return node
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, (ast.BinOp, ast.Compare)):
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None
    return None if node.id == "self" else node  # a method or a layer of the instance, whose result has no name yet
