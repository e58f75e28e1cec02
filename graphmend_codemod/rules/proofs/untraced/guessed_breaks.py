"""Breaks that only a guess tells of, from all that the file says: an edit asks anew while the code is traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.calls import keyword
from graphmend_codemod.analysis.patterns import elements_of, is_attribute, is_not, mentions, other_side, written_text
from graphmend_codemod.analysis.values import BOOL, ValueKind
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.ranked_values import gives_tensor
from graphmend_codemod.rules.proofs.untraced.arrays import made_of_array
from graphmend_codemod.rules.proofs.untraced.bindings import element_of, is_looped
from graphmend_codemod.rules.proofs.untraced.calls import SIZED, readback, sizes
from graphmend_codemod.rules.proofs.untraced.evidence import assigned, is_given_to_forward, is_registered
from graphmend_codemod.rules.proofs.untraced.guesses import (
    is_drawn,
    seems_drawn,
    seems_length,
    seems_mask,
    seems_number,
    seems_tensor,
)
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced
from graphmend_codemod.rules.proofs.untraced.known_floats import is_known_float
from graphmend_codemod.rules.proofs.untraced.layers import (
    copied,
    held_recurrent,
    held_transform,
    holds_layer,
    switched_off,
)
from graphmend_codemod.rules.proofs.untraced.subscripts import bounds, masked, unpacked
from graphmend_codemod.rules.proofs.untraced.tests import asserted, tested

_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_CASTS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "builtins.range", "builtins.round"})
_TAKES_FLOATS = frozenset({"builtins.int", "builtins.float"})
_DRAWN = (
    "Dynamo keeps the number in a tensor; manually draw it before the compiled function and pass it in, "
    "or draw it with `torch.rand`"
)


def guessed_at(site: Site, node: ast.expr) -> Untraced | None:
    """What seems to break the graph at a call, a subscript or the condition of a comprehension."""
    if any(node is test for each in site.evaluator.scope.outline.comprehensions for test in each.ifs):
        return tested(site, node) or seeming(site, node)
    if isinstance(node, ast.Subscript):
        return _indexed(site, node)
    if not isinstance(node, ast.Call):
        return None
    called = site.resolve(node.func)
    for number in (word.value for word in node.keywords if word.arg in NUMBERS and not _attends(node)):
        if site.value(number).is_tensor or is_registered(site, number):
            return Untraced(node, f"takes the tensor `{speculation.short(number)}` as a number (device sync)", _NUMBER)
    name = called or ""
    if name == "torch._assert":
        return asserted(site, node)
    if name in {"builtins.any", "builtins.all"}:
        return _any_of(site, node)
    if name in _CASTS or name.startswith("math."):
        return _cast(site, node, name == "builtins.range")
    if name.startswith("torch.distributions.") and _checks(node):
        return Untraced(node, "checks the arguments of a distribution", _CHECKS)
    if name.startswith("numpy.") and name[6:] in SIZED:
        sized = any(seems_tensor(site, each) for each in node.args)
        return Untraced(node, "uses a tensor as a size (device sync)", _SIZE) if sized else None
    return (
        _compared_by(site, node, called)
        or made_of_array(site, node, called)
        or _computed_with(site, node)
        or switched_off(site, node, called)
        or held_transform(site, node)
        or (_guessed_of_torch(site, node, called) if called is None or name.startswith("torch.") else None)
        or copied(site, node, called)
        or held_recurrent(site, node)
    )


def _guessed_of_torch(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """The same for a function of torch, or for a method of what may be a tensor."""
    given = [*sizes(node, called), *(node.args[:2] if called == "torch.randint" else ())]
    for each in given:
        if isinstance(each, ast.Starred) and seems_tensor(site, each.value):
            return unpacked(node, each, sure=False)
    if (length := _length(site, node, given)) is not None:
        return length
    if _is_ctc(site, node.func):
        return Untraced(node, "computes a CTC loss", _CTC)
    return Untraced(node, "output has a data-dependent shape", _TOTAL) if _repeats(site, node, called) else None


def guessed_size(site: Site, node: ast.expr) -> Untraced | None:
    """A call of torch, or of a method of tensors, with a size that seems to be a tensor: `torch.arange(longest)`.

    A slice of a tensor as well: `x[:, :longest]`.
    """
    if isinstance(node, ast.Subscript):
        if not isinstance(node.ctx, ast.Load) or not seems_tensor(site, node.value):
            return None
        found = any(is_count(site, each) for each in bounds(node))
        return Untraced(node, "uses a tensor as a size (device sync)", _LENGTH) if found else None
    if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
        return None
    called = site.resolve(node.func)
    of_torch = called is None or called.startswith("torch.")
    return _length(site, node, list(sizes(node, called))) if of_torch else None


def _length(site: Site, node: ast.Call, given: list[ast.expr]) -> Untraced | None:
    length = next((each for each in given if not isinstance(each, ast.Constant) and is_count(site, each)), None)
    if length is None:
        return None
    return Untraced(node, f"uses the tensor `{speculation.short(length)}` as a number (device sync)", _LENGTH)


_SIZE = "Dynamo traces arrays of NumPy as tensors; manually compute sizes with Python numbers"


_AS_NUMBER = "`{}` may be a tensor; manually take the size from `.shape`, or pass a Python number"
NUMBERS = frozenset({"alpha", "beta", "value"})
"""Keywords of torch's functions that take a Python number."""
_NUMBER = "manually multiply with the tensor instead, or pass a Python number"
_LENGTH = (
    "manually build a mask from the lengths (`torch.arange(n) < lengths[:, None]`), or pass them as Python numbers"
)


