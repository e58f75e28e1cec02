"""What the bot needs of a forge, whichever it is. GitLab's merge requests are pull requests here."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol


class ForgeError(Exception):
    """A forge refused, or cannot be reached. The text is one line: what, cause, way out."""


class AlreadyOpen(ForgeError):
    """There is an open pull request for this branch already."""


class Unanswered(ForgeError):
    """A request may have been carried out or not: the answer was lost, or the forge broke while it worked on it."""


class State(enum.Enum):
    """Where a pull request stands."""

    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


@dataclass(frozen=True)
class Project:
    """A repository on a forge. `path` is its name after renames, such as `owner/name`; `url` is for git."""

    path: str
    url: str
    ssh_url: str
    default_branch: str
    archived: bool
    can_push: bool
    id: int = 0

    @property
    def owner(self) -> str:
        """The user, organisation or group."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class PullRequest:
    """A pull request as it stands on the forge."""

    number: int
    url: str
    state: State
    title: str
    body: str
    base: str


@dataclass(frozen=True)
class Proposal:
    """A pull request as it should be. `source` is the repository that holds `branch`.

    `cut` says that `body` holds less than there is to say.
    """

    source: Project
    branch: str
    base: str
    title: str
    body: str
    draft: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Comment:
    """A comment on a pull request."""

    id: int
    text: str


class Forge(Protocol):
    """One repository on one forge. Every method raises `ForgeError`; waiting and trying again is done within.

    A pull request's text has at most `body_limit` bytes, a part of an attached report `report_limit`.
    """

    body_limit: int
    report_limit: int

    def project(self) -> Project:
        """The repository; follows renames."""
        ...

    def fork(self) -> Project:
        """The user's fork of the repository, made if there is none."""
        ...

    def existing_fork(self) -> Project | None:
        """The user's fork, if there is one; none is made."""
        ...

    def pull_requests(self, source: Project, branch: str) -> tuple[PullRequest, ...]:
        """All pull requests from a branch, in every state, the newest first."""
        ...

    def create(self, proposal: Proposal) -> PullRequest:
        """Open a pull request. Raises `AlreadyOpen`, and `Unanswered` when nobody knows whether it was opened."""
        ...

    def update(
        self,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        base: str | None = None,
        close: bool = False,
    ) -> None:
        """Change what is given, all in one request, so that it is done together or not at all."""
        ...

    def comments(self, number: int) -> tuple[Comment, ...]:
        """All comments."""
        ...

    def comment(self, number: int, text: str) -> None:
        """Add a comment. Raises `Unanswered` when nobody knows whether it was added."""
        ...

    def change_comment(self, number: int, comment: int, text: str) -> None:
        """Give a comment another text."""
        ...

    def attach(self, oid: str, parts: tuple[str, ...]) -> bool:
        """Show a report with the checks of a commit; whether that is possible here, and with this token."""
        ...

    def add_labels(self, number: int, labels: tuple[str, ...]) -> None:
        """Add labels to those that are there."""
        ...

    def ask_for_review(self, number: int, reviewers: tuple[str, ...]) -> None:
        """Ask people to review; on GitHub `organisation/team` is a team."""
        ...
