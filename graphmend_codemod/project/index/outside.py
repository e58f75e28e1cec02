"""What a file without torch or modules of its own may do to those of others, by a look at its bytes.

Nothing is found in such files, so that nobody parses them; but one of them may still say `model.scale = 2`, catch what
a model raises, or replace a method in a subclass.
"""

from __future__ import annotations

import re

from graphmend_codemod.project.summary.context_managers import OTHER_ERRORS

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
