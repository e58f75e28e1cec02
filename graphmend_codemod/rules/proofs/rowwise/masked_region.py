"""Consecutive statements that take the rows a mask chooses, work on them, and put them back where it holds.

Written for all rows: in the place of each row that the mask does not choose stands one that it does. So nothing is
computed of values that eager mode does not compute with: no nan comes up, and a check of all rows says what it says of
the chosen ones. No gradient flows into what stands in, since where the mask does not hold, nothing is written.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.core.findings import Edit, Helper, Original, Replacement
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, MayDiffer
from graphmend_codemod.rules.proofs.cond.constant_floats import above
from graphmend_codemod.rules.proofs.rowwise.row_functions import RowFunctions
from graphmend_codemod.rules.proofs.rowwise.row_values import OTHER, Held, NotRowwise, What, elementwise, rows

COMMENT = "# All rows, of which the mask keeps its own: how many it chooses depends on the data."
_READ = '''
def _rows_under(mask, x):
    """The rows of `x`, with one that the mask chooses (else zeros) in the place of those that it does not."""
    x, mask = x.flatten(0, mask.dim() - 1), mask.flatten()
    one = x.index_select(0, mask.int().argmax(0, keepdim=True)).detach()
    mask = mask[(...,) + (None,) * (x.dim() - 1)]
    return torch.where(mask, x, torch.where(mask.any(), one, torch.zeros_like(one)))
'''
_WRITE = '''
def _write_under(mask, x, rows):
    """`x[mask] = ...` with the rows of which the mask chooses some."""
    chosen = mask[(...,) + (None,) * (x.dim() - mask.dim())]
    x.copy_(torch.where(chosen, rows.unflatten(0, mask.shape), x))
'''


def masked_by(node: ast.AST) -> ast.expr | None:
    """The name or attribute that chooses rows in `x[mask]`, `x[mask, :]`, if it is a mask."""
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    plain = all(isinstance(each, ast.Slice) and ast.unparse(each) == ":" for each in parts[1:])
    return parts[0] if parts and plain and isinstance(parts[0], (ast.Name, ast.Attribute)) else None


class NotWritten(NotRowwise):
    """What the mask selects is not written back under it."""


class Region(NamedTuple):
    """Statements that can be written for all rows, and the edit that does so."""

    statements: tuple[ast.stmt, ...]
    edit: Edit


def region_at(site: Site, statements: Sequence[ast.stmt], mask: ast.expr) -> Region:
    """The shortest region that begins with the first statement; NotRowwise with the reason if there is none."""
    reasons: list[NotRowwise] = []
    for rank in (1, 2):
        try:
            return _Rewriter(site, mask, rank).region(statements)
        except NotRowwise as why:
            reasons.append(why)
    raise reasons[0]


class _Rewriter(RowFunctions):
    """Follows the statements of a region and writes them anew; `rank` is that of `x[mask]`."""

    def __init__(self, site: Site, mask: ast.expr, rank: int) -> None:
        calls = calls_in(site.source.text)
        own = calls.at(site.evaluator.scope.node.lineno)
        if own is None:
            raise NotRowwise("it is in a function inside of a function")
        super().__init__(calls, own, site.resolve_global, {}, [])
        self.site, self.mask, self.rank = site, mask, rank
        self.tensors: dict[str, tuple[ast.expr, int]] = {}
        self.numbers: dict[str, None] = {}
        self.lines: list[str] = []
        self.level = 0
        self.changes: dict[int, tuple[ast.expr, str]] = {}
        self.written: dict[str, None] = {}
        self.reads = False

    def region(self, statements: Sequence[ast.stmt]) -> Region:
        """As many of the statements as need to be written anew."""
        for count, statement in enumerate(statements, 1):
            self.statement(statement)
            site = self.site.at(statement)
            live = [name for name, held in self.env.items() if self._enter([held])]
            if site is not None and not any(map(site.live_after, live)):
                if not self.reads or not self.written:
                    break
                return Region(tuple(statements[:count]), self._edit(statements[:count]))
        raise NotWritten(f"what `{self.site.text(self.mask)}` selects is not written back under it")

    # what stands outside

    def qualified(self, node: ast.expr) -> str | None:
        return self.site.resolve(node)

    def outside(self, node: ast.expr) -> Held:
        if super().outside(node).what is What.NUMBER:
            return super().outside(node)
        text = self.site.text(node)
        return OTHER if self.site.value(node).is_tensor else Held(What.OTHER, spelled=text)

    def as_number(self, held: Held) -> Held:
        if held.what is not What.OTHER or not (held.spelled or held.parts):
            return held
        if held.parts:
            elementwise(list(map(self.as_number, held.parts)), "a number")
        else:
            self.numbers[held.spelled] = None
        return Held(What.NUMBER, spelled=held.spelled)

    def _is_mask(self, node: ast.Subscript) -> bool:
        found = masked_by(node)
        return found is not None and ast.dump(found) == ast.dump(self.mask)

    def _tensor(self, node: ast.Subscript, rank: int) -> str:
        """The text of the tensor that the mask indexes, of which the compile path asks for the shape."""
        base = node.value
        name = dotted(base)
        if name is None or name.partition(".")[0] in self.env:
            raise NotRowwise(f"`{short(base)}` has no name before the statement; assign it to a variable first")
        text = self.site.text(base)
        if text == self.site.text(self.mask):
            raise NotRowwise(f"`{text}` indexes itself")
        if self.tensors.setdefault(text, (base, rank))[1] != rank:
            raise NotRowwise(f"cannot infer how many dimensions a row of `{text}` has")
        return text

    # statements

    def statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.If):
            return self._if(node)
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Assert)):
            raise NotRowwise(f"`{short(node)}` comes before what is selected is written back")
        bound = [
            part.id for part in walk_in_layers(node) if isinstance(part, ast.Name) and part.ctx.__class__ is ast.Store
        ]
        if self.site.text(self.mask).partition(".")[0] in bound:
            raise NotRowwise(f"`{self.site.text(self.mask)}` is bound again before what it selects is written back")
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assigned(node, node.targets[0])
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript) and self._is_mask(node.target):
            self._added(node, node.target)
        else:
            super().statement(node)
            self._emit(self._text(node))
        return True

    def _effect(self, node: ast.Expr) -> None:
        if self._enter([self.value(node.value)]):
            super()._effect(node)

    def _assigned(self, node: ast.Assign, target: ast.expr) -> None:
        held = self.value(node.value)
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        written = [each for each in parts if isinstance(each, ast.Subscript) and self._is_mask(each)]
        if not written or not self._enter([held]):
            if self._enter([held]) or any(isinstance(each, ast.Name) for each in parts):
                self._bind_all(target, held, node)
            self._emit_value(f"{self._text(target)} = ", node.value)
            return
        if held.what is What.TUPLE and len(held.parts) == len(parts) and isinstance(target, ast.Tuple):
            names = [
                each.id if isinstance(each, ast.Name) else self.site.free_name(f"rows_{number}")
                for number, each in enumerate(parts, 1)
            ]
            self._emit_value(f"{', '.join(names)} = ", node.value)
            for each, name, part in zip(parts, names, held.parts, strict=True):
                if isinstance(each, ast.Name):
                    self.env[each.id] = part
                else:
                    self._write(each, part, name)
        elif parts == [target]:
            self._write(target, held, self._text(node.value))
        else:
            raise NotRowwise(f"`{short(node)}` is not a plain assignment")

    def _bind_all(self, target: ast.expr, held: Held, node: ast.stmt) -> None:
        if isinstance(target, ast.Tuple) and not self._enter([held]):
            for part in walk_in_layers(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    self.env[part.id] = OTHER
        else:
            self.bind(target, held, node)

    def _write(self, target: ast.expr, held: Held, text: str) -> None:
        if not isinstance(target, ast.Subscript) or not self._is_mask(target) or held.what is not What.ROWS:
            raise NotRowwise(f"`{short(target)}` gets something other than rows")
        name = self._tensor(target, held.rank)
        self.written[name] = None
        self._emit(self._call("_write_under(", [self.site.text(self.mask), name, text]))

    def _added(self, node: ast.AugAssign, target: ast.Subscript) -> None:
        """`x[mask] += 1`."""
        given = self.value(node.value)
        held = elementwise([self._read(target), self.as_number(given)], short(node))
        sign = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[2:-2]
        tight = isinstance(node.value, (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant))
        value = self._text(node.value) if tight else f"({self._text(node.value)})"
        self._write(target, held, f"{self.changes[id(target)][1]} {sign} {value}")

    def _if(self, node: ast.If) -> bool:
        test = self.value(node.test)
        if self._enter([test]):
            raise NotRowwise(f"`{short(node.test)}` branches on the values of the selected rows")
        before, ends = dict(self.env), []
        for header, body in ((f"if {self._text(node.test)}:", node.body), ("else:", node.orelse)):
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
            if first != second and self._enter([first, second]):
                raise NotRowwise(f"`{name}` holds selected rows in one branch alone")
            self.env[name] = first if first == second else OTHER
        return True

    # expressions

    def subscript(self, node: ast.Subscript) -> Held:
        return self._read(node) if self._is_mask(node) else super().subscript(node)

    def _read(self, node: ast.Subscript) -> Held:
        more = len(node.slice.elts) - 1 if isinstance(node.slice, ast.Tuple) else 0
        rank = 1 + more if more else self.rank
        mask = self.site.text(self.mask)
        self.changes[id(node)] = (node, f"_rows_under({mask}, {self._tensor(node, rank)})")
        self.reads = True
        return rows(rank, boolean=self.site.value(node.value).dtype == BOOL)

    def followed(self, node: ast.Call, given: list[Held], words: dict[str, Held]) -> Held:
        root = (dotted(node.func) or "").partition(".")[0]
        if root in self.env or (self.site.evaluator.scope.is_local(root) and isinstance(node.func, ast.Name)):
            raise NotRowwise(f"cannot infer what `{short(node.func)}` calls")
        return super().followed(node, given, words)

    # text

    def _text(self, node: ast.AST) -> str:
        return self.site.but(written={**self.site.written, **self.changes}).text(node)

    def _emit(self, text: str) -> None:
        self.lines += ["    " * self.level + line for line in text.split("\n")]

    def _emit_value(self, before: str, value: ast.expr) -> None:
        """A statement on several lines where one would be too long."""
        if not isinstance(value, ast.Call):
            self._emit(before + self._text(value))
            return
        words = [
            f"{word.arg}={self._text(word.value)}" if word.arg else f"**{self._text(word.value)}"
            for word in value.keywords
        ]
        given = [*map(self._text, value.args), *words]
        self._emit(self._call(f"{before}{self._text(value.func)}(", given))

    def _call(self, before: str, arguments: list[str]) -> str:
        """A call from the first column on, broken where it would be too long where it will stand."""
        depth = 1 + self.level
        return self.site.call(before, arguments, deeper=depth).replace("\n" + "    " * depth, "\n")

    def _edit(self, statements: Sequence[ast.stmt]) -> Edit:
        site, first, last = self.site, statements[0], statements[-1]
        header = site.header("if", [site.compiling, *self._facts(), *self.conditions, *self._certain()])
        body = "\n    ".join([header, COMMENT, *self.lines])
        whole = site.span(first)._replace(end_line=site.span(last).end_line, end_column=site.span(last).end_column)
        parts = (f"{body}\nelse:\n    ", Original(whole, 1))
        after = above(site, site.evaluator.scope.node.lineno)
        helpers = [
            Helper(name, text.strip("\n").replace("torch.", f"{site.torch}."), after=after, shared=True)
            for name, text in (("_rows_under", _READ), ("_write_under", _WRITE))
        ]
        return Edit((Replacement(whole, parts),), imports=site.imports, helpers=tuple(helpers))

    def _certain(self) -> list[str]:
        certain = CertainCalls(self.site, self.calls)
        try:
            certain.demand_names(certain.start())
            certain.follow_all(certain.start(), [self.caller], self.links)
        except MayDiffer as why:
            raise NotRowwise(str(why)) from why
        return certain.conditions()

    def _facts(self) -> list[str]:
        """That the mask is one, that shapes fit it, and that numbers are numbers."""
        site, mask = self.site, self.site.text(self.mask)
        value, tensor = site.value(self.mask), f"{site.torch}.is_tensor({{}})"
        facts = [tensor.format(mask)] if not value.is_tensor or value.hint else []
        if value.dtype != BOOL or value.hint:
            facts.append(f"{mask}.dtype == {site.torch}.bool")
        facts += [f"{mask}.dim() > 0", f"{mask}.numel() > 0"]
        for rank in sorted({rank for _, rank in self.tensors.values()}):
            of_rank = [(text, site.value(node)) for text, (node, each) in self.tensors.items() if each == rank]
            sure = all(known.is_tensor and not known.hint for _, known in of_rank)
            shape = f"{{}}.shape{'' if rank == 1 else f'[:-{rank - 1}]'} == {mask}.shape"
            facts += self._all(shape if sure else f"{tensor} and {shape}", [text for text, _ in of_rank])
        facts += [f"0 not in {name}.stride()" for name in self.written if not site.sole_owner(name)]
        return facts + self._all("isinstance({}, (bool, int, float, str))", list(self.numbers))

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
