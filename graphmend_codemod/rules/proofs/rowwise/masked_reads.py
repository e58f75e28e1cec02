"""Expressions that select rows by one mask, written for all rows: reads, reductions, and what they are made of."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import all_names, same
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.row_functions import RowFunctions
from graphmend_codemod.rules.proofs.rowwise.row_values import OTHER, Held, NotRowwise, What, elementwise, rows
from graphmend_codemod.rules.proofs.rowwise.selectors import (
    Selection,
    is_expression,
    is_item,
    is_part,
    is_viewed,
    masked_by,
    of_same_shape,
    on_any_device,
    same_mask,
    selection,
)

_TENSORS = frozenset({"weight", "bias", "data", "grad"})


class MaskedReads(RowFunctions):
    """What expressions hold where a mask selects rows, and their text for all rows.

    `ranks` are those of `x[mask]` by what is indexed, 1 if not given; `bare` collects what is indexed so. `tensors` are
    what the mask selects from, with the dimensions of a row; `numbers` stand beside rows.
    """

    def __init__(self, site: Site, mask: ast.expr, ranks: dict[str, int], bare: dict[str, None]) -> None:
        calls = calls_in(site.source.text)
        own = calls.at(site.evaluator.scope.node.lineno)
        if own is None:
            raise NotRowwise("it is in a function inside of a function")
        super().__init__(calls, own, site.resolve_global, {}, [])
        self.site, self.mask, self.ranks, self.bare = site, mask, ranks, bare
        self.index = site.evaluator.scope.index
        self.tensors: dict[str, tuple[ast.expr, int]] = {}
        self.sources: dict[str, None] = {}
        self.numbers: dict[str, None] = {}
        self.lines: list[str] = []
        self.plain: list[str] = []
        self.level = 0
        self.changes: dict[int, tuple[ast.expr, str]] = {}
        self.written: dict[str, None] = {}
        self.reads = self.fused = False
        self.single: set[int] = set()
        self.lifted: int | None = None
        self.choice, self.chooser = site.text(mask), site.operand(mask)
        self.own = all_names(on_any_device(mask))

    # what stands outside

    def qualified(self, node: ast.expr) -> str | None:
        return self.site.resolve(node)

    def value(self, node: ast.expr) -> Held:
        if self.lifted is not None and isinstance(node, ast.Name) and node.id in self.env:
            raise NotRowwise(f"`{node.id}` has no name before the statement; assign it to a variable first")
        if self.lifted is not None and is_part(node) and self.site.judge(node).impure is None:
            self.tensor(node, self.lifted)
            return rows(self.lifted, boolean=self.site.value(node).dtype == BOOL)
        return super().value(node)

    def outside(self, node: ast.expr) -> Held:
        if self.lifted is not None and self.site.value(node).is_tensor:
            self.tensor(node, self.lifted)
            return rows(self.lifted, boolean=self.site.value(node).dtype == BOOL)
        if super().outside(node).what is What.NUMBER:
            return super().outside(node)
        tensor = self.site.value(node).is_tensor or (isinstance(node, ast.Attribute) and node.attr in _TENSORS)
        return OTHER if tensor else Held(What.OTHER, spelled=self.site.text(node))

    def as_number(self, held: Held) -> Held:
        if held.what is not What.OTHER or not (held.spelled or held.parts):
            return held
        if held.parts:
            elementwise(list(map(self.as_number, held.parts)), "a number")
        else:
            self.numbers[held.spelled] = None
        return Held(What.NUMBER, spelled=held.spelled)

    def combined(self, held: list[Held], node: ast.expr, *, boolean: bool = False) -> Held:
        found = super().combined(held, node, boolean=boolean)
        return found._replace(spelled=self.site.text(node)) if found.what is What.OTHER and found.parts else found

    def is_mask(self, node: ast.AST) -> bool:
        """True for what the mask selects."""
        found = masked_by(node)
        return found is not None and same_mask(found, self.mask)

    def tensor(self, base: ast.expr, rank: int) -> str:
        """The text of a tensor that the mask selects from, of which the compile path asks for the shape."""
        name = dotted(base)
        inside = all_names(base)
        if (name is None and not is_viewed(base) and not is_item(base)) or not inside.isdisjoint(self.env):
            raise NotRowwise(f"`{short(base)}` has no name before the statement; assign it to a variable first")
        text = self.site.text(base)
        if text == self.choice:
            raise NotRowwise(f"`{text}` indexes itself")
        if self.tensors.setdefault(text, (base, rank))[1] != rank:
            raise NotRowwise(f"cannot infer how many dimensions a row of `{text}` has")
        return text

    def ask_mask_again(self, node: ast.expr) -> None:
        """NotRowwise where a mask that is computed for each use may differ from the one before."""
        if self.written and is_expression(self.mask):
            raise NotRowwise(f"`{short(node)}` computes its mask again after a write")

    # expressions

    def subscript(self, node: ast.Subscript) -> Held:
        found = selection(node) if self.is_mask(node) else None
        if found is None:
            return self._gathered(node) or super().subscript(node)
        return self.read(node, found)

    def _gathered(self, node: ast.Subscript) -> Held | None:
        """`x[torch.arange(n), t]` in `x[torch.arange(n), t][mask]`: one element of each row, as many as `t` has."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        if self.lifted != 1 or len(parts) != 2 or dotted(node.value) is None or dotted(parts[1]) is None:
            return None
        counts = parts[0]
        if (
            not isinstance(counts, ast.Call)
            or self.site.resolve(counts.func) != "torch.arange"
            or len(counts.args) != 1
        ):
            return None
        if any(word.arg != "device" for word in counts.keywords) or not self._is_count(counts.args[0]):
            return None
        if (dotted(node.value) or "").partition(".")[0] in self.env:
            return None
        index, picked, torch = self.tensor(parts[1], 1), self.site.text(node.value), self.site.torch
        asked = [f"{index}.dim() == 1", f"{index}.dtype == {torch}.int64"]
        asked += [f"{self.site.text(counts.args[0])} == {index}.shape[0]"]
        asked += [f"isinstance({picked}, {torch}.Tensor)", f"{picked}.dim() == 2"]
        self.conditions.update(dict.fromkeys(asked))
        return rows(1)

    def _is_count(self, node: ast.expr) -> bool:
        """True for `t.numel()`, `t.shape[0]`, `len(t)` of what has a name before the statement."""
        owner: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            owner = node.value.value if isinstance(node.slice, ast.Constant) else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            plain = all(isinstance(each, ast.Constant) for each in node.args) and not node.keywords
            owner = node.func.value if plain and node.func.attr in {"numel", "size"} else None
        elif isinstance(node, ast.Call) and self.site.resolve(node.func) == "builtins.len" and len(node.args) == 1:
            owner = node.args[0]
        name = dotted(owner) if owner is not None else None
        return name is not None and name.partition(".")[0] not in self.env

    def call(self, node: ast.Call) -> Held:
        found = selection(node) if self.is_mask(node) else None
        if found is None or self.site.resolve(node.func) != ("torch.masked_select" if len(node.args) > 1 else None):
            return super().call(node)
        return self.read(node, found)

    def unread(self, node: ast.expr) -> Held:
        self.demand_no_effect(node)
        todo: list[ast.AST] = [node]
        for part in todo:
            if id(part) not in self.single:
                todo += ast.iter_child_nodes(part)
            if isinstance(part, ast.Name) and self.env.get(part.id, OTHER).what not in {What.NUMBER, What.OTHER}:
                raise NotRowwise(f"`{short(node)}` may depend on the number of selected rows")
        return OTHER

    def read(self, node: ast.expr, found: Selection) -> Held:
        """Rows that the mask selects; the compile path takes all of them."""
        if self.lifted is not None:
            raise NotRowwise(f"`{short(node)}` selects among the selected rows")
        self.ask_mask_again(node)
        base = self.site.text(found.base)
        if found.more or found.by_element:
            self.looked.append(node)
        else:
            self.bare[base] = None
        rank = 1 + found.more if found.more or found.by_element else self.ranks.get(base, 1)
        boolean = self.site.value(found.base).dtype == BOOL
        if (is_viewed(found.base) or is_item(found.base)) and self.site.judge(found.base).impure is None:
            self.tensor(found.base, rank)
        elif dotted(found.base) is None:
            if is_expression(self.mask) and self.site.judge(found.base).impure is not None:
                raise NotRowwise(f"`{short(found.base)}` may change what `{self.choice}` is computed from")
            boolean = self._lift(found.base, rank).boolean
            base = self.text(found.base)
        else:
            self.tensor(found.base, rank)
        if not same(found.mask, self.mask):
            # The same mask on the device of another tensor.
            self.conditions[f"{self.site.operand(found.mask)}.device == {self.chooser}.device"] = None
        self.changes[id(node)] = (node, f"_rows_under({self.choice}, {base})")
        self.reads = True
        self.sources[base] = None
        return rows(rank, boolean=boolean)._replace(spelled=base, zero=True)

    def _lift(self, node: ast.expr, rank: int) -> Held:
        """`(a - b).abs()[mask]`: elementwise work has the shape of the tensors that it begins with."""
        before, looked, self.lifted = dict(self.env), len(self.looked), rank
        held = self.value(node)
        self.env, self.lifted = before, None
        if held.what is not What.ROWS or held.rank != rank or len(self.looked) > looked:
            raise NotRowwise(f"cannot infer the shape of `{short(node)}`; assign it to a variable first")
        return held

    def repeated(self, node: ast.Call, one: ast.expr, rows: Held) -> Held:
        """`row.expand_as(x[mask])`, `table[i].expand_as(x[mask])`, of the shape of one row."""
        owner, place = (one.value, one.slice) if isinstance(one, ast.Subscript) else (one, None)
        if rows.spelled not in self.tensors or not all(map(self._is_named_before, (owner, place or owner))):
            raise NotRowwise(f"`{short(one)}` has no name before the statement; assign it to a variable first")
        text, behind = self.site.text(owner), f"{rows.spelled}.shape[{self.chooser}.dim() :]"
        asked = [f"isinstance({text}, {self.site.torch}.Tensor)", f"{text}.device == {rows.spelled}.device"]
        if place is None:
            asked.append(f"{text}.shape == {behind}")
        else:
            index = self.site.text(place)
            asked += [] if isinstance(place, ast.Constant) else [f"type({index}) is int"]
            asked += [f"{text}.dim() > 0", f"{text}.shape[1:] == {behind}"]
            asked.append(f"-{text}.shape[0] <= {index} < {text}.shape[0]")
        self.conditions.update(dict.fromkeys(asked))
        return rows._replace(spelled="", zero=False, boolean=False)

    def one_row(self, node: ast.expr, rows: Held) -> Held | None:
        """`weight`, `layer.weight + table[0].weight`: a tensor of the form of one row, to be added to each.

        It may be no factor: the gradient of what is not chosen is zero, and times an infinite row that would be nan.
        """
        parts, summands = [node], list[ast.expr]()
        for part in parts:
            if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Sub)):
                parts += [part.left, part.right]
            else:
                summands.append(part)
        if rows.spelled not in self.tensors or not all(map(self._is_found_before, summands)):
            return None
        mask = self.site.text(of_same_shape(on_any_device(self.mask)))
        for each in summands:
            self.conditions[f"_is_one_row({self.site.text(each)}, {mask}, {rows.spelled})"] = None
        return Held(What.NUMBER)

    def _is_found_before(self, node: ast.expr) -> bool:
        """True for names, attributes and elements `table[0]` of them, which hold the same whenever they are asked."""
        inner = node
        while isinstance(inner, ast.Attribute) or (
            isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant)
        ):
            inner = inner.value
        plain = isinstance(inner, ast.Name) and inner.id not in self.env
        return plain and self.site.judge(node).impure is None

    def _is_named_before(self, node: ast.expr) -> bool:
        """True for a name, an attribute and a number, which the header may ask about."""
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        name = dotted(node)
        return name is not None and name.partition(".")[0] not in self.env

    def followed(self, node: ast.Call, given: list[Held], words: dict[str, Held]) -> Held:
        root = (dotted(node.func) or "").partition(".")[0]
        if root in self.env or (self.site.evaluator.scope.is_local(root) and isinstance(node.func, ast.Name)):
            raise NotRowwise(f"cannot infer what `{short(node.func)}` calls")
        return super().followed(node, given, words)

    # text

    def text(self, node: ast.AST) -> str:
        """The text of `node` for all rows."""
        return self.site.but(written={**self.site.written, **self.changes}).text(node)
