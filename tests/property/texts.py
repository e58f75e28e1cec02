"""Random expressions, tests and headers, of the names that a generated function knows."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.property import grammar
from tests.property.program import Simple


class Texts:
    """Chooses words; `floats` are the names of tensors so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.floats = ["x"]
        self.hard = self.random.choice([0.05, 0.1, 0.3])

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, options: Sequence[str]) -> str:
        return self.random.choice(options)

    def filled(self, template: str, **known: str) -> str:
        """The template with names of its own choice where none are given."""
        names = {
            "t": self.pick(self.floats),
            "u": self.pick(self.floats),
            "a": self.pick(self.floats),
            "m": self.mask(),
            "n": self.pick(["0", "0.0", "1", "-1", "0.5", "3"]),
            "new": self.new_name(),
            **known,
        }
        return template.format(**names)

    def mask(self) -> str:
        return "mask" if self.chance(0.7) else f"({self.pick(self.floats)} > {self.pick(['0', '1'])})"

    def new_name(self) -> str:
        return self.pick(["a", "b", "h", "z", "x", "y"])

    def value(self, target: str | None = None) -> str:
        hard = self.chance(self.hard)
        known = {"t": target} if target is not None and self.chance(0.7) else {}
        return self.filled(self.pick(grammar.HARD_VALUES if hard else grammar.VALUES), **known)

    def tensor_test(self) -> str:
        return self.filled(self.pick(grammar.TENSOR_TESTS))

    def static_test(self) -> str:
        return self.filled(self.pick(grammar.STATIC_TESTS))

    def test(self) -> str:
        """A test that a tensor takes part in."""
        form = self.random.random()
        if form < 0.55:
            return self.tensor_test()
        if form < 0.75:
            return f"{self.static_test()} and {self.wrapped(self.tensor_test())}"
        if form < 0.80:
            return f"{self.wrapped(self.tensor_test())} and {self.static_test()}"
        if form < 0.84:
            return f"{self.static_test()} or {self.tensor_test()}"
        if form < 0.90:
            return f"not {self.wrapped(self.tensor_test())}"
        connective = self.pick(["and", "or"])
        return f"{self.wrapped(self.tensor_test())} {connective} {self.wrapped(self.tensor_test())}"

    def rare_test(self) -> str:
        """A test that is seldom true, so that a guard on it lets the rest of the function run."""
        test = self.filled(self.pick(grammar.RARE_TESTS))
        return f"{self.static_test()} and {test}" if self.chance(0.2) else test

    def wrapped(self, text: str) -> str:
        return f"({text})" if " or " in text or " and " in text or text.startswith("not ") else text

    def header(self, word: str, test: str) -> str:
        """`if test:`, sometimes over several lines or with a comment."""
        form = self.random.random()
        if form < 0.05:
            return f"{word} (\n        {test}  # reads a value\n    ):"
        if form < 0.12:
            return f"{word} {test}:  # why"
        if form < 0.15:
            return f"{word}({test}) :"
        return f"{word} {test}:"

    def simple(self, text: str) -> Simple:
        if "\n" in text:
            return Simple(text)
        form = self.random.random()
        if form < 0.04:
            return Simple(f"{text}  # note")
        if form < 0.06:
            return Simple(f"# note\n{text}")
        if form < 0.08:
            return Simple(f"{text};")
        return Simple(text)

    def learn(self, name: str) -> None:
        if name not in self.floats:
            self.floats.append(name)
