"""GitHub and GitHub Enterprise, through PyGithub."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import requests
from github import (
    Auth,
    BadAttributeException,
    Github,
    GithubException,
    GithubObject,
    RateLimitExceededException,
    UnknownObjectException,
)
from github.PullRequest import PullRequest as Remote
from github.Repository import Repository

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
from graphmend_codemod.forge.retry import SECONDARY_WAIT, Patience, Waiting, asked_to_wait

_TIMEOUT = 30
_PAGE = 100
_MOST = 10_000
Answer = TypeVar("Answer")


class GitHub:
    """`Forge` for one repository. `api` is the base URL, `https://api.github.com` or `https://HOST/api/v3`."""

    body_limit = 65_536
    report_limit = 60_000  # a check's text has 65,535 at most, and a comment is a bit more than its part

    def __init__(self, api: str, path: str, credential: Credential, patience: Patience) -> None:
        self._path = path
        self._credential = credential
        self._patience = patience
        self._known: Repository | None = None
        self._client = Github(
            auth=Auth.Token(credential.secret),
            base_url=api,
            timeout=_TIMEOUT,
            per_page=_PAGE,
            user_agent="graphmend",
            retry=Waiting(patience=patience),
        )

    def project(self) -> Project:
        """The repository; GitHub answers for an old name with the new one."""
        with self._errors(f"repository {self._path}"):
            self._known = self._patiently(lambda: self._client.get_repo(self._path))
            return _project(self._known)

    def fork(self) -> Project:
        """The user's fork. GitHub answers with the one that is there, and fills a new one in the background."""
        with self._errors(f"a fork of {self._path}"):
            return _project(self._patiently(lambda: self._repository.create_fork(default_branch_only=True)))

    def existing_fork(self) -> Project | None:
        """The user's fork, if there is one under the repository's own name."""
        repository = self._repository
        with self._errors(f"a fork of {self._path}"):
            user = self._patiently(lambda: self._client.get_user().login)
            try:
                found = self._patiently(lambda: self._client.get_repo(f"{user}/{repository.name}"))
            except UnknownObjectException:
                return None
            ours = found.fork and found.parent is not None and found.parent.full_name == repository.full_name
            return _project(found) if ours else None

    def pull_requests(self, source: Project, branch: str) -> tuple[PullRequest, ...]:
        """All of them, the newest first."""
        head = f"{source.owner}:{branch}"
        with self._errors(f"pull requests of {self._path}"):
            told = {"state": "all", "head": head, "sort": "created", "direction": "desc"}
            return tuple(_listed_pull_request(one) for one in self._all(f"{self._repository.url}/pulls", told))

    def create(self, proposal: Proposal) -> PullRequest:
        """Open a pull request."""
        repository, source = self._repository, proposal.source
        foreign = source.path != repository.full_name
        with self._errors(f"a pull request in {self._path}", making=True):
            return _pull_request(
                self._patiently(
                    lambda: repository.create_pull(
                        base=proposal.base,
                        head=f"{source.owner}:{proposal.branch}" if foreign else proposal.branch,
                        head_repo=source.path if foreign else GithubObject.NotSet,
                        title=proposal.title,
                        body=proposal.body,
                        draft=proposal.draft,
                    )
                )
            )

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
        with self._errors(f"pull request {number}"):
            pull = self._pull(number)
            self._patiently(
                lambda: pull.edit(
                    title=GithubObject.NotSet if title is None else title,
                    body=GithubObject.NotSet if body is None else body,
                    base=GithubObject.NotSet if base is None else base,
                    state="closed" if close else GithubObject.NotSet,
                )
            )

    def comments(self, number: int) -> tuple[Comment, ...]:
        """All comments."""
        with self._errors(f"comments of pull request {number}"):
            url = f"{self._repository.url}/issues/{number}/comments"
            return tuple(
                Comment(expect(int, one["id"], "its id"), str(one["body"] or "")) for one in self._all(url, {})
            )

    def comment(self, number: int, text: str) -> None:
        """Add a comment."""
        with self._errors(f"a comment on pull request {number}", making=True):
            pull = self._pull(number)
            self._patiently(lambda: pull.create_issue_comment(text))

    def change_comment(self, number: int, comment: int, text: str) -> None:
        """Give a comment another text."""
        with self._errors(f"a comment on pull request {number}"):
            requester, url = self._client.requester, f"{self._repository.url}/issues/comments/{comment}"
            self._patiently(lambda: requester.requestJsonAndCheck("PATCH", url, input={"body": text}))

    def attach(self, oid: str, parts: tuple[str, ...]) -> bool:
        """Make check runs. Only apps may, those of a workflow's own token among them."""
        for number, part in enumerate(parts, start=1):
            which = f" {number} of {len(parts)}" if len(parts) > 1 else ""
            if not self._check_run(oid, f"graphmend report{which}", part):
                return False
        return True

    def _check_run(self, oid: str, name: str, text: str) -> bool:
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        with self._errors(f"a check of {oid[:12]}"):
            try:
                url = f"{self._repository.url}/commits/{oid}/check-runs"
                _, there = self._patiently(
                    lambda: self._client.requester.requestJsonAndCheck("GET", url, parameters={"check_name": name})
                )
                if any(one["external_id"] == digest for one in there["check_runs"]):
                    return True
                self._patiently(
                    lambda: self._repository.create_check_run(
                        name,
                        oid,
                        external_id=digest,
                        conclusion="neutral",
                        output={"title": name, "summary": "All that did not fit into the pull request.", "text": text},
                    )
                )
            except GithubException as error:
                # Answers for tokens of people, and for those without the permission `checks: write`.
                if error.status in {403, 404, 422} and not isinstance(error, RateLimitExceededException):
                    return False
                raise
        return True

    def add_labels(self, number: int, labels: tuple[str, ...]) -> None:
        """Add labels."""
        with self._errors(f"labels of pull request {number}"):
            pull = self._pull(number)
            # PyGithub's own method sends a bare list, which is not what GitHub's description asks for.
            self._patiently(
                lambda: pull.requester.requestJsonAndCheck(
                    "POST", f"{pull.issue_url}/labels", input={"labels": list(labels)}
                )
            )

    def ask_for_review(self, number: int, reviewers: tuple[str, ...]) -> None:
        """Ask people and teams to review."""
        people = [name for name in reviewers if "/" not in name]
        teams = [name.rpartition("/")[2] for name in reviewers if "/" in name]
        with self._errors(f"reviewers of pull request {number}"):
            pull = self._pull(number)
            self._patiently(lambda: pull.create_review_request(reviewers=people, team_reviewers=teams))

    @property
    def _repository(self) -> Repository:
        if self._known is None:
            self.project()
        assert self._known is not None
        return self._known

    def _all(self, url: str, parameters: Mapping[str, object]) -> list[dict[str, Any]]:
        """All of a list, page by page. PyGithub takes an answer that is no list for an empty one."""
        found: list[dict[str, Any]] = []
        asked: str | None = url
        told: dict[str, object] | None = {**parameters, "per_page": _PAGE}
        while asked is not None:
            if len(found) > _MOST:
                raise ValueError(f"a list of more than {_MOST}")
            here, arguments = asked, told
            headers, page = self._patiently(
                lambda: self._client.requester.requestJsonAndCheck("GET", here, parameters=arguments)  # noqa: B023
            )
            found += [expect(dict, one, "an entry") for one in expect(list, page, "the list")]
            asked, told = _next(headers.get("link", "")), None
        return found

    def _pull(self, number: int) -> Remote:
        return self._patiently(lambda: self._repository.get_pull(number))

    def _patiently(self, call: Callable[[], Answer]) -> Answer:
        """A secondary limit may come without headers; PyGithub knows it by its text."""
        try:
            return call()
        except RateLimitExceededException as error:
            if asked_to_wait(error.headers or {}) is not None or not self._patience.allows(SECONDARY_WAIT):
                raise
            self._patience.wait(SECONDARY_WAIT)
            return call()

    @contextlib.contextmanager
    def _errors(self, what: str, *, making: bool = False) -> Iterator[None]:
        try:
            yield
        except GithubException as error:
            raise _explained(error, what, making, self._credential) from None
        except (requests.RequestException, RuntimeError) as error:
            # PyGithub raises RuntimeError for a redirect to another host.
            text = scrubbed(f"{what}: no answer from GitHub ({_reason(error)}); try again later", self._credential)
            raise (Unanswered if making else ForgeError)(text) from None
        except (*ODD, BadAttributeException) as error:
            text = scrubbed(odd_answer(what, "GitHub", error), self._credential)
            raise (Unanswered if making else ForgeError)(text) from None


