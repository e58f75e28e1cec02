"""Edits that call a builtin by a name that means something else in the function, or in the whole file."""

from __future__ import annotations

import re

from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site

_CALLED = re.compile(
    r"(?<![\w.])(isinstance|type|all|any|len|getattr|hasattr|callable|zip|range|enumerate|min|max|sum|abs|int|float|bool"
    r"|list|tuple|set|dict|sorted|slice|round)\("
)


def unshadowed(diagnostic: Diagnostic, site: Site) -> Diagnostic:
    """The diagnostic without its edit where what that writes beside the author's text calls another `isinstance`."""
    edit = diagnostic.edit
    if edit is None:
        return diagnostic
    scope = site.evaluator.scope
    parts = (part for each in edit.replacements for part in each.parts if isinstance(part, str))
    written = {name for part in parts for name in _CALLED.findall(part)}
    helpers = {name for each in edit.helpers for name in _CALLED.findall(each.source)}
    elsewhere = {name for name in written | helpers if scope.resolve_global(name) not in (None, f"builtins.{name}")}
    taken = sorted({name for name in written if scope.is_local(name)} | elsewhere)
    if not taken:
        return diagnostic  # nearly always
    own = {name for each in edit.replacements for name in _CALLED.findall(site.source.segment(each.span))}
    other = next((name for name in taken if name not in own or name in helpers & elsewhere), None)
    return diagnostic if other is None else diagnostic._replace(edit=None, declined=name_taken(other))
