"""Optional dependencies: asked for before any work, and named with the command that installs them."""

from __future__ import annotations

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
            f"{wanted_by} needs {', '.join(absent)}, part of the extra `{extra}`; "
            f"run `pip install 'graphmend[{extra}]'`"
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
