"""all-repos' own commands with our autofixer and push module, and the fleet over what all-repos has cloned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.tools import Fleet
from tests.forge.tools import TOKEN, Hub
from tests.repository.tools import CHECKOUT

pytest.importorskip("all_repos")


@pytest.fixture
def configured(hub: Hub, tmp_path: Path) -> Path:
    """A configuration whose repositories are cloned."""
    with (tmp_path / ".gitconfig").open("a") as file:
        file.write(f"[credential]\n\thelper = store --file={tmp_path / 'stored'}\n")
    secret = TOKEN.replace("/", "%2f").replace("+", "%2b")
    (tmp_path / "stored").write_text(f"http://ada:{secret}@{hub.server.url[7:]}\n")
    (tmp_path / "list.json").write_text(json.dumps({"octo/zoo": f"{hub.server.url}/octo/zoo.git"}))
    document: dict[str, Any] = {
        "output_dir": "output",
        "source": "all_repos.source.json_file",
        "source_settings": {"filename": str(tmp_path / "list.json")},
        "push": "hooks.all_repos_graphmend",
        "push_settings": {"forge": "github", "api_url": hub.fake.url},
    }
    config = tmp_path / "all-repos.json"
    config.write_text(json.dumps(document))
    config.chmod(0o600)
    done = _python("-m", "all_repos.clone", "-C", str(config))
    assert done.returncode == 0, done
    return config


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(CHECKOUT), os.environ["PYTHONPATH"]))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_the_autofixer_fixes_and_the_push_module_opens_a_pull_request(hub: Hub, configured: Path) -> None:
    done = _python(str(CHECKOUT / "hooks/all_repos_graphmend.py"), "-C", str(configured))
    assert done.returncode == 0, done
    assert "Errored" not in done.stdout
    assert "opened http" in done.stdout
    (pull,) = hub.pulls
    assert pull.title == "Remove 2 graph break sites in 1 file"


def test_the_fleet_reads_what_all_repos_has_cloned(hub: Hub, configured: Path, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    done = fleet.run("pr", configured, "--forge", "github", "--api-url", hub.fake.url)
    assert done.returncode == 0, done
    (row,) = fleet.rows().values()
    assert (row.name, row.status, row.fixed) == ("octo/zoo", "opened", 2)
    assert len(hub.pulls) == 1
