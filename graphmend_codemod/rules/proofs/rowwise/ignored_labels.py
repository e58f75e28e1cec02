"""Rows of logits and of labels that a mask selects, and that get to a loss which ignores a label.

`logits = logits[mask]` and `labels = labels[mask]` may stand in a branch, far in front of the loss. The compile path
keeps all rows and gives the label that the loss ignores to those that the mask does not choose; the loss itself is not
changed. So everything that both reach up to there is followed: it has to keep rows and labels apart.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.masked_losses import MaskedLosses
from graphmend_codemod.rules.proofs.rowwise.masked_region import NotWritten, Region, Rewriter
from graphmend_codemod.rules.proofs.rowwise.row_values import OTHER, Held, NotRowwise, What
from graphmend_codemod.rules.proofs.rowwise.selectors import Element, Selection


class LabelsIgnored(Rewriter):
    """Follows selected rows to the losses; `labels` are the tensors of which rows get the ignored label."""

    def __init__(self, site: Site, mask: ast.expr, ranks: dict[str, int], bare: dict[str, None]) -> None:
        super().__init__(site, mask, ranks, bare)
        self.labels: dict[str, str] = {}
        self.selected: list[tuple[ast.expr, Selection, str]] = []
        self.changed: set[str] = set()

    def region(self, statements: Sequence[ast.stmt]) -> Region:
        """The statements that select, of which all rows are kept."""
        last = max(number for number, each in enumerate(statements) if any(map(self.chooses, walk(each))))
        selecting = statements[: last + 1]
        if not all(isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) for each in selecting):
            raise NotWritten(f"what `{self.choice}` selects is not written back under it")
        for each in selecting:
            self.statement(each)
        self._follow_on(list(statements[last + 1 :]))
        if not self.labels or len(self.labels) == len(self.tensors):
            raise NotRowwise(f"what `{self.choice}` selects gets to no loss that ignores labels")
        asked = {name for each in self.conditions for name in re.findall(r"\.(\w+)", each)}
        if not asked.isdisjoint(self.changed):
            raise NotRowwise(f"`{min(asked & self.changed)}` is assigned between the selection and the loss")
        self._rewrite(selecting)
        return Region(tuple(selecting), self.edit(selecting))

    def _rewrite(self, selecting: Sequence[ast.stmt]) -> None:
        for node, found, base in self.selected:
            mask = self.site.text(found.mask)
            if base in self.labels:
                self.looked.append(node)
                text = f"{self.site.torch}.where({mask}, {base}, {self.labels[base]}).flatten()"
                self.conditions[f"{base}.dtype != {self.site.torch}.uint8"] = None
            else:
                text = f"_rows_under({mask}, {base})"
            self.changes[id(node)] = (node, text)
        self.lines = []
        for each in selecting:
            assert isinstance(each, ast.Assign)
            self.emit_value("".join(f"{self.text(target)} = " for target in each.targets), each.value)

    def _follow_on(self, rest: list[ast.stmt]) -> None:
        """Follow the statements behind those that select, block by block outwards, until no rows are left."""
        blocks = self.site.place.blocks
        for number in range(len(blocks) - 1, -1, -1):
            if number < len(blocks) - 1:
                body, position = blocks[number]
                if not isinstance(body[position], (ast.If, ast.With)):
                    raise NotRowwise("what is selected is used outside of the loop")
                rest = list(body[position + 1 :])
            for each in rest:
                self.follow(each)
                site = self.site.at(each)
                if site is not None and not any(map(site.live_after, self._rows())):
                    return
        if self._rows():
            raise NotRowwise(f"`{self._rows()[0]}` gets to no loss that ignores labels")

    def _rows(self) -> list[str]:
        return [name for name, held in self.env.items() if self.enter([held])]

    def follow(self, node: ast.stmt) -> None:
        """One statement behind those that select."""
        named = all_names(node)
        if named.isdisjoint(self._rows()):
            self._pass_by(node)
        elif isinstance(node, ast.If):
            self._follow_branches(node)
        elif isinstance(node, ast.Return):
            if node.value is not None and self.enter([self.value(node.value)]):
                raise NotRowwise(f"`{short(node)}` returns selected rows")
        else:
            MaskedLosses.statement(self, node)

    def _pass_by(self, node: ast.stmt) -> None:
        """A statement that reads no rows, and may bind what is asked for or called later."""
        value = node.value if isinstance(node, ast.Assign) else None
        for part in walk(node):
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                plain = value is not None and any(part is each for each in node.targets)  # type: ignore[attr-defined]
                self.bind(part, OTHER, node if plain else ast.Pass())
            elif isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load):
                self.changed.add(part.attr)

    def _follow_branches(self, node: ast.If) -> None:
        if self.enter([self.value(node.test)]):
            raise NotRowwise(f"`{short(node.test)}` branches on the values of the selected rows")
        before, ends = dict(self.env), []
        for body in (node.body, node.orelse):
            self.env = dict(before)
            for each in body:
                self.follow(each)
            ends.append(self.env)
        first, second = ends
        for name in first.keys() | second.keys():
            held = [each[name] for each in ends if name in each]
            if self.enter(held) and any(each != held[0] for each in held if self.enter([each])):
                raise NotRowwise(f"`{name}` holds different rows in two branches")
        self.env = {**second, **first, **{name: held for name, held in second.items() if self.enter([held])}}

    # what rows get to

    def read(self, node: ast.expr, found: Selection) -> Held:
        before = dict(self.conditions)
        held = super().read(node, found)
        self.conditions = before  # each tensor is selected from by the mask on its own device
        if found.by_element or not held.spelled:
            raise NotRowwise(f"`{short(node)}` selects elements")
        self.selected.append((node, found, held.spelled))
        return held

    def picked(self, node: ast.expr, found: Element) -> tuple[str, str]:
        raise NotRowwise(f"`{short(node)}` selects elements")

    def operator(self, node: ast.Call, name: str, first: Held, rest: list[Held], words: dict[str, Held]) -> Held:
        held = super().operator(node, name, first, rest, words)
        if held.what is What.DECIDES or name in {"gather", "take_along_dim"}:  # no index is -100
            raise NotRowwise(f"`{short(node)}` looks at all rows")
        return held

    def reduced(self, node: ast.Call, name: str, given: list[Held], words: dict[str, Held]) -> Held | None:
        return super().reduced(node, name, given, words) if name in {"cross_entropy", "nll_loss"} else None

    def of_classes(
        self, node: ast.Call, function: str, texts: list[str], given: list[Held], ignored: str
    ) -> Held | None:
        held = super().of_classes(node, function, texts, given, ignored)
        rows, labels = given[0], given[1]
        self.changes.pop(id(node), None)
        if held is None or not labels.spelled or not self._is_free(ignored):
            return None
        if self.labels.setdefault(labels.spelled, ignored) != ignored or rows.spelled in self.labels:
            raise NotRowwise(f"`{short(node)}` ignores another label")
        return held

    def _is_free(self, ignored: str) -> bool:
        """True for a label that has a name before the statements that select."""
        named = (part.id for part in ast.walk(ast.parse(ignored)) if isinstance(part, ast.Name))
        return not any(name in self.env for name in named)

    def mean_of(self, node: ast.Call, kind: str, function: str, texts: list[str]) -> Held:
        raise NotRowwise(f"`{short(node)}` ignores no label")
