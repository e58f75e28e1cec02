"""Code that works on some rows of its tensors, written for all rows: masks where rows were chosen by their number.

`rows = torch.where(mask)[0]; y[rows] = f(x[rows])` depends in its shapes on how many rows there are;
`y = torch.where(mask, f(x), y)` does not. What a selector (`rows`, or the mask itself) may do is choose rows of a
tensor, to read or to write; what is done to chosen rows must treat each row by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.values import BOOL, Kind
from graphmend_codemod.rules.rowwise_expressions import (
    MASK,
    ROW,
    SLOT,
    Choice,
    Dense,
    NotRowwise,
    Rows,
    indices_of,
    is_minus_one,
    is_whole,
    is_zero,
    lookup,
    self_cast,
    where_of,
    without_list,
)
from graphmend_codemod.rules.site import Site


class Rewriter:
    """Rewrites statements of one block. `is_mask` says whether an expression is a mask of rows where it indexes.

    `numbers` are variables of a loop around it that hold Python integers. `outer` is the depth, below that of the
    site's statement, at which the new text will stand.

    After `statements`, `lines` is the new text, indented from zero, `conditions` what must hold while tracing,
    `calls` the callables that got all rows, `writes` the tensors that were written.
    """

    def __init__(
        self, site: Site, is_mask: Callable[[ast.expr], bool], outer: int, numbers: frozenset[str] = frozenset()
    ) -> None:
        self.site = site
        self.is_mask = is_mask
        self.numbers = numbers
        self.selectors: dict[str, str] = {}
        self.masks: dict[str, Choice] = {}
        self.choice: Choice | None = None
        self.rows: dict[str, Rows] = {}
        self.inlined: dict[str, str] = {}
        self.lines: list[str] = []
        self.conditions: dict[str, None] = {}
        self.calls: list[ast.expr] = []
        self.writes: list[ast.expr] = []
        self.computed: dict[str, str] = {}
        self.skips = False
        self.outer = outer
        self.depth = 0

    @property
    def chosen(self) -> Choice:
        """The rows that the code works on; NotRowwise before any are chosen."""
        if self.choice is None:
            raise NotRowwise("which rows are chosen is not known")
        return self.choice

    # statements

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
            raise NotRowwise(f"`{purity.short(call)}` may not treat each row by itself")
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
                raise NotRowwise(f"`{purity.short(node)}` mixes chosen rows with other values")
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
                raise NotRowwise(f"`{purity.short(node)}` may have effects")
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
                raise NotRowwise(f"`{purity.short(node.test)}` decides more than whether there are rows")
            return
        if self._asks_for_number(node):
            self._emit("", f"if {self.site.text(node.test)}:\n{'    ' * (self.depth + 1)}continue")
            return
        if Dense(self).visit(node.test) is not None or self._reads_rows(node.test):
            raise NotRowwise(f"`{purity.short(node.test)}` decides by the values of the chosen rows")
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
        for part in ast.walk(node):
            if isinstance(part, (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)):
                raise NotRowwise(f"`{purity.short(node)}` leaves the loop")
        if self._reads_rows(node):
            raise NotRowwise(f"`{purity.short(node)}` depends on which rows are chosen")
        simple = isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets)
        if (self.skips or not simple) and not (simple and lookup(self.site, node.value)):  # type: ignore[attr-defined]
            raise NotRowwise(f"`{purity.short(node)}` would also run where no row is chosen")
        self._emit("", self.site.text(node))

    def _reads_rows(self, node: ast.AST) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and (part.id in self.selectors or part.id in self.rows):
                return True
            if isinstance(part, (ast.Subscript, ast.Compare)) and ast.unparse(part) in self.masks:
                return True
        return False

    # what chooses

    def _defines_selector(self, target: ast.expr, value: ast.expr) -> bool:
        if isinstance(target, ast.Name) and (role := self.role(without_list(value))) in {ROW, SLOT}:
            assert role is not None
            self.selectors[target.id] = role
            return True
        found = where_of(self.site, value)
        if found is None:
            return False
        mask, position = found
        names = [part.id for part in target.elts if isinstance(part, ast.Name)] if isinstance(target, ast.Tuple) else []
        if position is None and len(names) == 2:
            self.choose_pairs(mask, names)
            return True
        if position == 0 and isinstance(target, ast.Name):
            self.selectors[target.id] = ROW
            self.choice = self._mask(mask)
            if self.choice.rank != "1":
                self.conditions[f"{self.choice.rank} == 1"] = None
                self.choice.rank = "1"
            self._emit_choice(self.choice)
            return True
        raise NotRowwise(f"`{purity.short(value)}` gives indices of a kind that is not known")

    def choose_pairs(self, mask: ast.expr, names: list[str]) -> None:
        """`a, b = torch.where(mask)`: which of the two is the row is known when one of them indexes alone."""
        row = self._row_of(names)
        slot = names[1 - names.index(row)]
        bare, text = self.site.text(mask), self.site.operand(mask)
        boolean = self.site.value(mask).dtype == BOOL or isinstance(mask, ast.Compare)
        if not boolean:
            bare = text = f"{text}.bool()"
        transposed = names.index(row) == 1
        routed = self.site.free_name("routed")
        self.selectors |= {row: ROW, slot: SLOT}
        if slot in self._used:
            slots = self.site.free_name("slots")
            self.choice = Choice(routed, slots=slots)
            self._emit(f"{slots} = ", f"{text}.T" if transposed else bare)
            self._emit(f"{routed} = ", f"{slots}.any(-1, keepdim=True)")
        else:
            self.choice = Choice(routed)
            self._emit(f"{routed} = ", f"{text}.any({0 if transposed else 1}).unsqueeze(-1)")

    @property
    def _used(self) -> set[str]:
        body = self.site.node
        return {part.id for part in ast.walk(body) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}

    def _row_of(self, names: list[str]) -> str:
        aliases = {name: name for name in names}
        alone: set[str] = set()
        for part in ast.walk(self.site.node):
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                value = without_list(part.value)
                if isinstance(value, ast.Name) and value.id in aliases:
                    aliases[part.targets[0].id] = aliases[value.id]
        for part in ast.walk(self.site.node):
            held: list[ast.expr] = []
            if isinstance(part, ast.Subscript):
                held = indices_of(part)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and "index_add" in part.func.attr:
                held = part.args[1:2]
            named = {aliases[each.id] for each in held if isinstance(each, ast.Name) and each.id in aliases}
            if len(named) == 1:
                alone |= named
        if len(alone) != 1:
            raise NotRowwise(f"which of `{names[0]}` and `{names[1]}` counts the rows is not known")
        return alone.pop()

    def _mask(self, node: ast.expr) -> Choice:
        """The choice that a mask of one element a row makes."""
        name = self.site.free_name("routed")
        text = self.site.operand(node)
        if not (self.site.value(node).dtype == BOOL or isinstance(node, ast.Compare) or self.is_mask(node)):
            text = f"{text}.bool()"
        return Choice(name, self._rank(node), line=f"{name} = {text}.unsqueeze(-1)")

    def _rank(self, node: ast.expr) -> str:
        """The rank of a mask: `m[:, :, i]` has two dimensions, a comparison those of the tensor that is compared."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        if isinstance(node, ast.Subscript):
            elements = indices_of(node)
            whole = sum(map(is_whole, elements))
            if 0 < whole < len(elements):
                return str(whole)
        if isinstance(node, ast.Compare):
            return f"{self.site.operand(node.left)}.dim()"
        return f"{self.site.operand(node)}.dim()"

    def _emit_choice(self, choice: Choice) -> None:
        if choice.line:
            self._emit("", choice.line)
        choice.line = ""

    def role(self, node: ast.expr) -> str | None:
        """How `node` chooses rows where it indexes, None if it does not."""
        if isinstance(node, ast.Name) and node.id in self.selectors:
            return self.selectors[node.id]
        key = ast.unparse(node)
        if key in self.masks or (not isinstance(node, (ast.Constant, ast.Slice)) and self.is_mask(node)):
            if key not in self.masks:
                self.masks[key] = self._mask(node)
            chosen = self.masks[key]
            if self.choice is not None and self.choice is not chosen:
                raise NotRowwise("two masks choose rows in one round")
            self.choice = chosen
            self._emit_choice(chosen)
            return MASK
        return None

    def whole_of(self, node: ast.Subscript) -> tuple[str, Rows] | None:
        """What an expression that takes rows in another way becomes; None for any other."""
        del node
        return None

    def _chosen_by(self, node: ast.Subscript) -> list[str] | None:
        roles = [role for element in indices_of(node) if (role := self.role(element)) is not None]
        return roles or None

    def _asks_for_rows(self, test: ast.expr) -> bool | None:
        """True for a test that holds without rows, False for one that holds with rows, None for any other."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._asks_for_rows(test.operand)
            return None if inner is None else not inner
        if self._counts(test):
            return False
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and self._counts(test.left):
            bound = test.comparators[0]
            if isinstance(bound, ast.Constant) and bound.value == 0:
                if isinstance(test.ops[0], ast.Eq):
                    return True
                if isinstance(test.ops[0], (ast.Gt, ast.NotEq)):
                    return False
        return None

    def _counts(self, node: ast.expr) -> bool:
        """`rows.numel()`, `rows.shape[0]`, `len(rows)`, `mask.any()`, `mask.sum()`."""
        counted: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            counted = node.value.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in {"numel", "nelement", "size"} and len(node.args) < 2:
                counted = node.func.value
            elif node.func.attr in {"any", "sum"} and not node.args:
                return self.role(node.func.value) == MASK
            elif node.func.attr == "item":
                return self._counts(node.func.value)
        elif isinstance(node, ast.Call) and self.site.resolve(node.func) == "builtins.len" and node.args:
            counted = node.args[0]
        return isinstance(counted, ast.Name) and counted.id in self.selectors

    # what is written

    def _dense_rows(self, node: ast.expr) -> str:
        dense = Dense(self)
        rows = dense.visit(node)
        if rows is None:
            raise NotRowwise(f"`{purity.short(node)}` is written to the rows, and is not computed from them")
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
            raise NotRowwise(f"`{purity.short(call)}` adds along another dimension, or with a factor")
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

    def named(self, wish: str, text: str, name: str | None = None) -> str:
        """The name that holds what `text` computes, from a line before the statement that is being written."""
        if text not in self.computed:
            self.computed[text] = name or self.site.free_name(wish)
            self._emit(f"{self.computed[text]} = ", text)
        return self.computed[text]

    def _emit(self, before: str, text: str, after: str = "") -> None:
        deeper = self.outer + self.depth
        line = f"{before}{text}{after}"
        if self.site.indentation(deeper) + len(line) > self.site.line_limit:
            line = self._wrapped(before, text, after, deeper)
            line = line.replace("\n" + "    " * deeper, "\n" + "    " * self.depth)
        self.lines.append("    " * self.depth + line)

    def _wrapped(self, before: str, text: str, after: str, deeper: int) -> str:
        """The line, broken where it is too long; a statement that was long before stays as it is."""
        statement = ast.parse(text).body[0]
        value = statement.value if isinstance(statement, ast.Expr) else None
        if after:
            return self.site.call(before, [text], deeper=deeper, after=after)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            head = ast.get_source_segment(text, value.func)
            arguments = [ast.get_source_segment(text, part) or "" for part in [*value.args, *value.keywords]]
            return self.site.call(f"{before}{head}(", arguments, deeper=deeper)
        if value is None or not before:
            return f"{before}{text}"
        if isinstance(value, ast.BinOp) and self.site.indentation(deeper + 1) + len(text) > self.site.line_limit:
            right = ast.get_source_segment(text, value.right) or ""
            left = text[: len(text) - len(right)].rstrip()
            if right and text.endswith(right):
                sign = left.rpartition(" ")[2]
                text = f"{left[: -len(sign)].rstrip()}\n{'    ' * (deeper + 1)}{sign} {right}"
        return self.site.call(f"{before}(", [text], deeper=deeper)
