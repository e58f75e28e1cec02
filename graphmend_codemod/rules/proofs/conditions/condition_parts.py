"""Parts of a test that read a tensor by a call or as a number: `torch.equal(a, b)`, `t.item() != n`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.hazards import FREE, Hazards
from graphmend_codemod.analysis.patterns import is_attribute, item_of
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, INT64, ValueKind
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.exact_numbers import Compared, compared, reads_unknown
from graphmend_codemod.rules.proofs.conditions.random_draws import draws_one
from graphmend_codemod.rules.proofs.number_read import number_read


def is_registered(site: Site, node: ast.expr) -> bool:
    """True for a buffer or parameter of the instance: nothing else is registered as one."""
    own = is_attribute(node, site.evaluator.scope.self_name)
    fact = site.evaluator.scope.attribute(node.attr) if own and isinstance(node, ast.Attribute) else None
    return fact is not None and fact.kind in {AttributeKind.BUFFER, AttributeKind.PARAMETER}


class Part(NamedTuple):
    """A part of a test, as text for the device; the fields mean what those of `Condition` do.

    `tight` is an operand of `&`, `inverse` the opposite. `any_shape` is true where one element may have dimensions.
    `single` are the trace-time conditions under which it has one element, of a part that may have several.
    """

    text: str
    tight: str
    inverse: str
    several: str | None = None
    hazards: Hazards = FREE
    facts: tuple[str, ...] = ()
    any_shape: bool = False
    skipped: str | None = None
    if_skipped: tuple[str, ...] = ()
    single: tuple[str, ...] = ()

    @property
    def inverted(self) -> Part:
        """The part for the negated test."""
        tight = self.inverse if self.inverse.startswith("~") else f"({self.inverse})"
        return self._replace(text=self.inverse, tight=tight, inverse=self.text)


def unfit(reason: str) -> Part:
    """A part that cannot be written for the device, and why."""
    return Part("", "", "", hazards=Hazards(impure=reason))


def elements_asked(site: Site, node: ast.expr) -> Part | None:
    """`any(t)` and `all(t)`, for which Python asks the truth of each row of a tensor: each has to be one element."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    called = site.resolve(node.func)
    if called not in {"builtins.any", "builtins.all"} or not site.value(node.args[0]).is_tensor:
        return None
    tensor = node.args[0]
    sized = _as_large(site, tensor)
    text = site.text(sized)
    if not isinstance(sized, (ast.Name, ast.Attribute)):
        return unfit(f"`{speculation.short(tensor)}` is asked for its sizes; assign it to a variable first")
    asked = site.operand(tensor) if site.value(tensor).dtype == BOOL else f"({site.operand(tensor)} != 0)"
    asked = f"{asked}.{called.removeprefix('builtins.')}()"
    return Part(asked, asked, f"~{asked}", facts=(f"{text}.dim() > 0", f"{text}.numel() == {text}.shape[0]"))


def _as_large(site: Site, tensor: ast.expr) -> ast.expr:
    """The tensor whose sizes another one has that is compared with a number."""
    if isinstance(tensor, ast.Compare) and len(tensor.ops) == 1:
        sides = [each for each in (tensor.left, tensor.comparators[0]) if not site.value(each).is_python]
        tensor = sides[0] if len(sides) == 1 else tensor
    return tensor


_ARGUMENTS = {"equal": 2, "allclose": 2, "is_nonzero": 1}


def _predicate(site: Site, node: ast.Call) -> tuple[str, list[ast.expr]] | None:
    """`equal`, `allclose` or `is_nonzero` with the tensors that it takes, as a function of torch or as a method."""
    if isinstance(node.func, (ast.Name, ast.Attribute)) and (name := torch_function(site.resolve(node.func))):
        arguments = list(node.args)
    elif isinstance(node.func, ast.Attribute) and site.value(node.func.value).kind is ValueKind.TENSOR:
        name, arguments = node.func.attr, [node.func.value, *node.args]
    else:
        return None
    wanted = _ARGUMENTS.get(name)
    return (name, arguments) if wanted is not None and len(arguments) >= wanted else None


def comparison_call(site: Site, node: ast.expr) -> Part | None:
    """`torch.equal(a, b)`, `torch.allclose(a, b)` and `torch.is_nonzero(a)`, which return a Python bool."""
    found = _predicate(site, node) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or found is None or any(isinstance(part, ast.Starred) for part in node.args):
        return None
    name, arguments = found
    tensors = arguments[: _ARGUMENTS[name]]
    if name == "is_nonzero":
        tensor = site.operand(tensors[0])
        any_shape = not site.value(tensors[0]).is_single
        single = (has_one_element(site, tensors[0]),) if any_shape else ()
        return Part(f"{tensor} != 0", f"({tensor} != 0)", f"{tensor} == 0", any_shape=any_shape, single=single)
    if name == "equal":
        for argument in tensors:
            if not isinstance(argument, (ast.Name, ast.Attribute)):
                return unfit(f"`{speculation.short(argument)}` would be computed twice; assign it to a variable first")
        left, right = (site.operand(tensor) for tensor in tensors)
        text = f"({left} == {right}).all()"
        return Part(text, text, f"~{text}", facts=(f"{left}.shape == {right}.shape",))
    rest = [site.text(argument) for argument in [*arguments, *node.keywords]]
    text = f"{site.torch}.isclose({', '.join(rest)}).all()"
    return Part(text, text, f"~{text}")


