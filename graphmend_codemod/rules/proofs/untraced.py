"""Code that Dynamo cannot trace: one function per kind, which returns the break and advice for a manual fix."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import speculation, torch_api
from graphmend_codemod.analysis.scope import Outline, children, walk_in_layers
from graphmend_codemod.analysis.values import BOOL, Kind
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.project.summary.candidates import ANSWERS
from graphmend_codemod.rules.framework.reasons import cannot_infer_tensor
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions import asks_identity, reads_tensor
from graphmend_codemod.rules.proofs.numbers.elements import may_be_tensor
from graphmend_codemod.rules.proofs.untraceable_calls import NAMES, refused

_FINDS = frozenset("nonzero argwhere unique unique_consecutive bincount masked_select".split())
_READS = {"item": "a Python scalar", "tolist": "a Python list", "numpy": "a NumPy array"}
_CASTS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "builtins.range"})
_SIZED = frozenset("arange zeros ones empty full rand randn".split())
_RESHAPES = frozenset("new_zeros new_ones new_empty new_full view reshape expand repeat narrow".split())
_TAKES_SIZES = _SIZED | _RESHAPES | {"pad", "interpolate"}
_REDUCES = frozenset("sum any all max min amax amin mean item".split())
_COMPARES = frozenset("eq ne gt lt ge le bool logical_and logical_or logical_not isin".split())
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_LAYERS = _RECURRENT | {"CTCLoss"}
_CALLED = (
    NAMES
    | _FINDS
    | ANSWERS
    | _READS.keys()
    | _SIZED
    | _RESHAPES
    | frozenset(("int float bool range pad interpolate zip").split())
)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_LEVELS = 4
_CAPTURE = "`torch._dynamo.config.capture_dynamic_output_shape_ops`"
_HEADS = ("test", "iter", "items", "subject")


class Untraced(NamedTuple):
    """One break site: the part of the statement, what it does, and a way out."""

    node: ast.expr
    does: str
    advice: str

    @property
    def message(self) -> str:
        return f"{self.does}: `{speculation.short(self.node)}`"


Ask = Callable[[Site, ast.Call, "str | None"], Untraced | None]
"""Asks for one kind of break at a call, given the qualified name of what is called."""


class Suspects(NamedTuple):
    """What one look at a function leaves to be judged: calls and subscripts in order of the source."""

    places: list[tuple[int, int]]
    nodes: list[ast.expr]

    def of(self, statement: ast.stmt) -> list[ast.expr]:
        """Those that the statement evaluates itself."""
        body = getattr(statement, "body", None)
        last = (statement.end_lineno or 0, statement.end_col_offset or 0)
        end = (body[0].lineno, body[0].col_offset) if body else last
        first = bisect_left(self.places, (statement.lineno, statement.col_offset))
        return self.nodes[first : bisect_left(self.places, end, lo=first)]


def suspects(site: Site) -> Suspects:
    """The suspects of the function, looked for once."""
    return site.remembered("untraced", site.evaluator.scope.node, lambda: _suspects(site), anywhere=True)


def _suspects(site: Site) -> Suspects:
    nodes = sorted(_in_outline(site.evaluator.scope.outline), key=lambda node: (node.lineno, node.col_offset))
    return Suspects([(node.lineno, node.col_offset) for node in nodes], nodes)


def lines(outline: Outline) -> list[int]:
    """The lines where suspects begin."""
    return [node.lineno for node in _in_outline(outline)]


def _in_outline(outline: Outline) -> list[ast.expr]:
    found: list[ast.expr] | None = outline.notes.get("untraced")
    if found is None:
        chosen = [node for node in outline.subscripts if not _is_plain(node.slice)]
        found = outline.notes["untraced"] = [*filter(_is_suspect, outline.calls), *chosen]
    return found


def _is_plain(index: ast.expr) -> bool:
    """True for an index or slice of nothing but constants, as in `x[:, None, -1]`."""
    kind = index.__class__
    if kind is ast.Constant:
        return True
    if kind is ast.Tuple:
        return all(map(_is_plain, index.elts))  # type: ignore[attr-defined]
    if kind is ast.Slice:
        bounds = (index.lower, index.upper, index.step)  # type: ignore[attr-defined]
        return all(bound is None or _is_plain(bound) for bound in bounds)
    return kind is ast.UnaryOp and index.operand.__class__ is ast.Constant  # type: ignore[attr-defined]


def _is_suspect(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in _CALLED or function.id[:1].isupper()
    if not isinstance(function, ast.Attribute):
        return False
    name = function.attr
    if isinstance(function.value, ast.Name) and function.value.id == "self":
        return not call.keywords  # a recurrent layer, for all that one sees
    return name in _CALLED or name[:1].isupper() or (name == "where" and len(call.args) == 1) or _of_module(function)


def _of_module(function: ast.Attribute) -> bool:
    """True for functions of `np.random` and of `math`."""
    owner = function.value
    if isinstance(owner, ast.Name):
        return owner.id == "math"
    return isinstance(owner, ast.Attribute) and owner.attr == "random"


def evaluated(site: Site, statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions that a statement evaluates while torch.compile traces, without those of statements inside it."""
    if hasattr(statement, "body"):
        heads = [getattr(statement, field, None) for field in _HEADS]
        stack = [each for head in heads for each in (head if isinstance(head, list) else [head]) if each is not None]
    else:
        stack = children(statement)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.IfExp):
            compiling = site.value(node.test).compiling
            stack += [each for each, dead in ((node.body, False), (node.orelse, True)) if compiling is not dead]
            stack.append(node.test)
        elif not isinstance(node, ast.Lambda):
            stack += children(node)


