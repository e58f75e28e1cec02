"""Definitions that outlining writes into a user's file, as text: for a function, layers, numbers, state.

A line that ends with `#: feature` is written only where that feature is asked for; with `#: !feature`, where it is not.
"""

from __future__ import annotations


def chosen(text: str, *features: str) -> str:
    """`text` with the lines for these features alone, and without their marks."""
    lines = []
    for line in text.split("\n"):
        bare, mark, wanted = line.partition("  #: ")
        if not mark or (wanted.removeprefix("!") in features) is not wanted.startswith("!"):
            lines.append(bare)
    return "\n".join(lines)


def part(text: str, name: str) -> str:
    """The definition of `name` in a text of several."""
    return next(each.strip() for each in text.split("\n\n\n") if f"def {name}(" in each)
