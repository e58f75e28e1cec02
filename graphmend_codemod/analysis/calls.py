"""What a call returns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import aliasing, annotated, effects, rearrangements, torch_api
from graphmend_codemod.analysis.patterns import is_integer, is_name, listed
from graphmend_codemod.analysis.values import (
    BOOL,
    INT64,
    NO_TENSOR,
    SCALAR,
    UNKNOWN,
    Origin,
    Value,
    ValueKind,
    canonical_dtype,
    is_certainly_no_byte,
    python,
)

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator
    from graphmend_codemod.project.index.facts import FunctionFacts

_PYTHON_BUILTINS = frozenset(
    "len int float bool str range sorted round divmod hash id repr type format hasattr callable issubclass".split()
)


_COMPARES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """The expression given for a keyword; None where there is none."""
    return next((word.value for word in node.keywords if word.arg == name), None)


def value_of_call(evaluator: Evaluator, node: ast.Call, env: Env) -> Value:
    """The abstract value of a call expression."""
    if isinstance(node.func, ast.IfExp) and evaluator.value(node.func.test, env).compiling:
        # `(twin if torch.compiler.is_compiling() else called)(x)` gives what `called(x)` gives.
        node = ast.copy_location(ast.Call(node.func.orelse, node.args, node.keywords), node)
    value = _value_of_call(evaluator, node, env)
    if value.fresh:
        effect = effects.effect_of(evaluator, node, env)
        if effect.shares or not effect.known:
            return value._replace(fresh=False)
    return value


def _value_of_call(evaluator: Evaluator, node: ast.Call, env: Env) -> Value:
    qualified = evaluator.resolve(node.func, env)
    if qualified is not None:
        return _resolved_call(evaluator, node, env, qualified)
    if isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if is_name(owner, evaluator.scope.self_name):
            return _self_call(evaluator, node, env, node.func.attr)
        base = evaluator.value(owner, env)
        if node.func.attr == "numpy" and base.instance_of is None:
            return NO_TENSOR
        if base.kind is ValueKind.TENSOR:
            result = tensor_function(evaluator, node.func.attr, base, node, env, node.args)
            return result._replace(hint=True) if base.hint and result.kind is ValueKind.TENSOR else result
        if base.instance_of is not None:
            return _method_result(evaluator, base.instance_of, node.func.attr)
        if node.func.attr == "size" and base.origin is Origin.SHAPE:
            return python(Origin.SHAPE)
    return UNKNOWN


def _resolved_call(evaluator: Evaluator, node: ast.Call, env: Env, qualified: str) -> Value:
    if qualified in torch_api.COMPILING_PREDICATES:
        return Value(ValueKind.PYTHON, truth=True, origin=Origin.META, compiling=True)
    if qualified in torch_api.FALSE_PREDICATES:
        return Value(ValueKind.PYTHON, truth=False, origin=Origin.META)
    if qualified in torch_api.VARIABLE and node.args:
        base = evaluator.value(node.args[0], env)
        asks = len(node.args) > 1 or bool(node.keywords)
        if base.kind is not ValueKind.TENSOR:
            return evaluator.names.tensor(grad=asks)
        return evaluator.names.tensor(base.dtype, base.shape, grad=asks, hint=base.hint)
    name = torch_api.torch_function(qualified)
    if name is not None:
        return _torch_call(evaluator, name, node, env)
    if qualified.startswith("builtins."):
        return _builtin(evaluator, qualified.removeprefix("builtins."), node, env)
    if qualified in rearrangements.FUNCTIONS:
        return rearrangements.value_of(evaluator, qualified, node, env)
    facts = evaluator.scope.index.function(qualified)
    if facts is not None:
        if facts.compiling_predicate:
            return Value(ValueKind.PYTHON, truth=True, origin=Origin.META, compiling=True)
        return _project_result(evaluator, facts, node, env)
    if evaluator.scope.index.class_facts(qualified) is not None:
        return Value(ValueKind.UNKNOWN, instance_of=qualified)
    if qualified.rpartition(".")[2] in torch_api.PREDICATES_ELSEWHERE:
        return Value(ValueKind.PYTHON, truth=True, origin=Origin.META, compiling=True)
    if qualified.partition(".")[0] in {"math", "os", "sys", "time", "operator"}:
        return python()
    return UNKNOWN


def _project_result(evaluator: Evaluator, facts: FunctionFacts, node: ast.Call, env: Env) -> Value:
    """What a function of the project returns: by its annotation, else by its text where that gives a tensor.

    The text is a hint as an annotation is: a header asks for it.
    """
    value = annotated.value_of(facts.returns, evaluator.names)
    kind, _, needed = facts.gives.partition(":")
    told = value.kind is not ValueKind.UNKNOWN or value.instance_of is not None
    if not kind or told or not all(_is_given_tensor(evaluator, facts, node, env, each) for each in needed.split(",")):
        return value
    return evaluator.names.tensor(BOOL if kind == "mask" else None, hint=True)


def _is_given_tensor(evaluator: Evaluator, facts: FunctionFacts, node: ast.Call, env: Env, name: str) -> bool:
    """True where the call gives this parameter a tensor; the empty name stands for none."""
    if not name:
        return True
    position = facts.parameters.index(name) if name in facts.parameters else len(node.args)
    if any(isinstance(each, ast.Starred) for each in node.args[: position + 1]):
        return False
    given = node.args[position] if position < len(node.args) else keyword(node, name)
    return given is not None and evaluator.value(given, env).is_tensor


def _builtin(evaluator: Evaluator, name: str, node: ast.Call, env: Env) -> Value:
    if name == "isinstance" and len(node.args) == 2:
        value = evaluator.value(node.args[0], env)
        wanted = evaluator.resolve(node.args[1], env)
        truth = True if value.is_tensor and wanted == "torch.Tensor" else None
        return python(Origin.META, truth)
    if name in {"len", "hasattr", "isinstance", "callable", "issubclass", "type"}:
        return python(Origin.SHAPE if name == "len" else Origin.META)
    if name in {"getattr"} and node.args:
        base = evaluator.value(node.args[0], env)
        return python(Origin.CONFIG) if base.origin is Origin.CONFIG else UNKNOWN
    if name in {"min", "max", "sum", "abs", "tuple", "list"}:
        values = [evaluator.value(argument, env) for argument in node.args]
        if values and all(value.is_python for value in values):
            return python(max((value.origin for value in values), key=_severity))
        if name == "abs" and len(values) == 1 and values[0].kind is ValueKind.TENSOR:
            return tensor_function(evaluator, "abs", values[0], node, env, [])
        return UNKNOWN
    if name in _PYTHON_BUILTINS:
        values = [evaluator.value(argument, env) for argument in node.args]
        if any(value.kind is ValueKind.TENSOR for value in values):
            return python(Origin.OTHER)
        return python(max((value.origin for value in values), key=_severity, default=Origin.OTHER))
    return UNKNOWN


def _severity(origin: Origin) -> int:
    return [Origin.CONSTANT, Origin.CONFIG, Origin.META, Origin.SHAPE, Origin.OTHER].index(origin)


def _self_call(evaluator: Evaluator, node: ast.Call, env: Env, name: str) -> Value:
    facts = evaluator.scope.class_facts
    if facts is None:
        return UNKNOWN
    attribute = env.get(f"self.{name}") or None
    if attribute is None and name in facts.methods and name not in facts.properties:
        function = evaluator.scope.index.function(facts.methods[name])
        return annotated.value_of(function.returns, evaluator.names) if function else UNKNOWN
    fact = evaluator.scope.attribute(name)
    made = fact.callee if fact is not None and fact.callee is not None else evaluator.value(node.func, env).instance_of
    return UNKNOWN if made is None else _module_call(evaluator, made, node, env)


def _module_call(evaluator: Evaluator, qualified: str, node: ast.Call, env: Env) -> Value:
    layer = torch_api.torch_module_class(qualified)
    if layer is None:
        return _method_result(evaluator, qualified, "forward")
    argument = evaluator.value(node.args[0], env) if node.args else UNKNOWN
    if layer in aliasing.FRESH_LAYERS:
        dtype = f"float:{evaluator.names.new('layer')}" if layer in torch_api.FLOATING_MODULES else None
        return evaluator.names.tensor(dtype, fresh=True, hint=True)
    if layer in aliasing.ALIASING_LAYERS:
        keeps = "latten" not in layer
        kept = (argument.dtype, argument.shape) if keeps else (None, None)
        return evaluator.names.tensor(*kept, hint=True)
    return UNKNOWN


def _method_result(evaluator: Evaluator, class_qualified: str, method: str) -> Value:
    facts = evaluator.scope.index.class_facts(class_qualified)
    qualified = facts.methods.get(method) if facts else None
    function = evaluator.scope.index.function(qualified) if qualified else None
    return annotated.value_of(function.returns, evaluator.names) if function else UNKNOWN


def _torch_call(evaluator: Evaluator, name: str, node: ast.Call, env: Env) -> Value:
    if name in {"finfo", "iinfo", "device", "Size", "is_tensor", "is_grad_enabled", "is_floating_point", "numel"}:
        return python(Origin.META)
    if name in torch_api.CREATION and not name.startswith("new_"):
        return _creation(evaluator, name, node, env)
    if name in torch_api.FUNCTIONS_RETURNING_TENSOR and name not in torch_api.NOT_FIRST_TENSOR:
        first = node.args[0] if node.args else keyword(node, "input")
        if first is None:
            return UNKNOWN
        base = evaluator.value(first, env)
        if base.kind is ValueKind.PYTHON:
            return UNKNOWN
        if base.kind is ValueKind.UNKNOWN:
            base = evaluator.names.tensor(BOOL if _reduces_comparison(name, first, node) else None)
        return tensor_function(evaluator, name, base, node, env, node.args[1:])
    if name == "where" and len(node.args) == 3:
        arms = [evaluator.value(argument, env) for argument in node.args[1:]]
        same = all(arm.kind is ValueKind.TENSOR for arm in arms) and arms[0].dtype == arms[1].dtype
        values = [evaluator.value(argument, env) for argument in node.args]
        return evaluator.names.tensor(arms[0].dtype if same else None, evaluator.broadcast(values), fresh=True)
    if name in torch_api.FUNCTIONS_RETURNING_TENSOR or name in aliasing.RANDOM:
        empty = bool(node.args) and isinstance(node.args[0], (ast.List, ast.Tuple)) and not node.args[0].elts
        return evaluator.names.tensor(None, SCALAR if empty else None, fresh=True)
    return UNKNOWN


def _reduces_comparison(name: str, first: ast.expr, node: ast.Call) -> bool:
    """`torch.any(a > b)`, `torch.all(a == b)`: torch takes tensors alone there, and those compare to bool."""
    plain = all(word.arg in {"dim", "axis", "keepdim"} for word in node.keywords)  # `out=` has a dtype of its own
    return (
        name in {"any", "all"}
        and plain
        and isinstance(first, ast.Compare)
        and all(isinstance(sign, _COMPARES) for sign in first.ops)
    )


def _creation(evaluator: Evaluator, name: str, node: ast.Call, env: Env) -> Value:
    like = evaluator.value(node.args[0], env) if name.endswith("_like") and node.args else UNKNOWN
    dtype = _dtype_argument(evaluator, node, env) or like.dtype
    built = None
    if name in {"tensor", "as_tensor"} and node.args and isinstance(node.args[0], ast.Name):
        built = node.args[0].id
    scalar = name == "tensor" and bool(node.args) and isinstance(node.args[0], (ast.Constant, ast.UnaryOp))
    shape = SCALAR if scalar else like.shape
    fresh = name not in {"as_tensor", "from_numpy"}
    return evaluator.names.tensor(dtype, shape, grad=False, fresh=fresh)._replace(built_from=built)


def _dtype_argument(evaluator: Evaluator, node: ast.Call, env: Env) -> str | None:
    given = keyword(node, "dtype")
    if given is None:
        return None
    value = evaluator.value(given, env)
    return canonical_dtype(value.callee) if value.callee else None


def tensor_function(
    evaluator: Evaluator, name: str, base: Value, node: ast.Call, env: Env, rest: list[ast.expr]
) -> Value:
    """A function or method `name` on tensor `base`; `rest` are the positional arguments after it."""
    names = evaluator.names
    if name in torch_api.PYTHON_METHODS:
        return python(Origin(torch_api.PYTHON_METHODS[name]))
    if name in torch_api.TO_BOOL:
        operands = [base, *(evaluator.value(argument, env) for argument in rest)]
        return names.tensor(BOOL, evaluator.broadcast(operands), fresh=True)
    if name in torch_api.REDUCTIONS:
        return _reduction(evaluator, name, base, node, rest)
    if name == "trace":
        # Autocast on a CPU takes it in float32.
        wide = base.dtype in {"torch.float32", "torch.float64"}
        return names.tensor(base.dtype if wide else None, SCALAR, grad=base.grad, fresh=True)
    if name in torch_api.BINARY:
        other = evaluator.value(rest[0], env) if rest else UNKNOWN
        return evaluator.arithmetic(base, other, rest[0] if rest else None)
    if name in aliasing.RANDOM:
        return names.tensor(base.dtype, base.shape, grad=base.grad, fresh=True)
    if name in torch_api.SAME_ANY_DTYPE or (name in torch_api.SAME_IF_FLOATING and base.is_floating):
        if name in {"clamp", "clip", "clamp_min", "clamp_max"} and not _python_bounds(evaluator, node, env, rest):
            return names.tensor(grad=base.grad, fresh=True)
        if name == "masked_fill":
            mask = evaluator.value(rest[0], env) if rest else UNKNOWN
            return names.tensor(base.dtype, evaluator.broadcast([base, mask]), grad=base.grad, fresh=True)
        widens = name in torch_api.AUTOCAST_TO_FLOAT32 and base.dtype not in {"torch.float32", "torch.float64"}
        widened = f"float:{names.new('dtype')}" if base.is_floating else None
        kept = widened if widens else base.dtype
        dtype = _dtype_argument(evaluator, node, env) or kept
        if name in {"softmax", "log_softmax", "cumsum", "cumprod"} and _may_give_dtype(evaluator, node, env, rest):
            dtype = None
        return names.tensor(dtype, base.shape, grad=base.grad and name != "detach", fresh=True)
    if name in torch_api.CASTS:
        return names.tensor(torch_api.CASTS[name], base.shape, grad=base.grad)
    if name == "to":
        return names.tensor(_cast_dtype(evaluator, node, env, base), base.shape, grad=base.grad)
    if name == "type_as":
        other = evaluator.value(rest[0], env) if rest else UNKNOWN
        return names.tensor(other.dtype if other.is_tensor else None, base.shape, grad=base.grad)
    if name.endswith("_") and not name.startswith("_"):
        return base._replace(optional=False, hint=False)
    if name in torch_api.FUNCTIONS_RETURNING_TENSOR or name.startswith("new_"):
        keeps = name in torch_api.LAYOUT and not (name == "view" and _may_give_dtype(evaluator, node, env, rest))
        shape = base.shape if name in torch_api.SAME_IF_FLOATING else None
        if name in {"reshape", "view"} and len(rest) == 1 and isinstance(rest[0], ast.Tuple) and not rest[0].elts:
            shape = SCALAR
        return names.tensor(base.dtype if keeps else None, shape, grad=base.grad, fresh=True)
    return UNKNOWN


def _may_give_dtype(evaluator: Evaluator, node: ast.Call, env: Env, rest: list[ast.expr]) -> bool:
    """True where an argument without the name `dtype` may be one: `x.view(torch.int32)`, `x.softmax(-1, dtype)`."""
    values = [evaluator.value(each, env) for each in rest]
    words = any(word.arg is None for word in node.keywords)
    return words or any(
        value.callee is not None or (value.kind is ValueKind.UNKNOWN or value.origin in (Origin.META, Origin.OTHER))
        for value in values
        if value.kind is not ValueKind.TENSOR and value.elements is None
    )


def _python_bounds(evaluator: Evaluator, node: ast.Call, env: Env, rest: list[ast.expr]) -> bool:
    bounds = [*rest, *(word.value for word in node.keywords if word.arg in {"min", "max"})]
    return all(evaluator.value(bound, env).is_python for bound in bounds)


def _reduction(evaluator: Evaluator, name: str, base: Value, node: ast.Call, rest: list[ast.expr]) -> Value:
    dimension = rest or any(word.arg in {"dim", "axis", "keepdim", "other"} for word in node.keywords)
    if dimension and name in {"max", "min", "median"}:
        return UNKNOWN
    dtype = {"argmax": INT64, "argmin": INT64, "count_nonzero": INT64}.get(name)
    if name in {"any", "all"}:
        dtype = BOOL if is_certainly_no_byte(base.dtype) else f"bool:{evaluator.names.new('dtype')}"
    if dtype is None and (base.is_floating or name in {"max", "min", "amax", "amin", "median"}):
        dtype = base.dtype
    if dtype is None and name in {"sum", "prod"} and base.dtype in {BOOL, INT64}:
        dtype = None if any(word.arg == "dtype" for word in node.keywords) else INT64
    shape = _kept_shape(evaluator, base, node, rest) if dimension else SCALAR
    return evaluator.names.tensor(dtype, shape, grad=base.grad, fresh=True)


def _kept_shape(evaluator: Evaluator, base: Value, node: ast.Call, rest: list[ast.expr]) -> str | None:
    """One name for the shape that `keepdim=True` gives all reductions of a shape over the same dimensions."""
    words = {word.arg: word.value for word in node.keywords}
    over = rest[0] if len(rest) == 1 and "dim" not in words else words.get("dim") if not rest else None
    kept = words.get("keepdim")
    if base.shape is None or not isinstance(kept, ast.Constant) or kept.value is not True or over is None:
        return None
    if isinstance(over, ast.Attribute) and isinstance(over.value, ast.Name):
        fact = evaluator.scope.attribute(over.attr) if over.value.id == evaluator.scope.self_name else None
        fixed = fact is not None and fact.kind.value != "changed"
    else:
        fixed = all(map(is_integer, listed(over)))
    return f"kept:{base.shape}:{ast.unparse(over)}" if fixed and set(words) <= {"dim", "keepdim"} else None


def _cast_dtype(evaluator: Evaluator, node: ast.Call, env: Env, base: Value) -> str | None:
    given = _dtype_argument(evaluator, node, env)
    if given is not None:
        return given
    if node.args:
        value = evaluator.value(node.args[0], env)
        if value.callee and value.callee.startswith(("torch.", "dtype#")):
            return canonical_dtype(value.callee)
        if value.kind is ValueKind.UNKNOWN or value.kind is ValueKind.TENSOR:
            return value.dtype
        if any(word.arg == "dtype" for word in node.keywords):
            return None
        return base.dtype if value.origin is Origin.META else None
    return None if any(word.arg == "dtype" for word in node.keywords) else base.dtype
