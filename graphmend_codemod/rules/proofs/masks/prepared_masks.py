"""Masks that stay in another form where they mask anything: `mask = prepare(mask, x.dtype)`, else None.

A mask of ones becomes zeros that are added to scores: by functions of transformers that are known to do so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, tree_of
from graphmend_codemod.analysis.patterns import (
    all_given,
    is_attribute,
    is_name,
    is_not,
    stores_name,
)
from graphmend_codemod.analysis.scope import dotted, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import closure
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import before_if, under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.masks.all_ones_test import of_dtype
from graphmend_codemod.rules.proofs.masks.mask_sums import ADDING, CHOICE, Sums
from graphmend_codemod.rules.proofs.masks.mask_uses import MaskUses

_MASKS = "transformers.modeling_attn_mask_utils"
_MAKE_ZEROS = frozenset({f"{_MASKS}._prepare_4d_attention_mask", f"{_MASKS}._prepare_4d_attention_mask_for_sdpa"})
_COMMENT = "# Prepared, a mask of ones adds zeros, which is what None does: nothing has to be read back."


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
        if not self._makes_zeros(form.value):
            raise NotProven(f"the branch that keeps the mask changes its form: `{self.name} = {short(form.value)}`")
        sums = Sums(self.site, self.calls)
        uses = MaskUses(self.site, self.calls, sums)
        uses.demand(self.function, self.name, own)
        beside = self._beside(uses, form)
        site = self.site
        conditions = [site.compiling, *self._static(form), *uses.conditions()]
        if sums.choosers:
            for owner in sums.choosers:
                self._demand_same_configuration(owner)
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

    def _makes_zeros(self, node: ast.expr) -> bool:
        """True for `prepare(mask, x.dtype)`, whose elements are zeros where the mask is all ones."""
        if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
            return False
        plain = is_name(node.args[0], self.mask) and dotted(node.args[1]) is not None
        return plain and self.site.resolve_global(node.func) in _MAKE_ZEROS

    # which attention it is

    def _demand_same_configuration(self, owner: str) -> None:
        """NotProven unless the configuration of a class that the mask gets to is this one's."""
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
            makers = [(by, call) for by, call in self._constructions(each) if self._leads_home(by.owner)]
            if not makers or (each == owner and not self._keeps_configuration(each)):
                raise reason
            for by, call in makers:
                own, given = _configuration(by), call.args[0] if call.args else None
                made = self.calls.method(each, "__init__")
                if own is None or not is_name(given, own) or made is None:
                    raise reason
                if _configuration(self.calls.definitions[made]) is None:
                    raise reason
                todo.append(by.owner)

    def _leads_home(self, owner: str) -> bool:
        makers = closure([owner], lambda each: (by.owner for by, _ in self._constructions(each) if by.owner))
        return self.function.owner in makers

    def _constructions(self, owner: str) -> Iterator[tuple[Definition, ast.Call]]:
        return ((by, call) for by, call in self.calls.all_calls if is_name(call.func, owner))

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
