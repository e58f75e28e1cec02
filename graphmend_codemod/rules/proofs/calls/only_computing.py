"""Code that only computes, followed into the functions that it calls, in other files and under decorators as well.

It may run although eager mode would not: it changes nothing, draws no random number, and whether it raises is decided
by Python values, shapes and dtypes, never by the elements of a tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import aliasing, torch_api
from graphmend_codemod.analysis.callgraph import ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import is_name, mentions
from graphmend_codemod.analysis.scope import FunctionNode, body_of, bound_in, dotted, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.other_files import function_of

_DEEP = 6
_RAISES_BY_DATA = frozenset(
    """allclose argwhere as_strided binary_cross_entropy bincount cholesky cholesky_inverse cholesky_solve cross_entropy
    ctc_loss data_ptr embedding equal floor_divide fmod gather gaussian_nll_loss gcd histc histogram index_add
    index_copy index_fill index_put index_reduce index_select inverse is_nonzero logdet nanquantile
    pca_lowrank pinverse quantile svd_lowrank
    item lcm masked_scatter masked_select max_unpool2d multi_margin_loss multilabel_margin_loss nll_loss nonzero one_hot
    put remainder repeat_interleave scatter scatter_add scatter_reduce take take_along_dim tolist unique
    unique_consecutive unravel_index""".split()
)
_COSTLY = frozenset(
    """addbmm addmm addmv baddbmm batch_norm bilinear bmm cdist einsum grid_sample group_norm inner instance_norm
    interpolate istft kron layer_norm linear matmul matrix_exp matrix_power mm mv outer rms_norm
    scaled_dot_product_attention stft tensordot upsample""".split()
)
_OPERATIONS = (
    (aliasing.FRESH | aliasing.VIEWS | aliasing.PYTHON_RESULTS | {"new", "data"})
    - aliasing.RANDOM
    - aliasing.CONTAINER_METHODS
    - _RAISES_BY_DATA
    - _COSTLY
    - {each for each in aliasing.FRESH if each.startswith(("conv", "linalg.", "fft."))}
    - {"requires_grad_", "cpu", "cuda", "fill"}
) | {"to", "sort"}
"""What gives new tensors, views or Python values; whether it raises does not depend on elements."""
_BUILTINS = frozenset(
    f"builtins.{each}"
    for each in """abs bool enumerate float getattr hasattr int isinstance len list max min pow range round
    str sum tuple type zip""".split()
)
_PYTHON = frozenset(
    {"torch.compiler.is_compiling", "torch.is_grad_enabled", "torch.is_autocast_enabled", "warnings.warn"}
    | {"torch.finfo", "torch.iinfo", "torch.no_grad", "torch.autograd.Variable", "torch.is_tensor", "torch.Size"}
    | {"torch.nn.functional._Reduction.get_enum", "torch.nn._reduction.get_enum"}
)
_TRANSPARENT = frozenset({"mmcv.jit", "mmcv.utils.jit"})
"""Decorators that return what calls the function, and do nothing else."""
_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.If, ast.Return, ast.Assert, ast.Raise, ast.Pass, ast.Expr, ast.For,
    ast.Continue, ast.Break, ast.With, ast.withitem,
)  # fmt: skip
_EXPRESSIONS = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.FormattedValue, ast.IfExp,
    ast.JoinedStr, ast.List, ast.Name, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp, ast.expr_context,
    ast.keyword, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_ROOTS = ("torch", "math")


class _Function(NamedTuple):
    """A function with the file that it stands in, and the functions that names of its closure are."""

    node: FunctionNode
    module: str
    calls: ModuleCalls
    inner: Mapping[str, _Function]


class OnlyComputing:
    """Follows code from a site; each question raises NotProven where the code may do more than compute."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._index = site.evaluator.scope.index
        self._calls = calls_in(site.source.text)
        self._seen: set[int] = set()

    def demand(
        self, statements: Sequence[ast.stmt], own: str | None, given: Iterable[str], numbers: Iterable[str] = ()
    ) -> set[str]:
        """NotProven unless statements at the site only compute; the attributes of the instance `own` that they read.

        `given` are the locals of the function around them, of which `numbers` are Python integers.
        """
        body = _Body(self, self._site.summary.name, self._calls, {}, own, set(given))
        body.numbers = frozenset(numbers)
        body.demand(statements)
        return body.attributes

    def follow(self, qualified: str, depth: int) -> None:
        """NotProven unless a function of the project only computes."""
        if depth > _DEEP or qualified == f"{self._site.summary.name}.{self._site.function}":
            raise NotProven(f"`{qualified}` calls functions that call further ones")
        name = qualified.rpartition(".")[2]
        for path, write in self._index.writers(name):
            if write.receiver and write.receiver != "self":
                raise NotProven(f"`{write.receiver}.{name}` is assigned in {path}")
        self._demand(self._decorated(self._find(qualified), depth), depth)

    def _find(self, qualified: str) -> _Function:
        name, found = qualified.rpartition(".")[2], function_of(self._site, qualified)
        if found is None:
            raise NotProven(f"cannot read what `{name}` does")
        module, calls, function = found
        if not calls.top.binds_once(function.qualname):
            where = "" if module == self._site.summary.name else " of its file"
            raise NotProven(f"`{name}` is bound more than once at the top level{where}")
        return _Function(function.node, module, calls, {})

    def _decorated(self, function: _Function, depth: int) -> _Function:
        """What a name is once the decorators of its function have run."""
        found = function
        for decorator in reversed(function.node.decorator_list):
            spelled = decorator.func if isinstance(decorator, ast.Call) else decorator
            qualified = self._index.resolve(function.module, dotted(spelled) or "?")
            if qualified in _TRANSPARENT:
                continue
            if qualified is None or isinstance(decorator, ast.Call) or self._index.function(qualified) is None:
                raise NotProven(f"cannot tell what the decorator of `{function.node.name}` makes of it")
            found = self._wrapped(self._find(qualified), found, depth)
        return found

    def _wrapped(self, decorator: _Function, function: _Function, depth: int) -> _Function:
        """The function that a decorator returns, which calls what it is given."""
        taken = decorator.node.args
        first = [*taken.posonlyargs, *taken.args]
        body = [each for each in body_of(decorator.node) if not isinstance(each, ast.Pass)]
        inner = body[0] if body else None
        if decorator.node.decorator_list or len(first) != 1 or len(body) != 2 or not isinstance(inner, ast.FunctionDef):
            raise NotProven(f"`{decorator.node.name}` does more than wrap the function that it decorates")
        name, last = first[0].arg, body[1]
        if not (isinstance(last, ast.Return) and last.value is not None and is_name(last.value, inner.name)):
            raise NotProven(f"`{decorator.node.name}` returns more than its inner function")
        for each in inner.decorator_list:
            named = each.func if isinstance(each, ast.Call) else each
            if self._index.resolve(decorator.module, dotted(named) or "?") != "functools.wraps":
                raise NotProven(f"`{inner.name}` in `{decorator.node.name}` is decorated itself")
        self._demand(function, depth)
        return _Function(inner, decorator.module, decorator.calls, {name: function})

    def _demand(self, function: _Function, depth: int) -> None:
        if id(function.node) in self._seen:
            return
        self._seen.add(id(function.node))
        if isinstance(function.node, ast.AsyncFunctionDef):
            raise NotProven(f"`{function.node.name}` is asynchronous")
        given = parameter_names(function.node)
        body = _Body(self, function.module, function.calls, function.inner, None, given, depth + 1)
        body.demand(body_of(function.node))

    def resolve(self, module: str, node: ast.expr) -> str | None:
        """The qualified name of what is spelled at the top level of a module."""
        name = dotted(node)
        return self._index.resolve(module, name) if name is not None else None

    def is_function(self, qualified: str) -> bool:
        """True for a function of the project."""
        return self._index.function(qualified) is not None


