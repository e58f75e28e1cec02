"""Evidence for what a name or an expression holds, where the dataflow does not know: a mask, a tensor as a number."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from graphmend_codemod.analysis.calls import keyword
from graphmend_codemod.analysis.iterated import in_step
from graphmend_codemod.analysis.likely_tensors import is_no_tensor
from graphmend_codemod.analysis.patterns import asks_identity, is_attribute, is_name, is_none
from graphmend_codemod.analysis.scope import defaults_of, dotted, walk_in_layers, walk_scope
from graphmend_codemod.analysis.values import BOOL, ValueKind
from graphmend_codemod.project.entrances import CALLS
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.site import Site

_REGISTERS = re.compile(
    r"self\.register_buffer\(\s*[\"'](\w+)[\"']\s*,(?!\s*None\b)|self\.(\w+)\s*(?::[^=\n]*)?=\s*(?:\w+\.)*Buffer\((?!\s*(?:None\b|\)))"
)
_COMPARES = frozenset("eq ne gt lt ge le bool logical_and logical_or logical_not isin isnan isinf isfinite".split())
_SPEAKS_OF_MASK = re.compile(r"(?:^|_)(?:mask|masks|valid)$|^mask_")
_MOVES = frozenset("view reshape flatten squeeze unsqueeze contiguous clone detach expand expand_as cpu cuda".split())
_REARRANGES = frozenset({"einops.rearrange", "einops.repeat"})
_LARGEST = frozenset({"builtins.min", "builtins.max", "builtins.abs"})


def assigned(site: Site, name: str) -> list[ast.expr]:
    """What the function assigns to a name, in one entry an assignment, in order of the source."""

    def look() -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for part in sorted(site.evaluator.scope.outline.assignments, key=lambda part: part.value.lineno):
            for each in {each.id for each in part.targets if isinstance(each, ast.Name)}:
                found.setdefault(each, []).append(part.value)
        return found

    return site.remembered("assigned", site.evaluator.scope.node, look, anywhere=True).get(name, [])


def is_registered(site: Site, node: ast.expr) -> bool:
    """True for an attribute of the instance that the file registers as a buffer, whatever changes it later."""
    if not is_attribute(node, site.evaluator.scope.self_name):
        return False
    fact = site.evaluator.scope.attribute(node.attr)
    known = fact is not None and fact.kind in {AttributeKind.BUFFER, AttributeKind.PARAMETER}
    if known or (fact is not None and fact.kind is not AttributeKind.CHANGED):
        return known
    return node.attr in registered(site.source.text, site.evaluator.scope.node.lineno)


@lru_cache(maxsize=64)
def registered(text: str, line: int) -> frozenset[str]:
    """The buffers of the class around a line: another class of the file may count with a number of that name."""
    lines = text.split("\n")
    first = next((number for number in range(min(line, len(lines)), 0, -1) if lines[number - 1][:6] == "class "), 1)
    last = next((number for number in range(first + 1, len(lines)) if lines[number - 1][:6] == "class "), len(lines))
    found = _REGISTERS.findall("\n".join(lines[first - 1 : last]))
    return frozenset(by_call or by_assignment for by_call, by_assignment in found)


def is_list_of_tests(site: Site, node: ast.expr) -> bool:
    """True for a name that only ever holds `[kind == "linear" for kind in kinds]`."""
    values = assigned(site, node.id) if isinstance(node, ast.Name) else []
    return bool(values) and all(isinstance(each, ast.ListComp) and isinstance(each.elt, ast.Compare) for each in values)


def is_mask(site: Site, node: ast.expr) -> bool:
    """True for a tensor of bools, as far as its dtype or all assignments to a name tell."""
    value = site.value(node)
    if value.is_python or value.is_single or (value.dtype is not None and value.dtype.startswith("torch.int")):
        return False
    return value.dtype == BOOL or _holds_mask(site, node)


def _holds_mask(site: Site, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """True for what compares, for a part or another layout of that, and for a name that only ever holds such values."""
    if isinstance(node, ast.Subscript):
        return _holds_mask(site, node.value, seen)
    if isinstance(node, ast.Call) and (moved := _laid_out(site, node)) is not None:
        return _holds_mask(site, moved, seen)
    if not isinstance(node, ast.Name) or node.id in seen:
        return _looks_like_mask(node)
    # What a name gets from itself in another layout tells nothing new.
    values = [each for each in assigned(site, node.id) if not _is_itself(site, each, node.id)]
    return bool(values) and all(_holds_mask(site, each, seen | {node.id}) for each in values)


def _laid_out(site: Site, call: ast.Call) -> ast.expr | None:
    """The tensor that a call gives in another layout, with its dtype."""
    if (site.resolve(call.func) or "") in _REARRANGES and call.args:
        return call.args[0]
    own = isinstance(call.func, ast.Attribute) and site.resolve(call.func) is None
    return call.func.value if own and isinstance(call.func, ast.Attribute) and call.func.attr in _MOVES else None


def _is_itself(site: Site, node: ast.expr, name: str) -> bool:
    while isinstance(node, ast.Call) and (moved := _laid_out(site, node)) is not None:
        node = moved
        if isinstance(node, ast.Name):
            return node.id == name
    return False


def may_be_mask(site: Site, node: ast.expr) -> bool:
    """True as well where the last assignment to a name, or without one the name itself, speaks of a mask."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        node = node.operand
    value = site.value(node)
    known = value.dtype is not None and value.dtype.startswith("torch.")
    if not isinstance(node, ast.Name) or value.is_python or value.is_single or known:
        return is_mask(site, node) or (not known and _is_moved_mask(node))
    values = assigned(site, node.id)
    before = [each for each in values if each.lineno < site.place.statement.lineno]
    before = before or (values if site.place.in_loop else [])
    if before:
        return _looks_like_mask(before[-1]) or _is_moved_mask(before[-1]) or _holds_mask(site, node)
    # A hint for what to ask: whatever is written asks on the compile path whether the dtype is bool.
    return _SPEAKS_OF_MASK.search(node.id) is not None


