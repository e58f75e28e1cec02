"""GitLab, on gitlab.com or anywhere else, through python-gitlab."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import gitlab
import requests
from gitlab.exceptions import GitlabError, GitlabParsingError
from gitlab.v4.objects import Project as RemoteProject
from gitlab.v4.objects import ProjectMergeRequest
from requests.adapters import HTTPAdapter

from graphmend_codemod.forge.answers import ODD, expect, odd_answer
from graphmend_codemod.forge.base import (
    AlreadyOpen,
    Comment,
    ForgeError,
    Project,
    Proposal,
    PullRequest,
    State,
    Unanswered,
)
from graphmend_codemod.forge.credentials import Credential, scrubbed
from graphmend_codemod.forge.retry import Patience, Waiting

_TIMEOUT = 30
_PAGE = 100
_DEVELOPER = 30
_DRAFT = "Draft: "
_STATES = {"opened": State.OPEN, "locked": State.OPEN, "closed": State.CLOSED, "merged": State.MERGED}
_CLOSE = "close"
_LISTS = ("/merge_requests", "/notes", "/forks", "/users")


class GitLab:
    """`Forge` for one project. `api` is the address of the instance, such as `https://gitlab.com`."""

    body_limit = 1_000_000
    report_limit = 990_000

    def __init__(self, api: str, path: str, credential: Credential, patience: Patience) -> None:
        session = requests.Session()
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=Waiting(patience=patience)))
        self._path = path
        self._credential = credential
        # As a bearer, which `requests` does not hand on to another host; a header of GitLab's own it would.
        self._client = _Client(
            api,
            oauth_token=credential.secret,
            timeout=_TIMEOUT,
            per_page=_PAGE,
            user_agent="graphmend",
            keep_base_url=True,
            session=session,
        )
        self._known: RemoteProject | None = None

    def project(self) -> Project:
        """The project."""
        with self._errors(f"project {self._path}"):
            self._known = self._client.projects.get(self._path)
            return _project(self._known)

    def fork(self) -> Project:
        """The user's fork, made if there is none."""
        found = self.existing_fork()
        if found is not None:
            return found
        with self._errors(f"a fork of {self._path}"):
            made = self._remote.forks.create({})
            return _project(self._client.projects.get(made.get_id() or 0))

    def existing_fork(self) -> Project | None:
        """The user's fork, if there is one."""
        with self._errors(f"forks of {self._path}"):
            for found in self._remote.forks.list(owned=True, iterator=True):
                return _project(self._client.projects.get(found.get_id() or 0))
        return None

    def pull_requests(self, source: Project, branch: str) -> tuple[PullRequest, ...]:
        """All merge requests, the newest first."""
        with self._errors(f"merge requests of {self._path}"):
            listed = self._remote.mergerequests.list(
                state="all", source_branch=branch, order_by="created_at", sort="desc", iterator=True
            )
            return tuple(_merge_request(one) for one in listed if one.source_project_id == source.id)

    def create(self, proposal: Proposal) -> PullRequest:
        """Open a merge request; one from a fork is opened in the fork."""
        fields: dict[str, object] = {
            "source_branch": proposal.branch,
            "target_branch": proposal.base,
            "title": f"{_DRAFT}{proposal.title}" if proposal.draft else proposal.title,
            "description": proposal.body,
        }
        with self._errors(f"a merge request in {self._path}"):
            target = self._remote
            if proposal.source.id == target.get_id():
                project = target
            else:
                project = self._client.projects.get(proposal.source.id, lazy=True)
                fields["target_project_id"] = target.get_id()
        with self._errors(f"a merge request in {self._path}", making=True):
            return _merge_request(project.mergerequests.create(fields))

    def update(
        self,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        base: str | None = None,
        close: bool = False,
    ) -> None:
        """Change what is given."""
        with self._errors(f"merge request {number}"):
            merge_request = self._remote.mergerequests.get(number)
            draft = _DRAFT if merge_request.title.startswith(_DRAFT) else ""
            fields = {
                "title": None if title is None else f"{draft}{title}",
                "description": body,
                "target_branch": base,
                "state_event": _CLOSE if close else None,
            }
            self._change(number, **{name: value for name, value in fields.items() if value is not None})

    def comments(self, number: int) -> tuple[Comment, ...]:
        """All comments."""
        with self._errors(f"comments of merge request {number}"):
            merge_request = self._remote.mergerequests.get(number, lazy=True)
            return tuple(Comment(note.id, str(note.body)) for note in merge_request.notes.list(iterator=True))

    def comment(self, number: int, text: str) -> None:
        """Add a comment."""
        with self._errors(f"a comment on merge request {number}", making=True):
            self._remote.mergerequests.get(number, lazy=True).notes.create({"body": text})

    def change_comment(self, number: int, comment: int, text: str) -> None:
        """Give a comment another text."""
        with self._errors(f"a comment on merge request {number}"):
            self._remote.mergerequests.get(number, lazy=True).notes.update(comment, {"body": text})

    def attach(self, oid: str, parts: tuple[str, ...]) -> bool:
        """Not here: the status of a commit has no room for a report."""
        return False

    def add_labels(self, number: int, labels: tuple[str, ...]) -> None:
        """Add labels."""
        with self._errors(f"labels of merge request {number}"):
            self._change(number, add_labels=list(labels))

    def ask_for_review(self, number: int, reviewers: tuple[str, ...]) -> None:
        """Ask people to review."""
        with self._errors(f"reviewers of merge request {number}"):
            found = {name: self._client.users.list(username=name, get_all=False) for name in reviewers}
            unknown = [name for name, users in found.items() if not users]
            if unknown:
                raise ForgeError(f"there is no user {', '.join(unknown)}")
            self._change(number, reviewer_ids=[users[0].get_id() for users in found.values()])

    @property
    def _remote(self) -> RemoteProject:
        if self._known is None:
            self.project()
        assert self._known is not None
        return self._known

    def _change(self, number: int, **fields: Any) -> None:
        self._remote.mergerequests.update(number, fields)

    @contextlib.contextmanager
    def _errors(self, what: str, *, making: bool = False) -> Iterator[None]:
        try:
            yield
        except (GitlabParsingError, *ODD) as error:
            text = scrubbed(odd_answer(what, "GitLab", error), self._credential)
            raise (Unanswered if making else ForgeError)(text) from None
        except GitlabError as error:
            raise self._explained(error, what, making) from None
        except requests.RequestException as error:
            text = scrubbed(f"{what}: no answer from GitLab ({error}); try again later", self._credential)
            raise (Unanswered if making else ForgeError)(" ".join(text.split())) from None

    def _explained(self, error: GitlabError, what: str, making: bool) -> ForgeError:
        message = error.error_message
        told = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        said = scrubbed(" ".join(told.split())[:500], self._credential)
        status = error.response_code or 0
        if making and status == 409:
            return AlreadyOpen(f"{what}: {said}")
        if making and status >= 500:
            return Unanswered(f"{what}: GitLab answered {status} ({said}); try again later")
        return ForgeError(f"{what}: GitLab answered {status}{f' ({said})' if said else ''}; {_way_out(status)}")


