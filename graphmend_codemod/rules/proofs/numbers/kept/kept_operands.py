"""Numbers that are read within an expression, where the 0-dim tensor serves as well: `x / t.item()` (GM401)."""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_none, item_of, other_side
from graphmend_codemod.analysis.scope import dotted, of_kind, parents_in, walk_in_layers
from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, SCALAR, Value, ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import number_of
from graphmend_codemod.rules.proofs.conditions.type_conditions import own_memory, tensor_facts, without_dimensions
from graphmend_codemod.rules.proofs.number_read import number_read
from graphmend_codemod.rules.proofs.numbers.kept.number_statements import read_target
from graphmend_codemod.rules.proofs.untraced.guesses import seems_tensor

_COUNTS = frozenset({"sum", "argmax", "argmin", "count_nonzero"})
_WHOLE = frozenset(["torch.bool", *(f"torch.{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64))])
_BOUNDS = {"builtins.max": "min", "builtins.min": "max"}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_FLOATING = ("", "beside", "all")
_CLAMPS = frozenset({"clamp", "clip"})
_RUNS_LATER = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.IfExp, ast.BoolOp)


class Bounded(NamedTuple):
    """A number that is read, and how its tensor is bounded; `exact` where every floating dtype holds the bound."""

    read: ast.expr
    text: str = ""
    exact: bool = True


def bounded(site: Site, node: ast.expr) -> Bounded:
    """`t.item()` and `.clamp(min=1)` for `max(t.item(), 1)`; the value itself for any other."""
    called = (
        site.resolve(node.func) if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords else None
    )
    if called not in _BOUNDS or not isinstance(node, ast.Call):
        return Bounded(node)
    number, read = sorted(node.args, key=lambda each: not isinstance(each, ast.Constant))
    tensor = number_of(site, read)
    if tensor is None or not isinstance(number, ast.Constant) or type(number.value) not in {int, float}:
        return Bounded(node)
    # `max(1, nan)` is 1, `max(nan, 1)` is nan, as `clamp` has it.
    integer, dtype = type(number.value) is int, str(site.value(tensor).dtype)
    whole = is_whole(site, tensor) and integer
    fits = site.value(tensor).is_floating or (integer and not dtype.startswith(("torch.", "bool:")))
    if not whole and not (fits and node.args[0] is read):
        return Bounded(node)
    return Bounded(read, f".clamp({_BOUNDS[called]}={number.value!r})", whole or held_by_half(number.value))  # type: ignore[arg-type]


def held_by_half(number: float) -> bool:
    """True for a number that float16 and bfloat16 hold exactly."""
    try:
        half = struct.unpack("<e", struct.pack("<e", number))[0] == number
    except OverflowError:
        return False
    return half and struct.pack("<f", number)[:2] == b"\0\0"


def asked_wide(site: Site, tensor: ast.expr) -> str:
    """The condition that a tensor is no half precision, whose bound would be rounded. NotProven without a name."""
    name = _spelled(site, tensor)
    if name is None:
        raise NotProven(f"half precision may not hold the bound of `{short(tensor)}`; give the tensor a name first")
    return f"{name}.dtype in ({site.torch}.float32, {site.torch}.float64)"


def asked_double(site: Site, tensor: ast.expr) -> list[str]:
    """The conditions that float64 holds what a tensor does, on a device that has it. NotProven without a name."""
    roots = list(dict.fromkeys(_tensors(site, tensor)))
    if not roots:
        raise NotProven(f"the device of `{short(tensor)}` cannot be asked; give the tensor a name first")
    return [*(f"{each}.is_floating_point()" for each in roots), f'{roots[0]}.device.type != "mps"']


def is_whole(site: Site, tensor: ast.expr) -> bool:
    """True for an integer tensor, such as a sum of bools or integers."""
    if isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) and tensor.func.attr in _COUNTS:
        return tensor.func.attr != "sum" or site.value(tensor.func.value).dtype in _WHOLE
    return site.value(tensor).dtype in _WHOLE


def counts_bools(site: Site, tensor: ast.expr) -> bool:
    """True for `mask.sum()` and for the position of an element: numbers no larger than the tensor has elements."""
    called = tensor.func if isinstance(tensor, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in _COUNTS:
        return False
    return called.attr != "sum" or site.value(called.value).dtype == BOOL


def keeps_dtype(site: Site, node: ast.expr, tensor: ast.expr) -> bool:
    """False for `int(t)` of a floating tensor and `float(t)` of an integer one."""
    inside = list(walk_in_layers(tensor))
    casts = {site.resolve(part.func) for part in of_kind(walk_in_layers(node), ast.Call) if part not in inside}
    if "builtins.int" in casts:
        whole = str(site.value(tensor).dtype).startswith("torch.int") or is_whole(site, tensor)
        return whole and not site.value(tensor).is_floating
    return "builtins.float" not in casts or site.value(tensor).is_floating


def takes_whole(node: ast.BinOp | ast.AugAssign, other: Value) -> bool:
    """True where a tensor gets the same dtype from an integer in a 0-dim tensor as from one of Python."""
    kept = other.is_floating and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
    return isinstance(node.op, ast.Div) or kept


class Kept(NamedTuple):
    """A statement whose numbers may stay tensors: the first of them, what the header asks, and what to write."""

    first: ast.expr
    facts: tuple[str, ...]
    written: Mapping[int, tuple[ast.expr, str]]


def kept_in(site: Site, node: ast.Assign | ast.AugAssign | ast.Return) -> Kept | None:
    """The tensors in the place of all numbers that a statement reads; None where one of them has to be a number."""
    if node.value is None or not any(True for _ in _reading(site, node)):
        return None
    for floating in _FLOATING:
        guessed = site.with_env(dict(site.place.env))
        asked = _assume(guessed, node, floating)
        try:
            found = _kept(guessed, node, asked)
        except NotProven:
            return None
        if found is not None:
            return found
    return None


def _reading(site: Site, node: ast.stmt) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls that read a number, the outermost ones, with what they read."""
    inside: set[int] = set()
    for part in walk_in_layers(node):
        if not isinstance(part, ast.Call) or id(part) in inside:
            continue
        read = _peeled(site, part)
        if read is not part:
            inside |= {id(each) for each in walk_in_layers(part)}
            yield part, read


def _peeled(site: Site, node: ast.expr) -> ast.expr:
    """`t` for `t.item()`, `float(t)` and `float(t.item())`; of what has no type, only `.item()` reads for certain."""
    inner, sure = node, False
    while (read := number_read(site, inner)) is not None:
        inner, sure = read, sure or item_of(inner) is not None
    return inner if sure or site.value(inner).kind is ValueKind.TENSOR else node


def _assume(site: Site, node: ast.stmt, floating: str) -> list[str]:
    """Take what is read and what stands beside for tensors, as far as nothing is known; returns what has to be asked.

    `floating` says which of them are taken for floating point as well.
    """
    env, asked = site.place.env, list[str]()
    reads = list(_reading(site, node))
    numbers, taken = {dotted(inner) for _, inner in reads}, {id(part) for part, _ in reads}
    read = [_subject(site, inner) for _, inner in reads]
    operands = [each for each in _operands(site, parents_in(node), node) if id(each[0]) not in taken]
    # A path for what is no tensor after all would be one that nothing takes.
    beside = [
        key for each, sure in operands if (key := _subject(site, each)) in read or sure or seems_tensor(site, each)
    ]
    wanted = [*(beside if floating else ()), *(read if floating == "all" else ())]
    for key in dict.fromkeys(each for each in [*beside, *read] if each is not None):
        value = site.evaluator.value(ast.parse(key, mode="eval").body, env)
        if value.kind is ValueKind.UNKNOWN:
            value = site.evaluator.names.tensor(hint=True)
        if value.kind is not ValueKind.TENSOR:
            continue
        # The header asks whether it is None.
        value = value._replace(optional=False, hint=value.hint or value.optional)
        if key in wanted and not _is_known(value.dtype):
            asked.append(f"{key}.is_floating_point()")
            dtype = f"float:{value.dtype}"
            for other, held in env.items():
                env[other] = held._replace(dtype=dtype) if held.is_tensor and held.dtype == value.dtype else held
            value = value._replace(dtype=dtype)
        if key in numbers and not value.is_single:
            asked.append(f"{key}.dim() == 0")
            value = value._replace(shape=SCALAR)
        env[key] = value
    return asked


def _is_known(dtype: str | None) -> bool:
    return dtype is not None and dtype.startswith(("torch.", "float:", "bool:"))


def _operands(site: Site, parents: Mapping[int, ast.AST], node: ast.stmt) -> Iterator[tuple[ast.expr, bool]]:
    """What stands beside the numbers that a statement reads, and whether only a tensor can stand there."""
    for part, _ in _reading(site, node):
        whole: ast.AST = part
        for around in _around(parents, part):
            bound = isinstance(around, ast.Call) and site.resolve(around.func) in _BOUNDS
            if bound or isinstance(around, ast.keyword):
                whole = around
                continue
            if isinstance(around, ast.BinOp):
                yield other_side(around, whole), False
            elif isinstance(around, ast.AugAssign):
                yield read_target(around), False
            elif isinstance(around, ast.Call):
                sure = torch_function(site.resolve(around.func)) is not None
                yield from ((each, sure) for each in site.operation(around)[1][:1])
            break


def _subject(site: Site, node: ast.expr) -> str | None:
    """`x` for `x.max()`, `torch.trace(x)` and `-x`: the name or attribute of the instance that decides what it is."""
    while not isinstance(node, (ast.Name, ast.Attribute)):
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.Call) and site.operation(node)[1]:
            node = site.operation(node)[1][0]
        else:
            return None
    text = dotted(node)
    owner = text.split(".")[:-1] if text is not None else ["", ""]
    return text if not owner or owner == [site.evaluator.scope.self_name] else None


def dotted_in(node: ast.AST) -> Iterator[str]:
    """Names and attributes that a node reads, spelled with dots; not what it calls."""
    if isinstance(node, (ast.Name, ast.Attribute)) and (text := dotted(node)) is not None:
        if node.ctx.__class__ is ast.Load:
            yield text
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(node, ast.Call) and part is node.func:
            yield from dotted_in(part.value) if isinstance(part, ast.Attribute) else ()
        else:
            yield from dotted_in(part)


def _kept(site: Site, node: ast.stmt, asked: list[str]) -> Kept | None:
    parents, reads = parents_in(node), list(_reading(site, node))
    facts: dict[str, None] = {}
    written: dict[int, tuple[ast.expr, str]] = {}
    taken = {id(part) for part, _ in reads}
    for part, _ in reads:
        whole, around = part, parents.get(id(part))
        if isinstance(around, ast.Call) and bounded(site, around).text:
            whole, around = around, parents.get(id(around))
        read, bound, exact = bounded(site, whole)
        tensor = number_of(site, read)
        if tensor is None or site.value(tensor).dtype == BOOL or not keeps_dtype(site, read, tensor):
            return None
        if any(isinstance(each, _RUNS_LATER) for each in _around(parents, whole)):
            return None
        beside = _beside(site, node, around, whole, taken)
        if (
            beside is None
            or _asks_properties(site, tensor, beside)
            or (needs := _fits(site, around, tensor, beside)) is None
        ):
            return None
        wide = () if exact else (asked_wide(site, tensor),)
        facts |= dict.fromkeys([*tensor_facts(site, tensor), *tensor_facts(site, beside), *asked, *wide, *needs])
        cut = ".detach()" if site.value(tensor).grad and not site.no_grad else ""
        text = f"{without_dimensions(site, tensor)}{cut}{bound}"
        written[id(whole)] = (whole, text if bound else own_memory(site, tensor, text))
    return Kept(reads[0][0], tuple(_ordered(list(facts))), written)


def _ordered(facts: list[str]) -> list[str]:
    """The facts in the order of a header, without what others say as well."""
    equal = [each.split(".dtype == ") for each in facts if each.endswith(".dtype") and each.count(".dtype") == 2]
    said = {f"{right[:-6]}.is_floating_point()" for left, right in equal if f"{left}.is_floating_point()" in facts}
    tensors = [each for each in facts if each.startswith("isinstance(")]
    return [each for each in dict.fromkeys([*tensors, *facts]) if each not in said]


def _asks_properties(site: Site, *nodes: ast.expr) -> bool:
    """True where a header would ask a property that may do more than read."""
    parts = [part for node in nodes for part in walk_in_layers(node) if isinstance(part, ast.Attribute)]
    return any(is_loud_property(site.evaluator, part.attr) for part in parts)


def _around(parents: Mapping[int, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    while (above := parents.get(id(node))) is not None:
        yield above
        node = above


def _beside(site: Site, node: ast.stmt, around: ast.AST | None, part: ast.expr, taken: set[int]) -> ast.expr | None:
    """The tensor that takes the number: the other operand, or what is clamped or filled. None for any other use."""
    if isinstance(around, ast.BinOp) and isinstance(around.op, _ARITHMETIC):
        beside = other_side(around, part)
    elif (
        isinstance(around, ast.AugAssign) and isinstance(around.op, _ARITHMETIC) and isinstance(around.target, ast.Name)
    ):
        beside = read_target(around)
    elif isinstance(around, (ast.Call, ast.keyword)):
        call = (
            around
            if isinstance(around, ast.Call)
            else next(each for each in ast.walk(node) if isinstance(each, ast.Call) and around in each.keywords)
        )
        name, given = site.operation(call)
        if not given or given[0] is part or name not in {*_CLAMPS, "masked_fill"}:
            return None
        numbers = [*given[1:], *(word.value for word in call.keywords)]
        # `clamp` takes two numbers or two tensors.
        if name in _CLAMPS and not all(is_none(each) or id(each) in taken for each in numbers):
            return None
        beside = given[0]
    else:
        return None
    return beside if site.value(beside).is_tensor and id(beside) not in taken else None


def _fits(site: Site, around: ast.AST | None, tensor: ast.expr, beside: ast.expr) -> list[str] | None:
    """What else has to hold for the tensor to give what its number gives; None where it may give another dtype."""
    one, other = site.value(tensor), site.value(beside)
    facts: list[str] = []
    into = isinstance(around, (ast.BinOp, ast.AugAssign)) and takes_whole(around, other)
    names = [_spelled(site, each) for each in (beside, tensor)]
    summed = _summed(site, tensor)
    if one.dtype == other.dtype or (into and is_whole(site, tensor)):
        pass
    elif into and summed is not None and names[0] is not None:
        # Autocast adds half precision up in float32, which would widen a 0-dim tensor beside it.
        facts.append(f"{names[0]}.dtype in ({site.torch}.float32, {site.torch}.float64)")
        if summed != names[0]:
            facts.append(f"{summed}.dtype in ({names[0]}.dtype, {site.torch}.bool, {site.torch}.int64)")
    elif None in names or str(one.dtype).startswith("torch.") or str(other.dtype).startswith("torch."):
        return None
    elif into and not one.is_floating:
        facts.append(f"{names[1]}.dtype in ({names[0]}.dtype, {site.torch}.int64)")
    else:
        facts.append(f"{names[0]}.dtype == {names[1]}.dtype")
    if not isinstance(around, (ast.BinOp, ast.AugAssign)) and not other.is_floating:
        return None
    if not set(dotted_in(tensor)) & set(dotted_in(beside)):
        roots = [next(_tensors(site, each), None) for each in (beside, tensor)]
        if None in roots:
            return None
        facts.append(f"{roots[0]}.device == {roots[1]}.device")
    return facts


def _summed(site: Site, tensor: ast.expr) -> str | None:
    """`x` for `x.sum()` and `torch.trace(x)` of a tensor of unknown dtype: these have its dtype, or are int64."""
    name, given = site.operation(tensor) if isinstance(tensor, ast.Call) and not tensor.keywords else ("", [])
    if name not in {"sum", "trace"} or len(given) != 1 or _is_known(site.value(given[0]).dtype):
        return None
    return _spelled(site, given[0])


def _tensors(site: Site, node: ast.expr) -> Iterator[str]:
    """The names of tensors that an expression is computed of."""
    for key in dotted_in(node):
        if site.value(ast.parse(key, mode="eval").body).is_tensor:
            yield key


def _spelled(site: Site, node: ast.expr) -> str | None:
    """What has the dtype of an expression and needs no computing; None if nothing has."""
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) is not None:
        return dotted(node)
    wanted = site.value(node).dtype
    return next(
        (key for key in _tensors(site, node) if site.value(ast.parse(key, mode="eval").body).dtype == wanted), None
    )
