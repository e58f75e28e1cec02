"""What a function does besides returning something, followed into the functions of its file: what it may change.

For an operator, a function may write into what it made itself, raise, and draw from torch's generators. Everything else
that lasts is a reason, and so are calls of what is not known. A method may change tensors that the instance holds.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import permutations

from graphmend_codemod.analysis import aliasing, speculation
from graphmend_codemod.analysis.iterated import in_step
from graphmend_codemod.analysis.patterns import all_given, elements_of, is_attribute, is_name, root_of, same
from graphmend_codemod.analysis.scope import FunctionNode, of_kind, parameter_names
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.gradients import unrecorded
from graphmend_codemod.rules.proofs.outlining.effects import held_functions, library_effects
from graphmend_codemod.rules.proofs.outlining.effects.eager_parts import behind_flags, eager_nodes, is_compile_path
from graphmend_codemod.rules.proofs.outlining.effects.held_functions import Functions
from graphmend_codemod.rules.proofs.outlining.effects.name_origins import NameOrigins
from graphmend_codemod.rules.proofs.outlining.effects.settled_globals import demand_settled
from graphmend_codemod.rules.proofs.outlining.effects.single_process import idle_nodes

_FORBIDDEN = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Try)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.NamedExpr, ast.Match)
_DEEP = 6


class FunctionEffects:
    """The effects of functions of one file, asked at a site in it.

    Of the instance of a method, which is followed into other methods: `read` are attributes that they read, `set` those
    that they set, to constants alone, `replaced` those that get other data (`self.scale.data = ...`), `off` flags that
    have to be False for the effects to be all, `methods` is whether there are other methods, and `parts` names
    attributes that hold more than a tensor or a constant, with what is read of them. `held` names the function of this
    file that an attribute is taken for, `recorded` is whether autograd may see a change, `random` whether anything may
    draw random numbers, `alone` whether there has to be one process alone. `updates` is for code that is not run again
    for a gradient: it may log messages, fill `held` and set `alone`. Attributes that are called become `layers`, where
    somebody else looks at what they hold.
    """

    def __init__(self, site: Site, *, updates: bool = False, layers: set[str] | None = None) -> None:
        self._site = site
        self._known: dict[tuple[object, ...], tuple[frozenset[str], bool]] = {}
        self._tried: dict[str, tuple[str, FunctionNode] | None] = {}
        self.updates, self.layers = updates, layers
        self.held: dict[str, str] = {}
        self.recorded = False
        self.read: set[str] = set()
        self.set: dict[str, ast.Constant] = {}
        self.replaced: set[str] = set()
        self.off: set[str] = set()
        self.methods = self.alone = self.random = False
        self.parts: dict[str, str] = {}

    def changed(
        self, function: FunctionNode, depth: int = 0, own: str = "", given: Functions | None = None
    ) -> frozenset[str]:
        """Parameters whose memory the function may change. NotProven for every other effect that lasts.

        In a method, `own` is the parameter for the instance, and `.name` stands for what it holds as `name`. `given`
        are functions that parameters are.
        """
        key = (id(function), *sorted((name, id(node)) for name, node in (given or {}).items()))
        if key not in self._known and depth > _DEEP:
            raise NotProven(f"`{function.name}` calls functions that call further ones")
        if key not in self._known:
            self._known[key] = (frozenset(), False)  # what calls itself changes what it changes without that
            before, self.recorded = self.recorded, False
            try:
                found = frozenset(_Body(self, self._site, function, depth, own, given or {}).changed())
                self._known[key] = found, self.recorded and not unrecorded.is_off(self._site, function)
            except NotProven:
                del self._known[key]
                raise
            finally:
                self.recorded = before
        self.recorded |= self._known[key][1]
        return self._known[key][0]

    def demand_separate_results(self, function: FunctionNode, own: str = "", new: bool = False) -> None:
        """NotProven where a function returns a tensor twice, or a view of it; if `new`, also one that it is given."""
        _Body(self, self._site, function, 0, own, {}).results_apart(new)

    def demand_own_results(self, function: FunctionNode, own: str, owned: Collection[str]) -> None:
        """NotProven where a result may share memory with an argument, or with what the instance holds.

        The result of a name in `owned` may be the argument of that name: nothing else refers to it.
        """
        _Body(self, self._site, function, 0, own, {}).demand_made(owned)

    def attribute(self, node: ast.expr, own: str, depth: int) -> FunctionNode | None:
        """The function of this file that an attribute of the instance is taken for, with effects that are known."""
        if not self.updates or not own or not is_attribute(node, own):
            return None
        if node.attr not in self._tried:
            names = held_functions.attribute_values(self._site, node.attr)
            proven = held_functions.first_proven(self._site, names, lambda each: self.changed(each, depth + 1))
            self._tried[node.attr] = proven
        name, function = self._tried[node.attr] or ("", None)
        if function is not None:
            self.held[node.attr] = name
        return function

    def method(self, call: ast.Call, own: str) -> FunctionNode | None:
        """The method of the instance `own` that a call runs; None where there is none."""
        found = held_functions.own_method(self._site, call, own)
        self.methods = self.methods or found is not None
        return found


class _Body(NameOrigins):
    fillers = library_effects.FILLS

    def __init__(
        self, effects: FunctionEffects, site: Site, function: FunctionNode, depth: int, own: str, given: Functions
    ) -> None:
        super().__init__([*eager_nodes(site, function.body)])
        self._effects = effects
        self._given = given
        self._code = function
        self._site = site
        self._depth = depth
        self._own = own
        self._behind = dict(behind_flags(site, function, own)) if own else {}
        self._parameters = parameter_names(function)

    def results_apart(self, new: bool) -> None:
        """NotProven where one result is another one or a view of it: an operator gives each memory of its own."""
        for results in self._returned():
            for given in sorted(self.outside({name for each in results for name in self.roots(each)}) if new else ()):
                raise NotProven(f"a result may share memory with `{given}`")
            for one, other in permutations(results, 2):
                parts = isinstance(one, ast.Subscript) and isinstance(other, ast.Subscript) and not same(one, other)
                if not parts and not self.roots(one).isdisjoint(self.origins(self.roots(other))):
                    raise NotProven(
                        f"the results `{speculation.short(one)}` and `{speculation.short(other)}` share memory"
                    )

    def demand_made(self, owned: Collection[str]) -> None:
        """NotProven where a result is an argument, or a view of one: an operator gives it memory of its own."""
        for results in self._returned():
            for value in results:
                own = {value.id} & {*owned} if isinstance(value, ast.Name) else set()
                if shared := self.outside(self.roots(value)) - own:
                    raise NotProven(f"`{speculation.short(value)}` may share memory with `{min(shared).lstrip('.')}`")

    def _returned(self) -> Iterator[list[ast.expr]]:
        for node in self.nodes:
            if isinstance(node, ast.Return) and node.value is not None:
                yield elements_of(node.value)

    def changed(self) -> set[str]:
        found: set[str] = set()
        if self._own:
            self._look_at_instance()
        for node in self.nodes:
            if self._behind.get(id(node)) in self._effects.off:
                continue
            if self._effects.alone and id(node) in self._idle:
                continue
            try:
                found |= self._changed_by(node)
            except NotProven:
                if id(node) in self._idle:
                    self._effects.alone = self._effects.methods = True  # a subclass may have `buffers` of its own
                elif id(node) in self._behind:
                    self._effects.off.add(self._behind[id(node)])
                else:
                    raise
        return found

    @cached_property
    def _idle(self) -> set[int]:
        """What one process skips, or does nothing in: asked once all else is known, for it may read other files."""
        asked = self._effects.updates and self._site.settings.opaque
        return {id(each) for each in idle_nodes(self._site, self._code)} if asked else set()

    def _changed_by(self, node: ast.AST) -> set[str]:
        if isinstance(node, (*_FORBIDDEN, *_NESTED)):
            raise NotProven(f"`{speculation.short(node)}` is not supported inside a custom operator")
        self._check_modes(node)
        found, before = set[str](), self._effects.recorded
        for written in self._written(node):
            roots = self.outside(self.roots(written))
            if any(each == self._own or (each not in self._parameters and each[0] != ".") for each in roots):
                raise NotProven(f"`{speculation.short(node)}` may change state of the module")
            found |= roots
            if roots and isinstance(node, ast.Call) and getattr(node.func, "attr", "") in library_effects.RESHAPES:
                raise NotProven(f"`{speculation.short(node)}` changes the shape of a tensor that others hold")
            if any(each[0] == "." for each in roots):
                seen = hasattr(written, "lineno") and not unrecorded.is_detached(written)
                self._effects.recorded |= seen and not unrecorded.fills_buffer(self._site, node, self._own)
        if id(node) in self._unrecorded:
            self._effects.recorded = before
        return found

    @cached_property
    def _unrecorded(self) -> set[int]:
        return unrecorded.under_no_grad(self.nodes, self._resolved)

    def _check_modes(self, node: ast.AST) -> None:
        """NotProven for what is another thing inside of an operator, or when a gradient runs the function again."""
        read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        if read and node.attr in library_effects.GRADIENT_STATE:  # type: ignore[attr-defined]
            raise NotProven(f"`{speculation.short(node)}` is not the same inside of a custom operator")
        library_effects.demand_no_identity(node, self.stored | self._parameters)
        if isinstance(node, (ast.Name, ast.Attribute)) and root_of(node) not in self.stored | self._parameters:
            demand_settled(self._site, node)

    def _look_at_instance(self) -> None:
        """Notes what the method does with attributes of the instance; NotProven where it hands the instance on."""
        plain = {
            id(target): node.value
            for node in of_kind(self.nodes, ast.Assign)
            if isinstance(node.value, ast.Constant)
            for target in node.targets
        }
        called = {id(node.func) for node in self.nodes if isinstance(node, ast.Call)}
        looked = {id(node.value) for node in self.nodes if isinstance(node, ast.Attribute)}
        for node in self.nodes:
            if is_name(node, self._own) and id(node) not in looked:
                raise NotProven(f"`{self._own}` is handed on as a whole")
            held = node.value if isinstance(node, ast.Attribute) and id(node) not in called else None
            inside = is_attribute(held, self._own)
            if inside and node.attr not in library_effects.OF_ONE_VALUE:  # type: ignore[attr-defined]
                self._effects.parts.setdefault(held.attr, speculation.short(node))  # type: ignore[union-attr]
            if is_attribute(node, self._own):
                if isinstance(node.ctx, ast.Load):
                    self._effects.read |= {node.attr} if id(node) not in called else set()
                elif id(node) not in plain or self._effects.set.setdefault(node.attr, plain[id(node)]) is None:
                    raise NotProven(f"the function changes `{speculation.short(node)}`")
                elif self._effects.set[node.attr].value != plain[id(node)].value:
                    raise NotProven(f"the function sets `{speculation.short(node)}` to several values")

    def _written(self, node: ast.AST) -> Iterator[ast.expr]:
        stored = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        if stored and self._gets_new_data(node):  # type: ignore[arg-type]
            self._effects.replaced.add(node.value.attr)  # type: ignore[attr-defined]
            yield node  # type: ignore[misc]
        elif stored and not is_attribute(node, self._own):
            raise NotProven(f"the function changes `{speculation.short(node)}`")
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield node.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield ast.Name(node.target.id, ast.Load())
        elif isinstance(node, ast.With):
            for item in node.items:
                self._check_context(item)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node)

    def _gets_new_data(self, target: ast.Attribute) -> bool:
        """True for the target of `self.scale.data = x.std()`: what it gets shares memory with nothing."""
        held = target.value if target.attr == "data" and self._own and self._effects.updates else None
        if not is_attribute(held, self._own):
            return False
        given = [each for each in self.nodes if isinstance(each, ast.Assign) and each.targets == [target]]
        return len(given) == 1 and not self.roots(given[0].value)

    def _check_context(self, item: ast.withitem) -> None:
        call = item.context_expr
        called = self._in_eager(call.func) if isinstance(call, ast.Call) and item.optional_vars is None else None
        if called is None or (self._resolved(called) or "") not in library_effects.CONTEXTS:
            raise NotProven(f"`{speculation.short(call)}` is not supported inside a custom operator")

    def _in_eager(self, called: ast.expr) -> ast.expr:
        """What eager mode calls: `flags` of `(other if torch.compiler.is_compiling() else flags)`."""
        chosen = isinstance(called, ast.IfExp) and is_compile_path(self._site, called.test)
        return called.orelse if chosen else called  # type: ignore[attr-defined]

    def _resolved(self, node: ast.expr) -> str | None:
        name = root_of(node)
        return None if name is None or name in self.stored | self._parameters else self._site.resolve_global(node)

    def _of_call(self, call: ast.Call) -> Iterator[ast.expr]:
        function = self._function(call.func)
        if function is not None:
            changed = self._effects.changed(function, self._depth + 1, given=self._handed(function, call))
            yield from held_functions.given_as(function, call, changed)
            return
        method = self._effects.method(call, self._own) if self._own else None
        if method is not None:
            own = method.args.args[0].arg if method.args.args else ""
            changed = self._effects.changed(method, self._depth + 1, own)
            yield from (
                ast.Attribute(ast.Name(self._own, ast.Load()), each[1:], ast.Load())
                for each in changed
                if each[0] == "."
            )
            yield from held_functions.given_as(
                method, call, frozenset(each for each in changed if each[0] != "."), skipped=1
            )
            return
        effect = self._effect(call)
        if effect is None:
            return
        if not effect.known:
            raise NotProven(f"`{speculation.short(call)}` may have side effects")
        self._effects.random = self._effects.random or effect.random
        yield from effect.writes

    def _function(self, node: ast.expr) -> FunctionNode | None:
        """The function of this file that an expression stands for: by its name, a parameter, or an attribute."""
        if isinstance(node, ast.Name):
            if node.id in self._parameters | self.stored:
                return self._given.get(node.id)
            return held_functions.plain(self._site, node)
        return self._effects.attribute(node, self._own, self._depth)

    def _handed(self, function: FunctionNode, call: ast.Call) -> dict[str, FunctionNode]:
        """The functions of this file that a call hands to parameters which the function calls."""
        found = {
            name: held_functions.plain(self._site, each)
            for name, each in held_functions.defaults(function, call).items()
        }
        found |= {name: self._function(each) for name, each in held_functions.handed(function, call).items()}
        return {name: node for name, node in found.items() if node is not None}

    def _effect(self, call: ast.Call) -> aliasing.Effect | None:
        """What a call of something outside of this file does; None for nothing."""
        qualified = self._resolved(self._in_eager(call.func))
        local = root_of(call.func) in self.stored | self._parameters
        if self._effects.updates and not local and held_functions.is_message(self._site, call, qualified):
            return None
        if qualified is not None:
            return library_effects.of_function(qualified, call)
        if not isinstance(call.func, ast.Attribute):
            return aliasing.Effect(known=False)
        if self._own and is_attribute(call.func, self._own):  # a layer, whatever tensors call a method
            if self._effects.layers is None:
                return aliasing.Effect(known=False)
            self._effects.layers.add(call.func.attr)
            return None
        method, owner = call.func.attr, call.func.value
        if method in library_effects.COPIES:
            return None
        if method in library_effects.SHARES:
            return aliasing.Effect(shares=(owner,))
        if method in library_effects.FILLS:
            return aliasing.Effect(writes=(owner,))
        return aliasing.of_operator(method, call, owner)

    # whose memory a value may share

    def in_step(self, target: ast.expr, iterated: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
        return in_step(target, iterated, self._resolved)

    def holders(self, target: ast.expr) -> Iterator[str]:
        """The names that refer to a value once `target` holds it; a tensor that it is written into does not."""
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                yield from self.holders(each)
        elif isinstance(target, ast.Starred):
            yield from self.holders(target.value)
        elif isinstance(target, ast.Subscript):
            name = root_of(target)
            made = [
                node.value for node in of_kind(self.nodes, ast.Assign) if any(is_name(t, name) for t in node.targets)
            ]
            if name is not None and not (made and all(map(self._makes_tensor, made))):
                yield name

    def _makes_tensor(self, value: ast.expr) -> bool:
        effect = self._effect(value) if isinstance(value, ast.Call) else None
        return isinstance(value, (ast.BinOp, ast.Compare)) or (effect is not None and effect.known)

    def is_kept(self, name: str) -> bool:
        """True for a parameter."""
        return name in self._parameters

    def roots(self, node: ast.expr) -> set[str]:
        """Names, and those of attributes of the instance with a dot in front, whose memory a value may share."""
        if self._own and is_attribute(node, self._own):
            return {f".{node.attr}"}
        return super().roots(node)

    def parts(self, node: ast.expr) -> Iterable[ast.AST]:
        """A sum shares memory with its operands where one of them is a list."""
        if isinstance(node, ast.BinOp):
            operands = (node.left, node.right)
            return operands if any(isinstance(each, (ast.List, ast.Tuple, ast.ListComp)) for each in operands) else ()
        return super().parts(node)

    def called_parts(self, call: ast.Call) -> list[ast.expr]:
        given = all_given(call)
        if self._function(call.func) is not None:
            return given
        effect = self._effect(call)
        if effect is None:
            return []
        return list(effect.shares) if effect.known else given
