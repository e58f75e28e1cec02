"""A bare repository of the bot's own: fetched into, migrated in, pushed from, and gone afterwards."""

from __future__ import annotations

import os
from pathlib import Path

from graphmend_codemod.forge.sources import SPARSE
from graphmend_codemod.repository.checkout import Checkout
from graphmend_codemod.repository.git import Git, GitFailed

_NAME, _EMAIL = "graphmend", "graphmend@localhost"


def make_workspace(folder: Path, name: str, borrowed: Checkout | None, *, sources_only: bool = False) -> Git:
    """Make an empty repository below `folder`.

    It reads objects that are in `borrowed` already, so that little has to be fetched, and commits as the one who does
    there. Nothing is written to `borrowed`. With `sources_only`, work trees have only the files that can matter.
    """
    root = folder / f"{name}.git"
    home = Git(folder)
    options = [] if borrowed is None else [f"--object-format={_object_format(borrowed)}"]
    # No template: it may bring hooks and settings.
    home.text("init", "--quiet", "--bare", "--template=", *options, "--", str(root))
    git = Git(root)
    if borrowed is not None and not _is_partial(borrowed):
        (root / "objects" / "info").mkdir(exist_ok=True)
        objects = os.fsencode(borrowed.common / "objects")
        (root / "objects" / "info" / "alternates").write_bytes(_quoted(objects) + b"\n")
    if sources_only:
        (root / "info").mkdir(exist_ok=True)
        (root / "info" / "sparse-checkout").write_text("".join(f"{line}\n" for line in SPARSE), encoding="utf-8")
        git.text("config", "core.sparseCheckout", "true")
        git.text("config", "core.sparseCheckoutCone", "false")
    for key, fallback in (("user.name", _NAME), ("user.email", _EMAIL)):
        value = _setting(borrowed.git, key) if borrowed is not None else None
        if value is None and _setting(git, key) is None and not _from_environment(key):
            value = fallback
        if value is not None:
            git.text("config", key, value)
    return git


def identity(git: Git) -> tuple[str, str]:
    """`NAME <EMAIL>` of author and committer of new commits."""
    author, committer = (
        git.text("var", name).rsplit(" ", 2)[0] for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT")
    )
    return author, committer


def _setting(git: Git, key: str) -> str | None:
    try:
        return git.text("config", "--get", key) or None
    except GitFailed:
        return None


def _from_environment(key: str) -> bool:
    variable = key.partition(".")[2].upper()
    names = [f"GIT_AUTHOR_{variable}", f"GIT_COMMITTER_{variable}", *(["EMAIL"] if variable == "EMAIL" else [])]
    return any(os.environ.get(name) for name in names)


def _object_format(checkout: Checkout) -> str:
    return checkout.git.text("rev-parse", "--show-object-format")


def _is_partial(checkout: Checkout) -> bool:
    """A partial clone lacks objects, and would be asked for them."""
    return _setting(checkout.git, "extensions.partialClone") is not None


def _quoted(path: bytes) -> bytes:
    """A line of `alternates`; git reads one that begins with a quote in C's way."""
    if path.startswith((b'"', b"#")) or b"\n" in path:
        escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        return b'"' + escaped + b'"'
    return path
