"""The Python files and settings of a repository's last commit, and nothing else: no links, no filters, no data."""

from __future__ import annotations

import contextlib
from pathlib import Path

from graphmend_codemod.fleet.jobs import Order
from graphmend_codemod.forge.location import locate, looks_remote
from graphmend_codemod.forge.sources import source_entries
from graphmend_codemod.repository.checkout import open_checkout, resolve_commit
from graphmend_codemod.repository.git import Git

_HEAD = "refs/graphmend/head"


def snapshot(order: Order, folder: Path) -> Path:
    """Write the files below `folder` and return their root. Of a remote repository nothing else is fetched.

    Raises `ForgeError`, `RepositoryError`.
    """
    with contextlib.ExitStack() as stack:
        if looks_remote(order.location):
            git = _fetch(order, folder, stack)
            commit, name = git.text("rev-parse", "--verify", _HEAD), order.location.rpartition("/")[2]
        else:
            checkout = open_checkout(Path(order.location))
            git, name = checkout.git, checkout.name
            commit = resolve_commit(checkout, "HEAD").oid
        root = folder / "files" / (name.removesuffix(".git").lstrip(".-") or "repository")
        root.mkdir(parents=True)
        (root / ".git").mkdir()  # where the search for settings ends
        _write(git, commit, root)
    return root


def _fetch(order: Order, folder: Path, stack: contextlib.ExitStack) -> Git:
    # Only now: most of it is needed for nothing else.
    from graphmend_codemod.bot.runner import known_credential
    from graphmend_codemod.bot.workspace import make_workspace
    from graphmend_codemod.forge.objects import borrowed
    from graphmend_codemod.forge.retry import Patience
    from graphmend_codemod.forge.transfer import Transfer

    told = order.options
    location = locate(order.location, kind=told.forge or "github", api=told.api)
    workspace = make_workspace(folder, location.path.rpartition("/")[2], None)
    credential = known_credential(location, dict(order.tokens))
    transfer = Transfer(
        workspace.folder,
        location.url,
        credential,
        Patience(told.patience),
        folder,
        told.git_timeout,
        sources_only=True,
    )
    store = None
    if told.object_cache is not None:
        store = stack.enter_context(borrowed(Path(told.object_cache), location))
        store.lend_to(workspace)
    transfer.fetch("HEAD", _HEAD, depth=1)
    transfer.fetch_sources(_HEAD)
    if store is not None:
        store.keep(workspace, workspace.text("rev-parse", "--verify", _HEAD))
    return workspace


def _write(git: Git, commit: str, root: Path) -> None:
    entries = list(source_entries(git, commit))
    if not entries:
        return
    listing = "".join(f"{oid}\n" for _, oid in entries)
    data = git.output("cat-file", "--batch", stdin=listing.encode("ascii"))
    position = 0
    for path, _ in entries:
        end = data.index(b"\n", position)
        facts = data[position:end].split()
        position = end + 1
        size = int(facts[2])
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data[position : position + size])
        position += size + 1
