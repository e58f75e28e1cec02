"""Repositories that want to harm who looks at them: nothing of theirs runs, and no token reaches them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from graphmend_codemod.forge.credentials import Credential, scrubbed, taken_from_environment
from tests.forge.tools import BRANCH, TOKEN, Hub
from tests.repository.tools import BROKEN, Repository


def booby_trap(repository: Repository, marker: Path) -> None:
    """Everything that a clone may run, leave, or lead to."""
    shout = f"#!/bin/sh\necho ran >> {marker}\n"
    repository.write("hooks/post-checkout", shout).chmod(0o755)
    repository.write(".githooks/pre-push", shout).chmod(0o755)
    repository.write(".gitattributes", "*.py filter=evil\n*.py diff=evil merge=evil\n")
    repository.write(".gitconfig", f'[filter "evil"]\n\tsmudge = echo ran >> {marker}\n\trequired = true\n')
    repository.write(".lfsconfig", "[lfs]\n\turl = http://127.0.0.1:1/\n")
    repository.write("setup.py", f"open({str(marker)!r}, 'a').write('ran')\n")
    repository.write("conftest.py", f"open({str(marker)!r}, 'a').write('ran')\n")
    repository.write("sitecustomize.py", f"open({str(marker)!r}, 'a').write('ran')\n")
    repository.write("zoo/__init__.py", f"open({str(marker)!r}, 'a').write('ran')\n")
    modules = (
        '[submodule "x"]\n\tpath = sub\n\turl = "ext::sh -c touch% x"\n[submodule "y"]\n\tpath = -u\n\turl = -u./z\n'
    )
    repository.write(".gitmodules", modules)
    repository.write("--upload-pack=touch x.py", BROKEN)
    repository.write("-c core.pager=x.py", BROKEN)
    repository.write("zoo/new\nline <!-- graphmend-mark {} --> @octocat.py", BROKEN)
    os.symlink("/etc", repository.folder / "outside")
    os.symlink("/etc/passwd", repository.folder / "zoo/passwd.py")
    os.symlink("..", repository.folder / "zoo/loop")
    repository.git("add", "--all")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    repository.git("commit", "--quiet", "--message", "Trap")


def test_no_code_hook_filter_or_submodule_of_the_repository_runs(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    booby_trap(hub.clone, marker)
    hub.push("main")
    # Even a user's own settings that name the filter do not make it run.
    with (tmp_path / ".gitconfig").open("a") as config:
        config.write(
            f'[filter "evil"]\n\tsmudge = "echo ran >> {marker}; cat"\n\tclean = "echo ran >> {marker}; cat"\n'
        )
        config.write(f"[core]\n\thooksPath = {hub.clone.folder}/hooks\n")
    ran = hub.pr()
    assert ran.code == 0, ran
    assert not marker.exists()
    changed = hub.server.git("octo/zoo", "diff", "--name-only", "-z", "main", BRANCH).strip("\0").split("\0")
    odd = ["--upload-pack=touch x.py", "-c core.pager=x.py", "zoo/new\nline <!-- graphmend-mark {} --> @octocat.py"]
    assert sorted(changed) == sorted([*odd, "zoo/model.py"])
    assert hub.pr().out.startswith("unchanged")
    assert len(hub.pulls) == 1


def test_a_pyproject_that_is_a_symbolic_link_is_not_followed(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "outside.toml").write_text('[tool.graphmend.pull-request]\nbranch = "stolen"\n')
    os.symlink(tmp_path / "outside.toml", hub.clone.folder / "pyproject.toml")
    hub.clone.commit()
    hub.push("main")
    hub.pr()
    assert "stolen" not in hub.server.branches("octo/zoo")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('command = "touch x"', "has no setting `command`"),
        ('api-url = "http://evil.example"', "has no setting `api-url`"),
        ('title = "${sites.__class__}"', "title may contain"),
        ('branch = "--force"', "not a name that git allows"),
        ('branch = "HEAD"', "not a name that git allows"),
        ('branch = "main"', "is where pull requests go to"),
        ('base = "-x"', "has no branch -x"),
    ],
)
def test_settings_cannot_reach_beyond_the_pull_request(hub: Hub, setting: str, words: str) -> None:
    hub.clone.write("pyproject.toml", f"[tool.graphmend.pull-request]\n{setting}\n")
    hub.clone.commit()
    hub.push("main")
    ran = hub.pr()
    assert ran.code == 2
    assert words in ran.err
    assert hub.pulls == []


def test_the_body_calls_nobody_and_forges_no_mark(hub: Hub) -> None:
    hub.clone.write("zoo/@octocat #12 | x.py", BROKEN)
    hub.clone.write("zoo/<!-- graphmend-mark {} -->.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    hub.pr()
    body = hub.pulls[0].body
    outside = "".join(body.split("`")[::2])
    assert "@octocat" not in outside
    assert hub.pr().out.startswith("unchanged")


def test_no_child_process_has_the_token_in_its_environment_or_arguments(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `git` in front of git writes down what it is given."""
    seen, real = tmp_path / "seen", shutil.which("git")
    script = tmp_path / "bin/git"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\n{{ env; printf "%s\\n" "$@"; }} >> {seen}\nexec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CI_JOB_TOKEN", "another-secret")
    monkeypatch.setenv("GIT_TRACE_CURL", str(seen))
    hub.pr()
    told = seen.read_text()
    assert "push" in told
    for secret in (TOKEN, "another-secret"):
        assert secret not in told
    leaked = [file for file in tmp_path.rglob("*") if file.is_file() and TOKEN.encode() in file.read_bytes()]
    assert leaked == []


def test_an_error_that_quotes_a_secret_is_scrubbed() -> None:
    credential = Credential("x-access-token", TOKEN)
    told = f"fatal: https://bot:{TOKEN}@h/o/n.git {TOKEN} ghp_do%2Fnot%2Bshow%3Dthis https://u@h/"
    assert scrubbed(told, credential) == "fatal: https://h/o/n.git *** *** https://h/"
    assert TOKEN not in repr(credential) + str(credential)


def test_all_tokens_leave_the_environment() -> None:
    environment = {"GH_TOKEN": "a", "GITLAB_TOKEN": "b", "CI_JOB_TOKEN": "c", "PATH": sys.executable}
    found = taken_from_environment("gitlab", environment)
    assert found is not None
    assert found.secret == "b"
    assert list(environment) == ["PATH"]


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_our_own_variable_comes_first(kind: str) -> None:
    found = taken_from_environment(kind, {"GITHUB_TOKEN": "a", "GITLAB_TOKEN": "b", "GRAPHMEND_TOKEN": "c"})
    assert found is not None
    assert found.secret == "c"
