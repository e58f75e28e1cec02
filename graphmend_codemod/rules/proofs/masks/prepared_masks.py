"""Masks that stay in another form where they mask anything: `mask = prepare(mask, x.dtype)`, else None.

A mask of ones becomes zeros that are added to scores. What prepares it is known by name, where transformers has it, or
read: the statements of a function of this module, or the expression itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, tree_of
from graphmend_codemod.analysis.patterns import (
    all_given,
    elements_of,
    is_attribute,
    is_name,
    is_not,
    stores_name,
    without_minus,
)
from graphmend_codemod.analysis.scope import dotted, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import before_if, under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.masks.all_ones_test import of_dtype
from graphmend_codemod.rules.proofs.masks.mask_sums import ADDING, CHOICE, Sums
from graphmend_codemod.rules.proofs.masks.mask_uses import MaskUses

_MASKS = "transformers.modeling_attn_mask_utils"
_MAKE_ZEROS = frozenset({f"{_MASKS}._prepare_4d_attention_mask", f"{_MASKS}._prepare_4d_attention_mask_for_sdpa"})
_LARGE = 3e38
_COMMENT = "# Prepared, a mask of ones adds zeros, which is what None does: nothing has to be read back."
_CASTS = frozenset({"to", "type", "type_as", "float", "half", "bfloat16", "double"})
_LAYOUT = frozenset("expand expand_as repeat view reshape unsqueeze squeeze contiguous clone transpose".split())


class _Elements(Enum):
    """What every element of a tensor is. Only the first two are known to be bool."""

    TRUE = "true"
    FALSE = "false"
    ONE = "one"
    ZERO = "zero"


_ONES, _ZEROS = (_Elements.TRUE, _Elements.ONE), (_Elements.FALSE, _Elements.ZERO)
_OPPOSITE = {_Elements.TRUE: _Elements.FALSE, _Elements.FALSE: _Elements.TRUE}


@dataclass(frozen=True)
class PreparedForm:
    """`value` is what the mask becomes where it masks anything and `conditions` hold; elsewhere it stays as it is."""

    value: ast.expr
    conditions: tuple[tuple[ast.expr, bool], ...]


def forms_of(
    block: list[ast.stmt], name: str, mask: str, under: tuple[tuple[ast.expr, bool], ...] = ()
) -> list[PreparedForm]:
    """The forms, other than its own, in which a block leaves the mask; NotProven where it does anything else."""
    if not block:
        return [] if name == mask else [PreparedForm(ast.Name(name, ast.Load()), under)]
    statement = block[0]
    if len(block) == 1 and isinstance(statement, ast.If):
        taken = forms_of(statement.body, name, mask, (*under, (statement.test, True)))
        return taken + forms_of(statement.orelse, name, mask, (*under, (statement.test, False)))
    if len(block) > 1 or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise NotProven("a branch does more than reshape the mask or change its dtype")
    if not is_name(statement.targets[0], name):
        raise NotProven("a branch does more than reshape the mask or change its dtype")
    value = statement.value
    pairs = [(value, under)]
    if isinstance(value, ast.IfExp):
        pairs = [(value.body, (*under, (value.test, True))), (value.orelse, (*under, (value.test, False)))]
    return [PreparedForm(each, conditions) for each, conditions in pairs if not is_name(each, mask)]


@dataclass
class PreparedMask:
    """A mask, the name that gets it or None, and the dtypes in which `mask == 1` says what it should."""

    site: Site
    calls: ModuleCalls
    function: Definition
    name: str
    mask: str
    dtypes: tuple[str, ...]
    _conditions: list[str] = field(default_factory=list)

    def edit(self, node: ast.If, own: ast.If, forms: list[PreparedForm]) -> Edit:
        """The edit that keeps the mask in its form under torch.compile; `own` is the statement in the module's tree.

        NotProven with the condition that fails.
        """
        if len(forms) > 1:
            raise NotProven(
                f"the branches that keep the mask give it different forms: `{short(forms[0].value)}`, "
                f"`{short(forms[1].value)}`"
            )
        form = forms[0]
        ones = _Elements.TRUE if self.dtypes == ("bool",) else _Elements.ONE
        if self._kind(form.value, {self.mask: ones}) is not _Elements.ZERO:
            raise NotProven(f"the branch that keeps the mask changes its form: `{self.name} = {short(form.value)}`")
        sums = Sums(self.site, self.calls)
        uses = MaskUses(self.site, self.calls, sums)
        uses.demand(self.function, self.name, own)
        beside = self._beside(uses, form)
        site = self.site
        conditions = [site.compiling, *self._static(form), *uses.conditions()]
        if sums.choosers:
            for owner, later in sums.choosers.items():
                self._demand_same_configuration(owner, later=later)
            kinds = ", ".join(f'"{each}"' for each in ADDING)
            conditions.append(f"{CHOICE} in ({kinds})")
        conditions.append(of_dtype(site, self.mask, self.dtypes))
        conditions.append(f"{self.mask}.shape == {beside}.shape[:2]")
        # Eager mode prepares no mask of ones, whose dtype may have no limits.
        conditions.append(f"{beside}.is_floating_point()")
        header = site.header("elif" if site.is_elif(node) else "if", conditions)
        return before_if(site, node, (under(header, _COMMENT, f"{self.name} = {site.text(form.value)}"),))

    def _static(self, form: PreparedForm) -> Iterator[str]:
        """The conditions of a form, which Dynamo has to know while it traces."""
        for test, wanted in form.conditions:
            if not self._is_static(test):
                raise NotProven(f"`{short(test)}` may not be constant while tracing")
            if wanted:
                yield self.site.operand_of_and(test)
            elif is_not(test):
                yield self.site.operand_of_and(test.operand)
            else:
                yield f"not {self.site.operand(test)}"

    def _is_static(self, node: ast.expr) -> bool:
        """True for attributes of `self`, constants, and what they are compared with: Dynamo knows them."""
        if isinstance(node, ast.BoolOp):
            return all(map(self._is_static, node.values))
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not) and self._is_static(node.operand)
        if isinstance(node, ast.Compare):
            return all(map(self._is_static, [node.left, *node.comparators]))
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(map(self._is_static, node.elts))
        if isinstance(node, ast.Attribute):
            return (dotted(node) or "").startswith("self.") or self.site.value(node).is_python
        return isinstance(node, ast.Constant) or self.site.value(node).is_python

    def _beside(self, uses: MaskUses, form: PreparedForm) -> str:
        """The tensor that goes along with the mask into all calls, and whose dtype the prepared mask gets."""
        named = [
            part.value.id
            for part in walk_in_layers(form.value)
            if isinstance(part, ast.Attribute) and part.attr == "dtype" and isinstance(part.value, ast.Name)
        ]
        calls = [call for by, call in uses.companions if by is self.function]
        for name in named:
            given = [all_given(call) for call in calls]
            if name != self.mask and calls and all(any(is_name(each, name) for each in every) for every in given):
                return name
        raise NotProven(
            "cannot infer the size of the tensor it is added to; the sizes may differ when the mask is None"
        )

    # what the form is made of

    def _kind(self, node: ast.expr, known: dict[str, _Elements]) -> _Elements | None:
        """What all elements of a value are, if the mask is all ones."""
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Subscript):
            return self._kind(node.value, known) if _is_plain_index(node.slice) else None
        if isinstance(node, ast.UnaryOp):
            kind = self._kind(node.operand, known)
            return _OPPOSITE.get(kind) if isinstance(node.op, ast.Invert) and kind is not None else None
        if isinstance(node, ast.BinOp):
            return self._kind_of_operation(node, known)
        return self._kind_of_call(node, known) if isinstance(node, ast.Call) else None

    def _kind_of_operation(self, node: ast.BinOp, known: dict[str, _Elements]) -> _Elements | None:
        left, right = self._kind(node.left, known), self._kind(node.right, known)
        number = node.left.value if isinstance(node.left, ast.Constant) else None
        # torch subtracts no bool
        if isinstance(node.op, ast.Sub) and number == 1 and right in (_Elements.ONE, _Elements.ZERO):
            return _Elements.ZERO if right is _Elements.ONE else _Elements.ONE
        if isinstance(node.op, ast.Mult):
            for kind, factor in ((left, node.right), (right, node.left)):
                if kind is _Elements.ZERO and self._is_finite(factor):
                    return _Elements.ZERO
        return None

    def _kind_of_call(self, node: ast.Call, known: dict[str, _Elements]) -> _Elements | None:
        function = node.func
        called = self.site.resolve_global(function)
        if called in _MAKE_ZEROS:
            plain = len(node.args) == 2 and not node.keywords and _is_about_sizes(node.args[1])
            return _Elements.ZERO if plain and self._kind(node.args[0], known) in _ONES else None
        callee = self.calls.callee(self.function, node) if isinstance(function, ast.Name) else None
        if callee is not None and not callee.owner:
            return self._kind_of_result(callee, node, known)
        if not isinstance(function, ast.Attribute) or (dotted(function) or "").partition(".")[0] == "torch":
            return None
        kind = self._kind(function.value, known)
        if function.attr == "masked_fill" and len(node.args) == 2 and not node.keywords:
            nothing = self._kind(node.args[0], known) is _Elements.FALSE
            return kind if nothing and (self._is_limit(node.args[1]) or _is_about_sizes(node.args[1])) else None
        if not all(map(_is_about_sizes, all_given(node))):
            return None
        if function.attr in _LAYOUT:
            return kind
        if function.attr == "bool" or (function.attr in _CASTS and self._is_bool(node)):
            return None if kind is None else _Elements.TRUE if kind in _ONES else _Elements.FALSE
        if function.attr in _CASTS and (node.args or function.attr in {"float", "half", "bfloat16", "double"}):
            return None if kind is None else _Elements.ONE if kind in _ONES else _Elements.ZERO
        return None

    def _is_bool(self, call: ast.Call) -> bool:
        given = all_given(call)
        return any(self.site.resolve_global(each) == "torch.bool" for each in given)

    def _is_finite(self, node: ast.expr) -> bool:
        """True for numbers, and for the smallest and the largest one of a dtype: zero times them is zero."""
        number = without_minus(node)
        if isinstance(number, ast.Constant):
            return isinstance(number.value, (int, float)) and abs(number.value) < _LARGE
        return self._is_limit(number)

    def _is_limit(self, node: ast.expr) -> bool:
        """True for `torch.finfo(x.dtype).min`."""
        limit = isinstance(node, ast.Attribute) and node.attr in {"min", "max"} and isinstance(node.value, ast.Call)
        finfo = limit and self.site.resolve_global(node.value.func) == "torch.finfo"  # type: ignore[attr-defined]
        return finfo and all(map(_is_about_sizes, node.value.args))  # type: ignore[attr-defined]

    def _kind_of_result(self, callee: Definition, call: ast.Call, known: dict[str, _Elements]) -> _Elements | None:
        """The same for what a function of the module returns; None unless it does nothing but compute it."""
        given = {name: self._kind(value, known) for name, value in callee.arguments(call).items()}
        inner = {name: kind for name, kind in given.items() if kind is not None}
        for statement in callee.node.body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            if isinstance(statement, ast.Return):
                return self._kind(statement.value, inner) if statement.value is not None else None
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                return None
            target = statement.targets[0]
            kind = self._kind(statement.value, inner)
            if kind is None and not _is_about_sizes(statement.value):
                return None
            for part in walk_in_layers(target):
                if isinstance(part, (ast.Attribute, ast.Subscript)):
                    return None
                if isinstance(part, ast.Name):
                    inner.pop(part.id, None)
            if isinstance(target, ast.Name) and kind is not None:
                inner[target.id] = kind
        return None

    # which attention it is

    def _demand_same_configuration(self, owner: str, *, later: bool) -> None:
        """NotProven unless the configuration of a class that the mask gets to is this one's, `later` as well."""
        home = self.function.owner
        reason = NotProven(f"the configuration of `{owner}` may differ from that of `{home}`")
        if not self._keeps_configuration(home):
            raise NotProven(f"cannot infer that `{home}` keeps its configuration in `self.config`")
        todo, seen = [owner], set()
        while todo:
            each = todo.pop()
            if each in seen or each == home:
                continue
            seen.add(each)
            makers = [(by, call) for by, call in self._constructions(each) if self._leads_home(by.owner, set())]
            if not makers or (each == owner and later and not self._keeps_configuration(each)):
                raise reason
            for by, call in makers:
                own, given = _configuration(by), call.args[0] if call.args else None
                made = self.calls.method(each, "__init__")
                if own is None or not is_name(given, own) or made is None:
                    raise reason
                if _configuration(self.calls.definitions[made]) is None:
                    raise reason
                todo.append(by.owner)

    def _leads_home(self, owner: str, seen: set[str]) -> bool:
        if owner == self.function.owner:
            return True
        if owner in seen or not owner:
            return False
        seen.add(owner)
        return any(self._leads_home(by.owner, seen) for by, _ in self._constructions(owner))

    def _constructions(self, owner: str) -> Iterator[tuple[Definition, ast.Call]]:
        for function in self.calls.definitions.values():
            for node in walk_scope(function.node):
                if isinstance(node, ast.Call) and is_name(node.func, owner):
                    yield function, node

    def _keeps_configuration(self, owner: str) -> bool:
        """True where the constructor says `self.config = config`, or leaves that to transformers' base class."""
        key = self.calls.method(owner, "__init__")
        constructor = self.calls.definitions[key] if key is not None else None
        name = _configuration(constructor) if constructor is not None else None
        if constructor is None or name is None:
            return False
        body = [each for each in constructor.node.body if _is_about(each, name)]
        own = any(isinstance(each, ast.Assign) and is_attribute(each.targets[0], "self", "config") for each in body)
        bases = [
            self.site.resolve_global(base) or ""
            for node in tree_of(self.site.source.text).body
            if isinstance(node, ast.ClassDef) and (node.name == owner or self.calls.is_heir(owner, node.name))
            for base in node.bases
        ]
        handed = any(isinstance(each, ast.Expr) and _calls_above(each.value) for each in body)
        above = handed and any(base.startswith("transformers.") and base.endswith(".PreTrainedModel") for base in bases)
        stores = sum(
            isinstance(part, ast.Attribute) and part.attr == "config" and not isinstance(part.ctx, ast.Load)
            for part in walk_scope(constructor.node)
        )
        return (own and stores == 1) or (above and stores == 0)


