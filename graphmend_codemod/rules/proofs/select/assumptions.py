"""What the header of a select asks for: relations between dtypes and shapes of tensors, and the facts that follow."""

from __future__ import annotations

from typing import NamedTuple

from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.values import ValueKind


class Assumption(NamedTuple):
    """A relation between tensors that the header asks for: `what` is "floating", "dtype" or "shape"."""

    what: str
    one: str
    other: str = ""

    @property
    def text(self) -> str:
        """The condition, as Python."""
        if self.what == "floating":
            return f"{self.one}.is_floating_point()"
        other = self.other if self.other.startswith("torch.") else f"{self.other}.{self.what}"
        return f"{self.one}.{self.what} == {other}"


class Facts(NamedTuple):
    """What a select needs to mean the same.

    `conditions` are trace-time conditions. `one_path` is true where eager mode could be left to the select as well.
    `cut` are the values, by branch and name, through which a zero gradient may come out as nan: their own arguments
    have to be selected, too. `compared` are names whose values may differ in dtype or shape: they have to be computed
    first, and compared while tracing.
    """

    conditions: tuple[str, ...] = ()
    one_path: bool = True
    cut: frozenset[tuple[int, str]] = frozenset()
    compared: tuple[str, ...] = ()


def is_dotted(text: str) -> bool:
    """True for a name or an attribute: what else a header asked, it would compute."""
    return all(part.isidentifier() for part in text.split("."))


def equate(env: Env, what: str, one: str | None, other: str | None) -> None:
    """All tensors of the dtype (shape) `one` have the dtype (shape) `other`."""
    for name, value in env.items():
        if value.kind is ValueKind.TENSOR and getattr(value, what) == one:
            env[name] = value._replace(dtype=other) if what == "dtype" else value._replace(shape=other)
