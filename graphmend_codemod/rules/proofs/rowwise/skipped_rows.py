"""A test whether a mask chooses a row, around work on the rows that it chooses.

Where it chooses none, the work writes nothing, so the compile path does not test. But then it computes with zeros that
stand in, where eager mode skips the work: it may neither raise, nor do anything but write under the mask, and add sums
and means of what is selected to tensors, for which 0 is added then.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import all_names, elements_of, is_name
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import before_if
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.masked_region import Rewriter, tried
from graphmend_codemod.rules.proofs.rowwise.row_helpers import helpers_in
from graphmend_codemod.rules.proofs.rowwise.row_values import Held, NotRowwise
from graphmend_codemod.rules.proofs.untraced.evidence import assigned


def without_test(site: Site, node: ast.If, mask: ast.expr, static: Sequence[ast.expr]) -> Edit:
    """The edit that works on all rows in front of the test; NotRowwise with the reason if there is none."""

    def attempt(ranks: dict[str, int], bare: dict[str, None]) -> Edit:
        return _SkippedRows(site, mask, ranks, bare).before(node, static)

    return tried(attempt)


def without_continue(site: Site, node: ast.If, mask: ast.expr, rest: Sequence[ast.stmt]) -> Edit:
    """The same for `if not mask.any(): continue` and what follows in the step; NotRowwise if there is none."""

    def attempt(ranks: dict[str, int], bare: dict[str, None]) -> Edit:
        return _SkippedRows(site, mask, ranks, bare).instead_of([node, *rest])

    return tried(attempt)


class _SkippedRows(Rewriter):
    """Follows the statements of the branch. `totals` are names of tensors to which it adds what it sums up."""

    skips = True

    def __init__(self, site: Site, mask: ast.expr, ranks: dict[str, int], bare: dict[str, None]) -> None:
        super().__init__(site, mask, ranks, bare)
        self._end = site
        self.totals: dict[str, None] = {}

    def before(self, node: ast.If, static: Sequence[ast.expr]) -> Edit:
        site = self.site
        self._follow(node.body)
        self.demand_mask_stays(node.body)
        path = self.path("elif" if site.is_elif(node) else "if", list(map(site.operand_of_and, static)))
        return before_if(site, node, (path,))._replace(helpers=helpers_in(site, path))

    def instead_of(self, statements: Sequence[ast.stmt]) -> Edit:
        """The edit in front of all the statements, of which the first leaves the others out."""
        self._follow(statements[1:])
        return self.edit(statements)

    def _follow(self, body: Sequence[ast.stmt]) -> None:
        self._end = self.site.at(body[-1]) or self.site
        self._demand_neutral(body)
        for each in body:
            self.statement(each)
        if not self.reads or not (self.written or self.totals):
            raise NotRowwise(f"what `{self.choice}` selects is not written back under it")
        if self.totals:
            self._demand_no_wider(body)
        torch = self.site.torch
        for name in self.totals:
            # Autocast computes in float32, and what is added may not have a wider dtype: eager mode adds it only where
            # there are rows.
            asked = [f"isinstance({name}, {torch}.Tensor)", f"{name}.dtype in ({torch}.float32, {torch}.float64)"]
            for text in self.tensors:
                asked.append(f"{torch}.promote_types({name}.dtype, {text}.dtype) == {name}.dtype")
                asked.append(f"{name}.device == {text}.device")
            self.conditions.update(dict.fromkeys(asked))

    def _demand_no_wider(self, body: Sequence[ast.stmt]) -> None:
        """NotRowwise for work whose dtype may be wider than that of the rows, or of float32."""
        for each in (*body, *self.entered):
            for part in ast.walk(each):
                if isinstance(part, ast.Call) and _may_widen(part):
                    raise NotRowwise(f"`{short(part)}` may change the dtype of what it is added to")

    def _demand_neutral(self, body: Sequence[ast.stmt]) -> None:
        """NotRowwise for a statement that does something where the mask chooses no row."""
        for each in body:
            if isinstance(each, ast.If):
                self._demand_neutral([*each.body, *each.orelse])
                continue
            targets: list[ast.expr] = [each.target] if isinstance(each, ast.AugAssign) else []
            targets += each.targets if isinstance(each, ast.Assign) else []
            parts = [part for target in targets for part in elements_of(target)]
            if not parts or not (all(map(self._is_neutral, parts)) or (added_to(each) and self.level == 0)):
                raise NotRowwise(f"`{short(each)}` does something where no row is selected")

    def _is_neutral(self, target: ast.expr) -> bool:
        """True for what is written under the mask, and for a name that only the branch reads."""
        if isinstance(target, ast.Name):
            return not self._end.live_after(target.id)
        return self.is_mask(target)

    # sums of what is selected, added to a tensor

    def statement(self, node: ast.stmt) -> bool:
        found = added_to(node)
        if found is None or self._is_neutral(found[0]):
            return super().statement(node)
        total, value = found
        if not self.enter([self.value(value)]) and not self._is_of_sums(value):
            raise NotRowwise(f"`{short(node)}` does something where no row is selected")
        if any(isinstance(each, ast.Constant) for each in assigned(self.site, total.id)):
            zero = f"{self.site.torch}.zeros((), device=...)"
            raise NotRowwise(f"`{total.id}` begins as a Python number, and stays one without rows; begin with `{zero}`")
        self.totals[total.id] = None
        sign = "-" if isinstance(_operator(node), ast.Sub) else "+"
        middle = f"{sign}= " if isinstance(node, ast.AugAssign) else f"= {total.id} {sign} "
        before = f"{total.id} {middle}{self.site.torch}.where("
        self._emit(self._call(before, [f"{self.chooser}.any()", self.text(value), "0"]))
        return True

    def _is_of_sums(self, node: ast.expr) -> bool:
        """True for a sum over the rows, times and divided by numbers: 0 without rows, with a gradient of 0."""
        if id(node) in self.single:
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return self._is_of_sums(node.operand)
        if not isinstance(node, ast.BinOp):
            return False
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return self._is_of_sums(node.left) and self._is_of_sums(node.right)
        if isinstance(node.op, ast.Mult) and self._is_of_sums(node.right):
            return self._is_number(node.left)
        return isinstance(node.op, (ast.Mult, ast.Div)) and self._is_of_sums(node.left) and self._is_number(node.right)

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return type(node.value) in {int, float}
        if dotted(node) is None:
            return False
        self.numbers[self.text(node)] = None
        return not self.enter([self.value(node)])

    def reducer(self, kind: str) -> str:
        """The mean of no rows is not a number, and neither is its gradient: here it is 0."""
        return "_mean_of_some" if kind == "mean" else super().reducer(kind)

    def of_classes(
        self, node: ast.Call, function: str, texts: list[str], given: list[Held], ignored: str
    ) -> Held | None:
        """The sum alone: the mean over no labels is not a number."""
        if not any(each.startswith("reduction=") for each in texts):
            raise NotRowwise(f"`{short(node)}` is not a number where no row is selected")
        return super().of_classes(node, function, texts, given, ignored)


_WIDENS = torch_api.name_set("double to type type_as complex cdouble cfloat polar view_as_complex promote_types")
_NARROW = frozenset({"float", "float32", "half", "float16", "bfloat16"})


def _may_widen(call: ast.Call) -> bool:
    """True for `x.double()`, `x.to(y)` and `x.sum(dtype=d)`, but for a dtype that is no wider than float32."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    words = [word.value for word in call.keywords if word.arg == "dtype"]
    given = [*call.args, *words] if name in {"to", "type"} else words
    plain = len(given) == 1 and isinstance(given[0], ast.Attribute) and given[0].attr in _NARROW
    return (name in _WIDENS or bool(words)) and not plain


def added_to(node: ast.stmt) -> tuple[ast.Name, ast.expr] | None:
    """`t` and `x` for `t = t + x`, `t = x + t`, `t = t - x`, `t += x` and `t -= x`."""
    operator = _operator(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return (node.target, node.value) if isinstance(operator, (ast.Add, ast.Sub)) else None
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.BinOp):
        return None
    (target,), value = node.targets, node.value
    if not isinstance(target, ast.Name) or not isinstance(operator, (ast.Add, ast.Sub)):
        return None
    if is_name(value.left, target.id) and target.id not in all_names(value.right):
        return target, value.right
    swapped = isinstance(operator, ast.Add) and is_name(value.right, target.id)
    return (target, value.left) if swapped and target.id not in all_names(value.left) else None


def _operator(node: ast.stmt) -> ast.operator | None:
    if isinstance(node, ast.AugAssign):
        return node.op
    return node.value.op if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) else None
