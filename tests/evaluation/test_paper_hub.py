"""Rows that need the model hub: why one is not run, and that one runs from the code in the worktree."""

from __future__ import annotations

import json
import os
import socket
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from graphmend_evaluation.isolation import Policy, evaluate_model
from graphmend_evaluation.paper import full, hub
from graphmend_evaluation.paper.__main__ import main

MOLFORMER = next(model for model in hub.HUB_MODELS if model.name.startswith("MoLFormer"))
MINICPM = next(model for model in hub.HUB_MODELS if model.name.startswith("moe"))
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIGURATION = """
    import json
    from pathlib import Path


    class TinyConfig:
        vocab_size = 100

        @classmethod
        def from_pretrained(cls, folder, **settings):
            config = cls()
            vars(config).update(json.loads((Path(folder) / "config.json").read_text()), **settings)
            return config
"""
MODELING = """
    import torch

    from .configuration_tiny import TinyConfig


    class TinyModel(torch.nn.Module):
        def __init__(self, config: TinyConfig):
            super().__init__()
            self.config = config
            self.embedding = torch.nn.Embedding(config.vocab_size, config.width)

        def forward(self, input_ids, attention_mask):
            assert self.config.deterministic_eval
            if not torch.equal(attention_mask, torch.ones_like(attention_mask)):
                raise ValueError("masks are not supported")
            return self.embedding(input_ids)
"""


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    """A folder with the files of a tiny model in the place of MoLFormer's."""
    folder = tmp_path / "own" / MOLFORMER.name
    folder.mkdir(parents=True)
    auto_map = {"AutoConfig": "configuration_tiny.TinyConfig", "AutoModel": "someone/tiny--modeling_tiny.TinyModel"}
    (folder / "config.json").write_text(json.dumps({"width": 4, "auto_map": auto_map}))
    (folder / "configuration_tiny.py").write_text(textwrap.dedent(CONFIGURATION))
    (folder / "modeling_tiny.py").write_text(textwrap.dedent(MODELING))
    return folder.parent


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = "MoLFormer" in self.path or "minicpm" in self.path
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"sha": COMMIT}).encode() if known else b"")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def answering() -> Iterator[hub.Hub]:
    """A hub that knows commits and gives no files."""
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield hub.Hub(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def silent() -> hub.Hub:
    """An address at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return hub.Hub(f"http://127.0.0.1:{taken.getsockname()[1]}")


def reasons(tmp_path: Path, access: hub.Access, own: hub.Hub, *models: hub.HubModel) -> list[str]:
    ready, left = hub.fetch(models, access, tmp_path / "repository", tmp_path / "snapshots", own)
    assert not ready
    return [each.reason for each in left]


def test_no_network_is_found_out_by_trying(tmp_path: Path, silent: hub.Hub) -> None:
    found = reasons(tmp_path, hub.Access(trust_remote_code=True), silent, *hub.HUB_MODELS)
    assert len(found) == 6
    assert set(found) == {found[0]}
    assert found[0].startswith("no network: the model hub does not answer")


def test_revision_that_is_not_pinned_is_demanded(tmp_path: Path, answering: hub.Hub) -> None:
    (reason,) = reasons(tmp_path, hub.Access(trust_remote_code=True), answering, MINICPM)
    assert reason.startswith(f"no revision is pinned: pass --revision {MINICPM.name}=COMMIT; the newest is {COMMIT}")


def test_code_of_the_hub_runs_only_if_allowed(tmp_path: Path, answering: hub.Hub, snapshots: Path) -> None:
    access = hub.Access(snapshots=snapshots)
    (online,) = reasons(tmp_path, hub.Access(), answering, MOLFORMER)
    (offline,) = reasons(tmp_path, access, answering, MOLFORMER)
    assert "--trust-remote-code" in online
    assert offline == online
    assert not (tmp_path / "repository").exists()


def test_missing_repository_and_package_are_told(tmp_path: Path, answering: hub.Hub, snapshots: Path) -> None:
    needy = replace(MOLFORMER, requires=("no_such_package",))
    access = hub.Access(trust_remote_code=True, snapshots=snapshots, revisions={"Qwen-Audio-Chat": COMMIT})
    assert reasons(tmp_path, access, answering, needy) == ["needs no_such_package, which is not installed"]
    (reason,) = reasons(tmp_path, access, answering, hub.HUB_MODELS[3])
    assert reason == "the model hub answers 404 Not Found for Qwen/Qwen-Audio-Chat"


def test_pinned_revisions_are_whole_hashes() -> None:
    pinned = [model.revision for model in hub.HUB_MODELS if model.revision is not None]
    assert all(len(revision) == 40 and int(revision, 16) for revision in pinned)
    assert MOLFORMER.revision is not None
    assert MOLFORMER.revision.startswith("7b12d946c181")


@pytest.mark.slow
def test_model_of_the_hub_is_measured_from_the_worktree_s_code(
    tmp_path: Path, silent: hub.Hub, snapshots: Path
) -> None:
    access = hub.Access(trust_remote_code=True, snapshots=snapshots)
    repository, target = tmp_path / "repository", tmp_path / "snapshots"
    ready, left = hub.fetch([MOLFORMER], access, repository, target, silent)
    assert (ready, left) == ([MOLFORMER], [])
    policy = full.with_snapshots(Policy(), dict(os.environ), target)
    (model,) = MOLFORMER.row.models
    row = evaluate_model(repository, repository, model, folder=tmp_path / "out", policy=policy)
    assert row.ok, row
    assert row.before.counts is not None
    (site,) = row.before.counts.sites
    assert site.path == "hub_molformer/modeling_tiny.py"
    assert len(row.after.calls) == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--full", "--rows", "t5"], "no model t5; there are t5-small"),
        (["--full", "--rows", "t5-small", "--device", "cuda"], "pass --device cpu"),
        (["--render", "nowhere"], "nowhere has no dated table"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main([*arguments, "--work", str(tmp_path / "work")]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not (tmp_path / "work").exists()


def test_a_batch_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--full", "--sizes", "one,huge"])
    assert ended.value.code == 2
    assert "'one,huge' is not one, many or one,many" in capsys.readouterr().err


def test_revision_needs_a_model_of_the_hub(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--revision", "t5=abc"])
    assert ended.value.code == 2
    assert "MODEL=COMMIT is needed" in capsys.readouterr().err
