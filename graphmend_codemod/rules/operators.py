"""Custom operators as text: what torch.compile calls as a whole in the place of code that it cannot trace."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from graphmend_codemod.rules.site import Site

_TAG = "cudagraph_unsafe"
_TAGGED_SINCE = (2, 9)


class NotAnOperator(Exception):
    """Why something cannot be called as one operator; the text is the condition that failed."""


@dataclass(frozen=True)
class Argument:
    """One argument of an operator. `schema` is its type for torch, `annotation` for people.

    `given` is what the call hands over, and `conditions` hold of it while torch.compile traces.
    """

    name: str
    schema: str
    annotation: str
    given: str = ""
    conditions: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """The way the operator's schema spells it."""
        return f"{self.schema} {self.name}"


def tensor(site: Site, name: str) -> Argument:
    """A tensor that is only read."""
    return Argument(name, "Tensor", f"{site.torch}.Tensor", name)


def decorator(site: Site, operator: str, schema: str, changed: Sequence[str] = ()) -> list[str]:
    """The lines that make a function the operator `operator`, which changes the arguments `changed`.

    An operator for code that depends on data waits for the device, which the recording of a CUDA graph forbids. A torch
    that has no tag for that imports the module all the same.
    """
    mutates = ", ".join(f'"{name}"' for name in changed) + ("," if len(changed) == 1 else "")
    return [
        f"@{site.torch}.library.custom_op(",
        f"    f\"{{__name__.replace('.', '_').replace('-', '_')}}::{operator}\",",
        f"    mutates_args=({mutates}),",
        *schema_lines(site, schema),
        *_tags(site),
        ")",
    ]


def _tags(site: Site) -> list[str]:
    """The keyword argument `tags`, only where torch has the tag if it may have none."""
    given, target = f"({site.torch}.Tag.{_TAG},)", site.settings.target_torch
    if target is not None and target >= _TAGGED_SINCE:
        return [f"    tags={given},"]
    parts = (f'{{"tags": {given}}}', f'if hasattr({site.torch}.Tag, "{_TAG}")', "else {}")
    line = f"    **({' '.join(parts)}),"
    return [line] if len(line) <= site.line_limit else ["    **(", *(f"        {part}" for part in parts), "    ),"]


def schema_lines(site: Site, schema: str) -> list[str]:
    """The keyword argument `schema`, broken after commas where it is too long for a line."""
    line = f'    schema="{schema}",'
    if len(line) <= site.line_limit:
        return [line]
    pieces, rows = schema.split(", "), [""]
    for number, piece in enumerate(pieces):
        text = piece + (", " if number < len(pieces) - 1 else "")
        if rows[-1] and len(rows[-1]) + len(text) + 10 > site.line_limit:
            rows.append("")
        rows[-1] += text
    return ["    schema=(", *(f'        "{row}"' for row in rows), "    ),"]


def head(site: Site, name: str, arguments: Sequence[Argument], returns: str) -> str:
    """`def name(...) -> ...:`, the way black breaks it."""
    typed = [f"{argument.name}: {argument.annotation}" for argument in arguments]
    line = f"def {name}({', '.join(typed)}) -> {returns}:"
    if len(line) <= site.line_limit:
        return line
    return "\n".join([f"def {name}(", *(f"    {each}," for each in typed), f") -> {returns}:"])


def call(site: Site, function: str, given: Sequence[str], deeper: int) -> str:
    """A call in a definition at the top level, the way black breaks it; `deeper` is the depth of its line."""
    start = " " * 4 * deeper
    together = ", ".join(given)
    if len(f"{start}{function}({together})") <= site.line_limit:
        return f"{start}{function}({together})"
    inner = f"{start}    "
    if len(inner + together) <= site.line_limit:
        return "\n".join([f"{start}{function}(", inner + together, f"{start})"])
    return "\n".join([f"{start}{function}(", *(f"{inner}{each}," for each in given), f"{start})"])


def test(site: Site, conditions: Sequence[str]) -> str:
    """`if a and b:` in a function at the top level, the way black breaks it."""
    line = f"    if {' and '.join(conditions)}:"
    if len(line) <= site.line_limit:
        return line
    first, *rest = conditions
    return "\n".join(["    if (", f"        {first}", *(f"        and {each}" for each in rest), "    ):"])


def base(node: ast.expr) -> str | None:
    """The name that a chain of attributes and indices starts with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
