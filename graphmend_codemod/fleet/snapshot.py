"""The Python files of a repository's last commit, and nothing else: no links, no filters, no large files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from graphmend_codemod.fleet.order import Order
from graphmend_codemod.forge.base import ForgeError
from graphmend_codemod.forge.location import locate, looks_remote
from graphmend_codemod.repository.checkout import open_checkout, resolve_commit
from graphmend_codemod.repository.git import Git

LARGE = 2**20
_HEAD = "refs/graphmend/head"
_SUFFIXES = (".py", ".pyi")
_NAMES = frozenset({"pyproject.toml", "setup.cfg", "requirements.txt"})


def snapshot(order: Order, folder: Path) -> Path:
    """Write the files below `folder` and return their root. A remote repository is fetched without its large files.

    Raises `ForgeError`, `RepositoryError`.
    """
    if looks_remote(order.location):
        git = _fetched(order, folder)
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


def _fetched(order: Order, folder: Path) -> Git:
    # Only now: most of it is needed for nothing else.
    from graphmend_codemod.bot import known_credential
    from graphmend_codemod.forge.transfer import Transfer
    from graphmend_codemod.forge.waiting import Patience
    from graphmend_codemod.forge.workspace import make_workspace

    location = locate(order.location, kind=order.options.forge or "github", api=order.options.api)
    workspace = make_workspace(folder, location.path.rpartition("/")[2], None)
    credential = known_credential(location, dict(order.tokens))
    patience = Patience(order.options.patience)
    transfer = Transfer(workspace.folder, location.url, credential, patience, folder, order.options.git_timeout)
    transfer.fetch_head(_HEAD, larger_than=LARGE)
    # From here on what was left out is missing, and not fetched file by file.
    (workspace.folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n", encoding="utf-8")
    return Git(workspace.folder)


def _write(git: Git, commit: str, root: Path) -> None:
    entries = list(_entries(git, commit))
    if not entries:
        return
    listing = "".join(f"{oid}\n" for _, oid in entries)
    data = git.output("cat-file", "--batch", stdin=listing.encode("ascii"))
    position = 0
    for path, _ in entries:
        end = data.index(b"\n", position)
        facts = data[position:end].split()
        position = end + 1
        if facts[-1] == b"missing":
            continue
        size = int(facts[2])
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data[position : position + size])
        position += size + 1


def _entries(git: Git, commit: str) -> Iterator[tuple[str, str]]:
    """Path and id of each regular file that can matter."""
    for line in git.output("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        facts, _, name = line.partition(b"\t")
        path = os.fsdecode(name)
        wanted = path.endswith(_SUFFIXES) or path.rpartition("/")[2] in _NAMES
        if not wanted or not facts.startswith(b"100"):
            continue
        if {"", ".", "..", ".git"} & set(path.lower().split("/")):
            raise ForgeError(f"{path!r}: is no path that git allows; the repository is left alone")
        yield path, facts.split()[2].decode("ascii")
