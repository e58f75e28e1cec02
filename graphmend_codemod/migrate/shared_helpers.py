"""The project's module of helpers in the commits of a migration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.migrate.per_rule import Step
from graphmend_codemod.repository.worktree import Worktree
from graphmend_codemod.rewriting.helper_module import HelperModule, imported_from


def with_helpers(worktree: Worktree, settings: Settings, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, where the first whose files import helpers brings the module with all that is left in the end.

    What only reverted fixes needed is taken out of it, in the work tree as well.
    """
    if settings.helpers is None:
        return tuple(steps)
    path = (settings.root / settings.helpers).relative_to(worktree.root).as_posix()
    entry = worktree.entries.get(path)
    if entry is None or not entry.is_file:  # writing through a symbolic link could leave the work tree
        return tuple(steps)
    texts = {name: text for step in steps for name, text in step.files.items()}
    names = {
        name: imported_from(path, SourceFile.decoded(text, name)) for name, text in texts.items() if _is_code(name)
    }
    before = worktree.git.output("cat-file", "blob", entry.oid)
    grown = HelperModule(SourceFile.below(str(settings.root), settings.helpers), settings.root)
    left = grown.only(SourceFile.decoded(before, settings.helpers), set().union(*names.values())).source.raw
    if left != grown.source.raw:
        (settings.root / settings.helpers).write_bytes(left)
    first = next((step for step in steps if any(names.get(name) for name in step.files)), None)
    if left == before or first is None:
        return tuple(steps)
    return tuple(replace(each, files={**each.files, path: left}) if each is first else each for each in steps)


def _is_code(path: str) -> bool:
    return path.endswith(".py")
