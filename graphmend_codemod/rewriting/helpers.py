"""Module-level definitions that edits share: named, found again, and placed."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.core.source import SourceError, parse_text
from graphmend_codemod.rewriting.blocks import CodeBlocks
from graphmend_codemod.rewriting.helper_module import HelperModule
from graphmend_codemod.rewriting.imports import under_condition
from graphmend_codemod.rewriting.insertions import Insertion, above, below
from graphmend_codemod.rewriting.names import ModuleNames, has_definition, has_import
from graphmend_codemod.rewriting.render import render
from graphmend_codemod.rewriting.text import RewriteError


@dataclass(frozen=True)
class Needed:
    """A helper under the name that it gets in this file; `present` if the file has it already.

    `imported` is one that stands in the project's module of helpers.
    """

    helper: Helper
    present: bool
    imported: bool = False


@dataclass(frozen=True)
class Origin:
    """The project's module of helpers, as this file spells it where it imports from there."""

    module: HelperModule
    spelled: str


def named(
    names: ModuleNames, edit: Edit, taken: Sequence[Needed], origin: Origin | None = None
) -> tuple[Edit, tuple[Needed, ...]]:
    """The edit with its helpers under names that are free in this file, and those helpers.

    `taken` are helpers of other edits. RewriteError if a helper's text is not one definition of its name.
    """
    needed: list[Needed] = []
    alone = [[helper] for helper in edit.helpers if helper.shared]
    todo = [*alone, *_groups([helper for helper in edit.helpers if not helper.shared])]
    while todo:
        group = todo.pop(0)
        chosen = _chosen(names, group, (*taken, *needed), origin)
        needed += chosen
        for helper, own in zip(group, chosen, strict=True):
            if own.helper.name != helper.name:
                edit = edit._replace(replacements=tuple(_renamed(one, helper, own) for one in edit.replacements))
                if helper.shared:
                    todo = [[_naming(other, helper, own) for other in others] for others in todo]
    return edit, tuple(needed)


def _naming(other: Helper, helper: Helper, own: Needed) -> Helper:
    """The other helper where `helper` has the name that it got."""
    after = tuple(own.helper.name if name == helper.name else name for name in other.after)
    return other._replace(source=_word(helper.name).sub(own.helper.name, other.source), after=after)


def _groups(helpers: Sequence[Helper]) -> list[list[Helper]]:
    """Helpers that name each other together, in the order of the first."""
    groups: list[list[Helper]] = []
    for helper in helpers:
        related = [group for group in groups if any(_related(helper, other) for other in group)]
        groups = [group for group in groups if group not in related]
        groups.append([*(other for group in related for other in group), helper])
    return groups


def _related(one: Helper, other: Helper) -> bool:
    return bool(_word(one.name).search(other.source) or _word(other.name).search(one.source))


def _chosen(
    names: ModuleNames, group: Sequence[Helper], taken: Sequence[Needed], origin: Origin | None
) -> list[Needed]:
    """The helpers of a group under names of one number, which all are free or stand for the same definitions."""
    for helper in group:
        if _definition(helper.source, helper.name) is None:
            raise RewriteError(f"the helper `{helper.name}` is not one definition of that name")
    for number in count(1):
        found = [_named(names, _numbered(helper, group, number), taken, origin) for helper in group]
        if all(each is not None for each in found):
            return [each for each in found if each is not None]
    raise AssertionError("count() does not end")


def _numbered(helper: Helper, group: Sequence[Helper], number: int) -> Helper:
    """The helper with a number behind the names of the group, from the second on."""
    if number == 1:
        return helper
    source = helper.source
    for other in group:
        source = _word(other.name).sub(f"{other.name}_{number}", source)
    numbered = {other.name: f"{other.name}_{number}" for other in group}
    after = tuple(numbered.get(name, name) for name in helper.after)
    return helper._replace(name=numbered[helper.name], source=source, after=after)


