"""A test whether a mask chooses a row, around work on the rows that it chooses.

Where it chooses none, the work writes nothing, so the compile path does not test. But then it computes with zeros that
stand in, where eager mode skips the work: it may neither raise, nor do anything but write under the mask.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis.patterns import elements_of
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import before_if
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.masked_region import Rewriter, tried
from graphmend_codemod.rules.proofs.rowwise.row_helpers import helpers_in
from graphmend_codemod.rules.proofs.rowwise.row_values import Held, NotRowwise


def without_test(site: Site, node: ast.If, mask: ast.expr, static: Sequence[ast.expr]) -> Edit:
    """The edit that works on all rows in front of the test; NotRowwise with the reason if there is none."""

    def attempt(ranks: dict[str, int], bare: dict[str, None]) -> Edit:
        return _SkippedRows(site, mask, ranks, bare).before(node, static)

    return tried(attempt)


class _SkippedRows(Rewriter):
    """Follows the statements of the branch."""

    skips = True

    def __init__(self, site: Site, mask: ast.expr, ranks: dict[str, int], bare: dict[str, None]) -> None:
        super().__init__(site, mask, ranks, bare)
        self._end = site

    def before(self, node: ast.If, static: Sequence[ast.expr]) -> Edit:
        site = self.site
        self._follow(node.body)
        self.demand_mask_stays(node.body)
        path = self.path("elif" if site.is_elif(node) else "if", list(map(site.operand_of_and, static)))
        return before_if(site, node, (path,))._replace(helpers=helpers_in(site, path))

    def _follow(self, body: Sequence[ast.stmt]) -> None:
        self._end = self.site.at(body[-1]) or self.site
        self._demand_neutral(body)
        for each in body:
            self.statement(each)
        if not self.reads or not self.written:
            raise NotRowwise(f"what `{self.choice}` selects is not written back under it")

    def _demand_neutral(self, body: Sequence[ast.stmt]) -> None:
        """NotRowwise for a statement that does something where the mask chooses no row."""
        for each in body:
            if isinstance(each, ast.If):
                self._demand_neutral([*each.body, *each.orelse])
                continue
            targets: list[ast.expr] = [each.target] if isinstance(each, ast.AugAssign) else []
            targets += each.targets if isinstance(each, ast.Assign) else []
            parts = [part for target in targets for part in elements_of(target)]
            if not parts or not all(map(self._is_neutral, parts)):
                raise NotRowwise(f"`{short(each)}` does something where no row is selected")

    def _is_neutral(self, target: ast.expr) -> bool:
        """True for what is written under the mask, and for a name that only the branch reads."""
        if isinstance(target, ast.Name):
            return not self._end.live_after(target.id)
        return self.chooses(target)

    def _make(self, node: ast.expr, function: str, texts: list[str]) -> Held:
        raise NotRowwise(f"`{short(node)}` is not a number where no row is selected")
