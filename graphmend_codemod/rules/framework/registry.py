"""Every rule, found by walking the packages of `rules`; and what each asks, known without loading any."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from graphmend_codemod import rules
from graphmend_codemod.rules.framework.ask_table import QUESTIONS
from graphmend_codemod.rules.framework.rule import Asked, Rule


class MatchKey(NamedTuple):
    """One match function by the module of its rule and its place among those for one kind of node."""

    module: str
    place: int
    words: frozenset[str]


@cache
def all_rules() -> tuple[Rule, ...]:
    """All rules in the order of their codes."""
    return tuple(sorted(map(rule_in, modules()), key=lambda rule: rule.code))


@cache
def rule_in(module: str) -> Rule:
    """The rule of one module, which is named as in `rules`: `guards.gm301_tensor_guard`."""
    rule: Rule = importlib.import_module(f"{rules.__name__}.{module}").rule
    return rule


def modules() -> list[str]:
    """The modules of `rules` that hold a rule, with the packages that they are in."""
    import pkgutil  # not needed where a commit hook looks at a file

    found = (each.name for each in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."))
    return [name.removeprefix(f"{rules.__name__}.") for name in found if name.rpartition(".")[2].startswith("gm")]


def worth_asking(
    kind: str, candidates: tuple[str, ...], words: Mapping[str, Sequence[int]]
) -> Iterator[tuple[Rule, Asked]]:
    """The match functions for nodes of one kind that may find something in a function with these candidates and words.

    More specific rules come first. Only rules that are worth it are loaded: a commit hook waits for each.
    """
    names = words.keys()
    for module, place, wanted in _questions(kind, candidates):
        if not wanted or not names.isdisjoint(wanted):
            yield _asked(module, kind, place)


@cache
def _asked(module: str, kind: str, place: int) -> tuple[Rule, Asked]:
    rule = rule_in(module)
    every = next(every for node_type, every in rule.matches.items() if node_type.__name__ == kind)
    return rule, every[place]


@cache
def _questions(kind: str, candidates: tuple[str, ...]) -> tuple[MatchKey, ...]:
    return tuple(key for key, candidate in _asked_of(kind) if not candidate or candidate in candidates)


@cache
def _asked_of(kind: str) -> list[tuple[MatchKey, str]]:
    """The match functions for nodes of one kind, with the candidate that each asks for."""
    places: Counter[str] = Counter()
    found = []
    for module, kinds, candidate, words in QUESTIONS:
        if kind in kinds.split():
            found.append((MatchKey(module, places[module], frozenset(words.split())), candidate))
            places[module] += 1
    return found
