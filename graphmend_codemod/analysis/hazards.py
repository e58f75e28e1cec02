"""What there is against running an expression where eager mode would not run it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import shape_needs
from graphmend_codemod.analysis.scope import as_written
from graphmend_codemod.analysis.shape_needs import ShapeNeed


class Hazards(NamedTuple):
    """What was found about an expression.

    `impure` says why it must not run when eager would not run it, None if it may. `raises` says why it may raise there.
    `needs_floating` are tensors (source text) that must be floating for it not to raise, or for its dtype to follow
    from theirs; it does not raise where only the `strict` ones are. `finite` is true when a zero gradient that flows
    into it stays zero.
    """

    impure: str | None = None
    raises: str | None = None
    needs_floating: frozenset[str] = frozenset()
    finite: bool = True
    needs_shapes: frozenset[ShapeNeed] = frozenset()
    strict: frozenset[str] = frozenset()

    def __and__(self, other: Hazards) -> Hazards:
        return Hazards(
            self.impure or other.impure,
            self.raises or other.raises,
            self.needs_floating | other.needs_floating,
            self.finite and other.finite,
            self.needs_shapes | other.needs_shapes,
            self.strict | other.strict,
        )

    @property
    def where_skipped(self) -> str | None:
        """Why it must not run where eager mode skips it, whatever the shapes; None where it may."""
        return self.impure or (f"{self.raises} where eager mode skips it" if self.raises else None)

    @property
    def unconditional(self) -> Hazards:
        """The hazards where no shapes can be asked for."""
        need = min(self.needs_shapes, default=None)
        operands = need is not None and need.shape == shape_needs.NAMED
        why = "its operands may not broadcast" if operands else "it may raise for some shapes"
        reason = self.raises or (None if need is None else why)
        return self._replace(raises=reason, needs_shapes=frozenset())


FREE = Hazards()


def short(node: ast.AST, limit: int = 60) -> str:
    """Source text of a node for a message, on one line."""
    text = " ".join(ast.unparse(as_written(node)).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
