"""One element of each row that a mask chooses: `x[mask, labels[mask]]`, `x[mask, 4]`, read and written.

Each row has an element of its own, so the compile path takes one of all rows. Where the mask does not hold, the index
is 0, which every row has: what stands there is neither an index of a chosen row nor one that fits.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import written_integer
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import BOOL, INT64
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.masked_reads import MaskedReads
from graphmend_codemod.rules.proofs.rowwise.row_values import Held, NotRowwise, What, rows
from graphmend_codemod.rules.proofs.rowwise.selectors import Element, element, same_mask

_LONG = frozenset({"torch.int64", "torch.long"})
_KEEP = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_PLACES = frozenset({"argmax", "argmin"})
_BOUNDED = frozenset({"clamp", "clamp_min", "clamp_max"})


class ChosenElements(MaskedReads):
    """Follows `x[mask, index]`; `known` is what the expressions hold that were looked at."""

    def __init__(self, site: Site, mask: ast.expr, ranks: dict[str, int], bare: dict[str, None]) -> None:
        super().__init__(site, mask, ranks, bare)
        self.known: dict[int, Held] = {}

    def element_of(self, node: ast.AST) -> Element | None:
        """What `x[mask, index]` of the mask is made of."""
        found = element(node)
        return found if found is not None and same_mask(found.mask, self.mask) else None

    def chooses(self, node: ast.AST) -> bool:
        """True for what the mask selects, and for elements of it."""
        return self.is_mask(node) or self.element_of(node) is not None

    def subscript(self, node: ast.Subscript) -> Held:
        found = self.element_of(node)
        if found is None:
            return super().subscript(node)
        name, index = self.picked(node, found)
        self.changes[id(node)] = (node, f"_elements_under({self.choice}, {name}, {index})")
        self.reads = True
        self.sources[name] = None
        return rows(1, boolean=self.site.value(found.base).dtype == BOOL)

    def picked(self, node: ast.expr, found: Element) -> tuple[str, str]:
        """The texts of the tensor and of the index, of which the compile path asks that they fit."""
        if self.lifted is not None:
            raise NotRowwise(f"`{short(node)}` selects among the selected rows")
        self.ask_mask_again(node)
        self.looked.append(node)
        name = self.tensor(found.base, 2)
        number = written_integer(found.place)
        held = self.value(found.place)
        asked = [f"{name}.device == {self.chooser}.device"]
        if number is not None:
            asked.append(f"{name}.shape[-1] {'>' if number >= 0 else '>='} {abs(number)}")
        elif held.what is What.ROWS and held.rank == 1 and held.whole is not None:
            asked += [f"{name}.shape[-1] > 0", *held.whole]
        else:
            raise NotRowwise(f"cannot infer that `{short(found.place)}` holds integers; call its `.long()`")
        self.conditions.update(dict.fromkeys(asked))
        return name, self.text(found.place)

    def value(self, node: ast.expr) -> Held:
        held = super().value(node)
        if held.what is What.ROWS and not isinstance(node, ast.Name):
            held = held._replace(whole=self._whole(node))
        self.known[id(node)] = held
        return held

    def _whole(self, node: ast.expr) -> tuple[str, ...] | None:
        """When an expression of rows gives int64; None where nobody can tell."""
        if isinstance(node, ast.UnaryOp):
            return self._known(node.operand) if isinstance(node.op, ast.USub) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, _KEEP):
            sides = [self._known(each) for each in (node.left, node.right) if self._is_of_rows(each)]
            return None if None in sides else tuple(each for side in sides for each in side or ())
        if isinstance(node, ast.Subscript) and self.is_mask(node):
            base = self.site.value(node.value)
            sure = base.dtype == INT64 and not base.hint
            text = self.site.text(node.value)
            asked = () if sure else (f"{text}.dtype == {self.site.torch}.int64",)
            return asked if text in self.tensors else None
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        name, owner = node.func.attr, node.func.value
        cast = name in {"to", "type"} and len(node.args) == 1 and not node.keywords
        long = (name == "long" and not node.args) or (cast and self.qualified(node.args[0]) in _LONG)
        if long or name in _PLACES:
            return ()
        return self._known(owner) if name in _BOUNDED and self._is_of_rows(owner) else None

    def _is_of_rows(self, node: ast.expr) -> bool:
        return id(node) in self.known and self.known[id(node)].what is What.ROWS

    def _known(self, node: ast.expr) -> tuple[str, ...] | None:
        return self.known[id(node)].whole if id(node) in self.known else None
