"""What names a model: a factory, or where a source of models can find one. This module does not import torch.

- `package.module:factory`
- `huggingface:package.module:Class`, a small instance with random weights; `#float16` for another dtype
- `recorded:FILE#NUMBER`, one that a repository's tests called
- `huggingface-id:REPOSITORY[@REVISION][:Class]`, with real weights from the hub; `huggingface-id-trusted:` where the
  code in that repository may run
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from graphmend_evaluation.worktree import LoadError

HUGGINGFACE = "huggingface"
RECORDED = "recorded"
HUB = "huggingface-id"
TRUSTED_HUB = "huggingface-id-trusted"

_SCHEME = re.compile(rf"(?P<scheme>{TRUSTED_HUB}|{HUB}|{HUGGINGFACE}|{RECORDED}):(?P<rest>.*)", re.DOTALL)
_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_CLASS = re.compile(rf"(?P<module>{_DOTTED}):(?P<name>{_DOTTED})(?:#(?P<dtype>\w+))?")
_RECORDING = re.compile(r"(?P<path>.+)#(?P<number>\d+)")
_REPOSITORY = re.compile(r"(?P<id>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?(?::(?P<name>[^\W\d]\w*))?")


@dataclass(frozen=True)
class SmallModel:
    """`huggingface:module:name#dtype`."""

    module: str
    name: str
    dtype: str | None


@dataclass(frozen=True)
class RecordedModel:
    """`recorded:path#number`; `class_name` is `package.module:Class`."""

    path: Path
    number: int
    class_name: str


@dataclass(frozen=True)
class HubModel:
    """`huggingface-id:repository@revision:name`."""

    repository: str
    revision: str | None
    name: str | None
    trusted: bool


def parse(name: str) -> SmallModel | RecordedModel | HubModel | None:
    """What a name with a scheme says, None for one without.

    Raises `LoadError` when the rest is not as its scheme has it, or when there is no such recording.
    """
    match = _SCHEME.fullmatch(name)
    if match is None or (match["scheme"] == HUGGINGFACE and ":" not in match["rest"]):
        return None  # a module of that name, too
    rest = match["rest"]
    if match["scheme"] == HUGGINGFACE:
        return _small(name, rest)
    if match["scheme"] == RECORDED:
        return _recorded(name, rest)
    return _hub(name, rest, trusted=match["scheme"] == TRUSTED_HUB)


def shown(name: str) -> str:
    """The name as a reader knows it: a recording by the class that was recorded, not by a temporary file."""
    if not name.startswith(f"{RECORDED}:"):
        return name
    try:
        known = parse(name)
    except LoadError:
        return name
    return f"{known.class_name} (recorded {known.number + 1})" if isinstance(known, RecordedModel) else name


def needs_network(name: str) -> bool:
    """Whether the model's weights come from the network."""
    match = _SCHEME.fullmatch(name)
    return match is not None and match["scheme"] in (HUB, TRUSTED_HUB)


def imported_package(name: str) -> str:
    """The top-level package that a model's code is imported from. Raises `LoadError` as `parse` does."""
    parsed = parse(name)
    if isinstance(parsed, SmallModel):
        module = parsed.module
    elif isinstance(parsed, RecordedModel):
        module = parsed.class_name.partition(":")[0]
    elif isinstance(parsed, HubModel):
        module = "transformers"
    else:
        module = name.partition(":")[0]
    return module.partition(".")[0]


def _small(name: str, rest: str) -> SmallModel:
    match = _CLASS.fullmatch(rest)
    if match is None:
        raise LoadError(f"{name!r} is not {HUGGINGFACE}:package.module:Class, with #dtype at its end if wanted")
    return SmallModel(match["module"], match["name"], match["dtype"])


def _recorded(name: str, rest: str) -> RecordedModel:
    match = _RECORDING.fullmatch(rest)
    if match is None:
        raise LoadError(f"{name!r} is not {RECORDED}:FILE#NUMBER")
    path, number = Path(match["path"]), int(match["number"])
    try:
        class_name = json.loads(path.read_text(encoding="utf-8"))["models"][number]["class"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise LoadError(f"there is no recording {number} in {path}: run the tests again with --from-tests") from error
    return RecordedModel(path, number, str(class_name))


def _hub(name: str, rest: str, *, trusted: bool) -> HubModel:
    match = _REPOSITORY.fullmatch(rest)
    if match is None:
        raise LoadError(f"{name!r} is not {HUB}:REPOSITORY, with @REVISION and :Class at its end if wanted")
    return HubModel(match["id"], match["revision"], match["name"], trusted)
