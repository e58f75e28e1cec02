"""What a file without torch or modules of its own may do to those of others, by a look at its bytes.

Nothing is found in such files, so that nobody parses them; but one of them may still say `model.scale = 2`, catch what
a model raises, or replace a method in a subclass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from graphmend_codemod.project.summary.context_managers import OTHER_ERRORS

if TYPE_CHECKING:
    from graphmend_codemod.project.index.definitions import Module

# Each begins with letters that are in every match, which is what makes the search fast.
_ASSIGNED = rb"""(?x)
    \.(?: (?<!self\.)([A-Za-z_]\w*)\s*(?:\[[^\]\n]*\]\s*)?(?:[-+*/@%&|^]|//|\*\*)?=(?!=)  # model.scale[0] += 1
    | ([A-Za-z_]\w*)(?=\.(?:data\b|\w+_\()) )  # model.scale.fill_(2)
"""
_OUT = rb"out\s*=\s*[\w.]*\.([A-Za-z_]\w*)"
_HOOKED = rb"\b([A-Za-z_]\w*)\.register_forward_\w*hook\("
_SETTERS = (b"setattr", b"register_", b"add_module", b"set_submodule")
_SET = rb"(?:setattr|register_\w+|add_module|set_submodule)\s*\([^)\n]*[\"'][\w.]*?([A-Za-z_]\w*)[\"']"


def may_write(raw: bytes) -> set[str]:
    """The names of these attributes. Some of them may be none: the file's tree tells."""
    found = {name for names in re.findall(_ASSIGNED, raw) for name in names if name}
    found.update(re.findall(_OUT, raw))
    if any(setter in raw for setter in _SETTERS):
        found.update(re.findall(_SET, raw), re.findall(_HOOKED, raw))
    return {name.decode() for name in found}


_HANDLER = re.compile(
    rb"[\r\n][ \t\f]+except\b(?![ \t]*:|[ \t]+(?:Exception|BaseException|%s)[ \t]*(?:as\b|:))"
    % "|".join(sorted(OTHER_ERRORS)).encode()
)


def may_handle(raw: bytes) -> bool:
    """True for a file with a handler, inside of something, that names an exception which a check of a tensor raises."""
    return b"except" in raw and _HANDLER.search(raw) is not None


_CLASS = re.compile(rb"^[ \t]*class[ \t]+([A-Za-z_]\w*)[ \t]*\(([^)]*)\)", re.MULTILINE)
_IMPORTED = re.compile(rb"^[ \t]*(?:from[ \t][^\n;#(]*\bimport[ \t]*\([^)]*\)|from[ \t].*|import[ \t].*)", re.MULTILINE)
_WORD = re.compile(rb"[A-Za-z_]\w*")


def inheriting(
    modules: list[Module], others: Callable[[], Iterable[tuple[str, bytes]]], at: Callable[[str], Module | None]
) -> list[Module]:
    """The modules, and those of `others` with a class that may inherit from one of theirs. `at` loads a path."""
    known = {each.qualname.rpartition(".")[2].encode() for module in modules for each in module.summary.classes}
    left = [(path, found) for path, raw in others() if b"class" in raw and (found := _classes(raw))[0]]
    paths: list[str] = []
    more = True
    while more:
        near = [(path, names) for path, (names, words) in left if not known.isdisjoint(words)]
        more = bool(near)
        paths += [path for path, _ in near]
        known.update(*(names for _, names in near))
        left = [each for each in left if each[0] not in paths]
    return [*modules, *(module for path in sorted(paths) if (module := at(path)) is not None)]


def _classes(raw: bytes) -> tuple[set[bytes], set[bytes]]:
    """The names of classes with bases, and the words that may be one of these bases or another name for it."""
    found = _CLASS.findall(raw)
    parts = [bases for _, bases in found]
    parts += _IMPORTED.findall(raw) if found else []
    return {name for name, _ in found}, {word for part in parts for word in _WORD.findall(part)}
