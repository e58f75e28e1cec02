"""Places where Python asks a number for its value, in a function and in those of its module that get the number.

A symbol has none while Dynamo traces: a list that is indexed with it ends compiled code with an error, so do several
indices of which it is one and a slice up to it that is written, and a branch on it ends the graph there.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphmend_codemod.analysis.callgraph import Definition, calls_in
from graphmend_codemod.analysis.patterns import (
    all_given,
    elements_of,
    is_attribute,
    is_name,
    last_name,
    names_bound,
)
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameters, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import bindings_in, handed_on, names_holding
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.symbols.laid_out_anew import why_laid_out
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import (
    Rows,
    lists_of,
    rows_of,
    sizes_in,
    why_listed,
)
from graphmend_codemod.rules.proofs.untraced.evidence import registered
from graphmend_codemod.rules.proofs.untraced.other_files import defined

_FROM_CONTAINERS = frozenset({"get", "items", "pop", "values"})
_IDENTITY = (ast.Is, ast.IsNot)
_LOOKS_UP = frozenset({"count", "get", "index", "pop", "remove", "setdefault"})
_TRUTHS = frozenset({"all", "any", "filter", "partial"})
_OF_TYPES = frozenset({"callable", "hasattr", "id", "isinstance", "issubclass", "type"})
_NUMBERS = frozenset("abs dict divmod enumerate int list max min range reversed round sorted sum tuple zip".split())
_PARTS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Tuple, ast.List, ast.Starred, ast.NamedExpr)
_ASKS = frozenset({"__getitem__", "all", "any", "filter", "getitem", "partial", "range"})


def why_value_is_asked(site: Site, nodes: Collection[ast.expr]) -> str | None:
    """Why Python may ask for the value of the number that some nodes of the site's function read."""
    if not nodes:
        return None
    asked = _AskedValues(site, nodes)
    asked.follow()
    return asked.reason


def why_truth_is_asked(site: Site, statement: ast.stmt, chosen: Collection[ast.expr]) -> str | None:
    """Why Python may ask by its truth whether a size of what is chosen is 0; `avoided` knows what the statement binds.

    `if n:` and `n or 1` end compiled code with an error, while a comparison ends the graph there.
    """
    if not chosen:
        return None
    asked = _AskedTruth(site, statement, chosen)
    asked.follow()
    return asked.reason


