"""The stack of a break: with the callers that torch leaves out, and where in it the compiled function is.

Torch takes a frame for the continuation of the one above it where both functions have one name, and tells of the inner
one alone: of a module's `forward` that calls another module's `forward`, it names the latter.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphmend_codemod.trace import break_text, events
from graphmend_codemod.trace.break_text import TextFrame


def restored(stack: Sequence[TextFrame], known: Sequence[events.Known]) -> tuple[TextFrame, ...]:
    """A stack with the traced frames that torch left out. As it was where the innermost frames do not agree."""
    if not stack or not known or _named(stack[-1]) != (known[-1].path, break_text.plain_function(known[-1].function)):
        return tuple(stack)
    whole = list(stack)
    at = len(whole) - 1
    for frame in reversed(known[:-1]):
        name = (frame.path, break_text.plain_function(frame.function))
        found = [number for number in range(at) if _named(whole[number]) == name and whole[number].line == frame.line]
        if found:
            at = found[-1]
        elif frame.line > 0:
            whole.insert(at, TextFrame(frame.path, frame.line, frame.function))
    return tuple(whole)


def root_of(event: events.Compiled, stack: Sequence[TextFrame], above: Sequence[events.Frame]) -> int | None:
    """Where in a stack the compiled frame is: what is above it ran before Dynamo began. None where it is left out."""
    wanted = (event.path, break_text.plain_function(event.function))
    found = [number for number, frame in enumerate(stack) if _named(frame) == wanted and frame.line >= event.line]
    callers = {(frame.path, frame.line) for frame in above[:-1]}
    below = [number for number in found if (stack[number].path, stack[number].line) not in callers]
    return next(iter(below or found), None)


def first_traced(stack: Sequence[TextFrame], above: Sequence[events.Frame]) -> int:
    """The first frame of a stack that did not run before Dynamo began; the last one at the latest."""
    callers = {(frame.path, frame.line) for frame in above[:-1]}
    ran = [number for number, frame in enumerate(stack) if (frame.path, frame.line) in callers]
    return min(max(ran, default=-1) + 1, len(stack) - 1)


def _named(frame: TextFrame) -> tuple[str, str]:
    return frame.path, break_text.plain_function(frame.function)