def absent_parameters(site: Site) -> frozenset[str]:
    """The parameters whose default is None."""
    return frozenset(each.arg for each, value in defaults_of(site.evaluator.scope.node) if is_none(value))


def is_tensor_or_number(site: Site, node: ast.expr) -> bool:
    """True for a parameter that its annotation allows to be a tensor and to be a number: `time: float | Tensor`."""
    if not isinstance(node, ast.Name) or site.value(node).kind is not ValueKind.UNKNOWN:
        return False
    scope = site.evaluator.scope
    arguments = scope.node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    annotation = next((each.annotation for each in every if each.arg == node.id), None)
    if annotation is None or any(each.lineno < site.place.statement.lineno for each in assigned(site, node.id)):
        return False
    named = (each for each in ast.walk(annotation) if isinstance(each, (ast.Name, ast.Attribute)))
    return any(_says_both(site, scope.resolve_global(dotted(each) or "")) for each in named)


def is_given_to_forward(site: Site, node: ast.expr) -> bool:
    """True for an input of a `forward` or a `__call__` without annotation, and for its element: `int(lengths[0])`.

    Nobody casts what is a Python number anyway. What the function iterates over, counts or calls is no tensor.
    """
    node = node.value if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice) else node
    scope = site.evaluator.scope
    if not isinstance(node, ast.Name) or scope.node.name not in CALLS or scope.self_name is None:
        return False
    if site.value(node).kind is not ValueKind.UNKNOWN or _is_assigned_before(site, node.id):
        return False
    named = [*scope.node.args.posonlyargs, *scope.node.args.args]
    given = named[1 : len(named) - len(scope.node.args.defaults)]
    inputs = {each.arg for each in given if each.annotation is None} | absent_parameters(site)
    if node.id not in inputs or any(each.arg == node.id and each.annotation is not None for each in named):
        return False
    name = node.id
    return not any(not isinstance(part, ast.Compare) and is_no_tensor(part, name) for part in walk_scope(scope.node))


def _is_assigned_before(site: Site, name: str) -> bool:
    """True where the name may hold something else than the argument, but for another argument or attribute."""
    values = [each for each in assigned(site, name) if each.lineno < site.place.statement.lineno]
    return not all(isinstance(each, (ast.Name, ast.Attribute, ast.Tuple)) for each in values)


def _says_both(site: Site, annotation: str | None) -> bool:
    """True for the alias of a union with tensors and numbers: `Scalar = Union[float, torch.Tensor]`."""
    home, _, name = (annotation or "").rpartition(".")
    fact = site.evaluator.scope.index.global_fact(home, name) if home else None
    words = set(re.findall(r"\w+", fact.text)) if fact is not None else set()
    return "Tensor" in words and not words.isdisjoint({"float", "int"})