def _explained(error: GithubException, what: str, making: bool, credential: Credential) -> ForgeError:
    data = error.data if isinstance(error.data, dict) else {}
    told = [str(data.get("message") or error.message or "")]
    details = data.get("errors")
    for one in details if isinstance(details, list) else []:
        told.append(str(one.get("message") or one.get("code") or one) if isinstance(one, dict) else str(one))
    said = scrubbed("; ".join(" ".join(text.split()) for text in told if text), credential)
    if error.status == 422 and making and "already exists" in said:
        return AlreadyOpen(f"{what}: {said}")
    if making and error.status >= 500:
        return Unanswered(f"{what}: GitHub answered {error.status} ({said}); try again later")
    return ForgeError(f"{what}: GitHub answered {error.status}{f' ({said})' if said else ''}; {_way_out(error)}")


def _way_out(error: GithubException) -> str:
    wait = asked_to_wait(error.headers or {})
    if isinstance(error, RateLimitExceededException) or error.status == 429:
        return "too many requests; try again later" + (f", in {wait:.0f} s" if wait is not None else "")
    return {
        401: "the token is not valid (expired, or for another host); set GITHUB_TOKEN to one that is",
        403: "the token lacks permission; it needs `contents: write` and `pull-requests: write`, or use --fork",
        404: "it does not exist or the token may not see it; check the name and the token's access",
        409: "the repository changed during the run; run again",
        410: "it is disabled for this repository",
        422: "check the labels, reviewers, base and branch in [tool.graphmend.pull-request]",
    }.get(error.status, "try again later")


