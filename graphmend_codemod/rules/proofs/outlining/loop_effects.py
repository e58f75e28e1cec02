"""What a loop does besides filling some tensors: nothing, or the reason why it cannot be an operator."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend_codemod.analysis import aliasing, speculation, torch_api
from graphmend_codemod.analysis.effects import effect_of
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.scope import children, walk_scope
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.name_origins import NameOrigins


class LoopEffects(NameOrigins):
    """The effects of a loop that may change the tensors `filled` and nothing else."""

    def __init__(self, site: Site, node: ast.For, filled: frozenset[str]) -> None:
        super().__init__([node, *walk_scope(node)])
        self._site = site
        self._node = node
        self._filled = filled

    def check(self) -> None:
        """NotProven for the first effect that is none of those."""
        for statement in self.nodes:
            if not isinstance(statement, ast.stmt):
                continue
            site = self._site.reached(statement)
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                self._check_augmented(site, statement, statement.target)
            for part in _own_parts(statement):
                if isinstance(part, ast.Call):
                    self._check_call(site, part)
                elif isinstance(part, (ast.Subscript, ast.Attribute)) and not isinstance(part.ctx, ast.Load):
                    self._check_written(part, part.value)

    def _check_augmented(self, site: Site, statement: ast.AugAssign, target: ast.Name) -> None:
        if not site.value(target).is_python and self.outside([target.id]):
            raise NotProven(f"`{speculation.short(statement)}` may change `{target.id}` in place")

    def _check_written(self, part: ast.expr, owner: ast.expr) -> None:
        others = sorted(self.outside(self.roots(owner)) - self._filled)
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

    def is_kept(self, name: str) -> bool:
        """True for a name that has a value before the loop."""
        if name in self._site.place.env:
            return True
        return name not in all_names(self._node.target) and reads_before_writing(self._node.body, name)

    def parts(self, node: ast.expr) -> Iterable[ast.AST]:
        """Both operands of an operator, which may be lists; otherwise what the tables of `aliasing` say."""
        if isinstance(node, ast.BinOp):
            return children(node)
        return aliasing.shared_parts(node, lambda call: _effect(self._site, call))


_IN_PLACE = torch_api.name_set("fill zero copy add sub mul masked_fill index_fill index_copy index_add index_put")


def _effect(site: Site, call: ast.Call) -> aliasing.Effect:
    """What a call does; a method is taken for that of a tensor, since tensors and numbers are all that is handed in."""
    qualified = site.resolve(call.func)
    if qualified is None and isinstance(call.func, ast.Attribute):
        if call.func.attr in aliasing.CONTAINER_METHODS and site.value(call.func.value).kind is not ValueKind.TENSOR:
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
