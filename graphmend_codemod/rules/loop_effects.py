"""What a loop does besides filling some tensors: nothing, or the reason why it cannot be an operator."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from graphmend_codemod.analysis import purity, torch_api
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.scope import children, walk_in_layers, walk_scope
from graphmend_codemod.project.computing import OPERATIONS
from graphmend_codemod.rules.operators import NotAnOperator
from graphmend_codemod.rules.site import Site

_KNOWN = OPERATIONS | torch_api.name_set(
    """argsort argwhere bincount bitwise_and bitwise_not bitwise_or bitwise_xor bool ceil chunk contiguous cpu cummax
    cumprod cumsum detach diagonal dim div float floor floor_divide fmod gather index_select int is_tensor item kthvalue
    long masked_scatter masked_select narrow nonzero numel one_hot pad pow prod ravel remainder repeat_interleave round
    scatter select sign square sqrt take to tolist topk trunc unbind unfold unique unique_consecutive"""
)
"""Operations that change nothing, draw nothing, and that autocast leaves alone for integers."""
_MAY_SHARE = torch_api.VIEWS | torch_api.name_set(
    "contiguous cpu detach diagonal narrow ravel select split unbind unfold"
)
"""Operations whose result may be memory of an argument."""
_BUILTINS = torch_api.name_set(
    "abs all any bool enumerate float int isinstance len list max min range reversed round slice sum tuple zip"
)
_ALWAYS_PYTHON = torch_api.name_set("bool float int isinstance len range round slice")


class Effects:
    """The effects of a loop that may change the tensors `filled` and nothing else."""

    def __init__(self, site: Site, node: ast.For, filled: frozenset[str]) -> None:
        self._site = site
        self._node = node
        self._filled = filled
        self._stored = {
            part.id for part in walk_scope(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
        }
        self._origins = self._bindings()

    def check(self) -> None:
        """NotAnOperator for the first effect that is none of those."""
        for statement in (self._node, *walk_scope(self._node)):
            if not isinstance(statement, ast.stmt):
                continue
            site = self._site.at(statement)
            if site is None:
                raise NotAnOperator(f"`{purity.short(statement)}` is not reached by the compiler")
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                self._check_augmented(site, statement, statement.target)
            for part in _own_parts(statement):
                if isinstance(part, ast.Call):
                    self._check_call(site, part)
                elif isinstance(part, (ast.Subscript, ast.Attribute)) and not isinstance(part.ctx, ast.Load):
                    self._check_written(part, part.value)

    def _check_augmented(self, site: Site, statement: ast.AugAssign, target: ast.Name) -> None:
        if not site.value(target).is_python and self._outside([target.id]):
            raise NotAnOperator(f"`{purity.short(statement)}` may change `{target.id}` in place")

    def _check_written(self, part: ast.expr, owner: ast.expr) -> None:
        others = sorted(self._outside(self._roots(owner)) - self._filled)
        if isinstance(part, ast.Attribute) or others:
            changed = purity.short(part) if isinstance(part, ast.Attribute) else others[0]
            raise NotAnOperator(f"the loop changes `{changed}`")

    def _check_call(self, site: Site, call: ast.Call) -> None:
        text = purity.short(call)
        if any(word.arg in {None, "out", "inplace"} for word in call.keywords):
            raise NotAnOperator(f"`{text}` may have effects")
        qualified = site.resolve(call.func)
        if qualified is None and isinstance(call.func, ast.Attribute):
            method = call.func.attr
            if method.endswith("_") and method[:-1] in _IN_PLACE:
                self._check_written(call, call.func.value)
            elif method not in _KNOWN:
                raise NotAnOperator(f"`{text}` may have effects")
        elif qualified is None or not _is_harmless(site, qualified):
            raise NotAnOperator(f"`{text}` may have effects")

    # what names may refer to

    def _bindings(self) -> dict[str, set[str]]:
        """For each name that the loop binds, the names whose memory its values may share."""
        found: dict[str, set[str]] = {name: set() for name in self._stored}
        for part in (self._node, *walk_scope(self._node)):
            if isinstance(part, ast.For):
                pairs = [(part.target, part.iter)]
            elif isinstance(part, ast.Assign):
                pairs = [(target, part.value) for target in part.targets]
            elif isinstance(part, (ast.AnnAssign, ast.AugAssign)) and part.value is not None:
                pairs = [(part.target, part.value)]
            else:
                continue
            for target, value in pairs:
                for each in walk_in_layers(target):
                    if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
                        found[each.id] |= self._roots(value)
        return found

    def _outside(self, names: Sequence[str] | set[str]) -> set[str]:
        """The names from outside of the loop that these lead to; a name that keeps its value from before is one."""
        todo, seen = list(names), set()
        found: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if name not in self._stored or name in self._kept:
                found.add(name)
            todo += self._origins.get(name, ())
        return found

    @cached_property
    def _kept(self) -> set[str]:
        """Names bound by the loop that have a value before it."""
        before, body = self._site.place.env, self._node.body
        given = {part.id for part in walk_in_layers(self._node.target) if isinstance(part, ast.Name)}
        return {
            name for name in self._stored if name in before or (name not in given and reads_before_writing(body, name))
        }

    def _roots(self, node: ast.expr) -> set[str]:
        """Names whose memory the value of `node` may share."""
        if isinstance(node, ast.Name):
            return {node.id}
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            return self._roots(node.value)
        if isinstance(node, ast.Call):
            return self._roots_of_call(node)
        if isinstance(node, (ast.Constant, ast.Compare, ast.JoinedStr)):
            return set()
        return {name for part in children(node) if isinstance(part, ast.expr) for name in self._roots(part)}

    def _roots_of_call(self, call: ast.Call) -> set[str]:
        qualified = self._site.resolve(call.func)
        name = torch_api.torch_function(qualified)
        if qualified is None and isinstance(call.func, ast.Attribute):
            name = call.func.attr
        if (name in _KNOWN and name not in _MAY_SHARE) or (qualified or "").removeprefix("builtins.") in _ALWAYS_PYTHON:
            return set()
        parts = [*call.args, *(word.value for word in call.keywords)]
        if qualified is None and isinstance(call.func, ast.Attribute):
            parts.append(call.func.value)
        return {each for part in parts for each in self._roots(part)}


_IN_PLACE = torch_api.name_set("fill zero copy add sub mul masked_fill index_fill index_copy index_add index_put")


def _is_harmless(site: Site, qualified: str) -> bool:
    if torch_api.torch_function(qualified) in _KNOWN or qualified.startswith("math."):
        return True
    facts = site.evaluator.scope.index.function(qualified)
    builtin = qualified.removeprefix("builtins.") if qualified.startswith("builtins.") else ""
    return builtin in _BUILTINS or builtin.endswith("Error") or (facts is not None and facts.computes)


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements inside it."""
    stack = [part for part in children(statement) if not isinstance(part, ast.stmt)]
    while stack:
        part = stack.pop()
        yield part
        stack += [each for each in children(part) if not isinstance(each, ast.stmt)]