def _calls_above(node: ast.expr) -> bool:
    """True for `super().__init__(...)`."""
    called = node.func if isinstance(node, ast.Call) else None
    owner = called.value if isinstance(called, ast.Attribute) and called.attr == "__init__" else None
    return isinstance(owner, ast.Call) and is_name(owner.func, "super") and not owner.args


def _is_about(statement: ast.stmt, name: str) -> bool:
    """True for `x = name` and `f(name, ...)`."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
    given = value.args[0] if isinstance(value, ast.Call) and value.args else value
    return is_name(given, name)


def _configuration(constructor: Definition | None) -> str | None:
    """The name of the first parameter of a constructor, where nothing else is bound to it."""
    if constructor is None or not constructor.qualname.endswith(".__init__") or not constructor.parameters:
        return None
    name = constructor.parameters[0]
    rebound = any(stores_name(part, name) for part in walk_scope(constructor.node))
    return None if rebound else name


def _is_plain_index(node: ast.expr) -> bool:
    """True for slices, None and `...`, which choose no single element that may not be there."""
    parts = elements_of(node)
    return all(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...)) for part in parts
    )


def _is_about_sizes(node: ast.expr) -> bool:
    """True for sizes, and choices between them and what is given."""
    if isinstance(node, ast.IfExp):
        return all(map(_is_about_sizes, (node.test, node.body, node.orelse)))
    if isinstance(node, ast.Compare):
        return all(map(_is_about_sizes, [node.left, *node.comparators]))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in {"size", "dim"} and not node.keywords
    if isinstance(node, (ast.UnaryOp, ast.Subscript)):
        return _is_about_sizes(node.operand if isinstance(node, ast.UnaryOp) else node.value)
    if isinstance(node, ast.Attribute):
        return dotted(node) is not None
    return isinstance(node, (ast.Name, ast.Constant))