class _AskedValues:
    """Follows a number through the site's function and those of its module that get it.

    `reason` is why Python has to know it, at the first place that does.
    """

    def __init__(self, site: Site, nodes: Collection[ast.expr]) -> None:
        self._site = site
        self._calls = calls_in(site.source.text)
        self._nodes = {id(node) for node in nodes}
        self._returns: dict[tuple[str, int, frozenset[str]], bool] = {}
        self._bound: set[str] = set()
        self.reason: str | None = None

    def follow(self) -> None:
        """Follow it from the site's function."""
        node = self._site.evaluator.scope.node
        known = self._calls.at(node.lineno)
        self._follow(Definition(self._site.function, node, known.owner if known is not None else ""), frozenset())

    def _follow(self, function: Definition, names: frozenset[str]) -> bool:
        """Whether a function returns what it holds by `names`, or something made of it."""
        key = (function.qualname, function.node.lineno, names)
        if key in self._returns:
            return self._returns[key]
        self._returns[key] = True  # what a function that calls itself gets to see
        inside = list(walk(function.node))
        bound = [pair for node in inside for pair in bindings_in(node)]
        self._bound |= {name for name, value in bound if any(id(part) in self._nodes for part in walk(value))}
        names = names_holding(bound, lambda value, known: self._carries(function, value, frozenset(known)), names)
        headers, returns = {id(part) for node in inside for each in deciding(node) for part in walk(each)}, False
        for node in inside:
            if not (
                self._is_own(function) and id(node) in headers and last_name(getattr(node, "func", node)) == "range"
            ):
                self._look(function, node, names)
            if isinstance(node, ast.Return) and node.value is not None and self._carries(function, node.value, names):
                returns = True
        self._returns[key] = returns
        return returns

    def _look(self, function: Definition, node: ast.AST, names: frozenset[str]) -> None:
        if isinstance(node, ast.Subscript):
            self._look_at_index(function, node, names)
        elif isinstance(node, ast.Call):
            self._look_at_call(function, node, names)
        elif isinstance(node, ast.Assign):
            self._check_kept(function, node, names)
        elif any(self._decides(function, node, each, names) for each in deciding(node)):
            self._fail(f"a branch or loop of `{function.qualname}` depends on the number")

    def _look_at_index(self, function: Definition, node: ast.Subscript, names: frozenset[str]) -> None:
        parts = elements_of(node.slice)
        starts = [each.lower for each in parts if isinstance(each, ast.Slice)]
        moving = [each for each in starts if each is not None and not isinstance(each, ast.Constant)]
        if len(moving) > 1 and any(self._carries(function, each, names) for each in moving):
            self.reason = self.reason or f"`{short(node)}` begins at several numbers, which torch 2.13 cannot trace"
        if isinstance(node.ctx, ast.Store):
            self._check_written(function, node, names)
        indices = [each for each in parts if not isinstance(each, ast.Slice)]
        if len(parts) > 1 and any(self._carries(function, each, names) for each in indices):
            self.reason = self.reason or f"`{short(node)}` has a symbol beside other indices, which Dynamo refuses"
        plain = self._is_own(function) or not isinstance(node.slice, ast.Tuple)
        mentioned = plain and any(self._mentions(part, names) for each in indices for part in walk(each))
        if mentioned and not self._is_tensor(function, node.value):
            self._fail(f"`{short(node)}` may look the number up in a list")

    def _look_at_call(self, function: Definition, node: ast.Call, names: frozenset[str]) -> None:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method.endswith("_"):
            self._check_written(function, node.func.value, names)  # type: ignore[attr-defined]
        if last_name(node.func) in _ASKS and any(self._carries(function, each, names) for each in all_given(node)):
            self._fail(f"`{short(node)}` may ask for the number")
        if method in _LOOKS_UP and any(self._carries(function, each, names) for each in node.args[:1]):
            self._fail(f"`{short(node)}` may look the number up")
        self._is_handed_back(function, node, names)

    def _check_kept(self, function: Definition, node: ast.Assign, names: frozenset[str]) -> None:
        kept = [each for target in node.targets for each in elements_of(target) if isinstance(each, ast.Attribute)]
        facts = self._site.evaluator.scope.class_facts
        lasts = facts is not None and facts.is_module
        if kept and lasts and self._is_own(function) and self._carries(function, node.value, names):
            self._fail(f"`{short(kept[0])}` keeps the number after the call")

    def _decides(self, function: Definition, node: ast.AST, asked: ast.expr, names: frozenset[str]) -> bool:
        """True where something decides by the number; of those in the site's function, by more than the name it got."""
        if not self._is_own(function):
            return any(self._carries(function, part, names) for part in _parts_asked(node, asked))
        if isinstance(node, (ast.For, ast.comprehension)) or (isinstance(asked, ast.Name) and asked.id in self._bound):
            return False
        return isinstance(asked, (ast.Name, ast.Subscript, ast.Call)) and self._carries(function, asked, names)

    def _check_written(self, function: Definition, node: ast.expr, names: frozenset[str]) -> None:
        """Inductor of torch 2.13 ends with an error where a slice is written of which it does not know the ends."""
        parts = elements_of(node.slice) if isinstance(node, ast.Subscript) else []
        slices = [each for each in parts if isinstance(each, ast.Slice)]
        ends = [end for each in slices for end in (each.lower, each.upper) if end is not None]
        if any(self._carries(function, each, names) for each in ends):
            self.reason = self.reason or f"`{short(node)}` is written, and Inductor has to know where it ends"

    def _fail(self, reason: str) -> None:
        self.reason = self.reason or f"{reason}, and a symbol has no value while Dynamo traces"

    def _carries(self, function: Definition, node: ast.AST, names: frozenset[str]) -> bool:
        """True for the number, for numbers made of it, and for lists of them."""
        if self._mentions(node, names):
            return True
        if isinstance(node, ast.expr) and self._is_own(function) and self._site.value(node).is_tensor:
            return False
        if isinstance(node, _PARTS):
            return any(self._carries(function, each, names) for each in ast.iter_child_nodes(node))
        if isinstance(node, ast.IfExp):
            return any(self._carries(function, each, names) for each in (node.body, node.orelse))
        if isinstance(node, ast.Subscript):
            return self._carries(function, node.value, names)
        if isinstance(node, ast.Dict):
            return any(self._carries(function, each, names) for each in node.values)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in _FROM_CONTAINERS:
            return self._carries(function, node.func.value, names)
        given = any(self._carries(function, each, names) for each in all_given(node))
        if isinstance(node.func, ast.Name) and node.func.id in _NUMBERS:
            return given
        return given and self._is_handed_back(function, node, names)

    def _is_handed_back(self, function: Definition, call: ast.Call, names: frozenset[str]) -> bool:
        """Whether the function of the module that a call runs returns the number; what it does with it is followed."""
        handed = handed_on(self._calls, function, call, lambda each: self._carries(function, each, names))
        if handed is None:
            self._check_elsewhere(function, call, names)
            return False
        if any(self._carries(function, each, names) for each in call.args if isinstance(each, ast.Starred)):
            self._fail(f"`{short(call)}` may ask for the number")
        return bool(handed.names) and self._follow(*handed)

    def _check_elsewhere(self, function: Definition, call: ast.Call, names: frozenset[str]) -> None:
        """`if n:` and `n or 1` end compiled code with an error in functions of other files as well.

        A comparison ends the graph there, as one in the function itself does.
        """
        index = self._site.evaluator.scope.index
        called = [*self._called_elsewhere(function, call)]
        if (
            not called
            and self._is_unknown(function, call)
            and any(self._carries(function, each, names) for each in (call.func, *all_given(call)))
        ):
            self._fail(f"nothing tells what `{short(call.func)}` does with the number; it may ask for it")
        for found in filter(None, (defined(index, each) for each in called)):
            taken = found[1].arguments(call).holding(lambda each: self._carries(function, each, names))
            nodes = walk(found[1].node) if taken else ()
            asked = (part for node in nodes for part in deciding(node) if part is not getattr(node, "iter", None))
            if any(isinstance(part, ast.Name) and part.id in taken for part in asked):
                self._fail(f"a branch of `{found[1].qualname}` depends on the number")

    def _is_unknown(self, function: Definition, call: ast.Call) -> bool:
        """True for what a parameter or an attribute of the instance holds that is no layer, and for a call's result."""
        called, own = call.func, self._is_own(function)
        if isinstance(called, ast.Name):
            return any(each.arg == called.id for each in parameters(function.node))
        if is_attribute(called, "self"):
            return own and self._site.value(called).instance_of is None
        return isinstance(called, ast.Call) and not is_name(called.func, "type")

    def _called_elsewhere(self, function: Definition, call: ast.Call) -> Iterator[str]:
        """The functions of other files that a call may run: one by its name, or the `forward` of a layer."""
        scope, spelled = self._site.evaluator.scope, dotted(call.func)
        qualified = scope.index.resolve(scope.module, spelled) if spelled is not None else None
        if qualified is not None and not qualified.startswith(("torch.", "builtins.")):
            yield qualified
        classes = [self._site.value(call.func).instance_of] if self._is_own(function) else []
        own = scope.class_qualified
        base = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "__call__" else None
        if own is not None and isinstance(base, ast.Call) and is_name(base.func, "super"):
            classes += [own, *scope.index.heirs(own)]
        facts = [scope.index.class_facts(each) for each in classes if each is not None]
        yield from (each.methods["forward"] for each in facts if each is not None and "forward" in each.methods)

    def _mentions(self, node: ast.AST, names: frozenset[str]) -> bool:
        return id(node) in self._nodes or (isinstance(node, ast.Name) and node.id in names)

    def _is_own(self, function: Definition) -> bool:
        return function.node is self._site.evaluator.scope.node

    def _is_tensor(self, function: Definition, node: ast.expr) -> bool:
        """True for what is no list: elsewhere than in the site's function, by its annotation or as a buffer."""
        if self._is_own(function):
            return self._site.value(node).is_tensor
        if isinstance(node, ast.Name):
            annotations = [each.annotation for each in parameters(function.node) if each.arg == node.id]
            return any(each is not None and last_name(each).endswith("Tensor") for each in annotations)
        buffers = registered(self._site.source.text, function.node.lineno)
        return is_attribute(node, "self") and node.attr in buffers


