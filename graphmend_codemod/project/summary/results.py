"""What a short function gives back, by one look at its text: a mask, or another tensor.

Most helpers have no annotation, or one that says `Union[bool, Tensor]`. `return labels >= 0` gives a mask where
`labels` is a tensor, `return torch.arange(n) < lengths[:, None]` whatever it is given. As an annotation does, this
tells what to write; the header of a compile path asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import torch_api

GIVES = "gives "
"""How a summary notes it: `gives mask:labels`, or `gives tensor:` where that depends on no parameter."""
MAKES = "makes "
"""How a summary notes, with its name, a class of which a function returns what it makes: `return Loss(size)`."""
_LONGEST = 40
_STEPS = 8
_MASK, _TENSOR = "mask", "tensor"
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)
_KEEPS_MASK = torch_api.LAYOUT | {"clone", "contiguous", "detach", "repeat", "roll", "flip", "gather", "to"}
_SEVERAL = frozenset("chunk split split_with_sizes tensor_split unbind unique unique_consecutive".split())
_FUNCTIONS = torch_api.FUNCTIONS_RETURNING_TENSOR - _SEVERAL
_METHODS = (torch_api.RETURNS_TENSOR | frozenset(torch_api.CASTS) | torch_api.TO_BOOL | {"to"}) - _SEVERAL
_WITH_INDICES = frozenset({"max", "min", "median", "mode", "nonzero"})
"""Those that give a tuple where they are told a dimension, or to."""
_Kind = tuple[str, frozenset[str]]
"""A mask or another tensor, where all of these parameters are tensors."""


def result(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """The note for a function all of whose results are tensors, as far as `torch` means torch; None for others."""
    last = node.body[-1]
    if not isinstance(last, ast.Return) or isinstance(node, ast.AsyncFunctionDef) or node.decorator_list:
        return None
    if (node.end_lineno or 0) - node.lineno > _LONGEST or isinstance(last.value, (ast.Constant, ast.Tuple)):
        return None
    function = _Function(node)
    kinds = [function.kind(each.value, _STEPS) for each in function.returns]
    found = [kind for kind in kinds if kind is not None]
    if not found or len(found) < len(kinds):
        return None
    name = _MASK if all(kind == _MASK for kind, _ in found) else _TENSOR
    return f"{GIVES}{name}:{','.join(sorted(frozenset().union(*(given for _, given in found))))}"


class _Function:
    """The names of one function: what each is assigned, where nothing else binds it."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = node.args
        self.parameters = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        self.returns: list[ast.Return] = []
        self.values: dict[str, list[ast.expr]] = {}
        self.stores: dict[str, int] = {}
        for part in _own(node):
            if isinstance(part, ast.Return):
                self.returns.append(part)
            elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                self.stores[part.id] = self.stores.get(part.id, 0) + 1
            elif isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
                self.values.setdefault(part.targets[0].id, []).append(part.value)

    def kind(self, node: ast.expr | None, steps: int) -> _Kind | None:
        """What an expression is; None where its text does not tell."""
        if node is None or not steps:
            return None
        if isinstance(node, ast.Name):
            return self._name(node.id, steps - 1)
        if isinstance(node, ast.Compare):
            sides = (self.kind(each, steps - 1) for each in (node.left, *node.comparators))
            first = next((side for side in sides if side is not None), None)
            plain = len(node.ops) == 1 and isinstance(node.ops[0], _ORDERS)
            return (_MASK, first[1]) if first is not None and plain else None
        if isinstance(node, ast.UnaryOp):
            return None if isinstance(node.op, ast.Not) else self.kind(node.operand, steps - 1)
        if isinstance(node, ast.BinOp):
            return self._operation(node, steps - 1)
        if isinstance(node, ast.Subscript):
            return self.kind(node.value, steps - 1)
        return self._call(node, steps - 1) if isinstance(node, ast.Call) else None

    def _name(self, name: str, steps: int) -> _Kind | None:
        values = self.values.get(name, [])
        if len(values) != self.stores.get(name, 0):
            return None
        if not values:
            return (_TENSOR, frozenset({name})) if name in self.parameters else None
        kinds = [self.kind(each, steps) for each in values] if name not in self.parameters else []
        found = [kind for kind in kinds if kind is not None]
        if not found or len(found) < len(kinds):
            return None
        mask = all(kind == _MASK for kind, _ in found)
        return _MASK if mask else _TENSOR, frozenset().union(*(given for _, given in found))

    def _operation(self, node: ast.BinOp, steps: int) -> _Kind | None:
        left, right = self.kind(node.left, steps), self.kind(node.right, steps)
        found = [each for each in (left, right) if each is not None]
        if not found:
            return None
        if isinstance(node.op, _BITWISE):
            both = len(found) == 2 and all(kind == _MASK for kind, _ in found)
            return (_MASK, found[0][1] | found[1][1]) if both else None
        return _TENSOR, min((given for _, given in found), key=len)

    def _call(self, node: ast.Call, steps: int) -> _Kind | None:
        function = node.func
        if not isinstance(function, ast.Attribute) or any(word.arg in (None, "out") for word in node.keywords):
            return None
        name = function.attr
        if isinstance(function.value, ast.Name) and function.value.id == "torch":
            if name in torch_api.TO_BOOL:
                return _MASK, frozenset()
            several = name in _WITH_INDICES and (len(node.args) > 1 or bool(node.keywords))
            several = several or (name == "where" and len(node.args) == 1)
            return (_TENSOR, frozenset()) if name in _FUNCTIONS and not several else None
        base = self.kind(function.value, steps)
        if base is None or name not in _METHODS or (name in _WITH_INDICES and (node.args or node.keywords)):
            return None
        if name in torch_api.TO_BOOL or name == "bool":
            return _MASK, base[1]
        kept = name in _KEEPS_MASK and not (name in {"to", "view"} and _may_cast(node))
        return base if kept else (_TENSOR, base[1])


def _may_cast(node: ast.Call) -> bool:
    """True for `mask.to(x)` and `mask.view(dtype)`, and not for `mask.to(x.device)` and `mask.view(2, -1)`."""
    plain = (
        isinstance(each, (ast.Constant, ast.UnaryOp)) or getattr(each, "attr", "") == "device" for each in node.args
    )
    return bool(node.keywords) or not all(plain)


def _own(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """What a function is made of, without what stands in functions inside it."""
    todo: list[ast.AST] = [*node.body]
    while todo:
        part = todo.pop()
        yield part
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(part)