def _looks_like_mask(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return not any(isinstance(each, ast.Constant) for each in (node.left, node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _looks_like_mask(node.left) and _looks_like_mask(node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return True
    if isinstance(node, ast.Compare):
        return not asks_identity(node)
    if isinstance(node, ast.Call) and dotted(keyword(node, "dtype") or node) == "torch.bool":
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _COMPARES or (node.func.attr in {"any", "all"} and bool(node.args or node.keywords))


def _is_moved_mask(node: ast.expr) -> bool:
    """True for `mask.view(-1)`, `valid_mask.to(x.device)`, by the name alone."""
    moved = False
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        device = node.func.attr == "to" and [(dotted(each) or "").endswith(".device") for each in node.args] == [True]
        if not device and node.func.attr not in _MOVES:
            return False
        node, moved = node.func.value, True
    return moved and isinstance(node, ast.Name) and _SPEAKS_OF_MASK.search(node.id) is not None


def is_number(site: Site, node: ast.expr) -> bool:
    """True for a tensor in the place of a number."""
    return site.value(node).is_tensor or _is_computed(site, node) or steps_through_tensor(site, node)


def _is_computed(site: Site, node: ast.expr, names: int = 3) -> bool:
    """True for arithmetic with an element of a tensor, or of an array, as in `first = positions[0] - start`."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        elements = (side for side in sides if isinstance(side, ast.Subscript) and site.value(side).is_tensor)
        return next(elements, None) is not None or any(_is_computed(site, side, names) for side in sides)
    if isinstance(node, ast.Call):
        called = site.resolve(node.func)
        largest = called in _LARGEST and len(node.args) + (called == "builtins.abs") > 1
        tensors = (each for each in node.args if site.value(each).is_tensor or _is_computed(site, each, names))
        return (largest and next(tensors, None) is not None) or called == "numpy.prod"
    if isinstance(node, ast.Subscript):
        return _is_of_array(site, node)
    if not isinstance(node, ast.Name) or not names or site.value(node).kind is not ValueKind.UNKNOWN:
        return False
    values = assigned(site, node.id)
    return len(values) == 1 and _is_computed(site, values[0], names - 1)


def _is_of_array(site: Site, node: ast.Subscript) -> bool:
    """True for `sizes[0]` where `sizes = np.array(...)`: Dynamo traces arrays of NumPy as tensors."""
    if not isinstance(node.value, ast.Name):
        return False
    values = assigned(site, node.value.id)
    names = [site.resolve(each.func) if isinstance(each, ast.Call) else None for each in values]
    return bool(names) and all(name in {"numpy.array", "numpy.asarray"} for name in names)


def is_array(site: Site, name: str) -> bool:
    """True for a local name that only ever holds what functions of NumPy return: no tensor."""
    values = assigned(site, name) if site.evaluator.scope.is_local(name) else []
    return bool(values) and all(is_of_numpy(site, each) for each in values)


def holds_no_tensor(site: Site, name: str) -> bool:
    """True for a local that only ever holds lists or dicts, or what functions of NumPy return."""
    values = assigned(site, name)
    return is_array(site, name) or (bool(values) and all(map(is_container, values)))


def is_container(node: ast.expr) -> bool:
    """True for what makes a list, dict or set of Python."""
    made = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    if isinstance(node, ast.BinOp):
        return is_container(node.left) or is_container(node.right)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(node, made) or (isinstance(called, ast.Name) and called.id in {"list", "dict", "set", "sorted"})


def is_of_numpy(site: Site, node: ast.expr) -> bool:
    """True for `np.f(x)`, and for its parts and what its methods return: `np.f(x).T`, `np.f(x).astype(int)`."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Call) and (site.resolve(node.func) or "").startswith("numpy."):
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def steps_through_tensor(site: Site, node: ast.expr) -> bool:
    """True for the `v` of `[int(v) for v in lengths]`, where `lengths` is a tensor."""
    statement = site.place.statement
    if not isinstance(node, ast.Name) or not site.evaluator.scope.outline.comprehensions:
        return False
    for each in site.remembered("comprehensions", statement, lambda: _comprehensions(statement), anywhere=True):
        for target, iterated in in_step(each.target, each.iter, site.resolve):
            if is_name(target, node.id):
                return site.value(iterated).is_tensor
    return False


def _comprehensions(statement: ast.stmt) -> list[ast.comprehension]:
    return [node for node in walk_in_layers(statement) if isinstance(node, ast.comprehension)]
