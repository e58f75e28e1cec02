"""What a region of a method changes: the one tensor that it fills, or the reason why it cannot be an operator.

Unlike a loop that fills (`LoopEffects`), a region may run layers of the instance, which the operator runs as eager mode
does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from graphmend_codemod.analysis import aliasing, speculation, torch_api
from graphmend_codemod.analysis.iterated import in_step
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import (
    all_given,
    all_names,
    elements_of,
    is_attribute,
    is_name,
    root_of,
    written_text,
)
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.project.summary.computing import OPERATIONS
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.effects.name_origins import NameOrigins
from graphmend_codemod.rules.proofs.outlining.effects.settled_globals import demand_settled
from graphmend_codemod.rules.proofs.rowwise.selectors import where_of

_METHODS = (
    OPERATIONS | torch_api.RETURNS_TENSOR | aliasing.VIEWS | torch_api.PYTHON_METHODS.keys()
) | torch_api.name_set("cpu numpy tolist item to type nonzero dim size index_add index_copy scatter_add append")
_CONTAINERS = torch_api.name_set("append extend insert pop remove clear sort reverse add update setdefault popitem")
_BUILTINS = torch_api.name_set(
    "abs all any bool enumerate float int isinstance len list max min range reversed round slice sum tuple zip"
)
_NOT_FUNCTIONS = torch_api.name_set(
    """save load manual_seed seed compile set_rng_state set_grad_enabled set_default_dtype set_default_device batch_norm
    instance_norm embedding_bag embedding embedding_renorm_ no_grad enable_grad use_deterministic_algorithms
    is_grad_enabled is_inference_mode_enabled"""
)
_ACCUMULATES = frozenset({"index_add", "index_copy", "scatter_add", "scatter_reduce", "index_put", "masked_fill"})
_SHARES = aliasing.VIEWS | torch_api.name_set("contiguous cpu detach to type unbind list tuple zip enumerate reversed")


class RegionEffects(NameOrigins):
    """The effects of consecutive statements. `layers` are attributes of the instance whose calls are layers."""

    fillers = _CONTAINERS

    def __init__(self, site: Site, statements: Sequence[ast.stmt]) -> None:
        super().__init__([node for statement in statements for node in (statement, *walk_scope(statement))])
        self._site = site
        self._statements = statements
        self._own = site.evaluator.scope.self_name
        self.dicts: dict[str, None] = {}
        """Attributes of the instance that have to be `nn.ModuleDict`, which the region goes through."""

    def changed(self) -> set[str]:
        """The names from outside whose tensors the region changes. NotProven for any other effect."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                raise NotProven(f"the loop changes `{speculation.short(node)}`")
            root = root_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
            if root is not None and not self._site.evaluator.scope.is_local(root):
                demand_settled(self._site, node)
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                found |= self._outside(self.roots(node.value), node)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found |= self._augmented(node, node.target)
            elif isinstance(node, ast.Call):
                found |= self._call(node)
        return found

    def _augmented(self, node: ast.AugAssign, target: ast.Name) -> set[str]:
        site = self._site.at(node)
        if site is not None and site.value(target).is_python:
            return set()
        return self._outside({target.id}, node)

    def _call(self, call: ast.Call) -> set[str]:
        text, qualified = speculation.short(call), self._site.resolve(call.func)
        if any(word.arg in {None, "out", "inplace"} for word in call.keywords):
            raise NotProven(f"`{text}` may have side effects")
        if qualified is not None:
            return self._known(call, qualified, text)
        if isinstance(call.func, ast.Name):
            if self._is_layer(call.func):
                return set()
            raise NotProven(f"`{text}` may have side effects")
        if not isinstance(call.func, ast.Attribute):
            if self._is_layer(call.func):
                return set()
            raise NotProven(f"`{text}` may have side effects")
        method, owner = call.func.attr, call.func.value
        if is_name(owner, self._own):
            return set()  # a layer or a method: which one is asked where attributes become parts
        if method.endswith("_") and not method.endswith("__"):
            return self._outside(self.roots(owner), call)
        if method == "numpy" and not self._site.no_grad:
            raise NotProven(f"a gradient cannot run `{text}` again; write `.tolist()`")
        if method in _CONTAINERS:
            own = isinstance(owner, ast.Name) and owner.id in self.stored
            if not own or reads_before_writing(self._statements, owner.id):  # type: ignore[attr-defined]
                raise NotProven(f"`{text}` changes something other than a tensor of the loop")
            return set()
        if self._of_dict(call) is not None:
            self.dicts[owner.attr] = None  # type: ignore[attr-defined]
            return set()
        filled = method == "format" and isinstance(owner, ast.Constant)
        if method not in _METHODS and not filled and not (method == "forward" and self._is_layer(owner)):
            raise NotProven(f"`{text}` may have side effects")
        return set()

    def _of_dict(self, node: ast.expr) -> ast.expr | None:
        """`self.experts` for `self.experts.values()`, and for `getattr(self.experts, f"expert_{i}")`."""
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        if isinstance(node.func, ast.Attribute):
            held = node.func.value if node.func.attr in {"values", "items"} and not node.args else None
        else:
            named = self._site.resolve(node.func) == "builtins.getattr" and len(node.args) == 2
            held = node.args[0] if named and _names_no_method(node.args[1]) else None
        own = is_attribute(held, self._own)
        return held if own else None

    def _known(self, call: ast.Call, qualified: str, text: str) -> set[str]:
        name = torch_api.torch_function(qualified)
        if name is not None and name.endswith("_") and call.args:
            return self._outside(self.roots(call.args[0]), call)
        written = aliasing.of_operator(name, call).writes if name in aliasing.IN_PLACE_ARGUMENT else ()
        if written:
            return self._outside({root for each in written for root in self.roots(each)}, call)
        if name is not None and name not in _NOT_FUNCTIONS and ("." not in name or name in aliasing.FRESH):
            return set()
        if qualified == "torch.no_grad" or qualified.startswith("math."):
            return set()
        builtin = qualified.removeprefix("builtins.") if qualified.startswith("builtins.") else ""
        held = self._of_dict(call)
        if isinstance(held, ast.Attribute):
            self.dicts[held.attr] = None
            return set()
        facts = self._site.evaluator.scope.index.function(qualified)
        if builtin in _BUILTINS or (facts is not None and facts.computes):
            return set()
        raise NotProven(f"`{text}` may have side effects")

    def _is_layer(self, node: ast.expr) -> bool:
        """True for what is looked up in an attribute of the instance, in place or as a name of the loop."""
        node = self._of_dict(node) or node
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.stored:
            return node.id in self._layers
        return is_name(node, self._own)

    @cached_property
    def _layers(self) -> set[str]:
        """Names that the region binds to what it looks up in attributes of the instance, and to nothing else."""
        bound: dict[str, list[ast.expr]] = {name: [] for name in self.stored}
        for node in self.nodes:
            if isinstance(node, ast.For):
                pairs = list(self._of_rounds(node))
            elif isinstance(node, ast.Assign):
                pairs = [(target, node.value) for target in node.targets]
            elif isinstance(node, (ast.AugAssign, ast.comprehension)):
                pairs = [(node.target, ast.Constant(None))]
            else:
                continue
            for target, value in pairs:
                for name in _names(target):
                    bound[name].append(value if isinstance(target, ast.Name) else ast.Constant(None))
        return {name for name, values in bound.items() if values and all(map(self._is_part, values))}

    def _of_rounds(self, node: ast.For) -> Iterator[tuple[ast.expr, ast.expr]]:
        """What the variables of a loop hold: `(expert, self.experts)` for `i, expert in enumerate(self.experts)`."""
        for target, value in in_step(node.target, node.iter, self._site.resolve):
            items = isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "items"
            if items and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                yield from ((target.elts[0], ast.Constant(None)), (target.elts[1], value))
            else:
                yield target, value

    def _is_part(self, node: ast.expr) -> bool:
        """True for `self.experts`, `self.experts[i]`, `self.experts.values()`."""
        found = False
        node = self._of_dict(node) or node
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            found = found or isinstance(node, ast.Attribute)
            node = node.value
        return found and is_name(node, self._own)

    # what names may refer to

    def is_kept(self, name: str) -> bool:
        """True for a name that is read before it is bound."""
        return reads_before_writing(self._statements, name)

    def holders(self, target: ast.expr) -> Iterable[str]:
        """All names in a target: what is written into a list is an origin of the list."""
        return all_names(target) & self.stored

    def _outside(self, names: set[str], node: ast.AST) -> set[str]:
        found = self.outside(names)
        if self._own in found or any(not self._site.evaluator.scope.is_local(name) for name in found):
            raise NotProven(f"`{speculation.short(node)}` may change state of the instance or the module")
        return found

    @cached_property
    def _indices(self) -> set[str]:
        """Names of tensors that choose rows: what they index is a copy."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Assign) and where_of(self._site, node.value) is not None:
                found |= {name for target in node.targets for name in _names(target)}
        return found

    def roots(self, node: ast.expr) -> set[str]:
        """The local names whose memory the value of an expression may share."""
        if (
            isinstance(node, ast.Name)
            and node.id not in self.stored
            and not self._site.evaluator.scope.is_local(node.id)
        ):
            return set()
        return super().roots(node)

    def parts(self, node: ast.expr) -> Iterable[ast.AST]:
        """What is indexed by chosen rows is a copy; what a layer returns may be its arguments, but not its weights."""
        if isinstance(node, ast.Subscript) and self._chooses(node.slice):
            return ()
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add):
            return ()
        return super().parts(node)

    def _chooses(self, index: ast.expr) -> bool:
        parts = elements_of(index)
        return any(isinstance(part, ast.Name) and part.id in self._indices for part in parts)

    def called_parts(self, call: ast.Call) -> list[ast.expr]:
        method = call.func if isinstance(call.func, ast.Attribute) else None
        qualified = self._site.resolve(call.func)
        name = method.attr if method is not None and qualified is None else torch_api.torch_function(qualified)
        if name in (_METHODS | torch_api.RETURNS_TENSOR) - _SHARES - _CONTAINERS and not (name or "").endswith("_"):
            return []
        if method is None or qualified is not None:
            return all_given(call)
        if name in _SHARES:
            return [method.value]
        return all_given(call) if self._is_layer(method) else [*all_given(call), method.value]

    def check_rebound(self, name: str) -> None:
        """NotProven where the region binds `name` to a tensor that may have another dtype or shape."""
        for node in self.nodes:
            if isinstance(node, ast.Assign) and any(name in _names(target) for target in node.targets):
                if not (len(node.targets) == 1 and _accumulates(node.value, name)):
                    raise NotProven(f"`{speculation.short(node)}` may change the dtype or shape of `{name}`")
            elif isinstance(node, (ast.For, ast.comprehension)) and name in _names(node.target):
                raise NotProven(f"`{speculation.short(node)}` binds `{name}`")


_METHODS_OF_MODULES = frozenset(
    """add apply bfloat16 buffers call children clear compile cpu cuda double dump eval extra float forward get half
    items keys load modules mtia named parameters pop register requires set share state to train type update values xpu
    zero""".split()
)
"""How names of methods of `nn.ModuleDict` begin."""


def _names_no_method(node: ast.expr) -> bool:
    """True for `"expert_{}".format(i)` and `f"expert_{i}"`: what begins like that is no method of a module."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node = node.func.value
    text = written_text(node) or ""
    first, more, _ = text.partition("{")[0].partition("_")
    return first.isalpha() and bool(more) and first.lower() not in _METHODS_OF_MODULES


def _names(target: ast.expr) -> set[str]:
    """The names that a target binds; those that it only looks into are not among them."""
    if isinstance(target, ast.Name):
        return {target.id}
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    parts = [target.value] if isinstance(target, ast.Starred) else parts
    return {name for part in parts for name in _names(part)}


def _accumulates(value: ast.expr, name: str) -> bool:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    owner = value.func.value
    return value.func.attr in _ACCUMULATES and is_name(owner, name)