def _attends(node: ast.Call) -> bool:
    """True for attention, `attention(query=q, key=k, value=v)`, whose value is a tensor."""
    return any(word.arg == "key" for word in node.keywords)


_TOTAL = "manually pass `output_size`, where the total is known"
_CTC = "its operator saves a tensor of data-dependent shape; manually compute the loss outside the compiled function"


_CHECKS = "Dynamo does not trace the checks; manually pass `validate_args=False`"


def _checks(node: ast.Call) -> bool:
    flag = keyword(node, "validate_args")
    return isinstance(flag, ast.Constant) and flag.value is True


def is_count(site: Site, node: ast.expr) -> bool:
    """True for what seems to be a tensor in the place of a number."""
    return seems_length(site, node) or seems_number(site, node)


def _compared_by(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`sorted(t)`, `max(xs, key=lambda x: x.sum())`, `filter(lambda x: x.sum() > 0, xs)`, `map(int, t)`."""
    if called == "builtins.map" and len(node.args) == 2:
        cast = site.resolve(node.args[0]) in _CASTS
        read = cast and (seems_tensor(site, node.args[1]) or is_given_to_forward(site, node.args[1]))
        return readback(node, "Python scalars") if read else None
    if called not in _COMPARES:
        return None
    key = keyword(node, "key")
    tests = [key] if key is not None else node.args[:1] if _COMPARES[called] else []
    lambdas = [each.body for each in tests if isinstance(each, ast.Lambda)]
    decides = any(gives_tensor(site, each) for each in lambdas)
    plain = called == "builtins.sorted" and key is None and bool(node.args)
    if not decides and not (plain and seems_tensor(site, element_of(node.args[0], 0))):
        return None
    advice = "manually compute the numbers as one tensor and choose with `torch.argsort` or `torch.where`"
    return Untraced(node, "compares tensors to choose among them (device sync)", advice)


_COMPARES = {
    "builtins.sorted": False, "builtins.max": False, "builtins.min": False,
    "builtins.filter": True, "functools.reduce": True,
}  # fmt: skip
"""Functions that compare what they are given; True for those that call their first argument for it."""


def _computed_with(site: Site, node: ast.Call) -> Untraced | None:
    """`1 + self.jitter * random.uniform(-1, 1)`: with a tensor Dynamo computes, with a number of Python it does not."""
    if not is_drawn(site, node):
        return None
    for each in ast.walk(site.place.statement):
        if isinstance(each, ast.UnaryOp) and each.operand is node:
            return Untraced(each, "computes with a random number", _DRAWN)
        if isinstance(each, ast.BinOp) and node in (each.left, each.right):
            other = other_side(each, node)
            if _is_plain_number(site, other):
                return Untraced(each, "computes with a random number", _DRAWN)
    return None


def _is_plain_number(site: Site, node: ast.expr) -> bool:
    """True for what is a number of Python for certain, or as an attribute that is nowhere made as a tensor."""
    if isinstance(node, ast.BinOp):
        return _is_plain_number(site, node.left) and _is_plain_number(site, node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_plain_number(site, node.operand)
    if isinstance(node, ast.Constant) or site.value(node).is_python:
        return True
    own = is_attribute(node, site.evaluator.scope.self_name)
    return own and not is_registered(site, node) and not seems_tensor(site, node)


def _is_ctc(site: Site, function: ast.expr) -> bool:
    """True for `self.ctc_loss(...)`, which is one of several classes."""
    return (
        isinstance(function, ast.Attribute)
        and "ctc" in function.attr.lower()
        and holds_layer(site, function, "CTCLoss")
    )


def _repeats(site: Site, node: ast.Call, called: str | None) -> bool:
    """True for `torch.repeat_interleave(x, counts)` without the total, where the counts seem to be a tensor."""
    if getattr(node.func, "attr", "") != "repeat_interleave" or keyword(node, "output_size") is not None:
        return False
    counts = node.args[0 if called is None else 1 :][:1]
    asked = (seems_tensor, _is_stepped, is_given_to_forward, _is_looked_up)
    return bool(counts) and any(ask(site, counts[0]) for ask in asked)


def _is_looked_up(site: Site, node: ast.expr) -> bool:
    """True for `batch["counts"]`, of which nobody says what it is."""
    named = isinstance(node, ast.Subscript) and written_text(node.slice) is not None
    return named and site.value(node).kind is ValueKind.UNKNOWN


def _is_stepped(site: Site, node: ast.expr) -> bool:
    """True for the `d` of a comprehension over what the function is given: `for x, d in zip(xs, durations)`."""
    steps = site.evaluator.scope.outline.comprehensions
    return isinstance(node, ast.Name) and any(mentions(each.target, node.id) for each in steps)


def _any_of(site: Site, node: ast.Call) -> Untraced | None:
    """`all(n == lengths[0] for n in lengths)`."""
    made = node.args[0] if len(node.args) == 1 else None
    if not isinstance(made, (ast.GeneratorExp, ast.ListComp)) or not isinstance(made.elt, ast.Compare):
        return None
    if not any(seems_tensor(site, each) for each in compared(made.elt)):
        return None
    advice = "manually compare the whole tensor and reduce: `(lengths == lengths[0]).all()`"
    return Untraced(node, "converts comparisons of tensors to a Python bool (device sync)", advice)


def _cast(site: Site, node: ast.Call, counts: bool) -> Untraced | None:
    for each in node.args:
        if isinstance(each, ast.Constant):
            continue
        if counts and seems_drawn(site, each):
            return Untraced(node, "counts to a random number", _DRAWN)
        if seems_tensor(site, each) or (not counts and is_given_to_forward(site, each)):
            known = site.resolve(node.func) in _TAKES_FLOATS and is_known_float(site, each)
            return None if known else readback(node, "a Python scalar")
    return None


def _indexed(site: Site, node: ast.Subscript) -> Untraced | None:
    if _picks_by_tensor(site, node):
        way = "stack the list and index the stack" if isinstance(node.ctx, ast.Load) else "write into a tensor instead"
        advice = f"`{speculation.short(node.slice)}` may be a tensor; manually {way}"
        return Untraced(node, "indexes a list with a tensor (device sync)", advice)
    if isinstance(node.ctx, ast.Del) or site.value(node.value).is_python:
        return None
    if any(seems_drawn(site, each) for each in bounds(node)):
        return Untraced(node, "uses a random number as a size", _DRAWN)
    if any(seems_length(site, each) for each in bounds(node)):
        return Untraced(node, "uses a tensor as a size (device sync)", _LENGTH)
    tensor = next((each for each in bounds(node) if seems_number(site, each)), None)
    if tensor is not None:
        advice = _AS_NUMBER.format(speculation.short(tensor))
        return Untraced(node, "uses a tensor as a size (device sync)", advice)
    masks = [each for each in elements_of(node.slice) if not isinstance(each, (ast.Slice, ast.Constant))]
    if any(_is_position(site, each) for each in masks):
        return Untraced(node, "indexes with a 0-dim tensor (device sync)", _POSITION)
    if any(_is_bytes(site, each) for each in masks):
        return Untraced(node, "indexes with a mask of type uint8, for which torch.compile raises an error", _BYTES)
    if not isinstance(node.ctx, ast.Load):
        return None
    return masked(node) if any(seems_mask(site, each) for each in masks) else None


_POSITION = "manually index with one of shape `[1]` (`x[:, i.view(1)]`), or select with `torch.gather`"
_BYTES = "manually make it bool where it is made: `.bool()`, or a comparison"


def _is_position(site: Site, node: ast.expr) -> bool:
    """True for `x.argmax()`: indexing converts a 0-dim tensor to a Python number, unless it is a bool."""
    value = site.value(node)
    return (value.is_single and value.dtype != BOOL) or _is_one_length(site, node)


def _is_one_length(site: Site, node: ast.expr) -> bool:
    """True for `lengths[i] - 1` where a loop counts `i`, and for `n` where it goes over `lengths`."""
    while isinstance(node, ast.BinOp):
        node = node.left
    counter = node.slice if isinstance(node, ast.Subscript) else node
    return (
        isinstance(node, (ast.Subscript, ast.Name))
        and isinstance(counter, ast.Name)
        and is_looped(site.evaluator.scope.node, counter.id)
        and seems_length(site, node)
    )


def _is_bytes(site: Site, node: ast.expr) -> bool:
    """True for `mask.byte()`, and for a name that was assigned that last."""
    if isinstance(node, ast.Name) and not site.value(node).is_python:
        before = [each for each in assigned(site, node.id) if each.lineno < site.place.statement.lineno]
        node = before[-1] if before else node
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        node = node.func.value
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "byte"


def _picks_by_tensor(site: Site, node: ast.Subscript) -> bool:
    """True for `outputs[x.argmax()]`, where `outputs` is a list."""
    held = node.value
    if isinstance(node.ctx, ast.Del) or not isinstance(held, (ast.List, ast.Name)) or not _is_list(site, held):
        return False
    return not isinstance(node.slice, (ast.Slice, ast.Constant)) and seems_number(site, node.slice)


def _is_list(site: Site, node: ast.List | ast.Name) -> bool:
    """True for a display of a list, and for a name that holds nothing else."""
    if isinstance(node, ast.List):
        return True
    values = assigned(site, node.id)
    values = [each.left if isinstance(each, ast.BinOp) else each for each in values]  # `[0] * n`
    return bool(values) and all(isinstance(each, (ast.List, ast.ListComp)) for each in values)


def seeming(site: Site, test: ast.expr) -> Untraced | None:
    """`if error > tolerance`, where the file shows that `error` is a tensor: by what callers give or callees return."""
    value = site.value(test)
    if value.truth is not None or value.compiling is not None or reads_tensor(site, test):
        return None
    for part in compared(test):
        if site.value(part).optional:
            continue
        if seems_tensor(site, part):
            advice = (
                f"`{speculation.short(part)}` may be a tensor; "
                "manually compute both results and select with `torch.where`, or pass a Python number"
            )
            return Untraced(test, "may be a data-dependent branch", advice)
        if seems_drawn(site, part):
            advice = (
                "Dynamo keeps the number in a tensor; "
                "manually draw it before the compiled function and pass it in, or select with `torch.where`"
            )
            return Untraced(test, "branches on a random number", advice)
    return None


def compared(test: ast.expr) -> Iterator[ast.expr]:
    """What decides a test by its value: both sides of a comparison, all parts of `and` and `or`."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from compared(part)
    elif is_not(test):
        yield from compared(test.operand)
    elif isinstance(test, ast.Compare):
        sides = (test.left, *test.comparators)
        if isinstance(test.ops[0], (ast.In, ast.NotIn)) and _are_numbers(test.comparators[0]):
            yield test.left
        text = any(isinstance(each, ast.Constant) and not isinstance(each.value, (int, float)) for each in sides)
        if not text and all(isinstance(each, _ORDERS) for each in test.ops):
            yield from sides
    elif isinstance(test, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
        yield test


def _are_numbers(node: ast.expr) -> bool:
    """True for `(1, 2)`."""
    elements = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else []
    return bool(elements) and all(isinstance(each, ast.Constant) and type(each.value) is int for each in elements)
