"""Fixes that make one graph of two, where torch 2.13 would compute wrong gradients in it.

A graph break ends a graph, and what the next one writes in place no longer matters to the first one's gradients. In one
graph, torch 2.13 computes the gradient of what was read before the write from what was written.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphmend_codemod.core.findings import Edit
from graphmend_codemod.engine.precedence import first_of
from graphmend_codemod.rules.framework.rule import Diagnostic, Match, Rule
from graphmend_codemod.rules.framework.site import Site


def first_with_right_gradients(site: Site, asked: Sequence[tuple[Rule, Match]]) -> tuple[Rule, Diagnostic] | None:
    """What speaks for a site (`first_of`), without fixes in whose graph gradients would be wrong, or a cache be lost.

    In the place of such a fix: the same for code that runs without gradients, the fix of another rule, or the reason.
    """
    first: tuple[Rule, Diagnostic] | None = None
    while (found := first_of(site, asked)) is not None and (edit := found[1].edit) is not None:
        rule, diagnostic = found
        from graphmend_codemod.engine import kept_results  # a commit hook waits for them
        from graphmend_codemod.rules.proofs.gradients.unrecorded import is_around
        from graphmend_codemod.rules.proofs.memory.written_inputs import spoiled

        reason = kept_results.why_not(edit, site)
        if reason is None:
            written = spoiled(site, whole=edit.whole, copied=edit.copies, repeats=edit.repeats)
            if written is None:
                return found
            # Where gradients are off for the statement alone, what is around it needs them all the same.
            again = None if is_around(site) else first_of(site.but(without_gradients=True), asked)
            if again is not None and _is_without_gradients(site, again[1].edit):
                return again
            reason = (
                f"`{written}` is read and written in place around it, and torch 2.13 would compute the gradients of "
                "one graph from what was written; manually write to a copy, or call it under `torch.no_grad()`"
            )
        first = first or (rule, diagnostic._replace(edit=None, declined=reason))
        asked = [each for each in asked if each[0] is not rule]
    return first or found


def _is_without_gradients(site: Site, edit: Edit | None) -> bool:
    """True where each compile path of an edit, which may be taken, asks whether gradients are off."""
    from graphmend_codemod.engine import never_taken

    if edit is None or not edit.paths or never_taken.why_not(edit, site) is not None:
        return False
    return all(site.gradients_off in path.conditions for path in edit.paths)
