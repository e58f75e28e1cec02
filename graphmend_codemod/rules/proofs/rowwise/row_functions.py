"""Functions of a module that get rows: whether each row of what they return was computed from the same row.

The body is followed with what each name holds. What Dynamo folds may choose between ways; where only one of them keeps
rows apart, the compile path asks for it. Nothing else is assumed of arguments than that numbers are numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls
from graphmend_codemod.analysis.scope import defaults_of, dotted
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.project.index.facts import IndexView
from graphmend_codemod.rules.proofs.calls.certain_calls import Link
from graphmend_codemod.rules.proofs.rowwise.row_expressions import SOME, RowExpressions
from graphmend_codemod.rules.proofs.rowwise.row_values import (
    NUMBER,
    OTHER,
    Held,
    NotRowwise,
    What,
    constant,
    elementwise,
    joined,
)
from graphmend_codemod.rules.proofs.untraced import other_files

_DEEPEST = 4
_Elsewhere = tuple[Definition, ModuleCalls, Callable[[ast.expr], "str | None"]]


def _elsewhere(index: IndexView, qualified: str | None) -> _Elsewhere | None:
    """A function of another file of the project, which nothing replaces; None where there is none.

    Decorators are left to who follows it.
    """
    name = (qualified or "").rpartition(".")[2]
    if qualified is None or index.function(qualified) is None or index.writers(name):
        return None
    found = other_files.defined(index, qualified)
    calls = other_files.calls_of(found[0].text) if found is not None else None
    if found is None or calls is None or found[1].owner or not calls.top.binds_once(name):
        return None
    module = found[0].module
    return found[1], calls, lambda node: index.resolve(module, dotted(node) or "?")


class RowFunctions(RowExpressions):
    """Follows statements. `conditions` are what has to hold while tracing, `links` the calls that were followed.

    `entered` are the functions that they lead to, those of other files among them.
    """

    def __init__(
        self,
        calls: ModuleCalls,
        caller: Definition,
        qualify: Callable[[ast.expr], str | None],
        conditions: dict[str, None],
        links: list[Link],
        depth: int = 0,
    ) -> None:
        super().__init__(qualify, conditions)
        self.calls, self.caller = calls, caller
        self.links, self.depth = links, depth
        self.returned: list[Held] = []
        self.index: IndexView | None = None
        self.foreign = False

    def result(self, arguments: dict[str, Held], *, some: bool) -> Held:
        """What the function returns, given its arguments; `some` says that at least one row was chosen."""
        function = self.caller.node
        given = function.args
        if given.vararg or given.kwarg or function.decorator_list or isinstance(function, ast.AsyncFunctionDef):
            raise NotRowwise(f"cannot infer what `{self.caller.qualname}` does with its arguments")
        defaults = {each.arg: value for each, value in defaults_of(function)}
        for name in [*self.caller.parameters, *(each.arg for each in given.kwonlyargs)]:
            if name not in arguments and name not in defaults:
                raise NotRowwise(f"cannot infer what `{self.caller.qualname}` gets for `{name}`")
            self.env[name] = arguments[name] if name in arguments else self.number(defaults[name])
        if some:
            self.env[SOME] = NUMBER
        if self.block(function.body):
            self.returned.append(constant(None))
        found = self.returned[0] if self.returned else OTHER
        for each in self.returned[1:]:
            found = joined(found, each)
        return found

    def number(self, node: ast.expr) -> Held:
        """A default of a parameter."""
        written = self.calls.top.literal(node.id) if isinstance(node, ast.Name) else node
        if isinstance(written, ast.Constant):
            return constant(written.value)
        try:
            return constant(ast.literal_eval(node))
        except ValueError:
            raise NotRowwise(f"`{short(node)}` may not be a number") from None

    # statements

    def block(self, body: Sequence[ast.stmt]) -> bool:
        """Follow statements; False when they return or raise in any case."""
        return all(self.statement(each) for each in body)

    def statement(self, node: ast.stmt) -> bool:
        """Follow one statement; NotRowwise if it may mix rows, or do more than compute."""
        if isinstance(node, ast.Assign):
            held = self.value(node.value)
            for target in node.targets:
                self.bind(target, held, node)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.If):
            return self._if(node)
        elif isinstance(node, ast.Return):
            self.returned.append(constant(None) if node.value is None else self.value(node.value))
            return False
        elif isinstance(node, ast.Raise):
            if self.skips:
                raise NotRowwise(f"`{short(node)}` may be reached where eager mode skips it, for want of rows")
            return False
        elif isinstance(node, ast.Assert):
            self._check(node.test, node, fails=False)
        elif isinstance(node, ast.Expr):
            self._effect(node)
        elif not isinstance(node, ast.Pass):
            raise NotRowwise(f"`{short(node)}` is more than a computation")
        return True

    def _effect(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Constant):
            return
        if isinstance(call, ast.Call) and call.args and self.qualified(call.func) == "torch._assert_async":
            self._check(call.args[0], node, fails=False)
            return
        written = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")
        if not written or self.value(call).what is not What.ROWS:
            raise NotRowwise(f"`{short(node)}` may have side effects")

    def bind(self, target: ast.expr, held: Held, node: ast.stmt) -> None:
        """Let a target hold what was computed."""
        if isinstance(target, ast.Name):
            self.env[target.id] = held
        elif isinstance(target, ast.Tuple) and held.what is What.TUPLE and len(held.parts) == len(target.elts):
            for each, part in zip(target.elts, held.parts, strict=True):
                self.bind(each, part, node)
        elif isinstance(target, ast.Subscript):
            self._store(target, held)
        else:
            raise NotRowwise(f"`{short(node)}` is not a plain assignment")

    def _store(self, target: ast.Subscript, held: Held) -> None:
        """`x[..., 0] = left`, `x[x > 1] = 0` of rows that the function made."""
        owner, index = self.value(target.value), self._index_of_rows(target)
        if owner.what is not What.ROWS:
            raise NotRowwise(f"`{short(target)}` is written, which is not made of the selected rows")
        if index is not None:
            if not index.boolean or index.rank > owner.rank or held.what is not What.NUMBER:
                raise NotRowwise(f"`{short(target)}` is written where other rows say")
            return
        elementwise([self._part(owner, target), self.as_number(held)], short(target))

    def _index_of_rows(self, node: ast.Subscript) -> Held | None:
        if isinstance(node.slice, (ast.Tuple, ast.Slice, ast.Constant)):
            return None
        held = self.value(node.slice)
        return held if held.what is What.ROWS else None

    def _augmented(self, node: ast.AugAssign) -> None:
        held = self.value(node.value)
        if isinstance(node.target, ast.Subscript):
            owner = self.value(node.target.value)
            if owner.what is not What.ROWS:
                raise NotRowwise(f"`{short(node.target)}` is written, which is not made of the selected rows")
            elementwise([self._part(owner, node.target), self.as_number(held)], short(node))
        elif isinstance(node.target, ast.Name) and not isinstance(node.op, ast.MatMult):
            both = [self.value(node.target), held]
            self.divided(node.op, both, node.target)
            self.env[node.target.id] = self.combined(both, node.target)
        else:
            raise NotRowwise(f"`{short(node)}` is not a plain assignment")

    def _if(self, node: ast.If) -> bool:
        test = self.value(node.test)
        if test.what is What.DECIDES:
            self._check(node.test, node, fails=True)
            if node.orelse or not all(isinstance(each, ast.Raise) for each in node.body):
                raise NotRowwise(f"`{short(node.test)}` branches on the values of the selected rows")
            return True
        if test.what is not What.NUMBER:
            raise NotRowwise(f"`{short(node.test)}` branches on the values of the selected rows")
        if test.known:
            return self.block(node.body if test.constant else node.orelse)
        return self._either(node, test)

    def _either(self, node: ast.If, test: Held) -> bool:
        """Both ways, or the only one that keeps rows apart, which is asked for."""
        before, count, left, failed = self.env, len(self.returned), [], []
        for way, body in ((True, node.body), (False, node.orelse)):
            self.env, asked, links = dict(before), dict(self.conditions), len(self.links)
            try:
                if self.block(body):
                    left.append(self.env)
                count = len(self.returned)
            except NotRowwise as why:
                del self.returned[count:], self.links[links:]
                self.conditions.clear()
                self.conditions.update(asked)
                failed.append((why, way))
        if failed and (len(failed) > 1 or not test.spelled):
            raise failed[0][0]
        if failed:
            inverse = test.spelled.removeprefix("not ") if test.spelled.startswith("not ") else f"not {test.spelled}"
            self.conditions[inverse if failed[0][1] else test.spelled] = None
        self.env = left[0] if left else before
        for other in left[1:]:
            both = self.env.keys() & other.keys()
            self.env = {name: joined(self.env[name], other[name]) for name in both}
        return bool(left)

    def _check(self, test: ast.expr, node: ast.stmt, *, fails: bool) -> None:
        """A test that raises where it is `fails`: with no row chosen it looks at the zeros that stand in."""
        held = self.value(test)
        if held.what not in {What.DECIDES, What.NUMBER}:
            raise NotRowwise(f"`{short(test)}` branches on the values of the selected rows")
        asked = held.falsy if fails else held.truthy
        if held.what is What.NUMBER:
            if not self.skips or (held.known and bool(held.constant) is not fails):
                return
            asked = (f"not ({held.spelled})" if fails else held.spelled,) if held.spelled else None
        elif SOME in self.env:
            return
        if asked is None:
            raise NotRowwise(f"`{short(node)}` may raise where no row is selected")
        self.conditions.update(dict.fromkeys(asked))

    def followed(self, node: ast.Call, given: list[Held], words: dict[str, Held]) -> Held:
        """What a function of the module returns for these arguments."""
        callee, calls, qualify = self.calls.callee(self.caller, node), self.calls, self.qualify
        elsewhere = None
        if (callee is None or self.foreign) and self.index is not None:
            elsewhere = _elsewhere(self.index, self.qualified(node.func))
            callee, calls, qualify = elsewhere or (None, calls, qualify)
        unknown = any(each.what is What.OTHER for each in (*given, *words.values()))
        own = (dotted(node.func) or "").partition(".")[0] in self.env
        if callee is None or self.depth >= _DEEPEST or unknown or own:
            raise NotRowwise(f"`{short(node)}` may not process each row independently")
        if elsewhere is None:
            self.links.append(Link(self.caller, node, callee))
        inner = RowFunctions(calls, callee, qualify, self.conditions, self.links, self.depth + 1)
        inner.looked, inner.ranged, inner.skips, inner.index = self.looked, self.ranged, self.skips, self.index
        inner.foreign = elsewhere is not None
        known = dict(zip(map(id, node.args), given, strict=False))
        known |= {id(word.value): words[word.arg] for word in node.keywords if word.arg in words}
        plain, others = callee.arguments(node)
        if others:
            raise NotRowwise(f"cannot infer what `{callee.qualname}` does with its arguments")
        try:
            return inner.result({name: known[id(each)] for name, each in plain.items()}, some=SOME in self.env)
        except NotRowwise as why:
            if elsewhere is None or self.foreign:
                raise
            raise NotRowwise(f"`{short(node)}` may not process each row independently: {why}") from None
