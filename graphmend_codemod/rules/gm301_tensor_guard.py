"""tensor-guard (GM301): a check of a tensor's values that raises.

`if (x < 0).any(): raise` and `assert t, f"..."` read the tensor back to Python at every call. Under `torch.compile`
the same check runs on the device: `torch._assert_async`, with the message as far as it is a constant. Eager mode runs
the original statement, word for word.

Compiled code raises RuntimeError instead of the original type, and on CUDA at the next synchronisation, after which
the CUDA context of the process cannot be used any more. What a call wrote into attributes before its check failed is
not there afterwards: a compiled function writes them when its graph has run.

The setting `guards` chooses: `assert` (default), `skip` (no check in compiled code) or `advice` (no edit). A guard
inside `try` is left alone: its exception is part of the control flow. So is one in an `except` handler, which compiled
code does not get to.
"""

from __future__ import annotations

import ast
import re

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.values import Kind
from graphmend_codemod.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.base import Clean, Contract, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.conditions import Condition, split
from graphmend_codemod.rules.gm201_log_call import guard
from graphmend_codemod.rules.site import Site

_PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[diouxXeEfFgGcrsa]")
_BRACES = re.compile(r"(?<!\{)\{[^{}]*\}")

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor = None):
        ...
        return x * 2
"""

rule = Rule(
    code="GM301",
    slug="tensor-guard",
    title="check tensor values on the device under torch.compile",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(compiled_exceptions="RuntimeError, on CUDA at the next synchronisation; none with guards = skip"),
    examples=(
        Example(
            before="""
            if (x < 0).any():
                raise ValueError("x must not be negative")
            """,
            after="""
            if torch.compiler.is_compiling():
                torch._assert_async(~(x < 0).any(), "x must not be negative")
            elif (x < 0).any():
                raise ValueError("x must not be negative")
            """,
            setup=_SETUP,
            inputs=("torch.ones(3)",),
        ),
        Example(
            before="""
            assert (x >= 0).all(), f"negative: {x.min()}"
            """,
            after="""
            if torch.compiler.is_compiling():
                torch._assert_async((x >= 0).all(), "negative: ...")
            else:
                assert (x >= 0).all(), f"negative: {x.min()}"
            """,
            setup=_SETUP,
            inputs=("torch.ones(3)",),
        ),
        Example(
            before="""
            assert (x > 3).sum().item() <= 2
            """,
            after="""
            if torch.compiler.is_compiling():
                torch._assert_async((x > 3).sum() <= 2, "assertion failed")
            else:
                assert (x > 3).sum().item() <= 2
            """,
            setup=_SETUP,
            inputs=("torch.ones(3)",),
        ),
        Declined(
            source="""
            try:
                if (x < 0).any():
                    raise ValueError("negative")
            except ValueError:
                x = x.abs()
            """,
            because="inside `try`",
            setup=_SETUP,
        ),
        Declined(
            source="""
            try:
                mask = x.view(-1, 2)
            except RuntimeError as error:
                if x.isnan().any():
                    raise ValueError("not a number") from error
                raise
            """,
            because="in an `except` handler",
            setup=_SETUP,
        ),
        Clean(
            source="""
            assert x.dim() == 1, f"wrong shape {x.shape}"
            """,
            setup=_SETUP,
        ),
    ),
)


@rule.on(ast.If, candidate="test")
def raising_branch(site: Site, node: ast.If) -> Verdict | None:
    """`if t: raise ...`."""
    if len(node.body) != 1 or not isinstance(node.body[0], ast.Raise) or (condition := split(site, node.test)) is None:
        return None
    message = f"raises by the value of a tensor: `{purity.short(node.test)}`"
    reason = _why_not(site, condition)
    if reason is not None:
        return Verdict(message, declined=reason, safety=Safety.ADVICE if site.settings.guards == "advice" else None)
    if site.settings.guards == "skip":
        loose = isinstance(node.test, (ast.BoolOp, ast.IfExp, ast.NamedExpr)) and not (
            isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        )
        opening, closing = ("(", ")") if loose else ("", "")
        spliced = (f"not {site.compiling} and {opening}", site.original(node.test), closing)
        return Verdict(message, edit=Edit((Replacement(site.span(node.test), spliced),), imports=site.imports))
    if node.orelse:
        return Verdict(message, declined="the guard has an `else`")
    conjuncts = [*(site.operand_of_and(operand) for operand in condition.static), *condition.facts]
    check = _check(site, condition.inverse, node.body[0].exc)
    return Verdict(message, edit=site.in_front(node, conjuncts, [check]))


@rule.on(ast.Assert, candidate="test")
def assertion(site: Site, node: ast.Assert) -> Verdict | None:
    """`assert t, message` with a message that is no constant; Dynamo traces the others itself."""
    if (condition := split(site, node.test)) is None:
        return None
    traced = all(site.value(tensor).kind is Kind.TENSOR for tensor in condition.tensors)
    plain = traced and len(condition.tensors) == 1 and not condition.facts and not _combines(condition)
    if plain and (node.msg is None or (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str))):
        return None
    message = f"asserts the value of a tensor: `{purity.short(node.test)}`"
    reason = _why_not(site, condition)
    if reason is not None:
        return Verdict(message, declined=reason, safety=Safety.ADVICE if site.settings.guards == "advice" else None)
    if site.settings.guards == "skip":
        return Verdict(message, edit=guard(site, node))
    check = _check(site, condition.text, node.msg)
    static = [site.operand_of_and(operand) for operand in condition.static]
    header = site.header("if", [site.compiling, *static, *condition.facts])
    parts = (f"{header}\n    ", check, "\nelse:\n    ", site.original(node, 1))
    return Verdict(message, edit=Edit((Replacement(site.span(node), parts),), imports=site.imports))


def _why_not(site: Site, condition: Condition) -> str | None:
    if site.torch is None:
        return "the name `torch` is taken by something else in this module"
    if site.place.in_try:
        return "the guard stands inside `try`, and its exception may be caught"
    if site.place.in_handler:
        return "the guard stands in an `except` handler, and says more of what was raised before"
    if condition.several is not None and _combines(condition):
        return f"`{condition.several}` may hold more than one element"
    if condition.verdict.impure is not None:
        return condition.verdict.impure
    if site.settings.guards == "advice":
        return 'the setting `guards = "advice"` leaves it to you'
    return None


def _combines(condition: Condition) -> bool:
    """True when several tensors decide. A single one may have any shape: `_assert_async` takes what `if` would take."""
    return len(condition.tensors) > 1 or any(isinstance(node, ast.BoolOp) for node in walk(condition.tensors[0]))


def _check(site: Site, text: str, described: ast.expr | None) -> str:
    message, room = _message(described), site.line_limit - site.indentation(2) - len('"",')
    literal = _quoted(message)
    if len(literal) - len('""') > room:
        literal = ("\n" + " " * 8).join(map(_quoted, _pieces_of(message, room)))
    return site.call(f"{site.torch}._assert_async(", [text, literal], deeper=1)


def _pieces_of(text: str, room: int) -> list[str]:
    """The text in pieces, cut behind spaces, that fit into a line each."""
    pieces = [""]
    for word in re.findall(r"\S*\s+|\S+$", text):
        if pieces[-1] and len(_quoted(pieces[-1] + word)) - len('""') > room:
            pieces.append("")
        pieces[-1] += word
    return pieces


def _message(node: ast.expr | None) -> str:
    """The constant text of a message or an exception, with `...` for what eager mode would fill in."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        text = _template(node.args[0]) if node.args else None
        return text if text is not None else name
    text = _template(node) if node is not None else None
    if text is None:
        text = ast.unparse(node) if node is not None else "assertion failed"
    return text


def _template(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        text = _template(node.left)
        return None if text is None else _PERCENT.sub("...", text).replace("%%", "%")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _template(node.left), _template(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        text = _template(node.func.value)
        return None if text is None else _BRACES.sub("...", text).replace("{{", "{").replace("}}", "}")
    return None


def _piece(node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        return "..."
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _quoted(text: str) -> str:
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f'"{escaped}"'
