"""Type aliases of modules, which annotations name: `OptTensor = Optional[Tensor]`."""

from __future__ import annotations

import re

from graphmend_codemod.project.index.facts import AttributeKind, IndexView

_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_][\w.]*")
_KNOWN = ("torch.", "builtins.", "typing.", "typing_extensions.", "collections.", "jaxtyping.")
_MOST_STEPS = 4


def type_alias(index: IndexView, qualified: str, steps: int = _MOST_STEPS) -> str:
    """What a name of a module of the project stands for where it is an annotation, with its names resolved.

    Empty where it is a class, or anything else that no union, option or other type in brackets is assigned to.
    """
    home, _, last = qualified.rpartition(".")
    if not home or not steps or qualified.startswith(_KNOWN):
        return ""
    fact = index.global_fact(home, last)
    if fact is None or fact.kind is not AttributeKind.OTHER or not ("[" in fact.text or "|" in fact.text):
        return ""

    def resolved(found: re.Match[str]) -> str:
        meant = index.resolve(home, found[0])
        if meant is None:
            return found[0]
        return type_alias(index, meant, steps - 1) or meant.removeprefix("builtins.")

    return _NAME.sub(resolved, fact.text)
