"""Compile paths whose header asks for what the analysis knows to be false: they would be written and never run."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphmend_codemod.analysis.gradients import certainly_off
from graphmend_codemod.analysis.patterns import is_name, is_not, only_target, operands_of, stores_name
from graphmend_codemod.analysis.scope import parameter_names, walk_scope
from graphmend_codemod.analysis.values import BOOL, UNKNOWN, Value, is_floating_dtype
from graphmend_codemod.core.findings import CompilePath, Edit, EditForm
from graphmend_codemod.rules.framework.conditions import expression
from graphmend_codemod.rules.framework.site import Site

_NO_FLOATS = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "long", "int"})
_KEEPS_HISTORY = frozenset({"clone", "contiguous", "cpu", "cuda", "double", "float", "half", "to"})
_NUMBERS = frozenset({"int", "float", "bool", "str", "tuple", "list"})


def why_not(edit: Edit, site: Site) -> str | None:
    """The reason where a condition of the edit's header cannot hold at the site."""
    if edit.form is not EditForm.BESIDE:
        return None
    asked = [*header_conditions(edit, site)]
    negated = {ast.unparse(each.operand) for each in asked if is_not(each)}
    floating = {_relative(site, of) for each in asked if (of := _asked_floating(each)) is not None}

    def is_false(test: ast.expr) -> bool:
        return _is_false(site, test) or _is_no_float(site, test, floating) or ast.unparse(test) in negated

    false = next(filter(is_false, asked), None)
    return f"a compile path would ask for `{ast.unparse(false)}`, which is never so here" if false is not None else None


def header_conditions(edit: Edit, site: Site) -> Iterator[ast.expr]:
    """What the header in front of the site's own statement asks beside the compiler."""
    line = site.place.statement.lineno
    for path in (each.parts[0] for each in edit.replacements if each.parts and each.span.start_line == line):
        if isinstance(path, CompilePath):  # negated, the statement is left out where they hold
            for condition in path.conditions[1:]:
                test = expression(condition)
                yield from operands_of(test, ast.And)


def _is_false(site: Site, test: ast.expr) -> bool:
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.expr() as asked, kind]):
            if _names(kind) == {f"{site.torch}.Tensor"}:
                return isinstance(asked, ast.Name) and _is_array(site, asked.id)
            return _value(site, asked).is_tensor and _names(kind) <= _NUMBERS
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="type"), args=[ast.expr() as asked]), ops=[ast.Is()], comparators=[kind]
        ):
            return _value(site, asked).is_tensor and _names(kind) <= _NUMBERS
        case ast.Compare(left=ast.Attribute(value=asked, attr="dtype"), ops=[ast.Eq()], comparators=[kind]):
            dtype = _value(site, asked).dtype or ""
            return ast.unparse(kind).endswith("bool") and dtype.startswith("torch.") and dtype != BOOL
        case ast.Call(func=ast.Attribute(value=asked, attr="is_floating_point"), args=[]):
            dtype = _value(site, asked).dtype or ""
            return dtype.startswith("torch.") and not is_floating_dtype(dtype)
        case ast.Call(func=ast.Attribute(attr="is_grad_enabled"), args=[]):
            return site.no_grad
        case (
            ast.Attribute(value=asked, attr="requires_grad")
            | ast.Compare(
                left=ast.Attribute(value=asked, attr="requires_grad"),
                ops=[ast.Is()],
                comparators=[ast.Constant(value=True)],
            )
        ):
            return takes_no_gradient(site, asked)
    return False


def _is_array(site: Site, name: str) -> bool:
    """True where all that binds a name is a call of NumPy: Dynamo knows an array from a tensor."""
    scope = site.evaluator.scope
    if "numpy" not in {scope.resolve_global(each) for each in ("np", "numpy")} or name in parameter_names(scope.node):
        return False
    parts = list(walk_scope(scope.node))
    made = [each for each in parts if isinstance(each, ast.Assign) and is_name(only_target(each), name)]
    stores = [each for each in parts if stores_name(each, name)]
    arrays = (isinstance(each.value, ast.Call) and site.resolve_global(each.value.func) for each in made)
    return 0 < len(made) == len(stores) and all(str(each or "").startswith("numpy.") for each in arrays)


