"""What a run knew that a fix's header denies: a compile path that this run would not take is no fix for it.

A fix asks in its header for what the source does not prove. Where the trace says that this was false at the break, the
fix would leave the break where it is.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from graphmend_codemod.analysis.patterns import asks_for_compiler
from graphmend_codemod.trace.document import Fact, Site

_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
_COMPLEX = frozenset({"complex32", "complex64", "complex128"})


def condition(before: str, after: str, site: Site) -> str | None:
    """A condition that `after` has in a new header and that was false at the site, with what was there; else None.

    Only what was the same at each break counts, and only of names that the statements below the header leave alone:
    others may have had another value there.
    """
    if site.own != site.place:
        return None
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    # "cell" is a closure's variable in older traces.
    facts = {fact.name: fact for fact in site.facts if fact.type != "cell"}
    there = Counter(ast.dump(each.test) for each in _ifs(old))
    found: list[str] = []
    for each in _ifs(new):
        dumped = ast.dump(each.test)
        there[dumped] -= 1
        if there[dumped] >= 0 or not isinstance(each.test, ast.BoolOp) or not isinstance(each.test.op, ast.And):
            continue
        first, *others = each.test.values
        if not asks_for_compiler(first):
            continue
        stored = {_name(node) for node in ast.walk(each) if isinstance(getattr(node, "ctx", None), ast.Store)}
        known = {name: fact for name, fact in facts.items() if name not in stored}
        false = next((other for other in others if _truth(other, known) is False), None)
        if false is None:
            return None  # one of the new paths may be taken
        found.append(f"`{ast.unparse(false)}` was false: {_what_was(false, known)}")
    return found[0] if found else None


def _ifs(tree: ast.AST) -> Iterator[ast.If]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.If))


def _what_was(test: ast.expr, known: Mapping[str, Fact]) -> str:
    name = next(name for node in ast.walk(test) if (name := _name(node)) in known)
    fact = known[name]
    return f"`{name}` was {fact.dtype or fact.type}"


def _name(node: ast.AST) -> str:
    """`x` or `self.x`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return ""


def _truth(test: ast.expr, known: Mapping[str, Fact]) -> bool | None:
    """What the facts say of a condition; None where they say nothing."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _truth(operand, known)
            return None if inner is None else not inner
        case ast.BoolOp(op=op, values=values):
            every = [_truth(each, known) for each in values]
            decides = isinstance(op, ast.Or)
            if decides in every:
                return decides
            return None if None in every else not decides
        case ast.Call(func=ast.Name(id="isinstance"), args=[value, kind]) if ast.unparse(kind) == "torch.Tensor":
            fact = known.get(_name(value))
            return False if fact is not None and not fact.dtype and " or " not in fact.type else None
        case ast.Call(func=ast.Attribute(value=value, attr=asked), args=[], keywords=[]):
            fact = _tensor(value, known)
            kinds = {"is_floating_point": _FLOATS, "is_complex": _COMPLEX}.get(asked)
            return None if fact is None or kinds is None else fact.dtype in kinds
        case ast.Attribute(value=value, attr="requires_grad"):
            fact = _tensor(value, known)
            return fact.requires_grad if fact is not None and fact.always_same else None
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(left, op, right, known)
    return None


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, known: Mapping[str, Fact]) -> bool | None:
    equal: bool | None = None
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        fact = known.get(_name(left))
        equal = None if fact is None or " or " in fact.type else fact.type == "NoneType"
    elif isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(left, ast.Attribute) and left.attr == "dtype":
        fact, other = _tensor(left.value, known), ast.unparse(right)
        if fact is not None and other.startswith("torch."):
            equal = fact.dtype == other.removeprefix("torch.")
        elif fact is not None and isinstance(right, ast.Attribute) and right.attr == "dtype":
            second = _tensor(right.value, known)
            equal = None if second is None else fact.dtype == second.dtype
    elif isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(right, ast.Constant) and type(right.value) is int:
        rank = _rank(left, known)
        equal = None if rank is None else rank == right.value
    if equal is None:
        return None
    return equal if isinstance(op, (ast.Is, ast.Eq)) else not equal


def _rank(node: ast.expr, known: Mapping[str, Fact]) -> int | None:
    match node:
        case ast.Attribute(value=value, attr="ndim") | ast.Call(func=ast.Attribute(value=value, attr="dim"), args=[]):
            fact = _tensor(value, known)
        case _:
            return None
    if fact is None or not fact.always_same or fact.sizes is None or len(fact.sizes) >= _SIZES_KEPT:
        return None
    return len(fact.sizes)


def _tensor(node: ast.expr, known: Mapping[str, Fact]) -> Fact | None:
    """The fact of a name that was a tensor of one dtype."""
    fact = known.get(_name(node))
    return fact if fact is not None and fact.dtype and " or " not in fact.dtype + fact.type else None


# The recorder keeps no more sizes of a tensor.
_SIZES_KEPT = 8
