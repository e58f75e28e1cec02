"""The job of a child process for one repository, as JSON over a pipe, so that no token is an argument."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field

from graphmend_codemod.forge.credentials import Credential, scrubbed

CHECK, MIGRATE, PR = "check", "migrate", "pr"
ACTIONS = (CHECK, MIGRATE, PR)


@dataclass(frozen=True)
class Options:
    """What is the same for all repositories of a run: what the command line said."""

    action: str
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe_fixes: bool | None = None
    opaque: bool | None = None
    config: str | None = None
    evaluate: bool = False
    forge: str | None = None
    api: str | None = None
    fork: bool = False
    dry_run: bool = False
    patience: float = 900.0
    git_timeout: float = 300.0
    branch: str | None = None
    object_cache: str | None = None


@dataclass(frozen=True)
class Limits:
    """What one repository may use: seconds of wall time, bytes of memory of all its processes, bytes of disk."""

    seconds: float = 1800.0
    memory: int = 8 * 2**30
    disk: int = 8 * 2**30


@dataclass(frozen=True)
class Order:
    """One repository. `tokens` are variables and values; they are in no text that is made of this but `as_json`."""

    name: str
    location: str
    options: Options
    tokens: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def scrubbed(self, text: str) -> str:
        """The text without secrets."""
        for _, secret in self.tokens:
            text = scrubbed(text, Credential("", secret))
        return scrubbed(text, None)

    def as_json(self) -> str:
        """For the pipe."""
        return json.dumps(dataclasses.asdict(self))


def order_from_json(text: str) -> Order:
    """The order again."""
    data = json.loads(text)
    options = data.pop("options")
    for name in ("select", "ignore"):
        options[name] = tuple(options[name])
    tokens = tuple((str(name), str(value)) for name, value in data.pop("tokens"))
    return Order(options=Options(**options), tokens=tokens, **data)
