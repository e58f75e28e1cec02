"""`graphmend pr` on GitLab: the same life of one merge request, and the faults that GitLab tells in its own way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from graphmend_codemod.forge.gitlab import GitLab
from tests.forge.gitlab_fake import GitLabFake, LabProject, Merge
from tests.forge.server import Fault, Server
from tests.forge.tools import BRANCH, TOKEN, Ran, adopt, run
from tests.repository.tools import BROKEN, CLEAN, Repository

PATH = "group/sub/zoo"
MERGES = "/merge_requests$"


@dataclass(frozen=True)
class Lab:
    """A GitLab with one project, and a clone of it."""

    server: Server
    fake: GitLabFake
    clone: Repository
    slept: list[float]

    @property
    def merges(self) -> list[Merge]:
        """Merge requests of the project."""
        return self.fake.projects[0].merges

    def pr(self, *options: str) -> Ran:
        """`graphmend pr`."""
        os.environ["GITLAB_TOKEN"] = TOKEN
        return run("pr", f"{self.server.url}/{PATH}", "--forge", "gitlab", *options, token=TOKEN)

    def change(self, path: str, text: str) -> None:
        """Commit and push to the base."""
        self.clone.write(path, text)
        self.clone.commit()
        self.clone.git("push", "--quiet", "origin", "main")


@pytest.fixture
def lab(server: Server, upstream: Repository, slept: list[float]) -> Iterator[Lab]:
    """A GitLab. Its contract must hold to the end."""
    fake = GitLabFake(server)
    server.api = fake
    fake.projects.append(LabProject(31, PATH))
    adopt(server, PATH, upstream)
    yield Lab(server, fake, upstream, slept)
    assert not fake.contract.broken, "\n".join(fake.contract.broken)


def test_one_merge_request_is_opened_updated_and_closed(lab: Lab) -> None:
    ran = lab.pr()
    assert (ran.code, ran.out.split()[0]) == (0, "opened"), ran
    (merge,) = lab.merges
    assert (merge.branch, merge.target, merge.source) == (BRANCH, "main", 31)
    assert merge.description.startswith("**2 break sites fixed in 1 file")
    assert lab.pr().out.startswith("unchanged")
    lab.change("zoo/second.py", BROKEN)
    assert lab.pr().out.startswith("updated")
    assert merge.title == "Remove 4 graph break sites in 2 files"
    lab.change("zoo/second.py", CLEAN)
    lab.change("zoo/model.py", CLEAN)
    assert lab.pr().out.startswith("closed")
    assert (merge.state, len(merge.notes)) == ("closed", 1)
    assert BRANCH not in lab.server.branches(PATH)


def test_a_merge_request_that_a_person_closed_is_not_opened_again(lab: Lab) -> None:
    lab.pr()
    lab.merges[0].state = "closed"
    assert lab.pr().out.startswith("not opened again")
    assert len(lab.merges) == 1


def test_labels_reviewers_and_draft(lab: Lab) -> None:
    settings = 'labels = ["bot", "compile"]\nreviewers = ["ada"]\ndraft = true\n'
    lab.change("pyproject.toml", f"[tool.graphmend.pull-request]\n{settings}")
    assert lab.pr().code == 0
    (merge,) = lab.merges
    assert merge.title.startswith("Draft: Remove 2")
    assert (merge.labels, merge.reviewers) == (["bot", "compile"], [5])
    lab.change("zoo/second.py", BROKEN)
    lab.pr()
    assert merge.title.startswith("Draft: Remove 4")


def test_a_reviewer_who_does_not_exist_costs_only_the_review(lab: Lab) -> None:
    lab.change("pyproject.toml", '[tool.graphmend.pull-request]\nreviewers = ["nobody"]\n')
    ran = lab.pr()
    assert ran.code == 0
    assert "there is no user nobody" in ran.err


def test_without_a_right_to_push_a_fork_is_used(lab: Lab) -> None:
    lab.server.readers.add("bot")
    assert lab.pr().code == 2
    assert lab.pr("--fork").code == 0
    (merge,) = lab.merges
    assert merge.source == lab.fake.projects[1].id
    assert BRANCH in lab.server.branches("bot/zoo")
    assert lab.pr("--fork").out.startswith("unchanged")


def test_a_project_that_does_not_tell_its_default_branch_has_main(lab: Lab) -> None:
    lab.fake.projects[0].default_branch = ""  # as for a token that may not read the code
    assert lab.pr().code == 0
    assert [merge.target for merge in lab.merges] == ["main"]


def test_a_merge_request_from_a_fork_that_is_gone_is_not_ours(lab: Lab) -> None:
    lab.merges.append(Merge(1, None, BRANCH, "main", "From nowhere", "", state="closed"))
    assert lab.pr().out.startswith("opened")
    assert [merge.source for merge in lab.merges] == [None, 31]


def test_commits_of_a_person_are_left_alone(lab: Lab) -> None:
    lab.pr()
    lab.clone.git("fetch", "--quiet", "origin", BRANCH)
    lab.clone.git("checkout", "--quiet", "FETCH_HEAD")
    lab.clone.write("notes.txt", "by hand\n")
    theirs = lab.clone.commit()
    lab.clone.git("push", "--quiet", "origin", f"HEAD:{BRANCH}")
    assert lab.pr().out.startswith("left alone")
    assert lab.server.branches(PATH)[BRANCH] == theirs
    assert len(lab.merges[0].notes) == 1


@pytest.mark.parametrize(
    ("status", "words"), [(401, "GITLAB_TOKEN"), (403, "write_repository"), (404, "may not see it"), (422, "labels")]
)
def test_a_refusal_is_told_in_one_line(lab: Lab, status: int, words: str) -> None:
    lab.server.faults.append(Fault("POST", MERGES, status, message="no"))
    ran = lab.pr()
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert words in ran.err
    assert lab.pr().out.startswith("opened")
    assert len(lab.merges) == 1


def test_too_many_requests_wait_as_gitlab_says(lab: Lab) -> None:
    lab.server.faults.append(Fault("POST", MERGES, 429, headers={"Retry-After": "9"}))
    assert lab.pr().code == 0
    assert lab.slept == [9.0]


def test_a_wait_beyond_the_bound_is_not_begun(lab: Lab) -> None:
    lab.server.faults.append(Fault("GET", MERGES.rstrip("$"), 429, headers={"Retry-After": "3600"}, times=20))
    assert lab.pr("--patience", "60").code == 2
    assert lab.slept == []


@pytest.mark.parametrize("done", [True, False])
def test_a_connection_reset_while_opening_makes_exactly_one(lab: Lab, done: bool) -> None:
    lab.server.faults.append(Fault("POST", MERGES, done=done))
    assert lab.pr().code == 0
    assert len(lab.merges) == 1


def test_three_times_500_is_survived(lab: Lab) -> None:
    lab.server.faults.append(Fault("GET", "/merge_requests[?]", 500, times=3))
    assert lab.pr().code == 0


def test_another_bot_that_was_faster_is_found(lab: Lab) -> None:
    lab.server.events["POST .*/merge_requests$"] = lambda: lab.merges.append(
        Merge(1, 31, BRANCH, "main", "Remove 2 graph break sites in 1 file", "")
    )
    assert lab.pr().out.startswith("updated")
    assert len(lab.merges) == 1


def test_a_report_that_is_too_long_is_kept_in_notes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GitLab, "body_limit", 3_800)
    monkeypatch.setattr(GitLab, "report_limit", 20_000)
    for number in range(20):
        lab.clone.write(f"zoo/model_{number}.py", BROKEN)
    lab.change("zoo/second.py", BROKEN)
    assert lab.pr().code == 0
    (merge,) = lab.merges
    assert [note.count("zoo/model_") for note in merge.notes] == [40]
    lab.change("zoo/model_0.py", CLEAN)
    assert lab.pr().out.startswith("updated")
    assert [note.count("zoo/model_") for note in merge.notes] == [38]