def _named(names: ModuleNames, candidate: Helper, taken: Sequence[Needed], origin: Origin | None) -> Needed | None:
    """The helper under its name, if that is free or means the same definition."""
    name = candidate.name
    wanted = _definition(candidate.source, name)
    bound = names.bound(name)
    if len(bound) == 1 and not names.conditional(bound[0]) and ast.dump(bound[0].node) == wanted:
        return Needed(candidate, present=True)
    known = origin.module.definitions.get(name) if origin is not None else None
    if origin is not None and len(bound) == 1 and origin.module.has(names, bound[0], origin.spelled):
        return Needed(candidate, present=True, imported=True) if known == wanted else None
    rivals = [other for other in taken if other.helper.name == name]
    if any(_definition(other.helper.source, name) == wanted for other in rivals):
        return replace(rivals[0], helper=candidate)
    if rivals or not names.free(name):  # in any scope, so nothing shadows it where it is used
        return None
    coming = {other.helper.name for other in taken if other.imported}
    if origin is None or not origin.module.can_hold(candidate, coming):
        return Needed(candidate, present=False)
    return Needed(candidate, present=False, imported=True) if known in (None, wanted) else None


def _definition(source: str, name: str) -> str | None:
    """The tree of a text that is one definition of `name`, as text; None for any other."""
    try:
        body = parse_text(source).body
    except SourceError:
        return None
    single = len(body) == 1 and isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return ast.dump(body[0]) if single and getattr(body[0], "name", None) == name else None


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")


def _renamed(one: Replacement, helper: Helper, own: Needed) -> Replacement:
    word = _word(helper.name)
    return one._replace(parts=tuple(word.sub(own.helper.name, p) if isinstance(p, str) else p for p in one.parts))


def check_condition(names: ModuleNames, helper: Helper, places: Sequence[int]) -> None:
    """RewriteError if the module can be imported where what the helper's definition needs cannot.

    A name that is bound only under a condition (`if is_torch_available():`) may be needed at the top level if the
    definition that uses the helper needs a name bound under the same condition, or any other definition needs one that
    is bound nowhere else.
    """
    body = names.blocks.tree.body
    for name in sorted(_needs(helper)):
        bound = names.bound(name)
        coming = None if bound else under_condition(names.blocks, name)
        if any(not names.conditional(binding) for binding in bound) or not (bound or coming):
            continue
        tops = {binding.top for binding in bound} | ({coming[0]} if coming else set())
        alike = {binding.name for binding in names.bindings if binding.top in tops}
        sure = {each for each in alike if len(names.bound(each)) == 1}
        if any(_evaluated(node) & sure for node in body):
            continue
        for at in places:
            user = next((node for node in body if names.blocks.start(node) <= at < names.blocks.end(node)), None)
            if user is None or not _evaluated(user) & alike:
                raise RewriteError(f"its helper needs `{name}`, which the module imports only under a condition")


def _evaluated(definition: ast.stmt) -> set[str]:
    """Names that Python looks up when it runs a definition, its own body left out."""
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return set()
    parts: list[ast.AST] = [*definition.decorator_list]
    if isinstance(definition, ast.ClassDef):
        parts += [*definition.bases, *definition.keywords]
    else:
        parts += [*definition.args.defaults, *(default for default in definition.args.kw_defaults if default)]
    return {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}


def new_helpers(blocks: CodeBlocks, needed: Sequence[Helper], imports: Sequence[Insertion]) -> list[Insertion]:
    """Insertions of helpers, after imports and what they rely on, before what uses them where possible.

    `imports` are those that will be inserted as well.
    """
    found = []
    places: dict[str, int] = {}
    for helper in needed:
        needs = _needs(helper)
        after = [new.at for new in imports if not needs.isdisjoint(new.binds)]
        after += [at for name, at in places.items() if name in needs or name in helper.after]
        places[helper.name] = max([_place(blocks, helper), *after])
        text = render(blocks.layout, (helper.source,), "").text
        found.append(Insertion(places[helper.name], text, before=2, after=2))
    return found


def _needs(helper: Helper) -> set[str]:
    """Names that must be bound where the helper is defined."""
    return _evaluated(parse_text(helper.source).body[0])


def _place(blocks: CodeBlocks, helper: Helper) -> int:
    """Offset of the line at which the helper goes, as far as the imports that the file has decide that."""
    body, names = blocks.tree.body, ModuleNames(blocks)
    anchor = 0 if ast.get_docstring(blocks.tree, clean=False) is not None else -1
    for index, node in enumerate(body):
        if has_definition(node) and not has_import(node):
            break
        if any(isinstance(inner, ast.Name) and inner.id == helper.name for inner in ast.walk(node)):
            break
        if has_import(node):
            anchor = index
    relied_on = [binding.top for name in helper.after for binding in names.bound(name)]
    needed = [names.bound(name)[0].top for name in _needs(helper) if names.bound(name)]
    anchor = max([anchor, *relied_on, *needed])
    return above(blocks, body[0]) if anchor < 0 else below(blocks, body[anchor])
