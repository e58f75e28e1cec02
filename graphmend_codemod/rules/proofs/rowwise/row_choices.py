"""Row selectors: masks and indices by which code selects rows of its tensors.

A *selector* is what chooses rows: the indices of `torch.where(mask)`, or the mask itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.rowwise_expressions import (
    MASK,
    ROW,
    SLOT,
    Choice,
    NotRowwise,
    Rows,
    indices_of,
    is_whole,
    where_of,
    without_list,
)


class RowChoices:
    """The selectors of one block, and the lines of its new text.

    `is_mask` says whether an expression is a mask of rows where it indexes. `numbers` are variables of a loop around
    the block that hold Python integers. `outer` is the depth, below that of the site's statement, at which the new text
    will stand. `lines` are indented from zero; `conditions` must hold while tracing.
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
            raise NotRowwise("cannot infer which rows are selected")
        return self.choice

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
        raise NotRowwise(f"`{speculation.short(value)}` returns indices of an unknown kind")

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
        return {
            part.id for part in walk_in_layers(body) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
        }

    def _row_of(self, names: list[str]) -> str:
        aliases = {name: name for name in names}
        alone: set[str] = set()
        for part in walk_in_layers(self.site.node):
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                value = without_list(part.value)
                if isinstance(value, ast.Name) and value.id in aliases:
                    aliases[part.targets[0].id] = aliases[value.id]
        for part in walk_in_layers(self.site.node):
            held: list[ast.expr] = []
            if isinstance(part, ast.Subscript):
                held = indices_of(part)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and "index_add" in part.func.attr:
                held = part.args[1:2]
            named = {aliases[each.id] for each in held if isinstance(each, ast.Name) and each.id in aliases}
            if len(named) == 1:
                alone |= named
        if len(alone) != 1:
            raise NotRowwise(f"cannot infer whether `{names[0]}` or `{names[1]}` indexes the rows")
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
                raise NotRowwise("two masks select rows in one iteration")
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

    # lines

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