class _AskedTruth(_AskedValues):
    """Follows tensors of as many rows as data says, and their sizes, to what asks for the truth of a size."""

    def __init__(self, site: Site, statement: ast.stmt, chosen: Collection[ast.expr]) -> None:
        super().__init__(site, ())
        self._chosen, self._first = chosen, names_bound(statement)
        self._handed: dict[int, frozenset[str]] = {}

    def _follow(self, function: Definition, names: frozenset[str]) -> bool:
        rows = rows_of(function.node, self._chosen, names=self._handed.get(function.node.lineno, frozenset()))
        self._nodes |= {id(each) for each in sizes_in(function.node, rows)}
        if not self._is_own(function):
            self._refuse(function.node, rows)
        for call in (part for part in walk(function.node) if isinstance(part, ast.Call)):
            handed = handed_on(self._calls, function, call, rows.reach)
            if handed is None:
                self._look_elsewhere(function, call, rows)
            elif not handed.names <= (known := self._handed.get(handed.callee.node.lineno, frozenset())):
                self._handed[handed.callee.node.lineno] = handed.names | known
                self._returns.clear()
                self._follow(handed.callee, frozenset())
        return bool(self._nodes) and self.reason is None and super()._follow(function, names)

    def _look_elsewhere(self, function: Definition, call: ast.Call, rows: Rows) -> None:
        index = self._site.evaluator.scope.index
        for found in filter(None, (defined(index, each) for each in self._called_elsewhere(function, call))):
            node = found[1].node
            taken = found[1].arguments(call).holding(rows.reach)
            sizes = {id(each) for each in sizes_in(node, rows_of(node, (), names=taken))} if taken else set()
            asked = [part for each in walk(node) for part in deciding(each) if not isinstance(part, ast.Compare)]
            if any(id(part) in sizes for each in asked for part in walk(each)):
                self._fail(f"a branch of `{found[1].qualname}` depends on how many there are")
            if taken:
                self._refuse(node, rows_of(node, (), names=taken))

    def _refuse(self, node: FunctionNode, rows: Rows) -> None:
        """What another function may not do with the rows."""
        why = why_laid_out(node, rows)
        if why is not None:
            self._fail(why)
        self.reason = self.reason or why_listed(lists_of(node, rows))

    def _look(self, function: Definition, node: ast.AST, names: frozenset[str]) -> None:
        if isinstance(node, ast.Call):
            if last_name(node.func) in _TRUTHS and any(
                self._carries(function, each, names) for each in all_given(node)
            ):
                self._fail(f"`{short(node)}` may ask for the number")
            self._is_handed_back(function, node, names)
            return
        if isinstance(node, ast.Assign):
            self._check_kept(function, node, names)
        for each in deciding(node):
            compared = isinstance(each, ast.Compare) or each is getattr(node, "iter", None)
            if not compared and not self._is_first(function, each) and self._carries(function, each, names):
                self._fail(f"a branch or loop of `{function.qualname}` depends on the number `{short(each)}`")

    def _is_first(self, function: Definition, asked: ast.expr) -> bool:
        """True for `len(x)` of an `x` that the statement binds."""
        parts = list(walk(asked))
        named = {part.id for part in parts if isinstance(part, ast.Name)}
        known = not named.isdisjoint(self._first) and self._is_own(function)
        return known and any(id(part) in self._nodes for part in parts)