def _reason(error: Exception) -> str:
    innermost: BaseException = error
    while innermost.__cause__ or innermost.__context__:
        innermost = innermost.__cause__ or innermost.__context__ or innermost
    return " ".join(str(innermost).split()) or type(innermost).__name__


def _next(links: str) -> str | None:
    """The address of the next page, from a `Link` header."""
    return next((one["url"] for one in requests.utils.parse_header_links(links) if one.get("rel") == "next"), None)


def _project(repository: Repository) -> Project:
    permissions = repository.permissions
    return Project(
        path=expect(str, repository.full_name, "the repository's name"),
        url=expect(str, repository.clone_url, "its address"),
        ssh_url=expect(str, repository.ssh_url, "its address"),
        default_branch=expect(str, repository.default_branch, "its default branch"),
        archived=expect(bool, repository.archived, "whether it is archived"),
        can_push=bool(permissions and permissions.push),
        id=expect(int, repository.id, "its id"),
    )


def _pull_request(pull: Remote) -> PullRequest:
    state = State.MERGED if pull.merged_at else State(pull.state)
    return PullRequest(
        expect(int, pull.number, "its number"),
        expect(str, pull.html_url, "its address"),
        state,
        expect(str, pull.title, "its title"),
        pull.body or "",
        expect(str, pull.base.ref, "its base"),
    )


def _listed_pull_request(one: dict[str, Any]) -> PullRequest:
    return PullRequest(
        expect(int, one["number"], "its number"),
        expect(str, one["html_url"], "its address"),
        State.MERGED if one["merged_at"] else State(one["state"]),
        expect(str, one["title"], "its title"),
        str(one["body"] or ""),
        expect(str, one["base"]["ref"], "its base"),
    )
