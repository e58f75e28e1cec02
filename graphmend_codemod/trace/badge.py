"""A badge in Markdown: how many break sites a trace or a baseline has."""

from __future__ import annotations

import json
from pathlib import Path

from graphmend_codemod.core.source import SourceError, read_bytes
from graphmend_codemod.trace.document import MOST_BYTES, TraceError

_SERVICE = "https://img.shields.io/badge"
_FEW = 5


def badge(sites: int, what: str = "graph breaks") -> str:
    """An image of a badge service, in Markdown. Readers' browsers load it from there; nothing else is sent."""
    colour = "brightgreen" if not sites else "yellow" if sites <= _FEW else "orange"
    return f"![{what}: {sites}]({_SERVICE}/{what.replace(' ', '%20')}-{sites}-{colour})"


def of_file(path: Path) -> str:
    """The badge of a trace, of a baseline of a trace or of a baseline of `check`. Raises `TraceError`."""
    try:
        data = json.loads(read_bytes(path, MOST_BYTES, ""))
    except SourceError as error:
        raise TraceError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: is neither a trace nor a baseline: {str(error).splitlines()[0]}") from error
    if isinstance(data, dict):
        for key, what in (("sites", "graph breaks"), ("findings", "break sites")):
            if isinstance(data.get(key), list):
                return badge(len(data[key]), what)
    raise TraceError(f"{path}: is neither a trace nor a baseline; record one with `graphmend trace`")
