"""Type narrowing: facts about variables after a test passed or a call returned."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from graphmend_codemod.analysis import aliasing, torch_api
from graphmend_codemod.analysis.patterns import is_attribute, is_none, is_not
from graphmend_codemod.analysis.scope import NODE_FIELDS, of_kind, put_children, walk
from graphmend_codemod.analysis.values import (
    FLOATING,
    NO_TENSOR,
    NONE,
    UNKNOWN,
    Origin,
    Value,
    ValueKind,
    canonical_dtype,
    is_floating_dtype,
)

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator

_OF_OTHER_CLASSES = ("builtins.", "numpy.", "collections.")
"""The modules, as prefixes of full names, of which no class is one of tensors."""


def _key(evaluator: Evaluator, node: ast.expr) -> str | None:
    """The `env` key of a local name or of `self.name`."""
    if isinstance(node, ast.Name):
        return node.id if evaluator.scope.is_local(node.id) else None
    if is_attribute(node, evaluator.scope.self_name):
        return f"self.{node.attr}"
    return None


def narrow(evaluator: Evaluator, test: ast.expr, truth: bool, env: Env) -> None:
    """Refine `env` by the fact that `test` was `truth`."""
    if is_not(test):
        narrow(evaluator, test.operand, not truth, env)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is truth:
            for operand in test.values:
                narrow(evaluator, operand, truth, env)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _narrow_compare(evaluator, test, truth, env)
    elif isinstance(test, ast.Call):
        _narrow_call(evaluator, test, truth, env)
    elif truth and (key := _key(evaluator, test)) is not None:
        value = env.get(key)
        if value is not None and value.optional:
            env[key] = value._replace(optional=False)


def asks_type_of_hint(evaluator: Evaluator, test: ast.expr, env: Env) -> bool:
    """True where a test asks for the type of what only a hint calls a tensor: it may come out the other way."""
    return any(
        isinstance(part, ast.Call)
        and len(part.args) == 2
        and evaluator.resolve(part.func, env) == "builtins.isinstance"
        and evaluator.value(part.args[0], env).hint
        for part in walk(test)
    )


def _narrow_compare(evaluator: Evaluator, test: ast.Compare, truth: bool, env: Env) -> None:
    op, right = test.ops[0], test.comparators[0]
    if isinstance(op, (ast.Is, ast.IsNot)) and is_none(right):
        key = _key(evaluator, test.left)
        if key is None:
            return
        if isinstance(op, ast.Is) is truth:
            env[key] = NONE
        elif key in env and env[key].optional:
            env[key] = env[key]._replace(optional=False)
        elif key.startswith("self.") and key not in env and isinstance(test.left, ast.Attribute):
            value = evaluator.value(test.left, env)
            if value.optional:
                env[key] = value._replace(optional=False)
    elif truth and isinstance(test.left, ast.Attribute) and test.left.attr == "dtype":
        _narrow_dtype(evaluator, test.left.value, op, right, env)


def _narrow_dtype(evaluator: Evaluator, tensor: ast.expr, op: ast.cmpop, right: ast.expr, env: Env) -> None:
    key = _key(evaluator, tensor)
    value = env.get(key) if key else None
    if key is None or value is None or value.kind is not ValueKind.TENSOR or value.dtype is None:
        return
    if isinstance(op, ast.Eq):
        known = evaluator.value(right, env).callee
        if known and known.startswith("torch."):
            env[key] = value._replace(hint=False)
            rename_dtype(env, value.dtype, canonical_dtype(known))
    elif isinstance(op, ast.In) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        members = {canonical_dtype(evaluator.value(element, env).callee or "") for element in right.elts}
        if members and members <= FLOATING:
            env[key] = value._replace(hint=False)
            rename_dtype(env, value.dtype, f"float:{value.dtype}")


def rename_dtype(env: Env, old: str, new: str) -> None:
    """Every tensor in `env` whose dtype is called `old` now has the dtype `new`."""
    if old.startswith("torch.") or (is_floating_dtype(old) and not (is_floating_dtype(new) and new in FLOATING)):
        return
    for name, value in env.items():
        if value.dtype == old:
            env[name] = value._replace(dtype=new, grad=value.grad and (is_floating_dtype(new)))


def _narrow_call(evaluator: Evaluator, test: ast.Call, truth: bool, env: Env) -> None:
    qualified = evaluator.resolve(test.func, env)
    if qualified in {"builtins.isinstance", "torch.is_tensor"} and test.args:
        key = _key(evaluator, test.args[0])
        classes = [] if qualified == "torch.is_tensor" else _classes(evaluator, test.args[1:], env)
        tensor = not classes or classes == ["torch.Tensor"]
        if key is not None and tensor and truth:
            _become_tensor(evaluator, key, env)
        elif key is not None and (tensor or (truth and all(each.startswith(_OF_OTHER_CLASSES) for each in classes))):
            _become_no_tensor(key, env)
    if not truth:
        return
    floating = qualified == "torch.is_floating_point" and test.args
    if isinstance(test.func, ast.Attribute) and test.func.attr == "is_floating_point" and not test.args:
        _mark_floating(evaluator, test.func.value, env)
    elif floating:
        _mark_floating(evaluator, test.args[0], env)


def _classes(evaluator: Evaluator, given: Sequence[ast.expr], env: Env) -> list[str]:
    """The full names of the classes that `isinstance(x, *given)` asks for, empty for one that is not known."""
    found = [part for each in given for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    return [evaluator.resolve(each, env) or "" for each in found] or [""]


def _become_no_tensor(key: str, env: Env) -> None:
    """What at most a hint calls a tensor is none here; what is one for certain stays: no such arm runs.

    Behind the arms, where a tensor comes from another one, it may still be one, as by a hint.
    """
    value = env.get(key)
    if value is not None and ((value.kind is ValueKind.TENSOR and value.hint) or value == UNKNOWN):
        env[key] = NO_TENSOR


def _mark_floating(evaluator: Evaluator, tensor: ast.expr, env: Env) -> None:
    key = _key(evaluator, tensor)
    value = env.get(key) if key else None
    if value is not None and value.kind is ValueKind.TENSOR and value.dtype is not None:
        rename_dtype(env, value.dtype, f"float:{value.dtype}")


def _become_tensor(evaluator: Evaluator, key: str, env: Env, hint: bool = False) -> None:
    value = env.get(key)
    if value is None or value.kind is ValueKind.UNKNOWN:
        if value is None or value.origin is not Origin.CONFIG:
            env[key] = evaluator.names.tensor(hint=hint)
    elif value.optional or (value.hint and not hint):
        known = value._replace(optional=False, hint=value.hint and hint)
        if not known.hint and value.hint and value.dtype is not None and value.dtype.startswith("float:layer"):
            # It is a tensor; that it is a floating one, only the class of the layer says.
            known = known._replace(dtype=value.dtype.removeprefix("float:"))
        env[key] = known


# evidence: a call that only takes tensors returned, so its argument is one


def add_evidence(evaluator: Evaluator, statement: ast.stmt, env: Env) -> None:
    """After `statement` ran: names that it gave to functions which take nothing but a tensor are tensors.

    Only names that the statement did not bind itself, and only calls that ran whatever happened.
    """
    if not _may_tell(evaluator, statement, env):
        return
    bound: set[str] | None = None
    for expression in _expressions(statement):
        for key, hint in _tensor_arguments(evaluator, expression, env):
            if bound is None:
                bound = {node.id for node in of_kind(walk(statement), ast.Name) if isinstance(node.ctx, ast.Store)}
            if key not in bound:
                _become_tensor(evaluator, key, env, hint)


def add_test_evidence(evaluator: Evaluator, test: ast.expr, truth: bool, env: Env) -> None:
    """The same for a test that came out as `truth`: every operand of a true `and` ran, and of a false `or`."""
    if isinstance(test, ast.BoolOp):
        every = isinstance(test.op, ast.And) is truth
        for operand in test.values if every else test.values[:1]:
            add_test_evidence(evaluator, operand, truth, env)
        return
    if is_not(test):
        add_test_evidence(evaluator, test.operand, not truth, env)
        return
    if _may_tell(evaluator, test, env):
        for key, hint in _tensor_arguments(evaluator, test, env):
            _become_tensor(evaluator, key, env, hint)


def evidence(evaluator: Evaluator, expression: ast.expr, env: Env) -> list[str]:
    """Keys of names that are not known as tensors in `env`, and must be ones once `expression` was evaluated."""
    return [key for key, _ in _tensor_arguments(evaluator, expression, env)]


def _may_tell(evaluator: Evaluator, node: ast.stmt | ast.expr, env: Env) -> bool:
    """False where every call in the lines of `node` has a first argument of which something is known, as most have."""
    if evaluator.argument_names is None:
        calls = [call for call in evaluator.scope.outline.calls if call.args]
        found = sorted((call.lineno, key) for call in calls if (key := _key(evaluator, call.args[0])) is not None)
        evaluator.argument_names = [line for line, _ in found], [key for _, key in found]
    lines, keys = evaluator.argument_names
    for key in keys[bisect_left(lines, node.lineno) : bisect_right(lines, node.end_lineno or 0)]:
        value = env.get(key)
        if value is None or value.kind is ValueKind.UNKNOWN or value.hint:
            return True
    return False


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    for name in NODE_FIELDS[statement.__class__]:
        value = getattr(statement, name)
        if name != "msg" and isinstance(value, ast.expr) and not isinstance(value, (ast.Name, ast.Constant)):
            yield value


_MAY_NOT_RUN = frozenset({ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef})


def _calls_that_run(node: ast.expr) -> list[ast.Call]:
    """The calls in an expression that are made whatever its parts are."""
    found: list[ast.Call] = []
    stack: list[Any] = [node]
    while stack:
        current = stack.pop()
        kind = current.__class__
        if kind is ast.Name or kind is ast.Constant:
            continue
        if kind is ast.Attribute:
            stack.append(current.value)
        elif kind is ast.Call:
            found.append(current)
            stack.append(current.func)
            stack += current.args
            stack += current.keywords
        elif kind is ast.BoolOp:
            stack.append(current.values[0])
        elif kind is ast.IfExp:
            stack.append(current.test)
        elif kind not in _MAY_NOT_RUN:
            put_children(current, NODE_FIELDS[kind], stack)
    return found


def _first_arguments(evaluator: Evaluator, expression: ast.expr) -> list[tuple[ast.Call, str]]:
    """Calls that run with the key of their first argument, where it has one; looked for once for each expression."""
    known = evaluator.first_arguments.get(id(expression))
    if known is None:
        calls = [node for node in _calls_that_run(expression) if node.args]
        found = [(node, key) for node in calls if (key := _key(evaluator, node.args[0])) is not None]
        known = evaluator.first_arguments[id(expression)] = (expression, found)
    return known[1]


def _tensor_arguments(evaluator: Evaluator, expression: ast.expr, env: Env) -> Iterator[tuple[str, bool]]:
    """Keys of what must be tensors, with whether only a layer's class says so."""
    for node, key in _first_arguments(evaluator, expression):
        value: Value | None = env.get(key)
        if value is not None and value.kind is not ValueKind.UNKNOWN and not value.hint:
            continue
        name = torch_api.torch_function(evaluator.resolve(node.func, env))
        if name is not None:
            if name in torch_api.FUNCTIONS_RETURNING_TENSOR and name not in torch_api.NOT_FIRST_TENSOR:
                yield key, False
        elif isinstance(node.func, ast.Attribute):
            layer = torch_api.torch_module_class(evaluator.value(node.func, env).instance_of)
            if layer in aliasing.FRESH_LAYERS or layer in aliasing.ALIASING_LAYERS:
                yield key, True
