"""Optional dependencies: asked for before any work, and named with the command that installs them."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

from graphmend_codemod.core.errors import GraphmendError

# Of each group, one module has to be there.
_MODULES: dict[str, tuple[tuple[str, ...], ...]] = {
    "bot": (("urllib3",), ("github", "gitlab")),
    "cluster": (("distributed",),),
    "eval": (("torch",), ("jinja2",)),
    "lsp": (("pygls",), ("lsprotocol",)),
}


class MissingExtra(GraphmendError):
    """An extra of graphmend that is not installed. The text is one line: what needs it, how to install it."""


def missing(extra: str) -> tuple[str, ...]:
    """Modules of an extra that are not installed. Imports none of them."""
    return tuple(" or ".join(group) for group in _MODULES[extra] if not any(map(_is_there, group)))


def require(extra: str, wanted_by: str) -> None:
    """Raise `MissingExtra` unless all that an extra brings is installed."""
    absent = missing(extra)
    if absent:
        raise MissingExtra(
            f"{wanted_by} needs {', '.join(absent)}, part of the extra `{extra}`; run `{install_command(extra)}`"
        )


def install_command(extra: str) -> str:
    """The command that installs an extra from where graphmend itself was installed.

    A bare name is written only where it was installed from an index: anybody may have taken it on another one.
    """
    source = _source()
    return f"pip install 'graphmend[{extra}]{source and f' @ {source}'}'"


def _source() -> str:
    """The address that graphmend was installed from, as pip notes it (PEP 610); empty for an index."""
    try:
        noted = json.loads(distribution("graphmend").read_text("direct_url.json") or "{}")
        address = str(noted.get("url", ""))
        version = noted.get("vcs_info", {})
        return f"{version['vcs']}+{address}@{version['commit_id']}" if version else address
    except (PackageNotFoundError, ValueError, KeyError, AttributeError, OSError):
        return ""


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
