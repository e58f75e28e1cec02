"""Validation of forge responses: proxy pages, truncated documents and unexpected types become one-line errors."""

from __future__ import annotations

from typing import TypeVar

ODD = (ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError)
"""What the clients' libraries raise for an answer that is not what they expect."""

Kind = TypeVar("Kind")


def expect(kind: type[Kind], value: object, name: str) -> Kind:
    """The value, which must be of a kind. Raises ValueError."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        told = "nothing" if value is None else f"a {type(value).__name__}"
        raise ValueError(f"{name} is {told}")
    return value


def odd_answer(what: str, forge: str, error: Exception) -> str:
    """One line about it."""
    cause = " ".join(str(error).split())[:200] or type(error).__name__
    return (
        f"{what}: the answer is none that {forge} gives ({cause}); is a proxy in between? "
        "Try again later, or say with --api-url where the API is"
    )
