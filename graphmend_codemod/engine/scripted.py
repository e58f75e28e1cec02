"""Edits of code that TorchScript compiles as well: it has to compile afterwards too."""

from __future__ import annotations

import re
from collections import Counter

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.core.findings import CompilePath, Edit
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site

_UNPARSED = r"\blambda\b|\bfor\b[\s\S]*?\bin\b|:=|\{[^{}:]+\}"
"""What TorchScript may refuse also where it would never run: lambdas, heads of loops, `:=`, sets."""
_PARSED = r"\bfor \w+ in \([\w., ]*\)\s*\)"
"""The end of `all(each.dim() > 0 for each in (x, y))`, which it parses: one name, no further `for`, and no `if`."""


def scriptable(diagnostic: Diagnostic, site: Site) -> Diagnostic:
    """The diagnostic without its edit where TorchScript would no longer compile code that is given to it as well.

    A compile path that it would not compile gets a header that it passes by.
    """
    edit = diagnostic.edit
    if edit is None or not site.scripted:
        return diagnostic
    apart = edit if edit.scriptable else _apart(edit, site)
    if apart is None:
        reason = "TorchScript also compiles this function and does not support the compile path"
        return diagnostic._replace(edit=None, declined=reason)
    target = site.settings.target_torch
    if target is None or target >= torch_api.SCRIPTS_KNOW_COMPILING:
        return diagnostic._replace(edit=apart)
    needed, supported = ".".join(map(str, torch_api.SCRIPTS_KNOW_COMPILING)), ".".join(map(str, target))
    reason = (
        f"TorchScript supports `torch.compiler.is_compiling()` since torch {needed}; "
        f"the project supports {supported}; raise `target-torch` if you can"
    )
    return diagnostic._replace(edit=None, declined=reason, needs_torch=torch_api.SCRIPTS_KNOW_COMPILING)


def _apart(edit: Edit, site: Site) -> Edit | None:
    """The edit behind `torch.jit.is_scripting()`; None where that is not enough."""
    if site.torch is None or len(edit.replacements) != 1 or not edit.paths:
        return None
    parts = edit.replacements[0].parts
    written = Counter(found for part in parts if isinstance(part, str) for found in _unparsed(part))
    if not written <= Counter(_unparsed(site.source.segment(edit.replacements[0].span))):
        return None  # what the author's statement has is parsed already
    apart = [_passed_by(part, site) if isinstance(part, CompilePath) else part for part in parts]
    if any(part is None for part in apart):
        return None
    kept = tuple(part for part in apart if part is not None)
    return edit._replace(replacements=(edit.replacements[0]._replace(parts=kept),))


def _passed_by(path: CompilePath, site: Site) -> CompilePath | None:
    """The path behind a header that TorchScript knows to be false; None where its text is not understood.

    TorchScript compiles all operands of `and`, and only parses what they guard. Of a conditional expression it compiles
    the side that is taken, so there the further conditions stand.
    """
    first, *others = path.conditions
    if first != site.compiling:
        return None
    scripting = f"{site.torch}.jit.is_scripting()"
    if not others:
        return None if path.negated else path.asking(f"not {scripting}")
    between = next((each for each in (" and ", "\n    and ") if path.count(each.join(path.conditions)) == 1), None)
    if between is None:
        return None
    joined = between.join(path.conditions)
    line = path[path.rfind("\n", 0, path.index(joined)) + 1 :]
    told = ["False", f"if {scripting}", f"else {others[0]}", *(f"and {each}" for each in others[1:])]
    text = f"{first} and ({' '.join(told)})"
    width = site.indentation() + len(line.partition("\n")[0]) + len(text) - len(joined)
    if between != " and " or site.is_too_long(width):
        outer = len(line) - len(line.lstrip(" "))
        inner = "\n" + " " * (outer + 4)
        together = " ".join(told)
        if "\n" not in together and not site.is_too_long(site.indentation() + outer + 4 + len(together)):
            told = [together]
        lines = "".join(inner + each.replace("\n", "\n    ") for each in told)
        text = f"{first}{between}({lines}{inner[:-4]})"
    return CompilePath(path.replace(joined, text), [*path.conditions, f"not {scripting}"], path.negated)


def _unparsed(text: str) -> list[str]:
    """The lambdas and the heads of loops in a text: `for i, row in`."""
    return [" ".join(found.split()) for found in re.findall(_UNPARSED, re.sub(_PARSED, ")", text))]
