"""`graphmend pr` on GitHub, from the first pull request to the last: git over HTTP, requests held to the contract."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from tests.forge.tools import BRANCH, TOKEN, Hub, run
from tests.repository.tools import BROKEN, CLEAN, untouched

SETTINGS = "[tool.graphmend.pull-request]\n"


def test_the_first_run_opens_one_pull_request_with_a_commit_a_rule(hub: Hub) -> None:
    ran = hub.pr()
    assert ran.code == 0, ran
    assert ran.out.startswith("opened ")
    (pull,) = hub.pulls
    assert (pull.head, pull.base, pull.state) == (f"octo:{BRANCH}", "main", "open")
    assert hub.server.git("octo/zoo", "rev-list", "--count", f"main..{BRANCH}") == "2"
    assert hub.server.git("octo/zoo", "diff", "--name-only", "main", BRANCH) == "zoo/model.py"


def test_the_body_begins_with_the_answer_and_tells_how_to_look_again_and_stop(hub: Hub) -> None:
    hub.pr()
    body = hub.pulls[0].body
    order = ["**2 break sites fixed in 1 file.**", "### Models", "### What changes", "GM101", "GM201", "zoo/model.py:"]
    order += ["### Reproduce", "graphmend migrate --base ", "### Change or stop the bot", "enabled = false"]
    places = [body.index(words) for words in order]
    assert places == sorted(places)
    assert body.rstrip().splitlines()[-1].startswith("<!-- graphmend-mark {")


def test_a_second_run_changes_nothing(hub: Hub) -> None:
    hub.pr()
    tip = hub.tip
    ran = hub.pr()
    assert (ran.code, ran.out.split()[0]) == (0, "unchanged")
    assert (hub.tip, len(hub.pulls)) == (tip, 1)
    assert hub.asked("^PATCH") == 0


def test_new_findings_are_pushed_over_our_own_commits_into_the_same_pull_request(hub: Hub) -> None:
    hub.pr()
    hub.clone.write("zoo/second.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    ran = hub.pr()
    assert (ran.code, ran.out.split()[0]) == (0, "updated")
    (pull,) = hub.pulls
    assert pull.title == "Remove 4 graph break sites in 2 files"
    assert hub.server.git("octo/zoo", "merge-base", "main", BRANCH) == hub.server.branches("octo/zoo")["main"]


def test_a_base_that_moved_elsewhere_is_rebased_onto(hub: Hub) -> None:
    hub.pr()
    hub.clone.write("README", "more\n")
    hub.clone.commit()
    hub.push("main")
    assert hub.pr().out.startswith("updated")
    assert hub.server.git("octo/zoo", "merge-base", "main", BRANCH) == hub.server.branches("octo/zoo")["main"]
    assert len(hub.pulls) == 1


def test_commits_of_a_person_on_our_branch_are_never_overwritten_and_said_once(hub: Hub) -> None:
    hub.pr()
    hub.clone.git("fetch", "--quiet", "origin")
    hub.clone.git("checkout", "--quiet", "-b", "theirs", f"origin/{BRANCH}")
    hub.clone.write("notes.txt", "by hand\n")
    theirs = hub.clone.commit("By hand")
    hub.push(f"theirs:{BRANCH}")
    hub.clone.git("checkout", "--quiet", "main")
    hub.clone.write("zoo/second.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    for _ in range(2):
        ran = hub.pr()
        assert (ran.code, ran.out.split(" http")[0]) == (0, "left alone")
    assert hub.tip == theirs
    (comment,) = hub.pulls[0].comments
    assert "has commits by others" in comment


def test_an_amended_commit_is_not_ours_even_under_our_name(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.pr()
    hub.clone.git("fetch", "--quiet", "origin")
    hub.clone.git("checkout", "--quiet", "-b", "theirs", f"origin/{BRANCH}")
    hub.clone.write("zoo/model.py", BROKEN + "# by hand\n")
    hub.clone.git("add", "--all")
    with monkeypatch.context() as later:
        later.setenv("GIT_COMMITTER_DATE", "2030-01-01T00:00:00Z")
        hub.clone.git("commit", "--quiet", "--amend", "--no-edit")
    theirs = hub.clone.git("rev-parse", "HEAD")
    hub.push("--force", f"theirs:{BRANCH}")
    assert hub.pr().out.startswith("left alone")
    assert hub.tip == theirs


def test_a_pull_request_that_a_person_closed_is_not_opened_again_for_the_same(hub: Hub) -> None:
    hub.pr()
    hub.pulls[0].state = "closed"
    tip = hub.tip
    hub.clone.write("zoo/clean.py", CLEAN + "# moved\n")
    hub.clone.write("zoo/model.py", "# a line more\n" + BROKEN)
    hub.clone.commit()
    hub.push("main")
    ran = hub.pr()
    assert (ran.code, ran.out.startswith("not opened again")) == (0, True)
    assert (len(hub.pulls), hub.tip) == (1, tip)


def test_a_closed_one_is_not_opened_again_for_fewer_but_for_others(hub: Hub) -> None:
    hub.clone.write("zoo/second.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    hub.pr()
    hub.pulls[0].state = "closed"
    hub.clone.write("zoo/second.py", CLEAN)
    hub.clone.commit()
    hub.push("main")
    assert hub.pr().out.startswith("not opened again")
    hub.clone.write("zoo/third.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    assert hub.pr().out.startswith("opened")
    assert [pull.state for pull in hub.pulls] == ["closed", "open"]


def test_a_branch_that_was_left_alone_is_begun_anew_once_a_person_has_deleted_it(hub: Hub) -> None:
    hub.pr()
    hub.clone.git("fetch", "--quiet", "origin", BRANCH)
    hub.clone.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
    hub.clone.write("notes.txt", "mine")
    hub.clone.commit("A person's")
    hub.push(f"HEAD:{BRANCH}")
    assert hub.pr().out.startswith("left alone")
    (comment,) = hub.pulls[0].comments
    assert "delete the branch" in comment
    hub.push(f":{BRANCH}")  # on which GitHub closes the pull request
    ran = hub.pr()
    assert ran.out.startswith("opened"), ran
    assert [pull.state for pull in hub.pulls] == ["closed", "open"]
    hub.pulls[1].state = "closed"
    hub.push(f":{BRANCH}")
    assert hub.pr().out.startswith("not opened again")


def test_after_a_merge_the_next_findings_get_a_new_pull_request(hub: Hub) -> None:
    hub.pr()
    hub.pulls[0].state, hub.pulls[0].merged = "closed", True
    assert hub.pr().out.startswith("opened")


def test_it_is_closed_with_a_reason_when_nothing_is_left_and_opened_again_later(hub: Hub) -> None:
    hub.pr()
    hub.clone.write("zoo/model.py", CLEAN)
    hub.clone.commit()
    hub.push("main")
    ran = hub.pr()
    assert (ran.code, ran.out.split()[0]) == (0, "closed")
    (pull,) = hub.pulls
    assert pull.state == "closed"
    assert "Nothing left to fix" in pull.comments[0]
    assert hub.tip is None
    assert hub.pr().out.startswith("nothing to do")
    hub.clone.write("zoo/model.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    assert hub.pr().out.startswith("opened")


def test_a_dry_run_shows_everything_and_changes_nothing(hub: Hub) -> None:
    hub.clone.write(
        "pyproject.toml", f'{SETTINGS}labels = ["fast"]\nreviewers = ["ada", "octo/owners"]\ndraft = true\n'
    )
    hub.clone.commit()
    hub.push("main")
    ran = hub.pr("--dry-run")
    assert ran.code == 0
    assert ran.out.startswith("dry run: would be opened\n")
    assert "  would push branch" in ran.out
    assert f"  would open a draft pull request from octo/zoo:{BRANCH} to main: Remove 2 graph break sites" in ran.out
    assert "  would add the labels fast\n  would ask for review by ada, octo/owners\n" in ran.out
    assert "### Change or stop the bot" in ran.out
    assert hub.pulls == []
    assert hub.tip is None
    assert hub.asked("^(POST|PATCH) /api|git-receive-pack") == 0


def test_settings_of_the_base_decide(hub: Hub) -> None:
    hub.clone.write(
        "pyproject.toml",
        f'{SETTINGS}title = "Compile $repository: $sites sites"\nbody = "Dear owners,\\n\\n$report"\nlabels = ["bot"]\n'
        'reviewers = ["ada", "octo/owners"]\ndraft = true\nbranch = "bots/mend"\n',
    )
    hub.clone.commit()
    hub.push("main")
    assert hub.pr().code == 0
    (pull,) = hub.pulls
    assert (pull.title, pull.draft, pull.head) == ("Compile zoo: 2 sites", True, "octo:bots/mend")
    assert (pull.labels, pull.reviewers) == (["bot"], ["ada", "owners"])
    assert pull.body.startswith("Dear owners,\n\n**2 break sites")


def test_settings_can_switch_it_off(hub: Hub) -> None:
    hub.clone.write("pyproject.toml", f"{SETTINGS}enabled = false\n")
    hub.clone.commit()
    hub.push("main")
    ran = hub.pr()
    assert (ran.code, ran.out.strip()) == (0, "switched off")


def test_another_base_branch(hub: Hub) -> None:
    hub.clone.write("pyproject.toml", f'{SETTINGS}base = "develop"\n')
    hub.clone.commit()
    hub.push("main", "main:develop")
    hub.pr()
    assert hub.pulls[0].base == "develop"


def test_a_title_that_a_person_gave_stays(hub: Hub) -> None:
    hub.pr()
    hub.pulls[0].title = "Make the zoo compile"
    hub.clone.write("zoo/second.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    hub.pr()
    assert hub.pulls[0].title == "Make the zoo compile"
    assert "4 break sites" in hub.pulls[0].body


def test_a_reviewer_who_may_not_be_asked_costs_only_the_review(hub: Hub) -> None:
    hub.clone.write("pyproject.toml", f'{SETTINGS}reviewers = ["nobody"]\n')
    hub.clone.commit()
    hub.push("main")
    ran = hub.pr()
    assert ran.code == 0
    assert "the pull request has no reviewers" in ran.err


def test_without_a_right_to_push_a_fork_is_used(hub: Hub) -> None:
    hub.server.readers.add("bot")
    refused = hub.pr()
    assert refused.code == 2
    assert "--fork" in refused.err
    ran = hub.pr("--fork")
    assert ran.code == 0, ran
    (pull,) = hub.pulls
    assert pull.head == f"bot:{BRANCH}"
    assert BRANCH in hub.server.branches("bot/zoo")
    assert hub.tip is None
    assert hub.pr("--fork").out.startswith("unchanged")


def test_a_dry_run_looks_at_the_fork_and_makes_none(hub: Hub) -> None:
    hub.server.readers.add("bot")
    ran = hub.pr("--fork", "--dry-run")
    assert ran.code == 0, ran
    assert "would fork octo/zoo\n  would push branch" in ran.out
    assert list(hub.fake.repos) == ["octo/zoo"]
    assert hub.pr("--fork").code == 0
    assert hub.pr("--fork", "--dry-run").out.startswith("dry run: unchanged")


def test_a_clone_is_read_and_not_touched(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.clone.git("remote", "set-url", "origin", f"{hub.server.url}/octo/zoo.git")
    hub.clone.write("zoo/model.py", "uncommitted = 1\n")
    with untouched(hub.clone):
        ran = run("pr", str(hub.clone.folder), "--forge", "github", "--api-url", hub.fake.url, token=TOKEN)
    assert ran.code == 0, ran
    assert hub.tip is not None


def test_a_token_of_gits_credential_helper_is_used(hub: Hub, tmp_path: Path) -> None:
    del os.environ["GITHUB_TOKEN"]
    (tmp_path / "stored").write_text(
        f"http://ada:{TOKEN.replace('/', '%2f').replace('+', '%2b')}@{hub.server.url[7:]}\n"
    )
    with (tmp_path / ".gitconfig").open("a") as config:
        config.write(f"[credential]\n\thelper = store --file={tmp_path / 'stored'}\n")
    before = (tmp_path / "stored").read_text().replace("=", "%3d")
    ran = run("pr", f"{hub.server.url}/octo/zoo", "--forge", "github", "--api-url", hub.fake.url, token=TOKEN)
    assert ran.code == 0, ran
    assert (tmp_path / "stored").read_text().replace("=", "%3d") == before


def test_without_a_token_it_says_where_to_put_one(hub: Hub) -> None:
    del os.environ["GITHUB_TOKEN"]
    ran = run("pr", f"{hub.server.url}/octo/zoo", "--forge", "github", "--api-url", hub.fake.url, token=TOKEN)
    assert ran.code == 2
    assert "set GITHUB_TOKEN" in ran.err


def test_a_token_is_never_sent_unencrypted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pr", "http://github.example.org/octo/zoo", "--forge", "github"]) == 2
    assert "unencrypted" in capsys.readouterr().err


def test_the_mark_holds_nothing_but_digests(hub: Hub) -> None:
    hub.pr()
    line = hub.pulls[0].body.rstrip().splitlines()[-1]
    mark = json.loads(line.removeprefix("<!-- graphmend-mark ").removesuffix(" -->"))
    assert set(mark) == {"all", "each", "title", "closed"}


def test_the_forge_is_asked_no_more_often_than_the_guide_says(hub: Hub) -> None:
    def asked() -> int:
        before = hub.asked("/api/v3/")
        hub.pr()
        return hub.asked("/api/v3/") - before

    assert [asked(), asked()] == [3, 2]
    hub.clone.write("zoo/model.py", CLEAN)
    hub.clone.commit()
    hub.push("main")
    assert asked() == 7
    assert hub.pulls[0].state == "closed"
