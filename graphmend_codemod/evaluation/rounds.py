"""What the rounds of recording and fixing did to a migration's models: values that its reports are views of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecordedFix:
    """A fix of a place that broke in a recorded run. `line` is that of the base.

    `holds_for` is what an operator asks of a call, as far as the run showed it: dtypes, sizes, options; other calls
    take the author's path. It is empty for a fix that needs no run to be right. `reverted` says why it did not stay,
    and is empty where it did.
    """

    rule: str
    path: str
    line: int
    function: str
    holds_for: tuple[str, ...] = ()
    reverted: str = ""


@dataclass(frozen=True)
class LeftBreak:
    """A place that still breaks in the last recording; `line` is that of the branch, which `path` has from its root.

    `models` are those that come to it, `kind` is torch's word for the break, `reason` why it is not fixed.
    """

    path: str
    line: int
    function: str
    kind: str
    reason: str
    models: tuple[str, ...]


@dataclass(frozen=True)
class Round:
    """One round: models are recorded, what broke is fixed, and the models are measured again.

    `recorded` are the models that were recorded, `failed` those that could not be, each with the reason. `before` and
    `after` are the break events of all models that were measured both times, at its beginning and its end.
    `seconds` is wall time.
    """

    number: int
    recorded: tuple[str, ...]
    failed: tuple[str, ...]
    before: int
    after: int
    fixes: tuple[RecordedFix, ...]
    seconds: float

    @property
    def kept(self) -> int:
        """How many of its fixes are there at the end."""
        return sum(not each.reverted for each in self.fixes)

    @property
    def reverted(self) -> int:
        """How many of its fixes did not stay."""
        return len(self.fixes) - self.kept
