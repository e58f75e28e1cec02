"""As much of GitLab as the bot talks to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.forge.contract import Contract
from tests.forge.server import Server

Answer = tuple[int, Any, dict[str, str]]

_FIRST_NOTE = 301


@dataclass
class Merge:
    """A merge request of the fake."""

    iid: int
    source: int | None
    branch: str
    target: str
    title: str
    description: str
    state: str = "opened"
    notes: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    reviewers: list[int] = field(default_factory=list)


@dataclass
class LabProject:
    """A project of the fake."""

    id: int
    path: str
    default_branch: str = "main"
    archived: bool = False
    parent: int | None = None
    merges: list[Merge] = field(default_factory=list)


class GitLabFake:
    """The API below `/api/v4`."""

    prefix = "/api/v4/"
    people: Mapping[str, int] = {"ada": 5}

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = server.url
        self.contract = Contract("gitlab", f"{server.url}/api/v4")
        self.projects: list[LabProject] = []

    def user_of(self, headers: Mapping[str, str]) -> str | None:
        """By the token."""
        return self._server.users.get(headers.get("authorization", "").removeprefix("Bearer "))

    def answer(self, method: str, target: str, body: Any, user: str) -> Answer:
        """Answer one request."""
        split = urlsplit(target)
        arguments = {name: values[-1] for name, values in parse_qs(split.query).items()}
        if split.path == "/api/v4/users":
            name = arguments["username"]
            return 200, [{"id": self.people[name], "username": name}] if name in self.people else [], {}
        found = re.fullmatch(r"/api/v4/projects/([^/]+)(/.*)?", split.path)
        assert found is not None, target
        key, rest = unquote(found[1]), found[2] or ""
        project = next((one for one in self.projects if key in {one.path, str(one.id)}), None)
        if project is None:
            return 404, {"message": "404 Project Not Found"}, {}
        if not rest:
            return 200, self._project(project, user), {}
        if rest == "/fork":
            return self._fork(project, user)
        if rest == "/forks":
            owned = [one for one in self.projects if one.parent == project.id and one.path.startswith(f"{user}/")]
            return 200, [_without_permissions(self._project(one, user)) for one in owned], {}
        if rest == "/merge_requests":
            return self._create(project, body, user) if method == "POST" else self._list(project, arguments)
        iid = int(rest.split("/")[2])
        merge = next((one for one in project.merges if one.iid == iid), None)
        if merge is None:
            return 404, {"message": "404 Not found"}, {}
        if "/notes" in rest:
            return self._notes(method, rest, merge, body)
        return self._put(project, merge, body) if method == "PUT" else (200, self._merge(project, merge), {})

    def _notes(self, method: str, rest: str, merge: Merge, body: Any) -> Answer:
        """Newest first, with what GitLab itself writes there."""
        if method == "GET":
            there = [_note(number, text) for number, text in enumerate(merge.notes)]
            return 200, [*reversed(there), {"id": 7, "body": "changed the description", "system": True}], {}
        if method == "PUT":
            number = int(rest.rpartition("/")[2]) - _FIRST_NOTE
            if not 0 <= number < len(merge.notes):
                return 404, {"message": "404 Note Not Found"}, {}
            merge.notes[number] = body["body"]
            return 200, _note(number, body["body"]), {}
        merge.notes.append(body["body"])
        return 201, _note(len(merge.notes) - 1, body["body"]), {}

    def _list(self, project: LabProject, arguments: Mapping[str, str]) -> Answer:
        assert (arguments["order_by"], arguments["sort"], arguments["state"]) == ("created_at", "desc", "all")
        branch = arguments["source_branch"]
        return 200, [self._merge(project, one) for one in reversed(project.merges) if one.branch == branch], {}

    def _create(self, source: LabProject, body: Any, user: str) -> Answer:
        if user in self._server.readers and source.parent is None:
            return 403, {"message": "403 Forbidden"}, {}
        target = next(one for one in self.projects if one.id == body.get("target_project_id", source.id))
        if any(one.branch == body["source_branch"] and one.state == "opened" for one in target.merges):
            return 409, {"message": ["Another open merge request already exists for this source branch: !1"]}, {}
        merge = Merge(
            len(target.merges) + 1,
            source.id,
            body["source_branch"],
            body["target_branch"],
            body["title"],
            body["description"],
        )
        target.merges.append(merge)
        return 201, self._merge(target, merge), {}

    def _put(self, project: LabProject, merge: Merge, body: Any) -> Answer:
        merge.title = body.get("title", merge.title)
        merge.description = body.get("description", merge.description)
        merge.target = body.get("target_branch", merge.target)
        merge.state = {"close": "closed"}.get(body.get("state_event"), merge.state)
        merge.labels += body.get("add_labels", [])
        merge.reviewers = body.get("reviewer_ids", merge.reviewers)
        return 200, self._merge(project, merge), {}

    def _fork(self, project: LabProject, user: str) -> Answer:
        path = f"{user}/{project.path.rpartition('/')[2]}"
        folder = self._server.root / f"{path}.git"
        folder.parent.mkdir(exist_ok=True)
        self._server.git(project.path, "clone", "--quiet", "--bare", ".", str(folder))
        self._server.git(path, "config", "http.receivepack", "true")
        fork = LabProject(len(self.projects) + 40, path, parent=project.id)
        self.projects.append(fork)
        return 201, _without_permissions(self._project(fork, user)), {}

    def _project(self, project: LabProject, user: str) -> Any:
        may = user not in self._server.readers or project.path.startswith(f"{user}/")
        return {
            "id": project.id,
            "path_with_namespace": project.path,
            "http_url_to_repo": f"{self._server.url}/{project.path}.git",
            "ssh_url_to_repo": f"git@127.0.0.1:{project.path}.git",
            **({"default_branch": project.default_branch} if project.default_branch else {}),
            "archived": project.archived,
            "permissions": {"project_access": {"access_level": 30 if may else 20}, "group_access": None},
        }

    def _merge(self, project: LabProject, merge: Merge) -> Any:
        return {
            "id": 900 + merge.iid,
            "iid": merge.iid,
            "web_url": f"{self._server.url}/{project.path}/-/merge_requests/{merge.iid}",
            "state": merge.state,
            "title": merge.title,
            "description": merge.description,
            "source_branch": merge.branch,
            "target_branch": merge.target,
            "source_project_id": merge.source,
            "target_project_id": project.id,
            "draft": merge.title.startswith("Draft:"),
            "labels": merge.labels,
        }


def _note(number: int, text: str) -> Any:
    return {"id": _FIRST_NOTE + number, "body": text, "system": False}


def _without_permissions(project: Any) -> Any:
    return {name: value for name, value in project.items() if name != "permissions"}
