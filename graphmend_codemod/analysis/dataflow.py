"""Dataflow over one function: what each name holds before each statement, as Dynamo would trace it.

Branches that torch.compile folds away (`if not torch.compiler.is_compiling():`) are dead here. The original text
beside a compile path of its own is marked `handled`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphmend_codemod.analysis import annotated, gradients, narrowing
from graphmend_codemod.analysis.escape import escaping_names
from graphmend_codemod.analysis.given_values import annotation_text, given_values
from graphmend_codemod.analysis.interpreter import Env, Evaluator
from graphmend_codemod.analysis.iterated import element_of, spread
from graphmend_codemod.analysis.likely_tensors import likely_tensors
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.program_points import LeaksUnknown, ProgramPoint, State
from graphmend_codemod.analysis.scope import Scope, annotation_of, bound_in, walk_scope
from graphmend_codemod.analysis.values import (
    INT64,
    UNKNOWN,
    Origin,
    Value,
    ValueKind,
    callable_value,
    flags_kept,
    python,
)

if TYPE_CHECKING:
    from graphmend_codemod.analysis.list_provenance import Origins

_LOOP_PASSES = 4


class Flow:
    """Runs once over a function; `places` are the statements that Dynamo can reach, in source order.

    Without `follow_leaks` it is faster, and tells nothing about who else refers to a tensor, nor about where gradients
    flow: rules ask `Site`, which says so. `answers` keeps what rules worked out about a node, by question, node and
    environment. `lists` are parameters that are tensors built from the list that another parameter is. `splits` is true
    where a name holds a tensor under torch.compile and something else in eager mode: then nothing that is known of a
    value holds for both.
    """

    def __init__(
        self,
        scope: Scope,
        evaluator: Evaluator,
        closure_env: Env | None = None,
        follow_leaks: bool = True,
        origins: Origins | None = None,
        lists: Mapping[str, str] | None = None,
    ) -> None:
        self.scope = scope
        self.evaluator = evaluator
        self.closure_env: Env = closure_env or {}
        self.follow_leaks = follow_leaks
        self.origins = origins
        self.lists: Mapping[str, str] = lists or {}
        self.places: dict[int, ProgramPoint] = {}
        self.nested: dict[int, Env] = {}
        self.answers: dict[tuple[str, int, int], Any] = {}
        self.splits = False
        self._parents: tuple[ast.AST, ...] = ()
        self._blocks: tuple[tuple[Sequence[ast.stmt], int], ...] = ()
        self._handled = 0
        self._likely = likely_tensors(scope.node, scope.outline, scope.resolve_global)

    def run(self) -> None:
        """Analyse the whole function."""
        env: Env = dict(self.closure_env)
        for name in self.scope.locals:
            env.pop(name, None)
        env.update(given_values(self.scope, self.evaluator, self._likely))
        for name, source in self.lists.items():
            tensor = self.evaluator.names.tensor(INT64, grad=False, optional=not env[name].is_tensor)
            env[name] = tensor._replace(built_from=source)
        if self.scope.self_name:
            env[self.scope.self_name] = Value(ValueKind.UNKNOWN, instance_of=self.scope.class_qualified)
        self._block(self.scope.node.body, State(env))

    def demand_leaks(self) -> None:
        """LeaksUnknown if this dataflow does not know who else refers to a tensor, and where gradients flow."""
        if not self.follow_leaks:
            raise LeaksUnknown

    # statements

    def _block(self, body: Sequence[ast.stmt], state: State | None) -> State | None:
        """State after `body`, or None when its end is not reached."""
        handled, around = self._handled, self._blocks
        for position, statement in enumerate(body):
            if state is None:
                break
            self._blocks = (*around, (body, position))
            before, state = state, self._statement(statement, state)
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return):
                # What follows a compile path that returns is the original text beside it, unless the path is for one
                # type of an argument: then it is what the others take.
                path = self.evaluator.value(statement.test, before.env).compiling is True
                self._handled += path and (bool(statement.orelse) or not _asks_for_type(statement.test))
        self._handled, self._blocks = handled, around
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        self.places[id(node)] = ProgramPoint(
            node, state.env, state.leaked, self._parents, self._blocks, self._handled > 0
        )
        compound = _COMPOUND.get(node.__class__)
        return self._simple(node, state) if compound is None else compound(self, node, state)

    def _simple(self, node: ast.stmt, state: State) -> State | None:
        env = dict(state.env)
        self._walrus(node, env)
        leaked = state.leaked | self._leaks(node, state.env)
        if isinstance(node, ast.Assign):
            value = self.evaluator.value(node.value, state.env)
            said = annotation_of(node)
            if value.kind is ValueKind.UNKNOWN and said is not None:
                value = annotated.value_of(annotation_text(self.evaluator, said), self.evaluator.names)
            if self.follow_leaks and value.kind is ValueKind.TENSOR:
                value = value._replace(roots=gradients.roots(self.evaluator, node.value, state.env))
            for target in node.targets:
                self._bind(target, spread(self.evaluator, node.value, target, env) or value, env)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node, env)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            env[node.name] = UNKNOWN
            self.nested[id(node)] = dict(env)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                env[alias.asname or alias.name.partition(".")[0]] = callable_value(
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                absolute = f"{node.module}.{alias.name}" if node.module and not node.level else None
                env[alias.asname or alias.name] = callable_value(absolute) if absolute else UNKNOWN
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    env[target.id] = UNKNOWN
        narrowing.add_evidence(self.evaluator, node, env)
        if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            return None
        if isinstance(node, ast.Assert):
            narrowing.narrow(self.evaluator, node.test, True, env)
        return State(env, leaked)

    def _leaks(self, node: ast.stmt, env: Env) -> frozenset[str]:
        if not self.follow_leaks:
            return frozenset()
        names = escaping_names(self.evaluator, node, env)
        return frozenset(value.token for name in names if (value := env.get(name)) and value.token)

    def _walrus(self, node: ast.AST, env: Env) -> None:
        if not self.scope.outline.has_walrus:
            return
        for inner in walk_scope(node):
            if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
                env[inner.target.id] = self.evaluator.value(inner.value, env)._replace(truth=None)

    def _bind(self, target: ast.expr, value: Value, env: Env) -> None:
        if isinstance(target, ast.Name):
            value = self.evaluator.hinted(target.id, value)
            if value == UNKNOWN and target.id in self._likely:
                value = self.evaluator.names.tensor(optional=self._likely[target.id], hint=True)
            env[target.id] = value
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.value.id == self.scope.self_name:
                env[f"self.{target.attr}"] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, env)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, python(), env)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, env: Env) -> None:
        known = value.elements
        if known is not None and len(known) == len(target.elts):
            for element, part in zip(target.elts, known, strict=True):
                self._bind(element, part, env)
            return
        for element in target.elts:
            if value.kind is ValueKind.TENSOR:
                self._bind(element, self.evaluator.names.tensor(value.dtype, grad=value.grad, hint=value.hint), env)
            elif value.is_python and value.origin in (Origin.SHAPE, Origin.CONFIG):
                self._bind(element, python(value.origin), env)
            else:
                self._bind(element, UNKNOWN, env)

    def _augmented(self, node: ast.AugAssign, env: Env) -> None:
        if not isinstance(node.target, ast.Name):
            if isinstance(node.target, ast.Attribute):
                self._bind(node.target, UNKNOWN, env)
            return
        old = env.get(node.target.id, UNKNOWN)
        value = self.evaluator.value(ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value), env)
        if old.is_tensor and not self.follow_leaks:
            value = old._replace(grad=old.grad or value.grad)
        elif old.is_tensor:
            added = gradients.roots(self.evaluator, node.value, env)
            own = gradients.roots(self.evaluator, ast.Name(node.target.id, ast.Load()), env)
            value = old._replace(grad=old.grad or value.grad, roots=own | added)
        env[node.target.id] = value

    # compound statements

    def _if(self, node: ast.If, state: State) -> State | None:
        env = dict(state.env)
        self._walrus(node.test, env)
        test = self.evaluator.value(node.test, env)
        leaked = state.leaked | self._leaks(node, state.env)
        self._parents = (*self._parents, node)
        after_body = after_else = None
        decided = test.truth is not None and test.compiling is None
        guessed = decided and narrowing.asks_type_of_hint(self.evaluator, node.test, env)
        if test.truth is not False or guessed:
            after_body = self._arm(node, True, State(env, leaked), test.truth is False)
        if test.truth is not True or guessed:
            after_else = self._arm(node, False, State(env, leaked), test.truth is True or test.compiling is True)
        elif test.compiling is True and after_body is not None:
            beside = dict(self._beside(node.orelse, env, after_body.env))
            self.splits = self.splits or ValueKind.PYTHON in beside.values()
            if isinstance(node.test, ast.BoolOp):  # the header asks for what only an annotation says
                hinted = {name: after_body.env[name]._replace(hint=True) for name in beside}
                after_body = State({**after_body.env, **hinted}, after_body.leaked)
        self._parents = self._parents[:-1]
        joined = self._join(after_body, after_else)
        if test.compiling is True and joined is not None and after_body is not None and after_else is not None:
            env = {**joined.env, **flags_kept(after_body.env, after_else.env)}
            return State(env, joined.leaked)
        return joined

    def _arm(self, node: ast.If, truth: bool, state: State, handled: bool) -> State | None:
        """One arm of an `if`; `handled` is for one that is of no interest to rules, but may be what runs."""
        env = dict(state.env)
        narrowing.add_test_evidence(self.evaluator, node.test, truth, env)
        narrowing.narrow(self.evaluator, node.test, truth, env)
        self._handled += handled
        after = self._block(node.body if truth else node.orelse, State(env, state.leaked))
        self._handled -= handled
        return after

    def _beside(self, eager: Sequence[ast.stmt], env: Env, compiled: Env) -> Iterator[tuple[str, ValueKind]]:
        """Names that are tensors after the compile path and may be none in eager mode, with what they are there."""
        for statement in eager:
            if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
                continue
            name, kind = statement.targets[0].id, self.evaluator.value(statement.value, env).kind
            if compiled.get(name, UNKNOWN).kind is ValueKind.TENSOR and kind is not ValueKind.TENSOR:
                yield name, kind

    def _join(self, one: State | None, other: State | None) -> State | None:
        if one is None or other is None:
            return one or other
        leaked = one.leaked | other.leaked
        env = dict(one.env)
        for name, first in one.env.items():
            second = other.env.get(name, UNKNOWN)
            if first is not second:
                env[name] = self._joined(first, second, leaked)
        for name, second in other.env.items():
            if name not in one.env:
                env[name] = self._joined(UNKNOWN, second, leaked)
        return State(env, leaked)

    def _joined(self, first: Value, second: Value, leaked: frozenset[str]) -> Value:
        value = self.evaluator.names.join(first, second)
        held = {first.token, second.token}
        if value.fresh and value.token not in held and not leaked.isdisjoint(held - {None}):
            return value._replace(fresh=False)
        return value

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, state: State) -> State | None:
        leaked = state.leaked | self._leaks(node, state.env)
        before = State(dict(state.env), leaked)
        bound = bound_in(node)
        self._parents = (*self._parents, node)
        start = self._stable(before, None, bound)
        changing: set[str] = set()
        for _ in range(_LOOP_PASSES):
            end = self._block(node.body, self._enter(node, start))
            merged = self._stable(self._join(State(dict(before.env), leaked), end) or before, state, bound)
            settled = all(self._kind(merged, name) == self._kind(start, name) for name in bound)
            for name in bound:
                settled &= self._same_dtype(merged, start, name, changing)
            start = merged
            if settled:
                break
        else:
            start = State(start.env | dict.fromkeys(bound, UNKNOWN), start.leaked)
            self._block(node.body, self._enter(node, start))
        after = self._block(node.orelse, start)
        self._parents = self._parents[:-1]
        return after

    def _kind(self, state: State, name: str) -> tuple[object, ...]:
        value = state.env.get(name, UNKNOWN)
        return value.kind, value.optional, value.origin, value.fresh, value.truth, value.callee

    def _same_dtype(self, merged: State, start: State, name: str, changing: set[str]) -> bool:
        """False the first time that a name's dtype differs after a round; from then on nothing is known of it."""
        old, new = start.env.get(name, UNKNOWN), merged.env.get(name, UNKNOWN)
        if new.kind is not ValueKind.TENSOR or (old.dtype == new.dtype and name not in changing):
            return True
        merged.env[name] = new._replace(dtype=self.evaluator.names.new("dtype"))
        first = name not in changing
        changing.add(name)
        return not first

    def _stable(self, merged: State, before: State | None, bound: Sequence[str]) -> State:
        """Names bound in a loop keep their kind and dtype, but no relation to what they held before the loop.

        Without `before` that goes for all of them, otherwise for those that the loop really changes.
        """
        env = dict(merged.env)
        for name in bound:
            value = env.get(name)
            if value is None or (before is not None and value == before.env.get(name)):
                continue
            if value.kind is ValueKind.TENSOR:
                new = self.evaluator.names.tensor(
                    value.dtype, optional=value.optional, grad=value.grad, hint=value.hint
                )
                env[name] = new._replace(fresh=value.fresh and value.token not in merged.leaked)
            elif before is None:
                env[name] = value._replace(truth=None, elements=None)
        return State(env, merged.leaked)

    def _enter(self, node: ast.For | ast.AsyncFor | ast.While, state: State) -> State:
        env = dict(state.env)
        if isinstance(node, ast.While):
            self._walrus(node.test, env)
            narrowing.narrow(self.evaluator, node.test, True, env)
        else:
            self._bind(node.target, element_of(self.evaluator, node.iter, env), env)
        return State(env, state.leaked)

    def _try(self, node: ast.Try, state: State) -> State | None:
        self._parents = (*self._parents, node)
        body = self._block(node.body, State(dict(state.env), state.leaked))
        raised = State(dict(state.env), state.leaked)
        for name in sorted({name for statement in node.body for name in bound_in(statement)}):
            raised.env[name] = UNKNOWN
        self._parents = (*self._parents[:-1], ast.Module([], []))
        after = self._block(node.orelse, body) if body else None
        for handler in node.handlers:
            env = dict(raised.env)
            if handler.name:
                env[handler.name] = UNKNOWN
            self._parents = (*self._parents[:-1], handler)
            after = self._join(after, self._block(handler.body, State(env, raised.leaked)))
        self._parents = (*self._parents[:-1], ast.Module([], []))
        final = (
            self._block(node.finalbody, after or State(dict(raised.env), raised.leaked)) if node.finalbody else after
        )
        self._parents = self._parents[:-1]
        return final if after is not None else None

    def _with(self, node: ast.With | ast.AsyncWith, state: State) -> State | None:
        env = dict(state.env)
        for item in node.items:
            if item.optional_vars is not None:
                self._bind(item.optional_vars, UNKNOWN, env)
        self._parents = (*self._parents, node)
        after = self._block(node.body, State(env, state.leaked | self._leaks(node, state.env)))
        self._parents = self._parents[:-1]
        return after

    def _match(self, node: ast.Match, state: State) -> State | None:
        self._parents = (*self._parents, node)
        after: State | None = State(dict(state.env), state.leaked)
        for case in node.cases:
            env = dict(state.env)
            for name in bound_in(case):
                env[name] = UNKNOWN
            after = self._join(after, self._block(case.body, State(env, state.leaked)))
        self._parents = self._parents[:-1]
        return after


_COMPOUND: dict[type[ast.stmt], Callable[[Flow, Any, State], State | None]] = {
    ast.If: Flow._if,
    ast.For: Flow._loop,
    ast.AsyncFor: Flow._loop,
    ast.While: Flow._loop,
    ast.Try: Flow._try,
    ast.With: Flow._with,
    ast.AsyncWith: Flow._with,
    ast.Match: Flow._match,
}


def _asks_for_type(test: ast.expr) -> bool:
    return any(is_name(node, "isinstance") for node in walk_scope(test))
