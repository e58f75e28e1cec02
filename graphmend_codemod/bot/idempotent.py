"""Idempotent requests: create something once, even if an answer is lost or another run is faster."""

from __future__ import annotations

import time
from collections.abc import Mapping

from graphmend_codemod.bot.state_comment import NOTE
from graphmend_codemod.forge.base import AlreadyOpen, Forge, Proposal, PullRequest, State, Unanswered

_TRIES = 3
_OVER = "The report has moved; this comment is now empty."


def create_once(forge: Forge, proposal: Proposal) -> tuple[PullRequest, bool]:
    """The open pull request for a branch, and whether this run has opened it.

    Raises `ForgeError`; after `Unanswered`, nobody knows whether one was opened, and the next run finds it.
    """
    for left in reversed(range(_TRIES)):
        try:
            return forge.create(proposal), True
        except AlreadyOpen:
            found = _open_one(forge, proposal)
            if found is None:
                raise
            return found, False
        except Unanswered:
            found = _open_one(forge, proposal)
            if found is not None:
                return found, True
            if not left:
                raise
            time.sleep(_TRIES - left)
    raise AssertionError("unreachable")


def comment_once(forge: Forge, number: int, text: str, about: str) -> bool:
    """Comment, unless there is a comment about the same already; whether one was added. Raises `ForgeError`."""
    for left in reversed(range(_TRIES)):
        if has_note(forge, number, about):
            return False
        try:
            forge.comment(number, f"{text}\n\n{NOTE.format(about)}")
            return True
        except Unanswered:
            if not left:
                raise
            time.sleep(_TRIES - left)
    raise AssertionError("unreachable")


def has_note(forge: Forge, number: int, about: str) -> bool:
    """Whether there is a comment of the bot about something. Raises `ForgeError`."""
    return any(NOTE.format(about) in there.text for there in forge.comments(number))


def keep_comments(forge: Forge, number: int, texts: Mapping[str, str | None]) -> None:
    """Have one comment about each thing, with its text; None says that an earlier one is over. Raises `ForgeError`."""
    there = forge.comments(number)
    for about, text in texts.items():
        note = NOTE.format(about)
        found = next((one for one in there if note in one.text), None)
        wanted = f"{text or _OVER}\n\n{note}"
        if found is None:
            if text is not None:
                comment_once(forge, number, text, about)
        elif not same_text(found.text, wanted):
            forge.change_comment(number, found.id, wanted)


def same_text(one: str, other: str) -> bool:
    """Whether two texts are one for a forge, which changes line endings and drops the last newline."""
    return _lines(one) == _lines(other)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def _open_one(forge: Forge, proposal: Proposal) -> PullRequest | None:
    found = forge.pull_requests(proposal.source, proposal.branch)
    return next((one for one in found if one.state is State.OPEN), None)
