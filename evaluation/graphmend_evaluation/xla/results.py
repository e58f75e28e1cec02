"""What the XLA view of a model says: frozen values that travel as JSON through `results.to_json` and `from_json`.

This module imports neither torch nor torch_xla.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from graphmend_evaluation.results import Status
from graphmend_evaluation.speed.results import Difference

XLA_SCHEMA = 2  # 2: the arms are timed in turn, and correlations have an interval


class Split(enum.Enum):
    """Why a compiled call does not run as one graph on an XLA device."""

    DYNAMO = "split in Dynamo only"
    HOST_READ = "a real host read"
    LOWERING = "a split in lowering"


@dataclass(frozen=True)
class XlaRun:
    """One arm in one mode, in a process of its own, because the XLA cache is global.

    `mode` is `openxla` (`torch.compile`) or `lazy` (lazy tracing). `fx_graphs` and `break_events` are Dynamo's, 0 for
    `lazy`. `hlo_graphs` counts compilations of HLO over all calls. Everything per call is the mean of a pass after
    warm-up: `executions`, device-to-host transfers (`transfers`), reads of a single value (`host_reads`), and
    `fallbacks`, operations without a lowering that ran on the CPU, by name. `seconds` is the median time of one call
    over all rounds, the device waited for, `noise` half the distance of the quartiles as a share of it.
    """

    mode: str
    fx_graphs: int
    break_events: int
    hlo_graphs: int
    executions: float
    transfers: float
    host_reads: float
    fallbacks: tuple[tuple[str, float], ...]
    seconds: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True)
class XlaArm:
    """One model in one worktree. `message` is one line for the user, empty for `OK`, when both modes were measured.

    `splits` and `words` say what the numbers mean; both are empty unless `status` is `OK`.
    """

    status: Status
    message: str
    openxla: XlaRun | None = None
    lazy: XlaRun | None = None
    splits: tuple[Split, ...] = ()
    words: str = ""

    @property
    def ok(self) -> bool:
        """True when both modes were measured."""
        return self.status is Status.OK


@dataclass(frozen=True)
class XlaRow:
    """One model at the base and at the head. `versions` are those of python, torch and torch_xla.

    `compiled` and `lazy` are the changes of a call's time from before to after, of rounds in which the arms were timed
    in turn; None where an arm was not measured.
    """

    model: str
    before: XlaArm
    after: XlaArm
    versions: tuple[tuple[str, str], ...] = ()
    device: str = ""
    date: str = ""
    compiled: Difference | None = None
    lazy: Difference | None = None
    schema: int = XLA_SCHEMA

    @property
    def ok(self) -> bool:
        """True when both arms were measured."""
        return self.before.ok and self.after.ok


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of two quantities over `count` models.

    `rho` is None where it is not defined: fewer than three models, or a quantity that is the same for all. `p` is the
    share of permutations with a correlation at least as strong, `low` and `high` a 95 % interval of rho (see
    `correlation.interval`; None for fewer than five models). `words` says how far to believe it.
    """

    of: str
    count: int
    rho: float | None
    p: float | None
    words: str
    low: float | None = None
    high: float | None = None
