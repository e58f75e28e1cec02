"""Code that works on some rows of its tensors, written for all rows: masks where rows were chosen by their number.

`rows = torch.where(mask)[0]; y[rows] = f(x[rows])` depends in its shapes on how many rows there are;
`y = torch.where(mask, f(x), y)` does not. What a selector (`rows`, or the mask itself) may do is choose rows of a
tensor, to read or to write; what is done to chosen rows must treat each row by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.analysis.values import Kind
from graphmend_codemod.rules.proofs.rowwise.row_choices import RowChoices
from graphmend_codemod.rules.proofs.rowwise.rowwise_expressions import (
    ROW,
    Choice,
    Dense,
    NotRowwise,
    Rows,
    indices_of,
    is_minus_one,
    is_zero,
    lookup,
    self_cast,
)


class Rewriter(RowChoices):
    """Rewrites statements of one block.

    After `statements`, `lines` is the new text, `conditions` what must hold while tracing, `calls` the callables that
    got all rows, `writes` the tensors that were written.
    """

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Rewrite the statements of a block; NotRowwise with the reason if one cannot be."""
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assign(node, node.targets[0])
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._call_statement(node, node.value)
        elif isinstance(node, ast.If):
            self._if(node)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            self._unchanged(node)

    def _assign(self, node: ast.Assign, target: ast.expr) -> None:
        if isinstance(target, ast.Name) and self.is_mask(node.value):
            name = self.site.free_name("routed")
            self.masks[target.id] = Choice(name, self._rank(node.value), line=f"{name} = {target.id}.unsqueeze(-1)")
            self._emit("", self.site.text(node))
            return
        if self._defines_selector(target, node.value):
            return
        if self_cast(node) is not None and isinstance(target, ast.Name) and target.id not in self.rows:
            self._emit("", self.site.text(node))
            return
        if isinstance(target, ast.Subscript) and self._chosen_by(target) is not None:
            self._store(target, self._dense_rows(node.value))
            return
        if isinstance(target, ast.Tuple) and self._parted(node, target):
            return
        if not isinstance(target, ast.Name):
            self._unchanged(node)
            return
        if self._accumulated(node, target):
            return
        dense = Dense(self, target.id)
        rows = dense.visit(node.value)
        if rows is None:
            self._unchanged(node)
            return
        self.rows[target.id] = rows
        text = dense.text(node.value)
        if rows.chosen and isinstance(node.value, (ast.Subscript, ast.Call)) and text.isidentifier():
            self.inlined[target.id] = text
        elif text == target.id:
            self.inlined.pop(target.id, None)
        else:
            self.inlined.pop(target.id, None)
            self._emit(f"{target.id} = ", text)

    def _parted(self, node: ast.Assign, target: ast.Tuple) -> bool:
        """`a, b = rows.chunk(2, dim=-1)`: parts of each row."""
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(names) < len(target.elts):
            return False
        if call.func.attr not in {"chunk", "split", "tensor_split"}:
            return False
        dense = Dense(self)
        rows = dense.visit(call.func.value)
        dims = [word.value for word in call.keywords if word.arg == "dim"] or call.args[1:2]
        if rows is None:
            return False
        if len(dims) != 1 or not is_minus_one(dims[0]):
            raise NotRowwise(f"`{speculation.short(call)}` may not process each row independently")
        for name in names:
            self.rows[name] = Rows()
            self.inlined.pop(name, None)
        self._emit(f"{', '.join(names)} = ", dense.text(call))
        return True

    def _accumulated(self, node: ast.Assign, target: ast.Name) -> bool:
        """`y = y.index_add(0, rows, values)`."""
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "index_add":
            return False
        self._add(call.func.value, call, f"{target.id} = {self.site.text(call.func.value)} + ")
        return True

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript) and (selectors := self._chosen_by(target)) is not None:
            value = self._dense_rows(node.value)
            if isinstance(node.op, ast.Add) and len(selectors) == len(indices_of(target)):
                self.writes.append(target.value)
                self._emit(f"{self.site.text(target.value)} += ", self._masked(value))
                return
            place = self.all_rows(target)
            operator = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[2:-2]
            self._store(target, f"{place} {operator} {value}")
            return
        dense = Dense(self)
        rows = dense.visit(node.value)
        if isinstance(target, ast.Name) and (rows is not None or target.id in self.rows):
            if target.id not in self.rows or target.id in self.inlined:
                raise NotRowwise(f"`{speculation.short(node)}` mixes selected rows with other values")
            sign = self.site.source.segment(self.site.span(node))[len(target.id) :].split("=")[0].strip()
            self._emit(f"{target.id} {sign}= ", dense.text(node.value))
            return
        self._unchanged(node)

    def _call_statement(self, node: ast.Expr, call: ast.Call) -> None:
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr == "index_add_":
            name = self.site.text(function.value)
            if isinstance(function.value, ast.Name):
                self._add(function.value, call, f"{name} += ")
            else:
                self._add(function.value, call, f"{name}.add_(", ")")
            return
        dense = Dense(self)
        if dense.visit(call) is not None:
            if not (isinstance(function, ast.Attribute) and function.attr.endswith("_")):
                raise NotRowwise(f"`{speculation.short(node)}` may have side effects")
            self._emit("", dense.text(call))
            return
        self._unchanged(node)

    def _if(self, node: ast.If) -> None:
        empty = self._asks_for_rows(node.test)
        if empty is not None:
            skip = len(node.body) == 1 and isinstance(node.body[0], ast.Continue)
            if empty and skip and not node.orelse:
                self.skips = True
            elif not empty and not node.orelse:
                self.skips = True
                self.statements(node.body)
            else:
                raise NotRowwise(f"`{speculation.short(node.test)}` tests more than whether any row is selected")
            return
        if self._asks_for_number(node):
            self._emit("", f"if {self.site.text(node.test)}:\n{'    ' * (self.depth + 1)}continue")
            return
        if Dense(self).visit(node.test) is not None or self._reads_rows(node.test):
            raise NotRowwise(f"`{speculation.short(node.test)}` branches on the values of the selected rows")
        branches: list[tuple[str, list[ast.stmt]]] = [(f"if {self.site.text(node.test)}:", node.body)]
        if node.orelse:
            branches.append(("else:", node.orelse))
        for header, body in branches:
            self.lines.append("    " * self.depth + header)
            self.depth += 1
            first = len(self.lines)
            self.statements(body)
            if len(self.lines) == first:
                self.lines.append("    " * self.depth + "pass")
            self.depth -= 1

    def _asks_for_number(self, node: ast.If) -> bool:
        """True for `if i == self.n: continue` with the number of the round."""
        test = node.test
        alone = len(node.body) == 1 and isinstance(node.body[0], ast.Continue) and not node.orelse
        if not alone or not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return False
        sides = (test.left, test.comparators[0])
        number = [side for side in sides if isinstance(side, ast.Name) and side.id in self.numbers]
        other = [side for side in sides if side not in number]
        return len(number) == 1 and self._is_size(other[0])

    def _is_size(self, node: ast.expr) -> bool:
        """True for a literal, and for a number that an instance or a configuration holds."""
        own = isinstance(node, ast.Attribute) and not self._reads_rows(node)
        return isinstance(node, ast.Constant) or (own and self.site.value(node).kind is not Kind.TENSOR)

    def _unchanged(self, node: ast.stmt) -> None:
        """A statement that has nothing to do with rows."""
        for part in walk_in_layers(node):
            if isinstance(part, (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)):
                raise NotRowwise(f"`{speculation.short(node)}` leaves the loop")
        if self._reads_rows(node):
            raise NotRowwise(f"`{speculation.short(node)}` depends on which rows are selected")
        simple = isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets)
        if (self.skips or not simple) and not (simple and lookup(self.site, node.value)):  # type: ignore[attr-defined]
            raise NotRowwise(f"`{speculation.short(node)}` would also run if no row is selected")
        self._emit("", self.site.text(node))

    def _reads_rows(self, node: ast.AST) -> bool:
        for part in walk_in_layers(node):
            if isinstance(part, ast.Name) and (part.id in self.selectors or part.id in self.rows):
                return True
            if isinstance(part, (ast.Subscript, ast.Compare)) and ast.unparse(part) in self.masks:
                return True
        return False

    # what is written

    def _dense_rows(self, node: ast.expr) -> str:
        dense = Dense(self)
        rows = dense.visit(node)
        if rows is None:
            raise NotRowwise(f"`{speculation.short(node)}` is written to the rows but not computed from them")
        if rows.fact is not None:
            self.conditions[rows.fact] = None
        return dense.text(node)

    def _store(self, target: ast.Subscript, value: str) -> None:
        place = self.all_rows(target)
        self.writes.append(target.value)
        if not value.isidentifier():
            value = self.named("expert_output", value)
        selected = f"{self.site.torch}.where({self.chosen.mask}, {value}, {place})"
        if place == self.site.text(target.value):
            self._emit(f"{place}.copy_(", selected, ")")
        else:
            self._emit(f"{place} = ", selected)

    def _add(self, base: ast.expr, call: ast.Call, before: str, after: str = "") -> None:
        if len(call.args) != 3 or call.keywords or not is_zero(call.args[0]) or self.role(call.args[1]) != ROW:
            raise NotRowwise(f"`{speculation.short(call)}` adds along another dimension, or with a factor")
        self.writes.append(base)
        self._emit(before, self._masked(self._dense_rows(call.args[2])), after)

    def _masked(self, value: str) -> str:
        return f"{self.site.torch}.where({self.chosen.mask}, {value}, 0)"

    def all_rows(self, node: ast.Subscript) -> str:
        """The text of `x[i, rows]` for all rows: `x[i]`."""
        elements = [":" if self.role(each) else self.site.text(each) for each in indices_of(node)]
        while elements and elements[-1] == ":":
            elements.pop()
        base = self.site.text(node.value)
        return f"{base}[{', '.join(elements)}]" if elements else base
