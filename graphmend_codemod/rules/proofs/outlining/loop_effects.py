"""What a loop does besides filling some tensors: nothing, or the reason why it cannot be an operator."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from graphmend_codemod.analysis import aliasing, speculation, torch_api
from graphmend_codemod.analysis.effects import effect_of
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import all_names, stored_names
from graphmend_codemod.analysis.scope import children, walk_in_layers, walk_scope
from graphmend_codemod.analysis.values import Kind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site


class Effects:
    """The effects of a loop that may change the tensors `filled` and nothing else."""

    def __init__(self, site: Site, node: ast.For, filled: frozenset[str]) -> None:
        self._site = site
        self._node = node
        self._filled = filled
        self._stored = stored_names(walk_scope(node))
        self._origins = self._bindings()

    def check(self) -> None:
        """NotProven for the first effect that is none of those."""
        for statement in (self._node, *walk_scope(self._node)):
            if not isinstance(statement, ast.stmt):
                continue
            site = self._site.at(statement)
            if site is None:
                raise NotProven(f"`{speculation.short(statement)}` is not reached by torch.compile")
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                self._check_augmented(site, statement, statement.target)
            for part in _own_parts(statement):
                if isinstance(part, ast.Call):
                    self._check_call(site, part)
                elif isinstance(part, (ast.Subscript, ast.Attribute)) and not isinstance(part.ctx, ast.Load):
                    self._check_written(part, part.value)

    def _check_augmented(self, site: Site, statement: ast.AugAssign, target: ast.Name) -> None:
        if not site.value(target).is_python and self._outside([target.id]):
            raise NotProven(f"`{speculation.short(statement)}` may change `{target.id}` in place")

    def _check_written(self, part: ast.expr, owner: ast.expr) -> None:
        others = sorted(self._outside(self._roots(owner)) - self._filled)
        if isinstance(part, ast.Attribute) or others:
            changed = speculation.short(part) if isinstance(part, ast.Attribute) else others[0]
            raise NotProven(f"the loop changes `{changed}`")

    def _check_call(self, site: Site, call: ast.Call) -> None:
        text = speculation.short(call)
        qualified = site.resolve(call.func)
        method = call.func.attr if isinstance(call.func, ast.Attribute) and qualified is None else ""
        if isinstance(call.func, ast.Attribute) and method.endswith("_") and method[:-1] in _IN_PLACE:
            self._check_written(call, call.func.value)
            return
        pure = _effect(site, call).pure and (method or torch_api.torch_function(qualified)) not in torch_api.AUTOCAST
        if not pure and not _is_harmless(site, qualified):
            raise NotProven(f"`{text}` may have side effects")

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
        given = all_names(self._node.target)
        return {
            name for name in self._stored if name in before or (name not in given and reads_before_writing(body, name))
        }

    def _roots(self, node: ast.expr) -> set[str]:
        """Names whose memory the value of `node` may share."""
        if isinstance(node, ast.Name):
            return {node.id}
        # Both sides of a sum may be lists.
        binary = isinstance(node, ast.BinOp)
        parts = children(node) if binary else aliasing.shared_parts(node, lambda call: _effect(self._site, call))
        return {name for part in parts if isinstance(part, ast.expr) for name in self._roots(part)}


_IN_PLACE = torch_api.name_set("fill zero copy add sub mul masked_fill index_fill index_copy index_add index_put")


def _effect(site: Site, call: ast.Call) -> aliasing.Effect:
    """What a call does; a method is taken for that of a tensor, since tensors and numbers are all that is handed in."""
    qualified = site.resolve(call.func)
    if qualified is None and isinstance(call.func, ast.Attribute):
        if call.func.attr in aliasing.CONTAINER_METHODS and site.value(call.func.value).kind is not Kind.TENSOR:
            return aliasing.unknown(call, call.func.value)  # `seen.add(x)`, `rows.sort()`
        return aliasing.of_operator(call.func.attr, call, call.func.value)
    return effect_of(site.evaluator, call, site.place.env)


def _is_harmless(site: Site, qualified: str | None) -> bool:
    facts = site.evaluator.scope.index.function(qualified) if qualified is not None else None
    return (qualified or "").removeprefix("builtins.").endswith("Error") or (facts is not None and facts.computes)


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements inside it."""
    stack = [part for part in children(statement) if not isinstance(part, ast.stmt)]
    while stack:
        part = stack.pop()
        yield part
        stack += [each for each in children(part) if not isinstance(each, ast.stmt)]
