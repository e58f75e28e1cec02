"""As much of GitHub as the bot talks to: it remembers, and every request and answer is held to GitHub's description."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.forge.contract import Contract
from tests.forge.server import Server

Answer = tuple[int, Any, dict[str, str]]


@dataclass
class Pull:
    """A pull request of the fake."""

    number: int
    title: str
    body: str
    head: str  # owner:branch
    base: str
    draft: bool
    state: str = "open"
    merged: bool = False
    comments: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)


@dataclass
class Repo:
    """A repository of the fake."""

    path: str
    default_branch: str = "main"
    archived: bool = False
    pulls: list[Pull] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    parent: str | None = None


class GitHubFake:
    """The API below `/api/v3`."""

    prefix = "/api/v3/"

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = f"{server.url}/api/v3"
        self.contract = Contract("github", self.url)
        self.repos: dict[str, Repo] = {}
        self.renamed: dict[str, str] = {}
        self.page = 100
        self.apps: set[str] = set()  # who may make checks

    def user_of(self, headers: Mapping[str, str]) -> str | None:
        """By the token."""
        return self._server.users.get(headers.get("authorization", "").removeprefix("token ").removeprefix("Bearer "))

    def answer(self, method: str, target: str, body: Any, user: str) -> Answer:
        """Answer one request."""
        split = urlsplit(target)
        if split.path == "/api/v3/user":
            example = self.contract.example("private-user-response-with-public-and-private-profile-information")
            return 200, {**example, "login": user, "user_view_type": "private"}, {}
        found = re.fullmatch(r"/api/v3/repos/([^/]+/[^/]+)(/.*)?", split.path)
        assert found is not None, target
        path, rest = found[1], found[2] or ""
        if path in self.renamed:
            location = f"{self._server.url}{split.path.replace(path, self.renamed[path])}"
            return 301, {"message": "Moved Permanently", "url": location}, {"Location": location}
        repo = self.repos.get(path)
        if repo is None:
            return 404, {"message": "Not Found", "documentation_url": "https://docs.github.com"}, {}
        self._close_without_branch(repo)
        arguments = {name: values[-1] for name, values in parse_qs(split.query).items()}
        if not rest:
            return 200, self._repo(repo, user), {}
        if rest == "/forks":
            return 202, self._repo(self._fork(repo, user), user), {}
        if rest == "/pulls":
            return self._create(repo, body, user) if method == "POST" else self._list(repo, arguments)
        if rest.endswith("/check-runs"):
            return self._checks(method, rest, repo, body, arguments, user)
        if rest.startswith("/issues/comments/"):
            pull_number, index = divmod(int(rest.rpartition("/")[2]), 1000)
            (commented,) = (one for one in repo.pulls if one.number == pull_number)
            commented.comments[index] = body["body"]
            return 200, self._comment(commented, index), {}
        number = int(re.sub(r"\D", "", rest) or "0")
        pull = next((one for one in repo.pulls if one.number == number), None)
        if pull is None:
            return 404, {"message": "Not Found"}, {}
        if re.fullmatch(r"/pulls/\d+", rest):
            return self._patch(repo, pull, body) if method == "PATCH" else (200, self._pull(repo, pull), {})
        return self._about(method, rest, repo, pull, body)

    def _about(self, method: str, rest: str, repo: Repo, pull: Pull, body: Any) -> Answer:
        if rest.endswith("/comments") and method == "POST":
            pull.comments.append(body["body"])
            return 201, self._comment(pull, len(pull.comments) - 1), {}
        if rest.endswith("/comments"):
            return 200, [self._comment(pull, index) for index in range(len(pull.comments))], {}
        if rest.endswith("/labels"):
            pull.labels += [name for name in body["labels"] if name not in pull.labels]
            template = self.contract.example("label-items")[0]
            return 200, [{"description": None, **template, "name": name} for name in pull.labels], {}
        assert rest.endswith("/requested_reviewers"), rest
        if "nobody" in body.get("reviewers", []):
            return 422, {"message": "Reviews may only be requested from collaborators."}, {}
        pull.reviewers += [*body.get("reviewers", []), *body.get("team_reviewers", [])]
        return 201, {**self._example("pull-request-review-request", repo), **self._fields(repo, pull)}, {}

    def _list(self, repo: Repo, arguments: Mapping[str, str]) -> Answer:
        assert arguments["sort"] == "created"
        chosen = [
            one
            for one in reversed(repo.pulls)
            if one.head == arguments["head"] and arguments["state"] in {"all", one.state}
        ]
        page = int(arguments.get("page", "1"))
        rows = [self._simple(repo, one) for one in chosen[(page - 1) * self.page : page * self.page]]
        headers = {}
        if len(chosen) > page * self.page:
            query = "&".join(f"{name}={value}" for name, value in {**arguments, "page": page + 1}.items())
            headers["Link"] = f'<{self.url}/repos/{repo.path}/pulls?{query}>; rel="next"'
        return 200, rows, headers

    def _create(self, repo: Repo, body: Any, user: str) -> Answer:
        if user in self._server.readers and ":" not in body["head"]:
            return 403, {"message": "Resource not accessible by integration"}, {}
        head = body["head"] if ":" in body["head"] else f"{repo.path.partition('/')[0]}:{body['head']}"
        if len(body["body"]) > 65_536:
            return self._invalid("body is too long (maximum is 65536 characters)")
        if body["base"] not in self._server.branches(repo.path):
            return self._invalid("base is invalid")
        if any(one.head == head and one.state == "open" for one in repo.pulls):
            return self._invalid(f"A pull request already exists for {head}.")
        number = len(repo.pulls) + 7
        pull = Pull(number, body["title"], body["body"], head, body["base"], body.get("draft", False))
        repo.pulls.append(pull)
        return 201, self._pull(repo, pull), {}

    def _invalid(self, message: str) -> Answer:
        errors = [{"resource": "PullRequest", "code": "custom", "message": message}]
        return 422, {"message": "Validation Failed", "documentation_url": "https://docs", "errors": errors}, {}

    def _patch(self, repo: Repo, pull: Pull, body: Any) -> Answer:
        pull.title = body.get("title", pull.title)
        pull.body = body.get("body", pull.body)
        pull.base = body.get("base", pull.base)
        pull.state = body.get("state", pull.state)
        return 200, self._pull(repo, pull), {}

    def _fork(self, repo: Repo, user: str) -> Repo:
        path = f"{user}/{repo.path.partition('/')[2]}"
        if path not in self.repos:
            folder = self._server.root / f"{path}.git"
            folder.parent.mkdir(exist_ok=True)
            self._server.git(repo.path, "clone", "--quiet", "--bare", ".", str(folder))
            self._server.git(path, "config", "http.receivepack", "true")
            self.repos[path] = Repo(path, repo.default_branch, parent=repo.path)
        return self.repos[path]

    def _close_without_branch(self, repo: Repo) -> None:
        """What GitHub does when a branch is deleted."""
        for pull in repo.pulls:
            owner, _, branch = pull.head.partition(":")
            source = f"{owner}/{repo.path.partition('/')[2]}"
            if pull.state == "open" and branch not in self._server.branches(source):
                pull.state = "closed"

    def _repo(self, repo: Repo, user: str) -> Any:
        owner, _, name = repo.path.partition("/")
        may = user not in self._server.readers or owner == user
        found = self._example("full-repository", repo)
        found.update(
            id=1000 + sorted(self.repos).index(repo.path),
            name=name,
            full_name=repo.path,
            archived=repo.archived,
            has_discussions=False,  # their own example lacks it
            default_branch=repo.default_branch,
            clone_url=f"{self._server.url}/{repo.path}.git",
            permissions={"admin": False, "push": may, "pull": True},
            fork=repo.parent is not None,
        )
        if repo.parent is not None:
            found["parent"] = {**found["parent"], "full_name": repo.parent}
        return found

    def _pull(self, repo: Repo, pull: Pull) -> Any:
        return {**self._example("pull-request", repo), **self._fields(repo, pull)}

    def _simple(self, repo: Repo, pull: Pull) -> Any:
        return {**self._example("pull-request-simple-items", repo)[0], **self._fields(repo, pull)}

    def _fields(self, repo: Repo, pull: Pull) -> dict[str, Any]:
        example = self._example("pull-request", repo)
        return {
            "number": pull.number,
            "url": f"{self.url}/repos/{repo.path}/pulls/{pull.number}",
            "issue_url": f"{self.url}/repos/{repo.path}/issues/{pull.number}",
            "html_url": f"{self._server.url}/{repo.path}/pull/{pull.number}",
            "state": pull.state,
            "title": pull.title,
            "body": pull.body.replace("\n", "\r\n"),
            "draft": pull.draft,
            "requested_reviewers": [],
            "requested_teams": [],
            "milestone": None,
            "labels": [],
            "merged_at": "2026-01-01T00:00:00Z" if pull.merged else None,
            "base": {**example["base"], "ref": pull.base},
            "head": {**example["head"], "ref": pull.head.partition(":")[2], "label": pull.head},
        }

    def _comment(self, pull: Pull, index: int) -> Any:
        return {
            **self.contract.example("issue-comment"),
            "id": pull.number * 1000 + index,
            "body": pull.comments[index],
        }

    def _checks(self, method: str, rest: str, repo: Repo, body: Any, arguments: Mapping[str, str], user: str) -> Answer:
        if method == "POST":
            if user not in self.apps:
                return 403, {"message": "You must authenticate via a GitHub App."}, {}
            if any(len(body["output"][name]) > 65_535 for name in ("summary", "text")):
                return self._invalid("text is too long")
            repo.checks.append(body)
            return 201, self._check(body), {}
        found = [
            self._check(one)
            for one in repo.checks
            if one["head_sha"] == rest.split("/")[2] and one["name"] == arguments["check_name"]
        ]
        return 200, {"total_count": len(found), "check_runs": found}, {}

    def _check(self, told: Any) -> Any:
        example = self.contract.example("check-run-example-of-completed-conclusion")
        return {
            **example,
            **{name: told[name] for name in ("name", "head_sha", "external_id", "conclusion")},
            "output": {**example["output"], **told["output"]},
        }

    def _example(self, name: str, repo: Repo) -> Any:
        text = json.dumps(self.contract.example(name)).replace("https://api.github.com", self.url)
        return json.loads(text.replace("octocat/Hello-World", repo.path))