class _Body:
    """The statements of one function."""

    def __init__(
        self,
        code: OnlyComputing,
        module: str,
        calls: ModuleCalls,
        inner: Mapping[str, _Function],
        own: str | None,
        given: set[str],
        depth: int = 0,
    ) -> None:
        self._code, self._module, self._calls = code, module, calls
        self._inner, self._own, self._given, self._depth = inner, own, given, depth
        self.attributes: set[str] = set()
        self.numbers: frozenset[str] = frozenset()

    def demand(self, statements: Sequence[ast.stmt]) -> None:
        nodes = [part for each in statements for part in walk(each)]
        self._locals = self._given | {name for each in statements for name in bound_in(each)}
        self._nodes = nodes
        self._called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self._roots = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            if isinstance(node, (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.keyword)):
                continue
            if not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS)) or not self._computes(node):
                raise NotProven(f"`{short(node)}` may do more than compute")

    def _computes(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.Assign, ast.For)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return all(map(self._is_target, targets))
        if isinstance(node, ast.withitem):
            call = node.context_expr
            asked = isinstance(call, ast.Call) and node.optional_vars is None and dotted(call.func) is not None
            return asked and self._code.resolve(self._module, call.func) == "torch.no_grad"  # type: ignore[attr-defined]
        if isinstance(node, ast.AugAssign):
            return isinstance(node.target, ast.Name) and self._is_fresh(node.target.id)
        if isinstance(node, ast.Expr):
            return isinstance(node.value, (ast.Constant, ast.Call))
        if isinstance(node, ast.BinOp):
            return self._divides(node) if isinstance(node.op, (ast.FloorDiv, ast.Mod)) else _is_cheap(node)
        if isinstance(node, ast.Subscript):
            return self._is_index(node.slice)  # what is written was asked with its statement
        if isinstance(node, ast.Name):
            return self._names(node)
        if isinstance(node, ast.Attribute):
            return self._reads(node)
        return self._call(node) if isinstance(node, ast.Call) else True

    def _is_target(self, node: ast.expr) -> bool:
        """A name, names, or a part of a tensor that is new."""
        if isinstance(node, ast.Tuple):
            return all(map(self._is_target, node.elts))
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Name) and self._is_fresh(node.value.id)
        return isinstance(node, ast.Name)

    def _names(self, node: ast.Name) -> bool:
        """A local, or something at the top level that cannot change and takes no gradient."""
        if node.id in self._locals:
            return True
        if node.id in self._inner or id(node) in self._called or id(node) in self._roots:
            return True  # asked where it is called, or read from
        qualified = self._code.resolve(self._module, node)
        return self._calls.top.literal(node.id) is not None or (qualified or "").startswith("builtins.")

    def _reads(self, node: ast.Attribute) -> bool:
        if not isinstance(node.ctx, ast.Load):
            return False
        if is_name(node.value, self._own):
            self.attributes.add(node.attr)
            return id(node) not in self._called
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value  # type: ignore[assignment]
        if isinstance(root, ast.Name) and root.id not in self._locals and id(node) not in self._called:
            named = (self._code.resolve(self._module, root) or "").partition(".")[0]
            return named in _ROOTS or id(node) in self._roots
        return True

    def _call(self, node: ast.Call) -> bool:
        if isinstance(node.func, ast.Name):
            if node.func.id in self._inner:
                return True
            if node.func.id in self._locals:
                return False
        root = dotted(node.func)
        local = root is None or root.partition(".")[0] in self._locals
        qualified = None if local else self._code.resolve(self._module, node.func)
        if local or (qualified is None and isinstance(node.func, ast.Attribute)):
            return (
                isinstance(node.func, ast.Attribute) and local and self._operates(node.func.attr, node, node.func.value)
            )
        if qualified is None:
            return False
        if qualified in _BUILTINS or qualified in _PYTHON or qualified.startswith("math."):
            return True
        if qualified.startswith("builtins.") and qualified.endswith(("Error", "Warning", "Exception")):
            return True
        if (name := torch_api.torch_function(qualified)) is not None:
            return self._operates(name, node)
        if not self._code.is_function(qualified):
            return False
        self._code.follow(qualified, self._depth)
        return True

    def _operates(self, name: str, call: ast.Call, receiver: ast.expr | None = None) -> bool:
        """An operation of torch that computes, whatever the elements of its arguments are."""
        words = {word.arg for word in call.keywords}
        if name not in _OPERATIONS or words & {"out", "inplace", "rounding_mode", None}:
            return False
        known = name in aliasing.FRESH or name in aliasing.VIEWS
        return not (known and aliasing.of_operator(name, call, receiver).writes)

    def _divides(self, node: ast.BinOp) -> bool:
        """Integers divided by zero raise: a divisor has to be written out."""
        return isinstance(node.right, ast.Constant) and bool(node.right.value)

    def _is_fresh(self, name: str) -> bool:
        """True for a name that holds nothing but numbers and new tensors: `name += x` changes nothing else."""
        if name in self._given:
            return False
        made = [node for node in self._nodes if isinstance(node, (ast.Assign, ast.For))]
        values: list[ast.expr | None] = []
        for each in made:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            parts = (part for target in targets for part in walk(target) if is_name(part, name))
            if any(not isinstance(part.ctx, ast.Load) for part in parts):
                plain = not isinstance(each, ast.For) and any(is_name(target, name) for target in targets)
                values.append(each.value if plain else None)  # type: ignore[union-attr]
        return bool(values) and all(value is not None and self._makes(value) for value in values)

    def _makes(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Call):
            name = value.func.attr if isinstance(value.func, ast.Attribute) else ""
            return name in aliasing.FRESH - aliasing.VIEWS
        return isinstance(value, (ast.BinOp, ast.Constant)) or (
            isinstance(value, ast.UnaryOp) and not isinstance(value.op, ast.UAdd)
        )

    def _is_index(self, node: ast.expr) -> bool:
        """A number that Python knows, a slice, or places that a sort gave."""
        if isinstance(node, ast.Tuple):
            return all(map(self._is_index, node.elts))
        if isinstance(node, ast.UnaryOp):
            return self._is_index(node.operand)
        if isinstance(node, ast.Name):
            return node.id in self.numbers or self._is_counted(node.id) or self._is_sorted(node.id)
        return isinstance(node, (ast.Constant, ast.Slice))

    def _is_counted(self, name: str) -> bool:
        """True for the variable of a loop over a range, and nothing else."""
        loops = [each for each in self._nodes if isinstance(each, ast.For) and is_name(each.target, name)]
        stored = [part for part in self._nodes if is_name(part, name) and not isinstance(part.ctx, ast.Load)]
        over = [each.iter for each in loops]
        ranges = [isinstance(each, ast.Call) and is_name(each.func, "range") for each in over]
        return name not in self._given and len(loops) == len(stored) > 0 and all(ranges)

    def _is_sorted(self, name: str) -> bool:
        """True for the second result of a sort, also without its gradient: places of a tensor of that length."""
        made = [
            each
            for each in self._nodes
            if isinstance(each, ast.Assign) and any(mentions(target, name) for target in each.targets)
        ]
        stored = [part for part in self._nodes if is_name(part, name) and not isinstance(part.ctx, ast.Load)]
        return name not in self._given and len(made) == len(stored) > 0 and all(_sorts(each, name) for each in made)


def _is_cheap(node: ast.BinOp) -> bool:
    return not isinstance(node.op, (ast.MatMult, ast.LShift, ast.RShift))


def _sorts(node: ast.Assign, name: str) -> bool:
    """`values, name = torch.sort(...)`, `name = name.data`."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and len(target.elts) == 2 and is_name(target.elts[1], name):
        return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "sort"
    return (
        is_name(target, name)
        and isinstance(value, ast.Attribute)
        and value.attr == "data"
        and is_name(value.value, name)
    )


def names_read(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that statements read."""
    parts = [part for each in statements for part in walk_scope(each)]
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
