"""The rows whose code or weights come from the model hub: fetched at a pinned revision, or the reason why not.

Code of the hub is put beside the transformers package, so that one migration treats both, and is imported from there
as an ordinary package. It runs only if the user says so. Nothing here imports torch.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphmend_evaluation.paper.rows import Row

FOLDER_VARIABLE = "GRAPHMEND_PAPER_SNAPSHOTS"
PATIENCE = 5.0
_MODELS = "graphmend_evaluation.paper.hub_models"
_LEFT_OUT = ("*.onnx", "*.onnx_data", "*.gguf", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.mlmodel")


@dataclass(frozen=True)
class HubModel:
    """A model on the hub. `revision` is a full commit hash, None where the user must name one.

    `code` is the name of the package that the model's code becomes, or that it is already (`installed`).
    """

    name: str
    repository: str
    factory: str
    code: str
    revision: str | None = None
    installed: bool = False
    requires: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """The row of the table, once it can be run."""
        return Row(self.name, (self.factory,), (self.name,), _MODELS)


HUB_MODELS = (
    HubModel("chronos-bolt-small", "amazon/chronos-bolt-small", "chronos_bolt", "chronos", installed=True),
    HubModel(
        "MoLFormer-XL-both-10pct",
        "ibm-research/MoLFormer-XL-both-10pct",
        "molformer",
        "hub_molformer",
        "7b12d946c181a37f6012b9dc3b002275de070314",
    ),
    HubModel(
        "Florence-2-large", "microsoft/Florence-2-large", "florence2", "hub_florence2", requires=("timm", "einops")
    ),
    HubModel(
        "Qwen-Audio-Chat", "Qwen/Qwen-Audio-Chat", "qwen_audio", "hub_qwen_audio", requires=("einops", "tiktoken")
    ),
    HubModel("moe-minicpm-x4-base", "babybirdprd/moe-minicpm-x4-base", "minicpm_moe", "hub_minicpm_moe"),
    HubModel(
        "stella-en-400M-v5",
        "NovaSearch/stella_en_400M_v5",
        "stella",
        "hub_stella",
        "ffeb2b7ee715c226d4ffe5e4619f7dbb48624c20",
        requires=("xformers",),
    ),
)


class HubError(Exception):
    """Something that the hub does not give. The text is one line: what, cause, way out."""


@dataclass(frozen=True)
class Access:
    """What the user allows. `revisions` are commits by model name; `snapshots` has a folder for each model's files."""

    trust_remote_code: bool = False
    revisions: Mapping[str, str] = field(default_factory=dict)
    snapshots: Path | None = None


@dataclass(frozen=True)
class NotRun:
    """A row that was not run, and why."""

    model: str
    reason: str


class Hub:
    """The model hub as this machine reaches it. It is asked once whether it answers."""

    def __init__(self, endpoint: str | None = None, patience: float = PATIENCE) -> None:
        from huggingface_hub import constants

        self.endpoint = endpoint or str(constants.ENDPOINT)
        self._patience = patience
        self._unreachable = ""

    def commit(self, repository: str, revision: str | None) -> str:
        """The full hash of a commit, of the newest for None.

        Raises `HubError` when the hub does not answer or does not have it.
        """
        if self._unreachable:
            raise HubError(self._unreachable)
        address = f"{self.endpoint}/api/models/{repository}/revision/{revision or 'main'}"
        try:
            with urllib.request.urlopen(address, timeout=self._patience) as answer:
                return str(json.load(answer)["sha"])
        except urllib.error.HTTPError as error:
            raise HubError(f"the model hub answers {error.code} {error.reason} for {repository}") from error
        except (OSError, ValueError, KeyError) as error:
            reason = getattr(error, "reason", error)
            self._unreachable = f"no network: the model hub does not answer ({reason})"
            raise HubError(self._unreachable) from error

    def download(self, repository: str, commit: str, folder: Path) -> Path:
        """All files of a commit that torch can use, in `folder`.

        Raises `HubError` when they cannot be had.
        """
        from huggingface_hub import snapshot_download

        try:
            return Path(
                snapshot_download(repository, revision=commit, local_dir=folder, ignore_patterns=list(_LEFT_OUT))
            )
        except Exception as error:  # the client's network library differs by version, and so do its exceptions
            raise HubError(f"{repository} cannot be downloaded: {' '.join(str(error).split())[:200]}") from error


def fetch(
    models: Sequence[HubModel], access: Access, repository: Path, snapshots: Path, hub: Hub | None = None
) -> tuple[list[HubModel], list[NotRun]]:
    """Put the code of each model into `repository`, its files into `snapshots`. Those that can run, and the others."""
    hub = hub or Hub()
    ready, left = [], []
    for model in models:
        try:
            _fetch(model, access, hub, repository, snapshots)
            ready.append(model)
        except HubError as error:
            left.append(NotRun(model.name, str(error)))
    return ready, left


def _fetch(model: HubModel, access: Access, hub: Hub, repository: Path, snapshots: Path) -> None:
    own = access.snapshots / model.name if access.snapshots is not None else None
    found = own is not None and own.is_dir()
    revision = access.revisions.get(model.name, model.revision)
    newest = "" if found else hub.commit(model.repository, revision)
    if not found and revision is None:
        raise HubError(f"no revision is pinned: pass --revision {model.name}=COMMIT; the newest is {newest}")
    if not model.installed and not access.trust_remote_code:
        raise HubError("it runs code from the model hub: read that, then pass --trust-remote-code")
    packages = (*model.requires, model.code) if model.installed else model.requires
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise HubError(f"needs {' and '.join(missing)}, which is not installed")
    target = snapshots / model.name
    if own is not None and found:
        shutil.copytree(own, target)
    else:
        hub.download(model.repository, newest, target)
    _place_code(model, target, repository / model.code)


def _place_code(model: HubModel, snapshot: Path, package: Path) -> None:
    if model.installed:
        spec = importlib.util.find_spec(model.code)
        if spec is None or spec.origin is None:
            raise HubError(f"needs {model.code}, which has no files here")
        shutil.copytree(Path(spec.origin).parent, package, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        return
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for file in sorted(snapshot.glob("*.py")):
        shutil.copyfile(file, package / file.name)
