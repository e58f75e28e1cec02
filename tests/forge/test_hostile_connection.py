"""A clone whose settings decide how git reaches a forge: git asks no program of theirs, and goes through no proxy."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.migrate.migration import MigrationError, MigrationOptions, migrate
from tests.forge.tools import Hub
from tests.repository.tools import Repository


@pytest.fixture
def partial(hub: Hub, tmp_path: Path) -> Repository:
    """A clone without files whose remote is a forge that asks for a password."""
    folder = tmp_path / "partial"
    served = hub.server.root / "octo/zoo.git"
    hub.clone.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{served}", str(folder))
    clone = Repository(folder)
    clone.git("config", "remote.origin.url", f"{hub.server.url}/octo/zoo.git")
    return clone


@pytest.mark.parametrize(
    "name",
    ["credential.helper", "credential.FORGE.helper", "core.askPass", "remote.origin.proxy", "http.proxy"],
)
def test_no_program_and_no_proxy_of_a_clone_is_asked(
    partial: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    marker, script = tmp_path / "marker", tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    script.chmod(0o755)
    for variable in ("GIT_ASKPASS", "SSH_ASKPASS", "http_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(0.2)
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        forge = partial.git("config", "remote.origin.url").removesuffix("/octo/zoo.git")
        partial.git("config", name.replace("FORGE", forge), address if "proxy" in name else str(script))

        def was_asked() -> bool:
            try:
                proxy.accept()[0].close()
            except TimeoutError:
                return marker.exists()
            return True

        with pytest.raises(MigrationError, match="cannot be fetched, since the repository's own"):
            migrate(MigrationOptions(partial.folder, load_settings, branch="mend", evaluate=False, cache=False))
        assert not was_asked()
        plain = subprocess.Popen(
            ["git", "-C", str(partial.folder), "show", "HEAD:zoo/model.py"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
        try:
            if "proxy" not in name:
                plain.wait(20)
            else:
                proxy.settimeout(10)
            assert was_asked(), f"git asks nothing for {name} here, so this test shows nothing"
        finally:
            plain.kill()
            plain.wait()
