"""What goes wrong with a forge: no duplicate, no lost commit, no token in sight, no wait without end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.forge.github_fake import Repo
from tests.forge.tools import BRANCH, TOKEN, Hub
from tests.repository.tools import BROKEN, CLEAN

PULLS = r"/api/v3/repos/octo/zoo/pulls$"


def test_a_token_that_is_not_valid(hub: Hub) -> None:
    ran = hub.pr(token="ghp_another")
    assert ran.code == 2
    assert "401" in ran.err
    assert "token is not valid" in ran.err
    assert hub.tip is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, "pull-requests: write"),
        (404, "may not see it"),
        (409, "run again"),
        (422, "[tool.graphmend.pull-request]"),
    ],
)
def test_a_refusal_is_told_in_one_line_and_the_next_run_goes_on(hub: Hub, status: int, words: str) -> None:
    hub.fail("POST", PULLS, status, message="No, that will not do")
    ran = hub.pr()
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert words in ran.err
    assert "No, that will not do" in ran.err
    assert hub.slept == []
    tip = hub.tip
    assert hub.pr().out.startswith("opened")
    assert (hub.tip, len(hub.pulls)) == (tip, 1)


def test_a_repository_that_is_not_there(hub: Hub) -> None:
    ran = hub.pr(path="octo/nothing")
    assert ran.code == 2
    assert "octo/nothing" in ran.err
    assert "404" in ran.err


def test_an_archived_repository_is_not_pushed_to(hub: Hub) -> None:
    hub.fake.repos["octo/zoo"].archived = True
    ran = hub.pr()
    assert ran.code == 2
    assert "is archived" in ran.err
    assert hub.tip is None


def test_a_renamed_repository_is_found_under_its_new_name(hub: Hub) -> None:
    hub.fake.renamed["octo/menagerie"] = "octo/zoo"
    assert hub.pr(path="octo/menagerie").code == 0
    assert len(hub.pulls) == 1


def test_too_many_requests_wait_as_long_as_the_forge_says(hub: Hub) -> None:
    hub.fail("POST", PULLS, 429, headers={"Retry-After": "7"})
    assert hub.pr().code == 0
    assert 7.0 in hub.slept
    assert len(hub.pulls) == 1


def test_a_primary_limit_waits_until_it_is_reset(hub: Hub) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 40)}
    hub.fail("GET", "/api/v3/repos/octo/zoo$", 403, headers=headers, message="API rate limit exceeded")
    assert hub.pr().code == 0
    assert any(35 < seconds < 45 for seconds in hub.slept)


def test_a_secondary_limit_without_headers_waits_a_minute(hub: Hub) -> None:
    hub.fail("POST", PULLS, 403, message="You have exceeded a secondary rate limit. Please wait.")
    assert hub.pr().code == 0
    assert 60.0 in hub.slept


def test_a_wait_beyond_the_bound_is_not_begun(hub: Hub) -> None:
    hub.fail("GET", "/api/v3/repos/octo/zoo$", 429, headers={"Retry-After": "3600"}, message="slow down")
    ran = hub.pr("--patience", "60")
    assert ran.code == 2
    assert "in 3600 s" in ran.err
    assert hub.slept == []


def test_three_times_500_while_reading_is_survived(hub: Hub) -> None:
    hub.fail("GET", "/pulls[?]", 500, times=3)
    assert hub.pr().code == 0
    assert hub.asked("^GET .*/pulls[?]") == 4


def test_a_forge_that_stays_broken_ends_the_run(hub: Hub) -> None:
    hub.fail("GET", "/pulls[?]", 500, times=99)
    ran = hub.pr()
    assert ran.code == 2
    assert "500" in ran.err
    assert sum(hub.slept) < 60


def test_three_times_500_while_opening_ends_and_the_next_run_opens_it(hub: Hub) -> None:
    hub.fail("POST", PULLS, 500, times=3)
    assert hub.pr().code == 2
    assert hub.pulls == []
    assert hub.pr().code == 0
    assert len(hub.pulls) == 1


@pytest.mark.parametrize("done", [True, False])
def test_a_connection_reset_while_opening_makes_exactly_one(hub: Hub, done: bool) -> None:
    hub.fail("POST", PULLS, done=done)
    ran = hub.pr()
    assert (ran.code, len(hub.pulls)) == (0, 1), ran
    assert hub.asked(f"^POST {PULLS}") == (1 if done else 2)


@pytest.mark.parametrize("done", [True, False])
def test_a_connection_reset_while_commenting_comments_once(hub: Hub, done: bool) -> None:
    hub.pr()
    hub.clone.write("zoo/model.py", CLEAN)
    hub.clone.commit()
    hub.push("main")
    hub.fail("POST", "/comments$", done=done)
    assert hub.pr().out.startswith("closed")
    assert len(hub.pulls[0].comments) == 1


def test_a_connection_reset_while_changing_is_tried_again(hub: Hub) -> None:
    hub.pr()
    hub.clone.write("zoo/second.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    hub.fail("PATCH", "/pulls/7$", done=True)
    assert hub.pr().out.startswith("updated")
    assert "4 break sites" in hub.pulls[0].body


@pytest.mark.parametrize("done", [True, False])
def test_a_push_cut_in_the_middle_is_finished(hub: Hub, done: bool) -> None:
    hub.fail("POST", "git-receive-pack$", done=done)
    ran = hub.pr()
    assert ran.code == 0, ran
    assert hub.server.git("octo/zoo", "rev-list", "--count", f"main..{BRANCH}") == "2"
    hub.server.git("octo/zoo", "fsck", "--strict")


def test_a_fetch_cut_in_the_middle_is_tried_again(hub: Hub) -> None:
    hub.fail("POST", "git-upload-pack$", times=2)
    assert hub.pr().code == 0


def test_a_protected_branch_is_told_with_the_forges_reason(hub: Hub) -> None:
    hook = hub.server.root / "octo/zoo.git/hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho run >>runs\necho 'GH006: Protected branch update failed' >&2\nexit 1\n")
    hook.chmod(0o755)
    ran = hub.pr()
    assert ran.code == 2
    assert "GH006: Protected branch update failed" in ran.err
    assert (hub.server.root / "octo/zoo.git/runs").read_text() == "run\n"
    assert hub.pulls == []


def test_a_default_branch_that_was_renamed_is_followed(hub: Hub) -> None:
    hub.pr()
    hub.server.git("octo/zoo", "branch", "-m", "main", "trunk")
    hub.fake.repos["octo/zoo"].default_branch = "trunk"
    assert hub.pr().out.startswith("updated")
    assert [pull.base for pull in hub.pulls] == ["trunk"]


def test_a_base_that_does_not_exist_is_told(hub: Hub) -> None:
    ran = hub.pr("--base", "nowhere")
    assert ran.code == 2
    assert "has no branch nowhere" in ran.err


def test_a_base_that_moves_during_the_run_is_migrated_again(hub: Hub) -> None:
    def move() -> None:
        hub.clone.write("zoo/second.py", BROKEN)
        hub.clone.commit()
        hub.push("main")

    hub.server.events["GET .*/pulls[?]"] = move
    assert hub.pr().code == 0
    assert hub.server.git("octo/zoo", "merge-base", "main", BRANCH) == hub.server.branches("octo/zoo")["main"]
    assert "4 break sites" in hub.pulls[0].body


def test_a_person_who_pushes_during_the_run_keeps_the_commit(hub: Hub) -> None:
    def push() -> None:
        hub.clone.write("notes.txt", "by hand\n")
        theirs.append(hub.clone.commit("By hand"))
        hub.push(f"main:{BRANCH}")

    theirs: list[str] = []
    hub.server.events["service=git-receive-pack"] = push
    ran = hub.pr()
    assert ran.code == 2
    assert "written to meanwhile" in ran.err
    assert hub.tip == theirs[0]
    assert hub.pulls == []


def test_two_bots_at_once_make_one_pull_request(hub: Hub, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "graphmend_codemod", "pr", f"{hub.server.url}/octo/zoo", "--forge", "github"]
    command += ["--api-url", hub.fake.url, "--no-evaluate", "--jobs", "1", "--no-cache"]
    environment = {**os.environ, "GITHUB_TOKEN": TOKEN}
    bots = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(*bot.communicate(timeout=120), bot.returncode) for bot in bots]
    assert all(code in {0, 1} for *_, code in ended), ended
    assert len(hub.pulls) == 1
    assert hub.server.git("octo/zoo", "rev-list", "--count", f"main..{BRANCH}") == "2"


@pytest.mark.slow
def test_a_model_that_crashes_its_process_costs_only_its_row(hub: Hub) -> None:
    hub.clone.write("zoo/crash.py", "import os\n\n\ndef make():\n    os.abort()\n")
    hub.clone.commit()
    hub.push("main")
    assert hub.pr("--model", "zoo.crash:make", evaluate=True).code == 0
    (pull,) = hub.pulls
    (row,) = [line for line in pull.body.splitlines() if line.startswith("|") and "zoo.crash:make" in line]
    assert "not measured" in row
    assert "SIGABRT" in pull.body


def test_a_full_disk_is_told_and_nothing_is_pushed(hub: Hub) -> None:
    hub.clone.write("big.py", f"# {os.urandom(300_000).hex()}\n")
    hub.clone.commit()
    hub.push("main")
    command = f"ulimit -f 100; exec {sys.executable} -m graphmend_codemod pr {hub.server.url}/octo/zoo --forge github"
    done = subprocess.run(
        ["sh", "-c", f"{command} --api-url {hub.fake.url} --no-evaluate --jobs 1 --no-cache"],
        env={**os.environ, "GITHUB_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done
    assert len(done.stderr.splitlines()) == 1
    assert hub.tip is None
    assert not list(Path(os.environ["TMPDIR"]).glob("graphmend-*"))


def test_a_fetch_that_hangs_is_ended(hub: Hub) -> None:
    released = threading.Event()
    hub.server.events["POST .*git-upload-pack"] = lambda: released.wait(30)
    began = time.monotonic()
    ran = hub.pr("--git-timeout", "1")
    released.set()
    assert ran.code == 2
    assert "no end after" in ran.err
    assert time.monotonic() - began < 20


def test_a_list_of_many_pages_is_read_to_the_end(hub: Hub) -> None:
    hub.pr()
    pull = hub.pulls[0]
    hub.fake.page = 1
    pull.state = "closed"
    hub.fake.repos["octo/zoo"] = Repo("octo/zoo", pulls=[pull, pull])
    assert hub.pr().out.startswith("not opened again")
    assert hub.asked("page=2") == 1
