"""Expressions to abstract values, given what the names hold at that point."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

from graphmend_codemod.analysis import annotated, calls, torch_api
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import Scope, dotted
from graphmend_codemod.analysis.values import (
    BOOL,
    NONE,
    SCALAR,
    UNKNOWN,
    FreshNames,
    Origin,
    Value,
    ValueKind,
    callable_value,
    canonical_dtype,
    python,
)
from graphmend_codemod.project.index.facts import AttributeFact, AttributeKind

Env = dict[str, Value]
_CONFIG_NAME = re.compile(r"(\w*_)?(config|cfg|hparams)|config\w*")
# Tuples are searched by identity: the hash of a member of an enumeration takes a call of Python code.
_FIXED = (Origin.META, Origin.CONSTANT, Origin.SHAPE)
_OF_ELEMENTS = (Origin.SHAPE, Origin.CONFIG, Origin.CONSTANT)
_IDENTITY = frozenset({ast.Is, ast.IsNot})
_KEEPS_BOOL = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Mult)
_PYTHON_BOOL = frozenset({ast.Is, ast.IsNot, ast.In, ast.NotIn})
_ORIGINS = [Origin.CONSTANT, Origin.CONFIG, Origin.META, Origin.SHAPE, Origin.OTHER]
_WORST = len(_ORIGINS) - 1


def worst_origin(values: list[Value]) -> Origin:
    """The origin of something computed from these values."""
    worst = 0
    for value in values:
        worst = max(worst, _ORIGINS.index(value.origin) if value.kind is ValueKind.PYTHON else _WORST)
    return _ORIGINS[worst]


class Evaluator:
    """Evaluates expressions of one function. `env` maps local names, and `self.name` for attributes, to values.

    `first_arguments` keeps, with each expression by its id, the calls in it that say something about a name;
    `argument_names` all the lines of such calls, with these names. `seen` are annotations for what names, and
    attributes as `self.name`, were in a recorded run.
    """

    def __init__(self, scope: Scope, names: FreshNames, seen: Mapping[str, str] | None = None) -> None:
        self.scope = scope
        self.names = names
        self.seen: Mapping[str, str] = seen or {}
        self.argument_names: tuple[list[int], list[str]] | None = None
        self.first_arguments: dict[int, tuple[ast.expr, list[tuple[ast.Call, str]]]] = {}

    def value(self, node: ast.expr, env: Env) -> Value:
        """The abstract value of `node` where names hold what `env` says."""
        handler = _HANDLERS.get(type(node))
        return handler(self, node, env) if handler else UNKNOWN

    def resolve(self, node: ast.expr, env: Env) -> str | None:
        """Qualified name of the function, class, module or constant that `node` spells; None if it spells none."""
        name = dotted(node)
        if name is None:
            return None
        root, _, rest = name.partition(".")
        if not self.scope.is_local(root):
            return self.scope.resolve_global(name)
        value = env.get(root)
        if value is None or value.callee is None:
            return None
        if not rest:
            return value.callee
        module, _, last = value.callee.rpartition(".")
        del module, last
        return f"{value.callee}.{rest}"

    def hinted(self, name: str, value: Value) -> Value:
        """The value, or what a recorded run had there if nothing is known of it: a hint, as an annotation is."""
        if self.seen and value == UNKNOWN and name in self.seen:
            return annotated.value_of(self.seen[name], self.names)
        return value

    # names

    def _constant(self, node: ast.Constant, env: Env) -> Value:
        if node.value is None:
            return NONE
        return python(Origin.CONSTANT, bool(node.value) if isinstance(node.value, (bool, int, str)) else None)

    def _name(self, node: ast.Name, env: Env) -> Value:
        if self.scope.is_local(node.id):
            return env.get(node.id, UNKNOWN)
        fact = self.scope.index.global_fact(self.scope.module, node.id)
        if fact is not None and fact.kind is AttributeKind.CONSTANT:
            return python(Origin.CONSTANT)
        qualified = self.scope.resolve_global(node.id)
        if qualified is None or (fact is not None and fact.kind is not AttributeKind.CALL):
            return UNKNOWN if qualified is None else Value(ValueKind.UNKNOWN, callee=qualified)
        if fact is not None:
            return Value(ValueKind.UNKNOWN, callee=qualified, instance_of=fact.callee)
        return callable_value(qualified)

    def _attribute(self, node: ast.Attribute, env: Env) -> Value:
        if is_name(node.value, self.scope.self_name):
            return self._self_attribute(node.attr, env)
        qualified = self.resolve(node, env)
        if qualified is not None:
            return callable_value(canonical_dtype(qualified))
        base = self.value(node.value, env)
        if base.kind is ValueKind.TENSOR:
            return self._tensor_attribute(base, node.attr)
        if base.origin is Origin.CONFIG:
            return python(Origin.CONFIG)
        if _CONFIG_NAME.fullmatch(node.attr):
            return Value(ValueKind.UNKNOWN, origin=Origin.CONFIG)
        if base.is_python and base.origin in _FIXED:
            return python(base.origin)
        return UNKNOWN

    def _self_attribute(self, name: str, env: Env) -> Value:
        assigned = env.get(f"self.{name}")
        if assigned is not None:
            return assigned
        return self.hinted(f"self.{name}", self._attribute_by_its_class(name))

    def _attribute_by_its_class(self, name: str) -> Value:
        fact = self.scope.attribute(name)
        if name == "training" and fact is None:
            return python(Origin.META)
        if fact is None:
            if _CONFIG_NAME.fullmatch(name):
                return Value(ValueKind.UNKNOWN, origin=Origin.CONFIG)
            facts = self.scope.class_facts
            if facts and name in facts.methods and name not in facts.properties:
                return callable_value(facts.methods[name])
            return self.names.tensor(hint=True) if self.holds_parameter(name) else UNKNOWN
        return self._fact_value(fact)

    def holds_parameter(self, name: str) -> bool:
        """True for an attribute that the class makes a parameter, or that a layer of torch above it has in any case."""
        if (fact := self.scope.attribute(name)) is not None:
            return fact.kind is AttributeKind.PARAMETER
        facts = self.scope.class_facts if name == "weight" else None
        todo, seen = [*(facts.bases if facts else ())], set[str]()
        while todo:
            base = todo.pop()
            if torch_api.torch_module_class(base) in torch_api.WEIGHTED:
                return True
            known = self.scope.index.class_facts(base) if base not in seen else None
            seen.add(base)
            todo += known.bases if known is not None else ()
        return False

    def _fact_value(self, fact: AttributeFact) -> Value:
        kind = fact.kind
        if kind is AttributeKind.PARAMETER or kind is AttributeKind.BUFFER:
            return self.names.tensor(hint=True)
        if kind is AttributeKind.CONSTANT:
            return python(Origin.CONSTANT)
        if kind is AttributeKind.CONFIG:
            root = fact.text.partition(".")[0]
            config = bool(_CONFIG_NAME.fullmatch(root))
            return Value(
                ValueKind.PYTHON if config else ValueKind.UNKNOWN, origin=Origin.CONFIG if config else Origin.OTHER
            )
        if kind is AttributeKind.ANNOTATED:
            return annotated.value_of(fact.callee, self.names, Origin.CONFIG)
        if kind is AttributeKind.ARGUMENT:
            known = annotated.value_of(fact.callee, self.names, Origin.CONFIG)
            if known.kind is ValueKind.UNKNOWN and _CONFIG_NAME.fullmatch(fact.text):
                return known._replace(origin=Origin.CONFIG)
            return known
        if kind is AttributeKind.CALL:
            return Value(ValueKind.UNKNOWN, instance_of=fact.callee)
        return UNKNOWN

    def _tensor_attribute(self, base: Value, name: str) -> Value:
        if name == "dtype":
            return Value(ValueKind.PYTHON, origin=Origin.META, callee=base.dtype)
        origin = torch_api.PYTHON_ATTRIBUTES.get(name)
        if origin is not None:
            return python(Origin(origin))
        if name in torch_api.TENSOR_ATTRIBUTES:
            shape = base.shape if name == "data" else None
            return self.names.tensor(base.dtype, shape, grad=base.grad and name != "data", hint=base.hint)
        return UNKNOWN

    # operators

    def _bool_op(self, node: ast.BoolOp, env: Env) -> Value:
        stop = isinstance(node.op, ast.Or)
        values: list[Value] = []
        compiling: bool | None = None
        for operand in node.values:
            value = self.value(operand, env)
            compiling = value.compiling if compiling is None else compiling
            values.append(value)
            if value.truth is stop:
                return Value(ValueKind.PYTHON, truth=stop, origin=Origin.META, compiling=compiling)
        if all(value.truth is (not stop) for value in values):
            return Value(ValueKind.PYTHON, truth=not stop, origin=Origin.META, compiling=compiling)
        joined = values[0]
        for value in values[1:]:
            joined = self.names.join(joined, value)
        # `(torch.compiler.is_compiling() and a) or b` is no header of a compile path.
        return joined._replace(truth=None, compiling=None if stop else compiling)

    def _unary_op(self, node: ast.UnaryOp, env: Env) -> Value:
        value = self.value(node.operand, env)
        if isinstance(node.op, ast.Not):
            truth = None if value.truth is None else not value.truth
            origin = value.origin if value.is_python else Origin.OTHER
            # Nor is `not (torch.compiler.is_compiling() and a)` one of an eager path.
            compiling = None if value.compiling is None or value.truth is None else not value.compiling
            return Value(ValueKind.PYTHON, truth=truth, origin=origin, compiling=compiling)
        if value.kind is ValueKind.TENSOR:
            same = not isinstance(node.op, ast.Invert) or value.dtype == BOOL
            dtype = value.dtype if same else None
            return self.names.tensor(
                dtype, value.shape, grad=value.grad, fresh=not isinstance(node.op, ast.UAdd), hint=value.hint
            )
        return value._replace(truth=None) if value.is_python else UNKNOWN

    def _compare(self, node: ast.Compare, env: Env) -> Value:
        operands = [self.value(operand, env) for operand in [node.left, *node.comparators]]
        asked = {type(op) for op in node.ops}
        if asked <= _IDENTITY:
            return python(Origin.META, self._identity_truth(node, operands))
        if not asked.isdisjoint(_PYTHON_BOOL):
            return python(worst_origin(operands))
        kinds = [value.kind for value in operands]
        if ValueKind.TENSOR in kinds:
            return self.names.tensor(BOOL, self.broadcast(operands), fresh=True, hint=_all_hints(operands))
        if any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in node.comparators):
            return python(worst_origin(operands))
        return UNKNOWN if ValueKind.UNKNOWN in kinds else python(worst_origin(operands))

    def _identity_truth(self, node: ast.Compare, operands: list[Value]) -> bool | None:
        if len(operands) != 2 or NONE not in operands:
            return None
        other = operands[0] if operands[1] == NONE else operands[1]
        if other == NONE:
            return isinstance(node.ops[0], ast.Is)
        if other.is_tensor and not other.hint:  # `x: Tensor` is said of arguments that are None, too
            return isinstance(node.ops[0], ast.IsNot)
        return None

    def broadcast(self, operands: list[Value]) -> str | None:
        """The shape of an elementwise result: known when all tensors but 0-dim ones share one shape."""
        if any(value.kind is ValueKind.UNKNOWN for value in operands):
            return None
        shapes = {value.shape for value in operands if value.kind is ValueKind.TENSOR and value.shape != SCALAR}
        if not shapes:
            return SCALAR
        # What a reduction with `keepdim=True` leaves of a shape has ones in the place of some of its sizes.
        whole = {each for each in shapes if not any(str(each).startswith(f"kept:{other}:") for other in shapes)}
        return whole.pop() if len(whole) == 1 else None

    def _bin_op(self, node: ast.BinOp, env: Env) -> Value:
        left, right = self.value(node.left, env), self.value(node.right, env)
        if left.dtype == right.dtype == BOOL and isinstance(node.op, _KEEPS_BOOL):
            # Each of them decides the dtype, so that a hint about one is a hint about the result.
            return self.names.tensor(BOOL, self.broadcast([left, right]), fresh=True, hint=left.hint or right.hint)
        if left.kind is ValueKind.TENSOR or right.kind is ValueKind.TENSOR:
            result = self.arithmetic(left, right, node.right if left.kind is ValueKind.TENSOR else node.left)
            return result._replace(hint=_all_hints([left, right]))
        if left.is_python and right.is_python:
            return python(worst_origin([left, right]))
        return UNKNOWN

    def arithmetic(self, left: Value, right: Value, other: ast.expr | None) -> Value:
        """An elementwise operation of two values, one a tensor at least. `other` is the other operand's node."""
        shape = self.broadcast([left, right])
        grad = left.grad or right.grad
        if left.kind is ValueKind.TENSOR and right.kind is ValueKind.TENSOR:
            same = left.dtype == right.dtype and left.dtype != BOOL
            return self.names.tensor(left.dtype if same else None, shape, grad=grad, fresh=True)
        tensor = left if left.kind is ValueKind.TENSOR else right
        number = _is_number(other) or (left if tensor is right else right).is_python
        keeps = number and tensor.is_floating
        return self.names.tensor(tensor.dtype if keeps else None, shape, grad=tensor.grad, fresh=True)

    def _subscript(self, node: ast.Subscript, env: Env) -> Value:
        base = self.value(node.value, env)
        if base.kind is ValueKind.TENSOR:
            return self.names.tensor(base.dtype, grad=base.grad, hint=base.hint)
        if base.elements is not None and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            position = node.slice.value
            if -len(base.elements) <= position < len(base.elements):
                return base.elements[position]
        if base.is_python and base.origin in _OF_ELEMENTS:
            return python(base.origin)
        return UNKNOWN

    def _if_exp(self, node: ast.IfExp, env: Env) -> Value:
        truth = self.value(node.test, env).truth
        if truth is not None:
            return self.value(node.body if truth else node.orelse, env)
        return self.names.join(self.value(node.body, env), self.value(node.orelse, env))._replace(truth=None)

    def _sequence(self, node: ast.Tuple | ast.List, env: Env) -> Value:
        if any(isinstance(element, ast.Starred) for element in node.elts):
            return python()
        elements = tuple(self.value(element, env) for element in node.elts)
        return Value(ValueKind.PYTHON, origin=worst_origin(list(elements)), elements=elements, truth=bool(elements))

    def _joined(self, node: ast.JoinedStr, env: Env) -> Value:
        parts = [self.value(part.value, env) for part in node.values if isinstance(part, ast.FormattedValue)]
        return python(worst_origin(parts))

    def _named_expression(self, node: ast.NamedExpr, env: Env) -> Value:
        return self.value(node.value, env)


# Of the class and not of its instances: these would be cycles, which keep the function's tree until the run ends.
_HANDLERS: dict[type[ast.expr], Callable[[Evaluator, Any, Env], Value]] = {
    ast.Constant: Evaluator._constant,
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.Call: calls.value_of_call,
    ast.BoolOp: Evaluator._bool_op,
    ast.Compare: Evaluator._compare,
    ast.BinOp: Evaluator._bin_op,
    ast.UnaryOp: Evaluator._unary_op,
    ast.Subscript: Evaluator._subscript,
    ast.IfExp: Evaluator._if_exp,
    ast.Tuple: Evaluator._sequence,
    ast.List: Evaluator._sequence,
    ast.JoinedStr: Evaluator._joined,
    ast.NamedExpr: Evaluator._named_expression,
}


def _all_hints(operands: list[Value]) -> bool:
    return all(value.hint for value in operands if value.kind is ValueKind.TENSOR)


def _is_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in {int, float}
