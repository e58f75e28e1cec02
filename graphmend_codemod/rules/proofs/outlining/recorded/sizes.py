"""How the sizes of results follow from what went in, found from several calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.outlining.recorded.moments import ARRAY, TENSOR, Fact

_MOST_TERMS = 60


class Given(NamedTuple):
    """Something that went in: how it is spelled, and what it was in each call."""

    text: str
    facts: tuple[Fact, ...]

    @property
    def kind(self) -> str:
        """What it was in all calls; empty where that differed."""
        kinds = {each[0] for each in self.facts}
        return kinds.pop() if len(kinds) == 1 else ""


class Term(NamedTuple):
    """A number that is known while tracing: how it is spelled, and what it was in each call."""

    text: str
    values: tuple[int, ...]

    @property
    def varied(self) -> bool:
        """True where the run tells whether something depends on it."""
        return len(set(self.values)) > 1


class Sizes:
    """What explains sizes. `pins` are the conditions under which the explanations hold for calls that the run had not.

    A size that was the same in all calls may depend on everything else that was, so that is asked for as well.
    """

    def __init__(self, given: Sequence[Given]) -> None:
        self._terms = [term for each in given for term in _terms(each)][:_MOST_TERMS]
        self._numbers = {each.text for each in given if each.kind == "int"}
        self.pins: dict[str, None] = {}
        self.free: dict[tuple[int, ...], str] = {}
        for term in self._terms:
            if term.text in self._numbers and not term.varied:
                self.pins[f"{term.text} == {term.values[0]}"] = None

    def explain(self, values: tuple[int, ...]) -> str:
        """How a size is spelled that had these values; a word in quotes where nothing that went in explains it."""
        if len(set(values)) == 1:
            for term in self._terms:
                if not term.varied:
                    self.pins[f"{term.text} == {term.values[0]}"] = None
            return str(values[0])
        for terms in (self._terms, list(_derived(self._terms))):
            same = [term.text for term in terms if term.values == values]
            if same:
                for other in same[1:]:
                    self.pins[f"{same[0]} == {other}"] = None
                return same[0]
        return f'"{self.free.setdefault(values, f"n{len(self.free) + 1}")}"'


def _terms(given: Given) -> Iterator[Term]:
    if given.kind == "int":
        yield Term(given.text, tuple(each[1] for each in given.facts))
    elif given.kind in (TENSOR, ARRAY):
        ranks = {len(each[2]) for each in given.facts}
        if len(ranks) != 1:
            raise NotProven(
                f"`{given.text}` had {' and '.join(map(str, sorted(ranks)))} dimensions in the recorded run"
            )
        for place in range(ranks.pop()):
            yield Term(f"{given.text}.shape[{place}]", tuple(each[2][place] for each in given.facts))
    elif given.kind in ("list", "tuple") and len({len(each[1]) for each in given.facts}) == 1:
        for place in range(len(given.facts[0][1])):
            yield from _terms(Given(f"{given.text}[{place}]", tuple(each[1][place] for each in given.facts)))


def _derived(terms: Sequence[Term]) -> Iterator[Term]:
    """Products, and numbers that are a little more, less, or a multiple of a term that varied."""
    for place, term in enumerate(terms):
        for other in terms[place:]:
            if term.varied or other.varied:
                yield Term(
                    f"{term.text} * {other.text}",
                    tuple(one * two for one, two in zip(term.values, other.values, strict=True)),
                )
    for term in terms:
        if not term.varied:
            continue
        for number in (1, 2):
            yield Term(f"{term.text} + {number}", tuple(each + number for each in term.values))
            yield Term(f"{term.text} - {number}", tuple(each - number for each in term.values))
        for number in (2, 3, 4):
            yield Term(f"{term.text} * {number}", tuple(each * number for each in term.values))
            yield Term(f"{term.text} // {number}", tuple(each // number for each in term.values))