def deciding(node: ast.AST) -> list[ast.expr]:
    """The expressions whose values decide what runs next."""
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return _operands(node.test)
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, ast.comprehension):
        return [node.iter, *(part for test in node.ifs for part in _operands(test))]
    if isinstance(node, ast.BoolOp):  # `n or 1` asks for the truth of all operands but the last
        return [part for each in node.values[:-1] for part in _operands(each)]
    return []


def _parts_asked(node: ast.AST, asked: ast.expr) -> Iterator[ast.AST]:
    """The parts of a test whose values matter for it: not that of which the type, or a method of a tensor, is asked.

    What goes through a container asks for none of its elements.
    """
    goes_through = isinstance(node, (ast.For, ast.comprehension)) and asked is node.iter
    made = asked.func.value if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute) else asked
    todo: list[ast.AST] = [] if goes_through and isinstance(made, ast.Name) else [asked]
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Call) and last_name(part.func) in _OF_TYPES:
            continue
        yield part
        if not isinstance(part, ast.Attribute) or hasattr(int, part.attr) or hasattr(float, part.attr):
            todo += ast.iter_child_nodes(part)


def decisions_in(function: ast.AST) -> list[tuple[ast.AST, list[ast.expr]]]:
    """What decides in a function what runs next, with the expressions whose values do.

    A test has its own operands; what is computed by `or` elsewhere has others.
    """
    found = [(node, asked) for node in walk(function) if (asked := deciding(node))]
    tests = [node.test for node, _ in found if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert))]
    tests += [test for node, _ in found if isinstance(node, ast.comprehension) for test in node.ifs]
    inside = {id(part) for test in tests for part in walk(test)}
    return [(node, asked) for node, asked in found if not isinstance(node, ast.BoolOp) or id(node) not in inside]


def _operands(test: ast.expr) -> list[ast.expr]:
    """What is tested on its own in a test, without what asks for None."""
    if isinstance(test, ast.BoolOp):
        return [part for each in test.values for part in _operands(each)]
    if isinstance(test, ast.UnaryOp):
        return _operands(test.operand)
    return [] if isinstance(test, ast.Compare) and all(isinstance(each, _IDENTITY) for each in test.ops) else [test]
