"""Loops that fill tensors in place with what the data says, moved into a function that is one operator when compiled.

The function runs the loop's own text, so eager mode computes what it did. Moving is neutral where the loop reads names
that are certainly bound, binds none that anything else reads, and leaves through its own end. The operator is right
where it is told all that the loop changes: the filled tensors, made just before, so that nothing else refers to them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphmend_codemod.analysis import aliasing, speculation, torch_api
from graphmend_codemod.analysis.effects import effect_of
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.outline import Outline
from graphmend_codemod.analysis.patterns import all_names, root_of, stored_names
from graphmend_codemod.analysis.scope import SCOPES, children, own_parts, walk_scope
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.stored_windows import is_mended
from graphmend_codemod.rules.proofs.outlining.custom_op import (
    LEFT_TO_CALLERS,
    NAMING,
    Argument,
    call,
    decorator,
    definition_before,
    demand_movable,
    demand_own_names,
    fitting,
    head,
    moved,
)
from graphmend_codemod.rules.proofs.outlining.effects.name_origins import NameOrigins
from graphmend_codemod.rules.proofs.outlining.effects.settled_globals import demand_settled
from graphmend_codemod.rules.proofs.outlining.statements.loop_arguments import Arguments, made_before
from graphmend_codemod.rules.proofs.untraced import places as untraced
from graphmend_codemod.rules.proofs.untraced.calls import CALLS_IN_LOOPS
from graphmend_codemod.rules.proofs.untraced.evidence import holds_no_tensor
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced

_OTHER_WAYS = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.Global, ast.Nonlocal)
_OTHER_FORMS = (
    *SCOPES,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.ExceptHandler,
    ast.Match,
    ast.Import,
    ast.ImportFrom,
    ast.Delete,
    ast.NamedExpr,
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OF_SIZES = frozenset({"zeros", "ones", "empty"})
_COMMENT = "    # The loop depends on the data: torch.compile calls this function as one operator."


@dataclass(frozen=True)
class Filling:
    """A loop, the names of the tensors that it fills, and the first thing in it whose size the data says."""

    node: ast.For
    filled: tuple[str, ...]
    cause: Untraced


def writes_of_elements(outline: Outline) -> list[int]:
    """The lines of `x[...] = ...`, of which a loop that fills has one."""
    return [part.lineno for part in outline.subscripts if isinstance(part.ctx, ast.Store)]


def found(site: Site, node: ast.For) -> Filling | None:
    """The loop as one that fills tensors by sizes that the data says; None for others, and where it runs layers."""
    own = site.evaluator.scope.self_name
    stored = stored_names(walk_scope(node))
    filled: dict[str, None] = {}
    for part in walk_scope(node):
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            name = root_of(part)
            if name is None or name in stored or name == own or not site.evaluator.scope.is_local(name):
                continue
            if not holds_no_tensor(site, name):
                filled[name] = None
        if isinstance(part, ast.Call) and _may_be_layer(site, part.func):
            return None
    cause = _cause(site, node) if filled else None
    return Filling(node, tuple(sorted(filled)), cause) if cause is not None else None


def _may_be_layer(site: Site, function: ast.expr) -> bool:
    """True for `self.method`, `self.layers[i]`, and a name that holds what is called."""
    scope = site.evaluator.scope
    if isinstance(function, ast.Name):
        return scope.is_local(function.id)
    return scope.self_name is not None and root_of(function) == scope.self_name


def _cause(site: Site, node: ast.For) -> Untraced | None:
    statements = [part for part in walk_scope(node) if isinstance(part, ast.stmt)]
    for statement in sorted(statements, key=lambda part: (part.lineno, part.col_offset)):
        inner = site.at(statement)
        if inner is None:
            continue
        for suspect in untraced.suspects(site).of(statement):
            each = untraced.break_among(inner, suspect, CALLS_IN_LOOPS)
            if each is not None and not is_mended(inner, statement, suspect):
                return each
    return None


def edit(site: Site, filling: Filling) -> Edit:
    """The loop as a call of a new function that holds it; NotProven if that could be told from the loop."""
    node = filling.node
    _check_forms(site, node, filling.filled)
    for name in filling.filled:
        made_before(site, name)
    LoopEffects(site, node, frozenset(filling.filled)).check()
    arguments = Arguments(site, node, filling.filled).found()
    name = f"_fill_{'_and_'.join(filling.filled)}"
    operator = f"{name}_operator"
    owner = site.evaluator.scope.self_name
    own = [owner] if owner is not None and any(each.attribute for each in arguments) else []
    given = [*own, *(each.given for each in arguments if not each.attribute)]
    replacement = Replacement(site.span(node), (site.call(f"{name}(", given),))
    after = definition_before(site)
    helpers = (
        NAMING,
        *LEFT_TO_CALLERS,
        Helper(name, _function(site, filling, arguments, name, operator), after=after),
        Helper(operator, _operator(site, filling, arguments, name, operator), after=(*after, name, "_operator_name")),
    )
    return Edit((replacement,), imports=site.imports, helpers=helpers)


def _check_forms(site: Site, node: ast.For, filled: Sequence[str]) -> None:
    if not site.torch_at_import:
        raise NotProven(f"`{site.torch}` may not be bound when the module is imported")
    if node.orelse:
        raise NotProven("the loop has an `else`")
    stored = stored_names(walk_scope(node))
    demand_movable(walk_scope(node), _OTHER_WAYS, _OTHER_FORMS, frozenset())
    own = next((part for part in walk_scope(node) if isinstance(part, _COMPREHENSIONS)), None)
    if own is not None:
        raise NotProven(f"`{speculation.short(own)}` binds names of its own")
    later = next((name for name in sorted(stored) if site.live_after(name)), None)
    if later is not None:
        raise NotProven(f"`{later}` is used after the loop; manually compute it anew there")
    demand_own_names(site, stored, {*stored, *filled})


def _function(site: Site, filling: Filling, arguments: list[Argument], name: str, operator: str) -> str:
    conditions = [condition for each in arguments for condition in each.conditions]
    filled = [f"`{each}`" for each in filling.filled]
    together = " and ".join(filled) if len(filled) < 3 else f"{', '.join(filled[:-1])} and {filled[-1]}"
    about = f"Fill {together} in place: how far, and with what, depends on the data."
    shapes = _wrapped(site, " ".join(_shapes(site, filling)))
    documented = [f'    """{about}"""'] if not shapes else [f'    """{about}', "", *shapes, '    """']
    return "\n".join(
        [
            head(site, name, _of_function(site, arguments), "None"),
            *documented,
            _COMMENT,
            fitting(site, name, conditions),
            call(site, operator, [each.given for each in arguments], 2),
            "        return",
            moved(site, [filling.node]),
        ]
    )


def _wrapped(site: Site, text: str) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= site.line_limit:
            lines[-1] += f" {word}"
        else:
            lines.append(f"    {word}")
    return lines


def _shapes(site: Site, filling: Filling) -> Iterator[str]:
    """`x` is (rows, columns), as far as the call that made it says."""
    for name in filling.filled:
        made = made_before(site, name)
        given = [*made.args[:1], *(word.value for word in made.keywords if word.arg == "size")]
        sizes = given[0].elts if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)) else []
        if len(made.args) > 1 and torch_api.torch_function(site.resolve(made.func)) in _OF_SIZES:
            sizes = made.args
        if sizes:
            yield f"`{name}` is ({', '.join(map(site.text, sizes))})."


def _operator(site: Site, filling: Filling, arguments: list[Argument], name: str, operator: str) -> str:
    marks = iter("abcdefghij")
    attributes = [each for each in arguments if each.attribute]
    own = [site.evaluator.scope.self_name or ""] if attributes else []
    stand_in = [f"    {own[0]} = {site.torch}.nn.Module()"] if own else []
    stand_in += [f"    {own[0]}.{each.attribute} = {each.name}" for each in attributes]
    described = [
        f"Tensor({next(marks)}!) {each.name}" if each.name in filling.filled else each.described for each in arguments
    ]
    return "\n".join(
        [
            *decorator(site, operator, f"({', '.join(described)}) -> ()", filling.filled),
            head(site, operator, arguments, "None"),
            f'    """`{name}` as one operator for torch.compile."""',
            *stand_in,
            call(site, name, [*own, *(each.name for each in arguments if not each.attribute)], 1),
        ]
    )


def _of_function(site: Site, arguments: list[Argument]) -> list[Argument]:
    """What the function takes that holds the loop: the instance in the place of its attributes."""
    plain = [each for each in arguments if not each.attribute]
    return plain if len(plain) == len(arguments) else [Argument(site.evaluator.scope.self_name or "", "", ""), *plain]


# What a loop does besides filling some tensors: nothing, or the reason why it cannot be an operator


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
            for part in own_parts(statement):
                root = root_of(part) if isinstance(part, (ast.Name, ast.Attribute)) else None
                if root is not None and not site.evaluator.scope.is_local(root):
                    demand_settled(site, part)
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