def has_one_element(site: Site, tensor: ast.expr) -> str:
    """The trace-time condition that a tensor has one element; compared with a number, it has as many as before."""
    tensor = _as_large(site, tensor)
    text = site.text(tensor)
    whole = isinstance(tensor, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return f"{text if whole else f'({text})'}.numel() == 1"


OPPOSITES: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
}


def number_of(site: Site, node: ast.expr, *, any_shape: bool = False) -> ast.expr | None:
    """`t` for `t.item()`, `int(t)` and `float(t)`, where `t` is a 0-dim tensor.

    With `any_shape` also a name of a tensor, which can be asked for its number of elements, and a draw of one element.
    """
    inner = node
    while (read := number_read(site, inner)) is not None:
        inner = read
    value = site.value(inner)
    known = value.is_single or is_registered(site, inner)
    known = known or (any_shape and (draws_one(site, inner) or (value.is_tensor and isinstance(inner, ast.Name))))
    return inner if inner is not node and known else None


def numbers_compared(site: Site, node: ast.expr) -> Part | None:
    """`t.item() != n`: the tensors themselves compare in the same way where they are integers."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in OPPOSITES:
        return None
    sides = (node.left, node.comparators[0])
    found = [number_of(site, side, any_shape=True) for side in sides]
    if found == [None, None]:
        # Of what is known for a tensor, `number_of` tells.
        unread = [each for each in sides if (inner := item_of(each)) is not None and not site.value(inner).is_tensor]
        reason = reads_unknown(unread[0]) if unread else None
        return None if reason is None else unfit(reason)
    flags = [inner for inner in found if inner is not None and not site.value(inner).is_single]
    small = any(isinstance(side, ast.Constant) and side.value in range(128) for side in sides)
    if any(is_registered(site, each) for each in flags) and not small:
        return None  # what a buffer of unknown dtype may not hold exactly
    try:
        (left, right), facts = _as_compared(site, sides, found)
    except NotProven as why:
        return unfit(str(why))
    sign, opposite = OPPOSITES[type(node.ops[0])]
    text = f"{left} {sign} {right}"
    hazards = Hazards(raises=f"`{speculation.short(node)}` compares Python numbers")
    inverse = f"{left} {opposite} {right}"
    values = [site.value(inner) for inner in found if inner is not None]
    whole = all(value.dtype == BOOL or (value.dtype == INT64 and not value.hint) for value in values)
    if not whole and sign not in {"==", "!="}:
        inverse = f"~({text})"  # nan is neither more nor less
    single = tuple(has_one_element(site, flag) for flag in flags if not draws_one(site, flag))
    return Part(text, f"({text})", inverse, hazards=hazards, facts=tuple(facts), any_shape=bool(flags), single=single)


def _as_compared(
    site: Site, sides: tuple[ast.expr, ast.expr], found: Sequence[ast.expr | None]
) -> tuple[list[str], list[str]]:
    """Both sides of a comparison on the device, and what has to hold for that; NotProven where they cannot be written.

    `found` are the tensors whose numbers the sides are; None for any other side.
    """
    is_tensor = [site.value(side).kind is ValueKind.TENSOR for side in sides]
    for place, side in enumerate(sides):
        if found[place] is None and is_tensor[place] and not site.value(side).is_single:
            read = speculation.short(sides[1 - place])
            raise NotProven(f"`{read}` reads a tensor to compare it with another; compare the tensors")
    texts, facts = list[str](), list[str]()
    for place, (side, inner) in enumerate(zip(sides, found, strict=True)):
        other = sides[1 - place]
        # With a tensor a number is compared in the dtype of that.
        beside = other if is_tensor[1 - place] else found[1 - place]
        made = compared(site, inner, other, beside) if inner is not None else Compared(site.operand(side))
        if isinstance(made, str):
            raise NotProven(made)
        texts.append(made.text)
        facts += [each for each in made.asked if each not in facts]
    for inner, side in zip(found, sides, strict=True):
        fact = whole_number(site, side, inner) if inner is not None else ""
        if fact is None:
            raise NotProven(f"`{speculation.short(side)}` truncates to an integer, and its dtype is unknown")
        facts += [fact] if fact else []
    return texts, facts


def whole_number(site: Site, side: ast.expr, inner: ast.expr) -> str | None:
    """The trace-time condition under which `int(t)` is the number in `t`, empty if it always is, None if none is known.

    An integer dtype is asked of what `max` and `min` were taken of.
    """
    if not any(
        isinstance(part, ast.Call) and site.resolve(part.func) == "builtins.int" for part in _calls(side, inner)
    ):
        return ""
    source: ast.expr = inner
    called = inner.func if isinstance(inner, ast.Call) and not inner.args and not inner.keywords else None
    if isinstance(called, ast.Attribute) and called.attr in {"sum", "max", "min", "amax", "amin"}:
        source = called.value
    dtypes = {site.value(inner).dtype or "", site.value(source).dtype or ""}
    if any(dtype == BOOL or dtype.startswith(("torch.int", "torch.uint")) for dtype in dtypes):
        return ""
    root = source
    while isinstance(root, ast.Attribute):
        root = root.value
    return f"not {site.text(source)}.is_floating_point()" if isinstance(root, ast.Name) else None


def _calls(side: ast.expr, inner: ast.expr) -> Iterator[ast.expr]:
    """The calls around `inner` that make a number of it."""
    while side is not inner and isinstance(side, ast.Call):
        yield side
        side = side.func.value if isinstance(side.func, ast.Attribute) else side.args[0]