def found(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`mask.nonzero()`, `torch.where(mask)`, `torch.unique(x)`."""
    name = torch_api.torch_function(called)
    if called is None and isinstance(node.func, ast.Attribute) and node.func.attr in _FINDS:
        known = site.value(node.func.value)
        sure = known.kind is Kind.TENSOR or (known.kind is Kind.UNKNOWN and node.func.attr != "unique")
        name = node.func.attr if sure else None
    if name in _FINDS or (name == "where" and len(node.args) == 1 and not node.keywords):
        return Untraced(
            node,
            "output has a data-dependent shape",
            "no static-shape rewrite; manually keep the mask and select with `torch.where`, or try " + _CAPTURE,
        )
    return None


def chosen(site: Site, node: ast.Subscript) -> Untraced | None:
    """`x[mask]`, read, and written in `x[mask] += 1`, which reads it."""
    statement = site.place.statement
    if not isinstance(node.ctx, ast.Load) and not (isinstance(statement, ast.AugAssign) and statement.target is node):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(_is_list_of_tests(site, each) for each in parts) and not site.value(node.value).is_python:
        advice = "Dynamo turns the list into a mask; index with a list of the integers at which it is True"
        return Untraced(node, "boolean-mask indexing by a list of bools (data-dependent shape)", advice)
    first = parts[0] if parts else node.slice
    if isinstance(first, (ast.Slice, ast.Constant)) or not _is_mask(site, first) or site.value(node.value).is_python:
        return None
    return Untraced(
        node,
        "boolean-mask indexing (data-dependent shape)",
        "no static-shape rewrite; manually compute all elements and select with `torch.where`, or try " + _CAPTURE,
    )


def _is_list_of_tests(site: Site, node: ast.expr) -> bool:
    """True for a name that only ever holds `[kind == "linear" for kind in kinds]`."""
    assigned = _assigned(site).get(node.id, []) if isinstance(node, ast.Name) else []
    return bool(assigned) and all(
        isinstance(each, ast.ListComp) and isinstance(each.elt, ast.Compare) for each in assigned
    )


def _is_mask(site: Site, node: ast.expr) -> bool:
    value = site.value(node)
    if value.is_python or value.is_single or (value.dtype is not None and value.dtype.startswith("torch.int")):
        return False
    if value.dtype == BOOL or _looks_like_mask(node):
        return True
    if not isinstance(node, ast.Name):
        return False
    assigned = _assigned(site).get(node.id)
    return assigned is not None and all(map(_looks_like_mask, assigned))


def _looks_like_mask(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return not any(isinstance(each, ast.Constant) for each in (node.left, node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return True
    if isinstance(node, ast.Compare):
        return not asks_identity(node)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COMPARES


def recurrent(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """A call of a `nn.LSTM`, which is an attribute of the instance."""
    if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Name):
        return None
    if node.func.value.id != site.evaluator.scope.self_name:
        return None
    made = site.value(node.func).instance_of
    if torch_api.torch_module_class(made) not in _RECURRENT:
        return None
    return Untraced(
        node,
        "calls a recurrent layer (`nn.LSTM`, `nn.GRU`, `nn.RNN`)",
        "Dynamo traces it only with `torch._dynamo.config.allow_rnn = True`; set that before you call `torch.compile`",
    )


def constructed(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`Layer(config)` in a method that `forward` reaches."""
    if called is None or not has_parameters(site, called):
        return None
    return Untraced(
        node,
        "constructs a module with parameters inside `forward`",
        (
            "Dynamo cannot trace `nn.Parameter`; "
            "construct the module in `__init__`, or in a method that runs before compiling"
        ),
    )


def has_parameters(site: Site, qualified: str, depth: int = 0) -> bool:
    """True for a class of modules that certainly have parameters of their own."""
    layer = torch_api.torch_module_class(qualified)
    if layer is not None:
        return layer in torch_api.LAYERS_WITH_PARAMETERS
    facts = site.evaluator.scope.index.class_facts(qualified)
    if facts is None or not facts.is_module or depth >= _LEVELS:
        return False
    kinds = facts.attributes.values()
    return any(
        each.kind is AttributeKind.PARAMETER
        or (each.kind is AttributeKind.CALL and each.callee and has_parameters(site, each.callee, depth + 1))
        for each in kinds
    )


def read(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`x.item()`, `x.tolist()`, `int(x)`, `math.sqrt(x)`."""
    if called is not None and (called in _CASTS or called.startswith("math.")):
        tensors = [each for each in node.args if site.value(each).is_tensor or _steps_through_tensor(site, each)]
        return _readback(node, "a Python scalar") if tensors else None
    if called is not None or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr in _READS and not node.args and not site.value(node.func.value).is_python:
        return _readback(node, _READS[node.func.attr])
    return None


def _readback(node: ast.Call, result: str) -> Untraced:
    advice = (
        "the result is used as a Python value; manually keep it a tensor, or compute it from shapes or Python values"
    )
    return Untraced(node, f"converts a tensor to {result} (device sync)", advice)


def sized(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`torch.arange(t)`, `x.view(t, -1)`."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _TAKES_SIZES:
        return None
    each = _sized_by(site, node, _sizes(node, called))
    if each is not None and torch_api.torch_function(called) is None and site.value(node.func.value).is_python:
        return None
    return each


def cut(site: Site, node: ast.Subscript) -> Untraced | None:
    """`x[:t]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    bounds = [each for part in parts if isinstance(part, ast.Slice) for each in (part.lower, part.upper)]
    return _sized_by(site, node, [each for each in bounds if each is not None])


def _sized_by(site: Site, node: ast.expr, sizes: Iterable[ast.expr]) -> Untraced | None:
    tensor = next((each for each in sizes if each.__class__ is not ast.Constant and _is_number(site, each)), None)
    if tensor is None:
        return None
    advice = (
        f"`{speculation.short(tensor)}` is a tensor; "
        "manually take the size from `.shape`, or from the Python value it was built from"
    )
    return Untraced(node, "uses a tensor as a size (device sync)", advice)


def _sizes(node: ast.Call, called: str | None) -> Iterator[ast.expr]:
    """Expressions that say how large the result is, if what is called is a function of torch or a method of tensors."""
    assert isinstance(node.func, ast.Attribute)
    method = node.func.attr
    name = torch_api.torch_function(called)
    given: list[ast.expr] = []
    if name in _SIZED:
        given = node.args[:1] if name == "full" else node.args
    elif name in {"pad", "interpolate"}:
        given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg in {"pad", "size"})]
    elif name is None and method in _RESHAPES:
        given = node.args[:1] if method == "new_full" else node.args
    for each in given:
        yield from each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each]


def _is_computed(site: Site, node: ast.expr, names: int = 3) -> bool:
    """True for arithmetic with an element of a tensor, as in `first = positions[0] - start`, whatever `start` is."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        elements = (side for side in sides if isinstance(side, ast.Subscript) and site.value(side).is_tensor)
        return next(elements, None) is not None or any(_is_computed(site, side, names) for side in sides)
    if not isinstance(node, ast.Name) or not names or site.value(node).kind is not Kind.UNKNOWN:
        return False
    assigned = _assigned(site).get(node.id, [])
    return len(assigned) == 1 and _is_computed(site, assigned[0], names - 1)


def _assigned(site: Site) -> dict[str, list[ast.expr]]:
    """What the function assigns to each name, in one entry an assignment."""

    def look() -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for part in site.evaluator.scope.outline.assignments:
            for name in {each.id for each in part.targets if isinstance(each, ast.Name)}:
                found.setdefault(name, []).append(part.value)
        return found

    return site.remembered("assigned", site.evaluator.scope.node, look, anywhere=True)


def _is_number(site: Site, node: ast.expr) -> bool:
    """True for a tensor in the place of a number."""
    value = site.value(node)
    if value.is_tensor or _is_of_array(site, node):
        return True
    if not isinstance(node, ast.Name) or value.kind is not Kind.UNKNOWN:
        return isinstance(node, ast.BinOp) and _is_computed(site, node)
    return _is_computed(site, node) or _steps_through_tensor(site, node)


def _steps_through_tensor(site: Site, node: ast.expr) -> bool:
    """True for the `v` of `[int(v) for v in lengths]`, where `lengths` is a tensor."""
    statement = site.place.statement
    if not isinstance(node, ast.Name) or not site.evaluator.scope.outline.has_comprehension:
        return False
    for each in site.remembered("comprehensions", statement, lambda: _comprehensions(statement), anywhere=True):
        for target, iterated in _in_step(site, each):
            if isinstance(target, ast.Name) and target.id == node.id:
                return site.value(iterated).is_tensor
    return False


def _is_of_array(site: Site, node: ast.expr) -> bool:
    """True for `sizes[0]` where `sizes = np.array(...)`: Dynamo traces arrays of NumPy as tensors."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return False
    assigned = _assigned(site).get(node.value.id, [])
    names = [site.resolve(each.func) if isinstance(each, ast.Call) else None for each in assigned]
    return bool(names) and all(name in {"numpy.array", "numpy.asarray"} for name in names)


def _comprehensions(statement: ast.stmt) -> list[ast.comprehension]:
    return [node for node in walk_in_layers(statement) if isinstance(node, ast.comprehension)]


def _in_step(site: Site, comprehension: ast.comprehension) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of a comprehension with what each of them iterates over."""
    target, iterated = comprehension.target, comprehension.iter
    if isinstance(iterated, ast.Call) and isinstance(target, ast.Tuple):
        together = site.resolve(iterated.func)
        if together == "builtins.zip":
            yield from zip(target.elts, iterated.args, strict=False)
        elif together == "builtins.enumerate" and iterated.args:
            yield target.elts[-1], iterated.args[0]
    else:
        yield target, iterated


def by_name(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`pack_padded_sequence(x, lengths)`, `random.random()`, `F.one_hot(ids)`."""
    function = node.func
    own = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    found = refused(node, called, site.value(function).instance_of if own else None)
    if found is None or (
        called is None and isinstance(function, ast.Attribute) and site.value(function.value).is_python
    ):
        return None
    return Untraced(node, found.does, found.advice)


def compared(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`torch.equal(a, b)`, `a.allclose(b)`, which read a bool back."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if torch_api.torch_function(called) not in ANSWERS and not (
        called is None and method in ANSWERS and site.value(node.func.value).is_tensor  # type: ignore[attr-defined]
    ):
        return None
    advice = "manually keep it a tensor: `(a == b).all()`, `torch.isclose(a, b).all()`"
    return Untraced(node, "converts a comparison of tensors to a Python bool (device sync)", advice)


def apart(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`zip(*t)`, whose numbers make an index that cannot be traced."""
    if called != "builtins.zip" or len(node.args) != 1:
        return None
    given = node.args[0]
    if not isinstance(given, ast.Starred) or not site.value(given.value).is_tensor:
        return None
    return Untraced(
        node,
        "unpacks a tensor into 0-dim tensors",
        "torch.compile fails where one of them is an index; manually unpack it with `unbind`",
    )


def drawn(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`np.random.uniform()`."""
    if called is None or not called.startswith("numpy.random.") or called == "numpy.random.seed":
        return None
    return Untraced(
        node,
        "draws a random number with NumPy",
        (
            "Dynamo traces it as a tensor of unknown value; "
            "manually draw it with `torch.rand`, or pass it in as an argument"
        ),
    )


def tested(site: Site, test: ast.expr) -> Untraced | None:
    """`if x.sum() == 0` where nothing tells what `x` is."""
    call = next((each for each in _deciding(test) if _may_read(site, each)), None)
    number = None
    if call is None:
        number = _searched(site, test) or _number_tested(site, test) or _buffer_tested(site, test)
    if call is None and number is None:
        return None
    value = site.value(test)
    if value.truth is not None or value.compiling is not None or reads_tensor(site, test):
        return None
    if call is None:
        return number
    if not isinstance(call.func, ast.Attribute):
        advice = "no rewrite for this test; manually compute both results and select with `torch.where`"
        return Untraced(test, "data-dependent branch on the elements of a tensor", advice)
    inner: ast.expr = call
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _REDUCES:
        inner = inner.func.value
    return Untraced(test, "may be a data-dependent branch", cannot_infer_tensor(site, inner))


def _searched(site: Site, test: ast.expr) -> Untraced | None:
    """`if 3 in ids`, where `ids` is a tensor."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.In, ast.NotIn)):
        return None
    if not site.value(test.comparators[0]).is_tensor:
        return None
    return Untraced(
        test, "searches a tensor for a value (data-dependent branch)", "manually write `(tensor == value).any()`"
    )


def _number_tested(site: Site, test: ast.expr) -> Untraced | None:
    """`if left <= 0`, where `left` is an element of a list of tensors."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], _ORDERS):
        return None
    number, other = test.left, test.comparators[0]
    plain = isinstance(other, ast.Constant) and type(other.value) in {int, float}
    if not plain or not isinstance(number, ast.Name) or not may_be_tensor(site, number):
        return None
    return Untraced(
        test,
        "may be a data-dependent branch",
        (
            f"`{number.id}` may be a tensor; "
            "manually compute both results and select with `torch.where`, or annotate it as a Python number"
        ),
    )


def _buffer_tested(site: Site, test: ast.expr) -> Untraced | None:
    """`if self.started`, where that is a buffer."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.BoolOp):
        return next((found for part in test.values if (found := _buffer_tested(site, part)) is not None), None)
    own = isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name)
    if not own or test.value.id != site.evaluator.scope.self_name:  # type: ignore[attr-defined]
        return None
    fact = site.evaluator.scope.attribute(test.attr)  # type: ignore[attr-defined]
    if fact is None or fact.kind not in {AttributeKind.BUFFER, AttributeKind.PARAMETER}:
        return None
    name = speculation.short(test)
    advice = (
        f"`{name}` is a {fact.kind.value}; "
        f"manually compare it (`{name} > 0`), so that a rule can select with `torch.where`, or keep a "
        "Python bool beside it"
    )
    return Untraced(test, "data-dependent branch", advice)


def _deciding(test: ast.expr) -> Iterator[ast.Call]:
    """The calls whose results decide a test."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _deciding(part)
    elif isinstance(test, ast.UnaryOp):
        yield from _deciding(test.operand)
    elif isinstance(test, ast.Compare):
        if not asks_identity(test):
            for part in (test.left, *test.comparators):
                yield from _deciding(part)
    elif isinstance(test, ast.Call):
        yield test


def _may_read(site: Site, call: ast.Call) -> bool:
    if site.resolve(call.func) in {"builtins.any", "builtins.all"} and len(call.args) == 1:
        return _is_mask(site, call.args[0])
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _REDUCES or site.resolve(call.func):
        return False
    return site.value(call.func.value).kind is Kind.UNKNOWN and site.value(call).kind is Kind.UNKNOWN


CALLS: tuple[Ask, ...] = (found, compared, apart, drawn, by_name, read, sized, recurrent, constructed)
CALLS_IN_LOOPS: tuple[Ask, ...] = (found, apart, read, sized)


def _is_harmless_layer(site: Site, function: ast.expr) -> bool:
    """True for most of `self.layer(x)`, by far the most common call: no kind of break needs to be asked for."""
    own = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    if not own or function.value.id != site.evaluator.scope.self_name or function.attr in _CALLED:  # type: ignore[attr-defined]
        return False
    return torch_api.torch_module_class(site.value(function).instance_of) not in _LAYERS


def break_at(site: Site, node: ast.expr, calls: Sequence[Ask] = CALLS) -> Untraced | None:
    """What cannot be traced of a call or a subscript; `calls` are the kinds of calls that are asked for, in order."""
    if isinstance(node, ast.Subscript):
        return chosen(site, node) or cut(site, node)
    if not isinstance(node, ast.Call) or _is_harmless_layer(site, node.func):
        return None
    called = site.resolve(node.func)
    if called is None and isinstance(node.func, ast.Attribute) and node.func.attr in _RESHAPES:
        calls = (sized,)  # nothing else is called so
    for kind in calls:
        each = kind(site, node, called)
        if each is not None:
            return each
    return None
