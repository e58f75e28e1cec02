"""Detect whether a branch contains only commits of the bot, the only case in which it may be overwritten."""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphmend_codemod.repository.git import Git

_MADE_BY = re.compile(r"^Made\s+by\s+graphmend\s", re.MULTILINE)
_FORMAT = "%H%n%P%n%T%n%an <%ae>%n%cn <%ce>%n%at %ct%n%B"


@dataclass(frozen=True)
class Series:
    """The bot's commits at the end of a branch: `base` is what they stand on; trees and messages, oldest first."""

    base: str
    contents: tuple[tuple[str, str], ...]


def bot_series(git: Git, tip: str, author: str, committer: str) -> Series | None:
    """The bot's commits from `tip` down; None when the last commit is not the bot's.

    A commit is the bot's when its message says so, it has one parent, it is by `author` and `committer` (`NAME
    <EMAIL>`), and both dates are one: amending, rebasing or picking a commit changes the committer's date or name.
    """
    contents: list[tuple[str, str]] = []
    listing = git.text("log", "-z", "--no-show-signature", f"--format={_FORMAT}", "--first-parent", tip, "--")
    for record in listing.split("\0"):
        oid, parents, tree, wrote, committed, dates, message = record.split("\n", 6)
        made, last = dates.split(" ")
        ours = (wrote, committed, made) == (author, committer, last) and _MADE_BY.search(message)
        if not ours or len(parents.split()) != 1:
            return Series(oid, tuple(reversed(contents))) if contents else None
        contents.append((tree, message))
    return None


def new_series(git: Git, base: str, tip: str) -> Series:
    """The commits from `base` to `tip`."""
    listing = git.text("log", "-z", f"--format={_FORMAT}", "--reverse", f"{base}..{tip}", "--")
    records = [record.split("\n", 6) for record in listing.split("\0") if record]
    return Series(base, tuple((record[2], record[-1]) for record in records))
