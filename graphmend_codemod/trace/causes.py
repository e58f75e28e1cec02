"""Which compilations a break made necessary: the rest of each function behind it, and what it left to Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from graphmend_codemod.trace import break_text, events, stacks
from graphmend_codemod.trace.break_text import TextFrame
from graphmend_codemod.trace.document import TORCH
from graphmend_codemod.trace.paths import Paths

Site = TypeVar("Site")
Lines = tuple[tuple[str, int], ...]
# Files of functions that call one other: what is compiled further down was called by that.
_CALLS_ONE = ("torch/_dynamo/eval_frame.py", "torch/nn/modules/module.py")


@dataclass(frozen=True)
class _Call(Generic[Site]):
    """A function that a broken graph called: `led` are the lines below the compiled function that led there, and
    `above` those that led to the compiled function."""

    site: Site
    led: Lines
    above: Lines

    def fits(self, above: Lines) -> bool:
        """Whether a function to which some lines lead is called by this graph: others may have its name. Torch leaves
        out the last lines above each."""
        return bool(set(self.led) & set(above)) or (
            len(above) > len(self.above) and above[: len(self.above)] == self.above
        )


class Causes(Generic[Site]):
    """The breaks of one process, by what they make Dynamo compile."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._starts: dict[int | None, Sequence[events.Frame]] = {}
        self._behind: dict[tuple[str, str, int], Site] = {}
        self._called: dict[tuple[str, str], list[_Call[Site]]] = {}
        self._broken: list[_Call[Site]] = []
        self._left_out: dict[tuple[str, str], Site] = {}

    def begins(self, event: events.Start) -> None:
        """Dynamo begins with a frame."""
        self._starts[event.frame] = event.stack

    def led(self, frame: int | None) -> Sequence[events.Frame]:
        """The frames that led to a compiled function, outermost first."""
        return self._starts.get(frame, ())[:-1]

    def note(self, event: events.Compiled, site: Site, stack: Sequence[TextFrame]) -> None:
        """A break ended the graph of a compilation: its stack has the functions that go on behind it in graphs of
        their own, and those that the compiled one called, which are compiled by themselves."""
        begun = self._starts.get(event.frame, ())
        start = stacks.root_of(event, stack, begun)
        if start is None:
            self._left_out[self._path(event.path), break_text.plain_function(event.function)] = site
        if self._above(event.frame)[-1:] and self._above(event.frame)[-1][0].endswith(_CALLS_ONE):
            self._broken.append(_Call(site, (), self._above(event.frame)))
        led: Lines = ()
        for number, frame in enumerate(stack[stacks.first_traced(stack, begun) if start is None else start :]):
            path, name = self._path(frame.path), break_text.plain_function(frame.function)
            self._behind[path, name, frame.line] = site
            if number or start is None:
                self._called.setdefault((path, name), []).append(_Call(site, led, self._above(event.frame)))
            if self._paths.place(frame.path, 0, "").where != TORCH:
                led += ((path, frame.line),)

    def of(self, event: events.Compiled) -> Site | None:
        """The break without which a frame would not have been compiled; None where there is none.

        What is compiled inside of a broken call would have been part of its graph, also where functions that Dynamo
        leaves to Python stand in between. Of several such calls the outermost is sure to be one.
        """
        path, name = self._path(event.path), break_text.plain_function(event.function)
        resumed = break_text.resumes_at(event.function)
        if resumed is not None:
            return self._behind.get((path, *resumed)) or self._left_out.get((path, name))
        above = self._above(event.frame)
        calls = reversed(self._called.get((path, name), ()))
        named = next((call.site for call in calls if not above or call.fits(above)), None)
        around = [call for call in reversed(self._broken) if call.fits(above)]
        return named or (min(around, key=lambda call: len(call.above)).site if around else None)

    def _above(self, frame: int | None) -> Lines:
        """The lines that led to a compiled function, outermost first; empty where torch does not tell."""
        return tuple((self._path(each.path), each.line) for each in self.led(frame))

    def _path(self, path: str) -> str:
        return self._paths.place(path, 0, "").path
