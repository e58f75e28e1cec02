"""A function that gives a NumPy array as one operator: numbers and tensors go in, an array of a known shape comes out.

Dynamo traces NumPy's functions as operations on tensors, so a number that NumPy draws, and what is computed from it, is
a value that only data tells. Such code runs as a whole: the arrays that it draws and fills are its own, and no gradient
goes through an array. Its result is made by `np.zeros` or its kind at a shape that comes from its parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphmend_codemod.analysis.patterns import all_given, is_name, names_bound, owner_of, root_of
from graphmend_codemod.analysis.scope import FunctionNode, parameter_names, parameters, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.edits import path_before_body
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import NAMING, call, calling, operator_name
from graphmend_codemod.rules.proofs.outlining.effects.name_origins import NameOrigins
from graphmend_codemod.rules.proofs.outlining.operator_arguments import handed_on
from graphmend_codemod.rules.proofs.outlining.texts.arrays import ARRAY_OPERATOR, FITS

_COMMENT = "# torch.compile cannot trace this function: it calls it as one operator."
_MADE = frozenset({"numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full"})
_DTYPES = {
    "builtins.bool": "bool", "numpy.bool_": "bool", "builtins.float": "float64",
    "numpy.int32": "int32", "numpy.int64": "int64", "numpy.float32": "float32", "numpy.float64": "float64",
}  # fmt: skip
_FORBIDDEN = (
    ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Try, ast.With,
    ast.Import, ast.ImportFrom, ast.ClassDef, ast.Delete, ast.NamedExpr, ast.Match,
)  # fmt: skip
_BUILTINS = frozenset(
    f"builtins.{name}"
    for name in "abs all any bool divmod enumerate float int isinstance len list max min range reversed round sorted "
    "str sum tuple zip set dict ValueError TypeError RuntimeError".split()
)
_NUMBERS = frozenset(f"builtins.{name}" for name in "abs all any bool float int isinstance len range round str".split())
_COPIES = frozenset(
    "item tolist size dim numel sum max min mean any all astype copy nonzero argmax argmin cumsum std".split()
)
_SHARES = frozenset(
    "detach cpu numpy to reshape view flatten transpose permute squeeze unsqueeze long int float bool".split()
)
_CHANGES = frozenset("append extend insert pop remove clear sort reverse fill put itemset partition update add".split())
_VIEWS = frozenset(
    f"numpy.{name}"
    for name in "asarray asanyarray broadcast_to reshape ravel squeeze transpose swapaxes expand_dims moveaxis "
    "atleast_1d atleast_2d atleast_3d diagonal flip rollaxis".split()
)
_FILLS = frozenset(
    f"numpy.{name}" for name in "put_along_axis put place copyto fill_diagonal putmask random.shuffle".split()
)
_FILES = frozenset(
    f"numpy.{name}" for name in "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile memmap".split()
)


def edit(site: Site, names: list[str], made: ast.Call) -> Edit:
    """The compile path in front of the body of the function around the site, whose array `made` makes; or NotProven."""
    function = site.evaluator.scope.node
    _Effects(site, function).check()
    operator = operator_name(site, function.name)
    conditions = ["torch.compiler.is_dynamo_compiling()", call(site, "_fits_arrays", names, 1).lstrip()]
    path = path_before_body(site, _COMMENT, conditions, f"{operator}({', '.join(names)})")
    return Edit((path,), ("torch",), _helpers(site, function, names, operator, _like(site, function, made)))


def _helpers(
    site: Site, function: FunctionNode, names: list[str], operator: str, like: list[str]
) -> tuple[Helper, ...]:
    empty = site.free_name(f"{operator}_like")
    given = ", ".join(names)
    name = function.name
    made = calling(operator, f"_array_operator(like={empty})", "*given", name, f"return code({handed_on(function)})")
    return (
        NAMING,
        Helper("_fits_arrays", FITS, shared=True),
        Helper("_array_operator", ARRAY_OPERATOR, after=("_operator_name", "_fits_arrays"), shared=True),
        Helper(empty, "\n".join([f"def {empty}({given}):", *(f"    {line}" for line in like)]), after=(function.name,)),
        Helper(operator, made, after=(function.name, "_array_operator", empty)),
    )


def array_made(site: Site, function: FunctionNode) -> ast.Call | None:
    """The call that makes the array that each `return` gives, if it is bound once, at the top of the function."""
    returned = [node.value for node in walk_scope(function) if isinstance(node, ast.Return)]
    names = {each.id if isinstance(each, ast.Name) else "" for each in returned}
    name = names.pop() if len(names) == 1 else ""
    bound = [node for node in walk(function) if is_name(node, name)]
    stores = [node for node in bound if not isinstance(node.ctx, ast.Load)]
    for statement in function.body:
        if isinstance(statement, ast.Assign) and len(stores) == 1 and statement.targets == stores:
            value = statement.value
            return value if isinstance(value, ast.Call) and site.resolve_global(value.func) in _MADE else None
    return None


def _like(site: Site, function: FunctionNode, made: ast.Call) -> list[str]:
    """Lines that make an empty tensor of the shape and dtype of the array."""
    words = {each.arg: each.value for each in made.keywords}
    positional = list(made.args)
    full = site.resolve_global(made.func) == "numpy.full"
    shape = words.pop("shape", None) or (positional.pop(0) if positional else None)
    if full:
        words.pop("fill_value", None) or (positional.pop(0) if positional else None)
    dtype = words.pop("dtype", None) or (positional.pop(0) if positional else None)
    if shape is None or words or positional or (full and dtype is None):
        raise NotProven(f"the shape or dtype of `{short(made)}` is not known")
    kind = "float64" if dtype is None else _DTYPES.get(site.resolve_global(dtype) or "")
    if kind is None:
        raise NotProven(f"the dtype of `{short(made)}` is not known")
    lines = [site.text(each) for each in _slice(site, function, shape, made)]
    return [*lines, f'return torch.empty({site.text(shape)}, dtype=torch.{kind}, device="cpu")']


def _slice(site: Site, function: FunctionNode, shape: ast.expr, made: ast.Call) -> list[ast.Assign]:
    """The statements that compute what the shape is made of, from the parameters. NotProven where they are others."""
    given = parameter_names(function)
    kept: list[ast.Assign] = []
    waiting = [shape]
    while waiting:
        node = waiting.pop()
        for part in walk(node):
            known = site.resolve_global(part.func) in _NUMBERS if isinstance(part, ast.Call) else True
            if not isinstance(part, _OF_SIZES) or not known:
                raise NotProven(f"the shape of the array may depend on `{short(part)}`")
            if isinstance(part, ast.Name) and not any(part.id in names_bound(each) for each in kept):
                found = [each for each in walk(function) if part.id in names_bound(each) and each is not function]
                found = [each for each in found if not isinstance(each, (ast.expr, ast.expr_context))]
                if part.id in given and not found:
                    continue
                if not found and site.resolve_global(part) is not None:
                    continue
                if len(found) != 1 or part.id in given or not _comes_before(function, found[0], made):
                    raise NotProven(f"the shape of the array depends on `{part.id}`, which may change")
                kept.append(found[0])  # type: ignore[arg-type]
                waiting.append(found[0].value)  # type: ignore[attr-defined]
    return sorted(kept, key=lambda each: each.lineno)


_OF_SIZES = (
    ast.Name, ast.Tuple, ast.List, ast.Subscript, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call,
    ast.expr_context, ast.operator, ast.unaryop,
)  # fmt: skip


def _comes_before(function: FunctionNode, statement: ast.AST, made: ast.Call) -> bool:
    return isinstance(statement, ast.Assign) and statement in function.body and statement.lineno < made.lineno


class _Effects(NameOrigins):
    """What a function does besides giving its array."""

    def __init__(self, site: Site, function: FunctionNode) -> None:
        super().__init__([*walk(function)])
        self._site = site
        inside = [node for node in self.nodes if isinstance(node, (ast.FunctionDef, ast.Lambda))]
        self._inner = {node.name for node in inside if isinstance(node, ast.FunctionDef) and node is not function}
        self._given = {each.arg for node in inside for each in parameters(node)}
        self._locals = self._given | self.stored | self._inner

    def check(self) -> None:
        """NotProven for an effect that lasts."""
        for node in self.nodes:
            if isinstance(node, _FORBIDDEN):
                raise NotProven("the function has side effects")
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                raise NotProven(f"`{short(node)}` is written")
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                self._check_own(node)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self._check_own(node.target)
            elif isinstance(node, ast.Call):
                self._check_call(node)

    def _check_own(self, node: ast.expr) -> None:
        name = root_of(node)
        if name is None or name not in self._locals or self.origins({name}) & self._given:
            raise NotProven(f"`{short(node)}` may change an argument")

    def _check_call(self, node: ast.Call) -> None:
        called = self._resolved(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in self._inner:
            return
        if called is None and isinstance(node.func, ast.Attribute) and (root_of(node.func) or "") in self._locals:
            self._check_method(node, node.func)
            return
        if called is not None and called.startswith("numpy.") and called not in _FILES:
            if any(word.arg == "out" for word in node.keywords):
                raise NotProven(f"`{short(node)}` writes into an argument")
            if called in _FILLS:
                self._check_own(node.args[0] if node.args else node)
            return
        inner = owner_of(node)
        if isinstance(inner, ast.Call) and node.func.attr in _COPIES | _SHARES:  # type: ignore[attr-defined]
            return
        if called not in _BUILTINS and (called == "random.shuffle" or not (called or "").startswith("random.")):
            raise NotProven(f"`{short(node)}` may have side effects")

    def _check_method(self, node: ast.Call, method: ast.Attribute) -> None:
        name = method.attr
        if name in _CHANGES:
            self._check_own(method.value)
        elif name not in _COPIES | _SHARES:
            raise NotProven(f"`{short(node)}` may have side effects")

    def _resolved(self, node: ast.expr) -> str | None:
        """What a name leads to, if it is no local."""
        return None if (root_of(node) or "") in self._locals else self._site.resolve_global(node)

    def is_kept(self, name: str) -> bool:
        """True for a parameter."""
        return name in self._given

    def called_parts(self, call: ast.Call) -> Iterable[ast.AST]:
        """What the result of a call may have the memory of."""
        called = self._resolved(call.func)
        if called is not None and called.startswith("numpy."):
            return call.args[:1] if called in _VIEWS else ()
        if called in _NUMBERS:
            return ()
        if called is None and isinstance(call.func, ast.Attribute):
            return () if call.func.attr in _COPIES else (call.func.value,)
        return all_given(call)