class _Client(gitlab.Gitlab):
    """Waits for nobody: the session's adapter does, within a bound."""

    def http_request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """One request. Raises ValueError for an answer that holds no object, or no list where one was asked for."""
        bounded = {**kwargs, "obey_rate_limit": False, "retry_transient_errors": False}
        answer = super().http_request(*args, **bounded)
        verb, path = args[0], urlsplit(args[1]).path
        expect(list if verb == "get" and path.endswith(_LISTS) else dict, answer.json(), "it")
        return answer


def _way_out(status: int) -> str:
    return {
        401: "the token is not valid (expired, or for another host); set GITLAB_TOKEN to one that is",
        403: "the token may not do this; it needs the scopes `api` and `write_repository`, or use --fork",
        404: "it does not exist or the token may not see it; check the name and the token's access",
        409: "it is in another state than expected; run again",
        422: "check labels, reviewers, base and branch in [tool.graphmend.pull-request]",
        429: "too many requests; try again later",
    }.get(status, "try again later")


def _project(project: RemoteProject) -> Project:
    permissions = getattr(project, "permissions", None) or {}
    accesses = (permissions.get("project_access"), permissions.get("group_access"))
    level = max((access["access_level"] for access in accesses if access), default=0)
    return Project(
        path=expect(str, project.path_with_namespace, "the project's name"),
        url=expect(str, project.http_url_to_repo, "its address"),
        ssh_url=expect(str, project.ssh_url_to_repo, "its address"),
        # Untold to those who may not read code.
        default_branch=expect(str, getattr(project, "default_branch", None) or "main", "its default branch"),
        archived=expect(bool, project.archived, "whether it is archived"),
        can_push=level >= _DEVELOPER,
        id=expect(int, project.id, "its id"),
    )


def _merge_request(one: ProjectMergeRequest) -> PullRequest:
    return PullRequest(
        expect(int, one.iid, "its number"),
        expect(str, one.web_url, "its address"),
        _STATES[one.state],
        expect(str, one.title, "its title").removeprefix(_DRAFT),
        one.description or "",
        expect(str, one.target_branch, "its target"),
    )
