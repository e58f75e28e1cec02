"""Apply edits to a text: compatible ones at once and verified, the others returned with a reason."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graphmend_codemod.core.findings import Edit, EditForm, Helper
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.rewriting.adjacent import joined
from graphmend_codemod.rewriting.blocks import CodeBlocks
from graphmend_codemod.rewriting.eager_view import same_in_eager_mode
from graphmend_codemod.rewriting.helper_module import HelperModule, new_names
from graphmend_codemod.rewriting.helpers import Needed, Origin, check_condition, named, new_helpers
from graphmend_codemod.rewriting.imports import new_imports
from graphmend_codemod.rewriting.insertions import placed
from graphmend_codemod.rewriting.names import ModuleNames
from graphmend_codemod.rewriting.place import changes
from graphmend_codemod.rewriting.render import offsets
from graphmend_codemod.rewriting.text import Change, Region, RewriteError, TextLayout, splice
from graphmend_codemod.rewriting.verify import parsed, verify


@dataclass(frozen=True)
class Applied:
    """A text with edits made. `applied` and `skipped` name edits by their index in the order they were given.

    `made` are those that were applied, where several may have become one.

    `imported` are helpers that the text imports from the project's module of helpers, and that this has to get;
    `repeated` are those that the text has got and other files may get as well.
    """

    text: str
    applied: tuple[int, ...]
    skipped: tuple[tuple[int, str], ...] = ()
    made: tuple[Edit, ...] = ()
    imported: tuple[Helper, ...] = ()
    repeated: tuple[Helper, ...] = ()


@dataclass(frozen=True)
class _Planned:
    """One edit ready to be made."""

    index: int
    changes: tuple[Change, ...]
    imports: tuple[str, ...]
    helpers: tuple[Needed, ...]
    form: EditForm


def apply(source: SourceFile, edits: Sequence[Edit], module: HelperModule | None = None) -> Applied:
    """Make the edits that can be made together; SourceError if the source itself cannot be parsed.

    Of two edits that overlap the earlier in the text is made; the other is skipped and will be found again in the new
    text. Nothing outside the edited statements changes, which is proven by comparing the trees; an edit for which
    that fails is skipped. Imports and helpers are placed once, and so is an edit that is given more than once; edits of
    statements that follow each other share a header where one will do. Helpers that `module` can hold are imported
    from there.
    """
    first: dict[Edit, int] = {}
    same = [first.setdefault(edit, index) for index, edit in enumerate(edits)]
    blocks = CodeBlocks(TextLayout(source), source.parse())
    order = sorted(first.values(), key=lambda index: _position(edits[index]))
    together, leaders = joined(blocks, edits, order)
    same = [leaders[one] for one in same]
    origin = None
    if module is not None and any(helper.shared for edit in edits for helper in edit.helpers):
        spelled = module.named_by(blocks)
        origin = Origin(module, spelled) if spelled is not None else None
    planned, skipped = _plan(blocks, together, origin)
    try:
        text = _made(blocks, planned, origin)
    except RewriteError:
        # One of them is at fault: let each in on its own merit.
        kept: list[_Planned] = []
        text = source.text
        for plan in planned:
            try:
                text = _made(blocks, [*kept, plan], origin)
                kept.append(plan)
            except RewriteError as error:
                skipped.append((plan.index, str(error)))
        planned = kept
    made, reasons = {plan.index for plan in planned}, dict(skipped)
    applied = tuple(index for index, one in enumerate(same) if one in made)
    skips = tuple((index, reasons[one]) for index, one in enumerate(same) if one in reasons)
    needed = [each for plan in planned for each in plan.helpers]
    imported = {each.helper.name: each.helper for each in needed if each.imported}
    written = {each.helper.name: each.helper for each in needed if not each.present and not each.imported}
    repeated = tuple(each for each in written.values() if each.shared)
    edited = tuple(edit for index, edit in together.items() if index in made)
    return Applied(text, applied, skips, edited, tuple(imported.values()), repeated)


def _plan(
    blocks: CodeBlocks, edits: Mapping[int, Edit], origin: Origin | None
) -> tuple[list[_Planned], list[tuple[int, str]]]:
    names = ModuleNames(blocks)
    planned: list[_Planned] = []
    skipped: list[tuple[int, str]] = []
    for index, edit in edits.items():
        try:
            plan = _planned(blocks, names, index, edit, planned, origin)
        except RewriteError as error:
            skipped.append((index, str(error)))
            continue
        taken = [change for other in planned for change in other.changes]
        if any(change.conflicts(other) for change in plan.changes for other in taken):
            skipped.append((index, "it overlaps with an earlier edit; run `graphmend fix` again"))
        else:
            planned.append(plan)
    return planned, skipped


def _position(edit: Edit) -> tuple[int, int]:
    return min(((one.span.start_line, one.span.start_column) for one in edit.replacements), default=(0, 0))


def _planned(
    blocks: CodeBlocks,
    names: ModuleNames,
    index: int,
    edit: Edit,
    before: Sequence[_Planned],
    origin: Origin | None,
) -> _Planned:
    places = [offsets(blocks.layout, one.span)[0] for one in edit.replacements]
    imports = tuple(dotted for dotted in edit.imports if _must_import(names, dotted, places, bool(edit.helpers)))
    edit, helpers = named(names, edit, [needed for plan in before for needed in plan.helpers], origin)
    for needed in helpers:
        if not needed.present:
            check_condition(names, needed.helper, places)
    elsewhere = "\n".join(needed.helper.source for needed in helpers)
    made = tuple(change for one in edit.replacements for change in changes(blocks, one, elsewhere))
    return _Planned(index, made, imports, helpers, edit.form)


def _must_import(names: ModuleNames, dotted: str, places: Sequence[int], helpers: bool) -> bool:
    """True if the module has to import this. RewriteError if the import would not be seen at one of the places."""
    elsewhere = [at for at in places if not names.imported_locally(dotted, at)]
    root = dotted.partition(".")[0]
    for at in elsewhere:
        if (function := names.shadowed(root, at)) is not None:
            raise RewriteError(f"`{function}` has a local name `{root}`")
    return bool(elsewhere or helpers) and names.needs_import(dotted)


def _made(blocks: CodeBlocks, planned: Sequence[_Planned], origin: Origin | None) -> str:
    """The text with all of this in it. RewriteError if it says something else outside of the edits."""
    wanted = [change for plan in planned for change in plan.changes]
    imports = new_imports(blocks, (name for plan in planned for name in plan.imports))
    helpers: dict[str, Helper] = {}
    missing = [needed for plan in planned for needed in plan.helpers if not needed.present]
    if origin is not None and (imported := {needed.helper.name for needed in missing if needed.imported}):
        more = new_names(blocks, origin.spelled, imported)
        if isinstance(more, Change):
            wanted.append(more)
        else:
            imports.append(more)
    for needed in (needed for needed in missing if not needed.imported):
        known = helpers.setdefault(needed.helper.name, needed.helper)
        after = tuple(dict.fromkeys((*known.after, *needed.helper.after)))
        helpers[known.name] = known._replace(after=after)
    wanted += placed(blocks.layout, [*imports, *new_helpers(blocks, list(helpers.values()), imports)])
    text, regions, moved = splice(blocks.layout.source.text, wanted)
    try:
        result = parsed(blocks.layout.source.with_text(text))
    except SourceError as error:
        raise RewriteError(str(error)) from error
    verify(blocks, result, regions, moved)
    changed = [change for plan in planned if plan.form is not EditForm.BESIDE for change in plan.changes]
    left_alone = {(change.start, change.end) for change in changed}
    _demand_same_in_eager_mode(blocks, result, regions, left_alone, origin.spelled if origin is not None else None)
    return text


def _demand_same_in_eager_mode(
    old: CodeBlocks,
    new: CodeBlocks,
    regions: Sequence[Region],
    others: Collection[tuple[int, int]],
    origin: str | None,
) -> None:
    """RewriteError where eager mode would run something else, but for top-level statements that `others` are in.

    More names may be imported from `origin`.
    """
    left_alone = [region for region in regions if (region.old_start, region.old_end) in others]
    before = [node for node in old.tree.body if _is_in(old, node, regions, new=False)]
    after = [node for node in new.tree.body if _is_in(new, node, regions, new=True)]
    before = [node for node in before if not _is_in(old, node, left_alone, new=False)]
    after = [node for node in after if not _is_in(new, node, left_alone, new=True)]
    if not same_in_eager_mode(before, after, old.tree, origin):
        raise RewriteError("eager mode would run different code")


def _is_in(blocks: CodeBlocks, node: ast.stmt, regions: Sequence[Region], *, new: bool) -> bool:
    """True for a statement that a region touches."""
    start, end = blocks.start(node), blocks.end(node)
    places = [(region.new_start, region.new_end) if new else (region.old_start, region.old_end) for region in regions]
    return any(first < end and start < last for first, last in places)
