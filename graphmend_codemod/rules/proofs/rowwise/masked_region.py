"""Consecutive statements that take the rows a mask chooses, work on them, and put them back where it holds.

Written for all rows: in the place of each row that the mask does not choose stands one that it does. So nothing is
computed of values that eager mode does not compute with: no nan comes up, and a check of all rows says what it says of
the chosen ones. No gradient flows into what stands in, since where the mask does not hold, nothing is written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import NamedTuple, TypeVar

from graphmend_codemod.analysis import aliasing, torch_api
from graphmend_codemod.analysis.patterns import elements_of
from graphmend_codemod.analysis.scope import dotted, of_kind, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.core.findings import CompilePath, Edit, Original, Replacement
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls
from graphmend_codemod.rules.proofs.masks.devices import on_one_device
from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write
from graphmend_codemod.rules.proofs.rowwise.chosen_zeros import zero_is_chosen
from graphmend_codemod.rules.proofs.rowwise.masked_losses import REDUCTIONS, MaskedLosses
from graphmend_codemod.rules.proofs.rowwise.plain_writes import compares_itself, plain_write
from graphmend_codemod.rules.proofs.rowwise.row_helpers import helpers_in
from graphmend_codemod.rules.proofs.rowwise.row_values import ELEMENTWISE, OTHER, Held, NotRowwise, What, elementwise
from graphmend_codemod.rules.proofs.rowwise.selectors import (
    gives_bool,
    is_expression,
    is_viewed,
    of_same_shape,
    viewed_name,
)
from graphmend_codemod.rules.proofs.untraced.evidence import is_array

T = TypeVar("T")
_MOST_TRIED = 4
COMMENT = "# All rows, of which the mask keeps its own: how many it chooses depends on the data."


class NotWritten(NotRowwise):
    """What the mask selects is not written back under it."""


class Region(NamedTuple):
    """Statements that can be written for all rows, and the edit that does so."""

    statements: tuple[ast.stmt, ...]
    edit: Edit


def region_at(site: Site, statements: Sequence[ast.stmt], mask: ast.expr) -> Region:
    """The shortest region that begins with the first statement; NotRowwise with the reason if there is none."""
    from graphmend_codemod.rules.proofs.rowwise.ignored_labels import LabelsIgnored  # it needs this module

    kinds = (Rewriter, LabelsIgnored)

    def region(kind: type[Rewriter], ranks: dict[str, int], bare: dict[str, None]) -> Region:
        return kind(site, mask, ranks, bare).region(statements)

    return tried(*(partial(region, kind) for kind in kinds))


def tried(*ways: Callable[[dict[str, int], dict[str, None]], T]) -> T:
    """What the first of these ways gives; NotRowwise with the reason of the first if none does.

    How many dimensions a row of a tensor has is tried out.
    """
    bare: dict[str, None] = {}
    try:
        return ways[0]({}, bare)
    except NotRowwise as why:
        first = why.anew()
    for way in ways:
        for ranks in product((1, 2), repeat=min(len(bare), _MOST_TRIED)):
            with suppress(NotRowwise):
                return way(dict(zip(bare, ranks, strict=False)), {})
    raise first.anew()


class Rewriter(MaskedLosses):
    """Follows the statements of a region and writes them anew."""

    def region(self, statements: Sequence[ast.stmt]) -> Region:
        """As many of the statements as need to be written anew."""
        for count, statement in enumerate(statements, 1):
            self.statement(statement)
            site = self.site.at(statement)
            live = [name for name, held in self.env.items() if self.enter([held])]
            if site is not None and not any(map(site.live_after, live)):
                if not self.reads or not (self.written or self.single):
                    break
                self.plain = plain_write(self, statement) if count == 1 else []
                return Region(tuple(statements[:count]), self.edit(statements[:count]))
            if is_expression(self.mask) and not _only_computes(self.site, statement):
                raise NotRowwise(f"`{short(statement)}` may change what `{self.choice}` is computed from")
        raise NotWritten(f"what `{self.choice}` selects is not written back under it")

    # statements

    def statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.Return) and node.value is not None and not self.enter([self.value(node.value)]):
            self.emit_value("return ", node.value)
            return False
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Assert)):
            raise NotRowwise(f"`{short(node)}` comes before what is selected is written back")
        bound = [part.id for part in of_kind(walk_in_layers(node), ast.Name) if part.ctx.__class__ is ast.Store]
        if not self.own.isdisjoint(bound):
            raise NotRowwise(f"`{self.choice}` is bound again before what it selects is written back")
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assigned(node, node.targets[0])
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript) and self.chooses(node.target):
            self._added(node, node.target)
        else:
            super().statement(node)
            self._emit(self.text(node))
        return True

    def _assigned(self, node: ast.Assign, target: ast.expr) -> None:
        held = self.value(node.value)
        parts = elements_of(target)
        if any(map(self.element_of, parts)):
            self._put(target, self.as_number(held), self.text(node.value))
            return
        written = [each for each in parts if isinstance(each, ast.Subscript) and self.is_mask(each)]
        if not written or not self.enter([held]):
            if written and self.skips and held.what is not What.NUMBER:
                raise NotRowwise(f"`{short(node.value)}` may have more than one element")
            if self.enter([held]) or any(isinstance(each, ast.Name) for each in parts):
                self._bind_all(target, held, node)
            self.emit_value(f"{self.text(target)} = ", node.value)
            return
        if held.what is What.TUPLE and len(held.parts) == len(parts) and isinstance(target, ast.Tuple):
            names = [
                each.id if isinstance(each, ast.Name) else self.site.free_name(f"rows_{number}")
                for number, each in enumerate(parts, 1)
            ]
            self.emit_value(f"{', '.join(names)} = ", node.value)
            for each, name, part in zip(parts, names, held.parts, strict=True):
                if isinstance(each, ast.Name):
                    self.env[each.id] = part
                else:
                    self._write(each, part, name)
        elif parts == [target]:
            self._write(target, held, self.text(node.value))
        else:
            raise NotRowwise(f"`{short(node)}` is not a plain assignment")

    def _bind_all(self, target: ast.expr, held: Held, node: ast.stmt) -> None:
        if isinstance(target, ast.Tuple) and not self.enter([held]):
            for part in walk_in_layers(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    self.env[part.id] = OTHER
        else:
            self.bind(target, held, node)

    def _write(self, target: ast.expr, held: Held, text: str) -> None:
        if not isinstance(target, ast.Subscript) or not self.is_mask(target) or held.what is not What.ROWS:
            raise NotRowwise(f"`{short(target)}` gets something other than rows")
        name = self.tensor(target.value, held.rank)
        self.ask_mask_again(target)
        self.written[name] = None
        self._emit(self._call("_write_under(", [self.choice, name, text]))

    def _put(self, target: ast.expr, held: Held, text: str) -> None:
        """`x[mask, index] = ...`."""
        found = self.element_of(target)
        if found is None or not (held.what is What.NUMBER or (held.what is What.ROWS and held.rank == 1)):
            raise NotRowwise(f"`{short(target)}` gets something other than an element of each row")
        name, index = self.picked(target, found)
        self.written[name] = None
        self._emit(self._call("_put_under(", [self.choice, name, index, text]))

    def _added(self, node: ast.AugAssign, target: ast.Subscript) -> None:
        """`x[mask] += 1`, `x[mask] += weight`."""
        given, held = self.value(node.value), self.subscript(target)
        if isinstance(node.op, (ast.Add, ast.Sub)) and given == OTHER and not self.skips:
            given = self.one_row(node.value, held) or given
        held = elementwise([held, self.as_number(given)], short(node))
        sign = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[2:-2]
        tight = isinstance(node.value, (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant))
        value = self.text(node.value) if tight else f"({self.text(node.value)})"
        write = self._put if self.element_of(target) else self._write
        write(target, held, f"{self.changes[id(target)][1]} {sign} {value}")

    def _if(self, node: ast.If) -> bool:
        test = self.value(node.test)
        if self.enter([test]):
            raise NotRowwise(f"`{short(node.test)}` branches on the values of the selected rows")
        before, ends = dict(self.env), []
        for header, body in ((f"if {self.text(node.test)}:", node.body), ("else:", node.orelse)):
            self.env = dict(before)
            if body:
                self._emit(header)
                self.level += 1
                for each in body:
                    self.statement(each)
                self.level -= 1
            ends.append(self.env)
        for name in ends[0].keys() | ends[1].keys():
            first, second = ends[0].get(name, OTHER), ends[1].get(name, OTHER)
            if first != second and self.enter([first, second]):
                raise NotRowwise(f"`{name}` holds selected rows in one branch alone")
            self.env[name] = first if first == second else OTHER
        return True

    # text

    def _emit(self, text: str) -> None:
        self.lines += ["    " * self.level + line for line in text.split("\n")]

    def emit_value(self, before: str, value: ast.expr) -> None:
        """Add a statement on several lines where one would be too long."""
        if id(value) in self.called:
            function, texts = self.called[id(value)]
            self._emit(self._call(f"{before}{function}(", texts))
            return
        if not isinstance(value, ast.Call) or id(value) in self.changes or not (value.args or value.keywords):
            text = f"{before}{self.text(value)}"
            long = "\n" not in text and self.site.is_too_long(self.site.indentation(1 + self.level) + len(text))
            if long:
                margin = "\n" + "    " * (1 + self.level)
                whole = self.site.broken(self.text(value), 1 + self.level).replace(margin, "\n")
                broken = self.site.broken(self.text(value), 2 + self.level, bare=True).replace(margin, "\n")
                text = f"{before}{whole}" if whole.startswith("(\n") else f"{before}(\n    {broken}\n)"
            self._emit(text)
            return
        words = [
            f"{word.arg}={self.text(word.value)}" if word.arg else f"**{self.text(word.value)}"
            for word in value.keywords
        ]
        given = [*map(self.text, value.args), *words]
        self._emit(self._call(f"{before}{self.text(value.func)}(", given))

    def _call(self, before: str, arguments: list[str]) -> str:
        """A call from the first column on, broken where it would be too long where it will stand."""
        margin = "\n" + "    " * (1 + self.level)
        return self.site.call(before, arguments, deeper=1 + self.level).replace(margin, "\n")

    def demand_mask_stays(self, statements: Sequence[ast.stmt]) -> None:
        """NotRowwise where a statement may write into the mask, which the last of them asks once more."""
        parts = (part for part in walk_in_layers(self.mask) if isinstance(part, (ast.Name, ast.Attribute)))
        names = {text for part in parts if (text := dotted(part)) is not None} - {"self"}
        try:
            if len(statements) > 1:
                demand_no_write(self.site, statements[0], names, set(), statements[:-1])
        except NotProven as why:
            raise NotRowwise(str(why)) from why

    def edit(self, statements: Sequence[ast.stmt]) -> Edit:
        """The statements with what was written for them in front."""
        self.demand_mask_stays(statements)
        site, body = self.site, self.path("if")
        whole = site.span(statements[0]).through(site.span(statements[-1]))
        parts = (body + "\nelse:\n    ", Original(whole, 1))
        return Edit((Replacement(whole, parts),), imports=site.imports, helpers=helpers_in(site, body), repeats=True)

    def path(self, word: str, asked: Sequence[str] = ()) -> CompilePath:
        """The compile path with its header, which asks for `asked` first."""
        site = self.site
        both = [each for each in self.numbers if each in {self.choice, *self.tensors}]
        if both:
            raise NotRowwise(f"`{both[0]}` stands beside selected rows without being selected")
        ranged = zero_is_chosen(self) if self.ranged else []
        self._demand_floating([*ranged, *self.conditions])
        facts = [*self._facts(), *ranged, *self.conditions, *self._certain()]
        return under(site.header(word, [site.compiling, *asked, *facts]), COMMENT, *(self.plain or self.lines))

    def _demand_floating(self, asked: Sequence[str]) -> None:
        for text, (node, _) in self.tensors.items():
            known = self.site.value(node)
            integers = known.is_tensor and (known.dtype or "").startswith("torch.")
            if integers and not known.is_floating and f"{text}.is_floating_point()" in asked:
                raise NotRowwise(f"`{text}` holds integers, for which the zeros that stand in without rows may not do")

    def _certain(self) -> list[str]:
        certain = CertainCalls(self.site, self.calls)
        try:
            certain.demand_names(certain.start())
            certain.follow_all(certain.start(), [self.caller], self.links)
        except NotProven as why:
            raise NotRowwise(str(why)) from why
        return certain.conditions()

    def _facts(self) -> list[str]:
        """That the mask is one, that shapes fit it, and that numbers are numbers."""
        site, node = self.site, self.mask
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            node = node.operand  # of the same shape, and bool where this one is
        asked, node = node, of_same_shape(node)
        text, mask = site.text(node), site.operand(node)
        array = next((name for name in (text, *self.tensors) if name.isidentifier() and is_array(site, name)), None)
        if array is not None:
            raise NotRowwise(f"`{array}` is an array of NumPy, not a tensor")
        value, tensor = site.value(node), f"isinstance({{}}, {site.torch}.Tensor)"
        named = viewed_name(node)
        ordered = isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDERS)
        if isinstance(node, ast.Compare) and ordered and site.text(node.left) in self.tensors:
            named = node.left  # a tensor that is larger than something, or not, gives a tensor
        facts = [tensor.format(site.text(named))] if not value.is_tensor or value.hint else []
        known = site.value(asked)
        if not gives_bool(asked) and (known.dtype != BOOL or known.hint):
            facts.append(f"{site.operand(asked)}.dtype == {site.torch}.bool")
        facts += [] if self.plain else [f"{mask}.dim() > 0", f"{mask}.numel() > 0"]
        facts += self._shapes(f"isinstance({{}}, {site.torch}.Tensor)", mask)
        if self.tensors:
            facts += on_one_device(site, self.mask, next(iter(self.tensors.values()))[0])
        facts += self._all(f"{{}}.dtype != {site.torch}.float16", list(self.tensors)) if self.fused else []
        facts += [f"0 not in {name}.stride()" for name in self.written if not site.sole_owner(name)]
        return facts + self._all("isinstance({}, (int, float, str))", list(self.numbers))

    def _shapes(self, tensor: str, mask: str) -> list[str]:
        """That each tensor has a row for each element of the mask, of as many dimensions as was taken for granted."""
        facts, ranks = [], {rank for _, rank in self.tensors.values()}
        known = {text: self.site.value(node) for text, (node, _) in self.tensors.items()}
        if len(ranks) == 1 and not self.looked:
            first, *others = self.tensors
            node = self.tensors[first][0]
            base = self.site.text(viewed_name(node))
            facts = [] if known[first].is_tensor and not known[first].hint else [tensor.format(base)]
            whole = f"{first}.shape" if self.plain and compares_itself(self, node) else f"{first}.shape[: {mask}.dim()]"
            facts += [f"{whole} == {mask}.shape"] if first != mask else []
            groups = [(f"{{}}.shape == {first}.shape", others)]
        else:
            groups = [
                (
                    f"{{}}.shape{'' if rank == 1 else f'[:-{rank - 1}]'} == {mask}.shape",
                    [text for text, (_, each) in self.tensors.items() if each == rank],
                )
                for rank in sorted(ranks)
            ]
        for shape, names in groups:
            for each in [each for each in names if is_viewed(self.tensors[each][0])]:
                names.remove(each)
                facts += [tensor.format(self.site.text(viewed_name(self.tensors[each][0]))), shape.format(each)]
            sure = all(known[each].is_tensor and not known[each].hint for each in names)
            facts += self._all(shape if sure else f"{tensor} and {shape}", names)
        return facts

    def _all(self, question: str, names: Sequence[str]) -> list[str]:
        """One condition for each name, or one for all of them, broken where it would be too long."""
        if len(names) < 3:
            return [part for each in names for part in question.format(*[each] * 3).split(" and ")]
        inside, over = question.format(*["each"] * 3), f"for each in ({', '.join(names)})"
        if not self.site.is_too_long(self.site.indentation(1) + len(f"and all({inside} {over})")):
            return [f"all({inside} {over})"]
        if self.site.is_too_long(self.site.indentation(2) + len(over)):
            over = "for each in (" + "".join(f"\n            {each}," for each in names) + "\n        )"
        return [f"all(\n        {inside}\n        {over}\n    )"]


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _only_computes(site: Site, node: ast.stmt) -> bool:
    """True for `y = torch.log(x) * 2`, which changes no tensor."""
    if not isinstance(node, ast.Assign) or not all(isinstance(each, ast.Name) for each in node.targets):
        return False
    for part in walk_in_layers(node.value):
        if isinstance(part, ast.Call):
            function = torch_api.torch_function(site.resolve(part.func))
            name = function or (part.func.attr if isinstance(part.func, ast.Attribute) else "")
            known = name in ELEMENTWISE or name in REDUCTIONS
            if not known or aliasing.may_write(name, part, method=function is None):
                return False
    return True
