"""Edits in projects that support an older torch than their compile paths need: such a torch runs the code as it was.

Headers ask a function that is false there, and what the edit defines beside them does nothing when the file is
imported: a decorator that an older torch lacks is looked up behind a `lambda`, by a torch that has it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.core.findings import CompilePath, Edit, Helper, Original, Replacement
from graphmend_codemod.core.source import parse_text
from graphmend_codemod.project.summary.spelling import SINCE_TORCH
from graphmend_codemod.rules.framework.edits import CONSTANT
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site

_Version = tuple[int, int]
_ANY = (0, 0)
_FIRST = torch_api.SINCE["compiler.is_compiling"]
_IS_NEW = 'hasattr({{torch}}, "compiler") and {{torch}}.__version__ >= ({}, {})'
_ASKS = '''\
def {{name}}(is_new={is_new}):
    """True while torch.compile traces with torch {}.{} or newer; an older one runs the code as it was."""
    if is_new:
        return {asks}
    return False'''
_DECORATES = '''\
def {{name}}(decorator):
    """What `decorator()` gives, with torch {}.{} or newer; an older one never calls what it decorates."""
    return decorator() if {is_new} else lambda code: code'''
_PARTS = (("library.", torch_api.SINCE["library.custom_op"]), ("compiler.", _FIRST))
"""What a decorator may name of torch, and its first release."""


def within_target(diagnostic: Diagnostic, site: Site) -> Diagnostic:
    """The diagnostic with an edit that the oldest torch which the project supports can import and run.

    Without its edit where there is none: the reason says which torch has what it needs.
    """
    edit, target = diagnostic.edit, site.settings.target_torch
    if edit is None or target is None:
        return diagnostic
    newest = max(sorted(edit.needs), key=torch_api.SINCE.__getitem__, default=None)
    if newest is None or target >= torch_api.SINCE[newest]:
        return diagnostic
    asking = _asking(edit, site) if torch_api.SINCE[newest] <= _FIRST else None
    if asking is None:
        asking = _for_newer(edit, site, target)
    if asking is not None:
        return diagnostic._replace(edit=asking)
    needed, supported = (".".join(map(str, each)) for each in (torch_api.SINCE[newest], target))
    reason = (
        f"the fix needs `torch.{newest}` (torch {needed}), and the project supports torch {supported}; "
        "raise `target-torch` if you can"
    )
    return diagnostic._replace(edit=None, declined=reason, needs_torch=torch_api.SINCE[newest])


def _asking(edit: Edit, site: Site) -> Edit | None:
    """The edit with the function by which its header asks for the compiler; None where an old torch would not do.

    What only the compile path calls is never looked up by a torch without a compiler.
    """
    helper = site.asks_older_torch
    if helper is None or any(each.since for each in edit.helpers):
        return None
    texts = _written(edit)
    if not any(site.compiling in text for text in texts) or any(f"{site.torch}.compiler." in text for text in texts):
        return None
    return edit._replace(helpers=(*edit.helpers, helper), since="")


def _for_newer(edit: Edit, site: Site, target: _Version) -> Edit | None:
    """The edit with a header that is false for all torch older than it needs; None where not all stands behind one."""
    torch, version = site.torch or "torch", max(torch_api.SINCE[each] for each in edit.needs)
    questions = (site.compiling, f"{torch}.compiler.is_compiling()"), (f"{torch}.compiler.is_dynamo_compiling()",) * 2
    helpers = _guarded(edit.helpers, target, version, torch)
    for (old, asks), template in zip(questions, torch_api.ASKS_NEWER_TORCH, strict=True):
        if not any(old in text for text in _written(edit)):
            continue
        text = _ASKS.format(*version, is_new=_IS_NEW.format(*version), asks=asks)
        name = template.format(*version)
        if (helper := site.asking(name, text)) is None:
            return None
        helpers = (*helpers, helper)
        edit = edit._replace(replacements=tuple(_asking_instead(each, old, f"{name}()") for each in edit.replacements))
    behind = all(_asks_first(each, version) for each in edit.replacements)
    return edit._replace(helpers=helpers, since="") if behind else None


def _written(edit: Edit) -> list[str]:
    return [part for each in edit.replacements for part in each.parts if isinstance(part, str)]


def _asking_instead(one: Replacement, old: str, new: str) -> Replacement:
    """The replacement with another question for the compiler."""

    def part(each: str | Original) -> str | Original:
        if isinstance(each, CompilePath):
            return CompilePath(
                each.replace(old, new), [told.replace(old, new) for told in each.conditions], each.negated
            )
        return each.replace(old, new) if isinstance(each, str) else each

    return one._replace(parts=tuple(map(part, one.parts)))


def _asks_first(one: Replacement, version: _Version) -> bool:
    """True for a replacement that writes nothing, or asks whether the compiler of a new torch traces."""
    text = "".join(part for part in one.parts if isinstance(part, str))
    return not text.strip() or any(f"{name.format(*version)}()" in text for name in torch_api.ASKS_NEWER_TORCH)


def _guarded(helpers: tuple[Helper, ...], target: _Version, newest: _Version, torch: str) -> tuple[Helper, ...]:
    """The helpers, with nothing that an older torch would miss when it imports the file."""
    since: dict[str, _Version] = {}
    found, asked = list[Helper](), dict[_Version, Helper]()
    for helper in helpers:
        since[helper.name] = version = _since(helper, since, newest)
        if version <= target:
            found.append(helper)
            continue
        name = f"{SINCE_TORCH}{version[0]}_{version[1]}"
        text = _DECORATES.format(*version, is_new=_IS_NEW.format(*version)).format(name=name, torch=torch)
        asked[version] = Helper(name, text, shared=True)
        found.append(helper._replace(source=_looked_up_later(helper.source, name), after=(*helper.after, name)))
    return (*asked.values(), *found)


def _since(helper: Helper, since: Mapping[str, _Version], newest: _Version) -> _Version:
    """The first torch that can make what the decorators of a helper give: any can where it has none.

    `since` are the helpers before it. One that makes an operator of a function is taken to need what the edit needs.
    """
    found = [_ANY]
    for node in _decorators(helper.source):
        text = ast.unparse(node)
        named = next((part.id for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in since), None)
        found += [version for part, version in _PARTS if f".{part}" in text]
        if helper.since:
            found.append(torch_api.SINCE[helper.since])
        if named is not None and named != CONSTANT.name:
            found.append(since[named] if isinstance(node, ast.Attribute) else newest)
    return max(found)


def _decorators(source: str) -> list[ast.expr]:
    definition = parse_text(source).body[0]
    return list(getattr(definition, "decorator_list", ()))


def _looked_up_later(source: str, name: str) -> str:
    """The definition with each of its decorators behind a `lambda`."""
    lines = source.split("\n")
    for each in reversed(_decorators(source)):
        first, last = each.lineno - 1, (each.end_lineno or each.lineno) - 1
        text = lines[first : last + 1]
        text[0] = text[0].removeprefix("@")
        if len(text) == 1:
            lines[first : last + 1] = [f"@{name}(lambda: {text[0]})"]
        else:
            inner = [f"    lambda: {text[0]}", *(f"    {line}" if line else line for line in text[1:])]
            lines[first : last + 1] = [f"@{name}(", *inner, ")"]
    return "\n".join(lines)
