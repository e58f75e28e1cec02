"""What pages share: escaping of everything foreign, diffs with colours, and the policy that lets nothing be loaded."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import jinja2
from markupsafe import Markup, escape

from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.report import plural
from graphmend_evaluation.reporting.words import dedented, diff_lines, shortened

_LONGEST = 1500
_HUNK_LINES = 120
_HUNK_WIDTH = 500


def environment(loader: jinja2.BaseLoader) -> jinja2.Environment:
    """Templates in which every value is escaped and nothing may be undefined; with `plural`, `wrap` and `prose`."""
    made = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    made.filters.update(plural=plural, wrap=_wrapped, prose=_prose)
    return made


def diff_markup(diff: str) -> Markup:
    """A hunk with `<ins>` and `<del>` around runs of its lines, less the indentation that all lines share."""
    parts: list[Markup] = []
    run: list[str] = []
    mark = ""
    for line in [*dedented(diff_lines(diff, lines=_HUNK_LINES, width=_HUNK_WIDTH)), None]:
        kind = "end" if line is None else line[:1] if line[:1] in "+-@" else " "
        if run and kind != mark:
            tag = {"+": "ins", "-": "del", "@": "i"}.get(mark, "span")
            parts.append(Markup("<{0}>{1}</{0}>").format(Markup(tag), "\n".join(run)))
            run = []
        mark = kind
        run += [] if line is None else [line]
    return Markup("").join(parts)


def _finalized(value: Any) -> Any:
    """What stands for a value in the page: nothing foreign gets there with control characters or without end."""
    if isinstance(value, Markup):
        return value
    return shortened(printable(str(value)), _LONGEST)


def _wrapped(text: str) -> Markup:
    """A path or dotted name that may break after its separators."""
    safe = str(escape(_finalized(text)))
    for mark in "/.:":
        safe = safe.replace(mark, f"{mark}<wbr>")
    return Markup(safe)


def _prose(text: str) -> Markup:
    """Words with code between backticks."""
    pieces = str(_finalized(text)).split("`")
    if len(pieces) % 2 == 0:
        return escape("`".join(pieces))
    parts = (
        Markup("<code>{}</code>").format(each) if number % 2 else escape(each) for number, each in enumerate(pieces)
    )
    return Markup("").join(parts)


def policy(style: str, script: str) -> str:
    """A content security policy: this style, this script, and no address."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