def takes_no_gradient(site: Site, node: ast.expr) -> bool:
    """True for a tensor that is made of nothing that requires a gradient, or was detached."""
    value = _value(site, node)
    if value.is_tensor and not value.grad:
        return True
    return isinstance(node, ast.Name) and (_is_detached(site, node.id) or _made_without_gradients(site, node))


def _is_detached(site: Site, name: str) -> bool:
    """True where the last that a name got, in front of the site, is `x.clone().detach().to(device)` of anything."""
    for body, position in reversed(site.place.blocks):
        for each in reversed(body[:position]):
            if not any(stores_name(part, name) for part in walk_scope(each)):
                continue
            value = each.value if isinstance(each, ast.Assign) and is_name(only_target(each), name) else None
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                if value.func.attr == "detach":
                    return True
                value = value.func.value if value.func.attr in _KEEPS_HISTORY else None
            return False
        loops = (each for each in site.place.parents if isinstance(each, (ast.For, ast.AsyncFor, ast.While)))
        if any(each.body is body for each in loops):
            return False  # an earlier round may have given it something else
    return False


def _made_without_gradients(site: Site, node: ast.Name) -> bool:
    """True where all that binds a name, but for the site's own statement, does so under `torch.no_grad()`."""
    scope = site.evaluator.scope.node
    off = [
        part
        for part in walk_scope(scope)
        if isinstance(part, ast.With) and certainly_off([each.context_expr for each in part.items], site.resolve)
    ]
    inside = {id(part) for each in off for part in ast.walk(each)}
    own = {id(part) for part in ast.walk(site.place.statement)}
    stores = [part for part in walk_scope(scope) if stores_name(part, node.id)]
    stores = [each for each in stores if id(each) not in own]
    plain = node.id not in parameter_names(scope) and not site.sets_gradient_mode
    return plain and bool(stores) and all(id(each) in inside for each in stores)


def _asked_floating(test: ast.expr) -> ast.expr | None:
    """`x` for `x.is_floating_point()`."""
    match test:
        case ast.Call(func=ast.Attribute(value=asked, attr="is_floating_point"), args=[]):
            return asked
    return None


def _is_no_float(site: Site, test: ast.expr, floating: Collection[str | None]) -> bool:
    """True where a test asks for bool or integers of a tensor that has the dtype of one asked to be floating."""
    match test:
        case ast.Compare(left=ast.Attribute(value=asked, attr="dtype"), ops=[ast.In() | ast.Eq()], comparators=[kind]):
            dtype = _relative(site, asked)
            named = [each for each in ast.walk(kind) if isinstance(each, ast.Attribute)]
            return dtype is not None and dtype in floating and all(each.attr in _NO_FLOATS for each in named)
    return False


def _relative(site: Site, node: ast.expr) -> str | None:
    """The name of a dtype that two tensors share, whatever it is; None where only an annotation may say which."""
    value = site.value(node)
    return None if value.hint and (value.dtype or "").startswith("torch.") else value.dtype


def _value(site: Site, node: ast.expr) -> Value:
    """What is known of an expression; nothing where only the annotation of a parameter tells, which may be wrong."""
    value = site.evaluator.value(node, site.place.env)
    computed = isinstance(node, ast.Name) and node.id not in parameter_names(site.evaluator.scope.node)
    return UNKNOWN if value.hint and not computed else value


def _names(kind: ast.expr) -> set[str]:
    """The classes in `int` and `(int, float)`; what is no plain name is itself."""
    return {ast.unparse(each) for each in (kind.elts if isinstance(kind, ast.Tuple) else [kind])}
