"""Measured quantities and their changes, in words."""

from __future__ import annotations

from graphmend_evaluation.speed.results import Compared, SpeedVerdict


def percent(change: float) -> str:
    """`-31%`, `+4%`; with one digit more below ten."""
    number = change * 100
    return f"{number:+.0f}%" if abs(number) >= 9.95 else f"{number:+.1f}%"


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            value = seconds * factor
            break
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def change_words(compared: Compared) -> str:
    """`1.20 s -> 0.80 s (-33%)`, or `no difference` where it is inside the noise."""
    before, after = duration(compared.before.median), duration(compared.after.median)
    return f"{before} -> {after} ({verdict_words(compared)})"


def verdict_words(compared: Compared) -> str:
    """The change as a share, or why there is none to tell."""
    difference = compared.difference
    if difference.verdict in {SpeedVerdict.LESS, SpeedVerdict.MORE}:
        return percent(difference.change)
    return str(difference.verdict.value)
