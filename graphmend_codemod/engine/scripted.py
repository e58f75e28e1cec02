"""Edits of code that TorchScript compiles as well: it has to compile afterwards too."""

from __future__ import annotations

import re
from collections import Counter

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.core.findings import CompilePath, Edit
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site

_UNPARSED = r"\blambda\b|\bfor\b[\s\S]*?\bin\b"
"""What TorchScript may refuse also where it would never run."""


def scriptable(diagnostic: Diagnostic, site: Site) -> Diagnostic:
    """The diagnostic without its edit where TorchScript would no longer compile code that is given to it as well.

    A compile path that it would not compile gets a header that it passes by, if there are no further conditions.
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
    """The edit behind `not torch.jit.is_scripting()`; None where that is not enough.

    TorchScript compiles all conditions around that one, and only parses what they guard.
    """
    if site.torch is None or len(edit.replacements) != 1:
        return None
    first, *others = edit.replacements[0].parts
    if not isinstance(first, CompilePath) or first.negated or first.conditions != (site.compiling,):
        return None
    written = Counter(found for part in (first, *others) if isinstance(part, str) for found in _unparsed(part))
    if not written <= Counter(_unparsed(site.source.segment(edit.replacements[0].span))):
        return None  # what the author's statement has is parsed already
    first = first.asking(f"not {site.torch}.jit.is_scripting()")
    return edit._replace(replacements=(edit.replacements[0]._replace(parts=(first, *others)),))


def _unparsed(text: str) -> list[str]:
    """The lambdas and the heads of loops in a text: `for i, row in`."""
    return [" ".join(found.split()) for found in re.findall(_UNPARSED, text)]
