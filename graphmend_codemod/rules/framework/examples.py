"""The examples of a rule: documentation, unit tests and behaviour tests at once, one file a rule in `rules/examples`.

A file holds tables `[[fixed]]`, `[[declined]]` and `[[clean]]`, and under `[setups]` the code around them by name.
"""

from __future__ import annotations

import sys
import textwrap
from importlib import import_module, resources
from typing import Any, NamedTuple

from graphmend_codemod import rules


class Example(NamedTuple):
    """Source before and after the fix.

    `before` and `after` are module texts when `setup` is empty; otherwise they are statements put where `setup` says
    `...` alone on a line. `inputs` holds Python expressions for the arguments of `Model().forward`, where `setup`
    defines `class Model(nn.Module)`; several entries are several calls on one instance.
    """

    before: str
    after: str
    setup: str = ""
    inputs: tuple[str, ...] = ()


class Declined(NamedTuple):
    """Source that the rule finds and leaves alone; `because` must be part of the reason that it gives."""

    source: str
    because: str
    setup: str = ""


class Clean(NamedTuple):
    """Source in which the rule finds nothing at all."""

    source: str
    setup: str = ""


Shown = Example | Declined | Clean


def shown_by(code: str) -> tuple[Shown, ...]:
    """The examples of one rule: what it fixes, then what it declines, then what it does not find."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    file = resources.files(rules) / "examples" / f"{code.lower()}.toml"
    table: dict[str, Any] = toml.loads(file.read_text(encoding="utf-8"))
    setups: dict[str, str] = table.get("setups", {})
    found: list[Shown] = []
    for one in table.get("fixed", ()):
        found.append(Example(one["before"], one["after"], _setup(one, setups), tuple(one.get("inputs", ()))))
    for one in table.get("declined", ()):
        found.append(Declined(one["source"], one["because"], _setup(one, setups)))
    for one in table.get("clean", ()):
        found.append(Clean(one["source"], _setup(one, setups)))
    return tuple(found)


def _setup(example: dict[str, Any], setups: dict[str, str]) -> str:
    return setups[example["setup"]] if "setup" in example else ""


def module_text(statements: str, setup: str) -> str:
    """The whole module of an example: its statements where `setup` says `...`, or they alone when there is no setup."""
    statements, setup = (textwrap.dedent(text).strip("\n") for text in (statements, setup))
    if not setup:
        return f"{statements}\n"
    lines: list[str] = []
    for line in setup.splitlines():
        if line.strip() == "...":
            lines += textwrap.indent(statements, line[: len(line) - len(line.lstrip())]).splitlines()
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
