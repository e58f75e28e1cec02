"""Random statements without blocks of their own: branches, guards and messages, and what is read out of tensors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.property import grammar, readings, surroundings
from tests.property.program import Clause, Compound, Simple, Statement
from tests.property.texts import Texts


class Branches(Texts):
    """What a tensor's elements decide."""

    def assignment(self, depth: int) -> list[Statement]:
        name = self.new_name()
        statement = self.simple(f"{name} = {self.value()}")
        self.learn(name)
        return [statement]

    def tensor_branch(self, depth: int) -> list[Statement]:
        """Branches that assign names."""
        names = [self.pick(self.floats) for _ in range(self.random.choice([1, 1, 1, 2]))]
        if self.chance(0.1):
            names[0] = self.new_name()
        first, last = self.own_tensor(names[0]) if self.chance(0.4) else ([], [])
        clauses = [Clause(self.header("if", self.test()), self.arm(names))]
        while self.chance(0.2):
            clauses.append(Clause(self.header("elif", self.test()), self.arm(names)))
        if self.chance(0.45):
            clauses.append(Clause("else:", self.arm(names)))
        return [*first, Compound(tuple(clauses)), *last]

    def own_tensor(self, name: str) -> tuple[list[Statement], list[Statement]]:
        """A tensor that nothing else refers to, or that something does after all: how it is made, how that is seen."""
        made = self.filled(self.pick(grammar.OWN_TENSORS), t=name)
        self.learn(name)
        first: list[Statement] = [Simple(f"{name} = {made}")]
        if self.chance(0.5):
            return first, []
        reference, seen = self.random.choice(grammar.REFERENCES)
        first.append(Simple(reference.format(t=name)))
        if not seen:
            return first, []
        self.learn("other")
        return first, [Simple(f"other = {seen}")]

    def arm(self, names: Sequence[str]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        if self.chance(0.12):
            found.append(self.simple(f"part = {self.value()}"))
            found.append(self.simple(f"{names[0]} = {names[0]} + part"))
            return tuple(found)
        for name in dict.fromkeys(names):
            if self.chance(0.9):
                found.append(self.simple(f"{name} = {self.value(name)}"))
        if self.chance(0.06):
            found.append(Simple(self.filled(self.pick(grammar.EFFECTS))))
        return tuple(found)

    def ternary(self, depth: int) -> list[Statement]:
        name = self.pick(self.floats)
        return [self.simple(f"{name} = {self.value(name)} if {self.test()} else {self.value(name)}")]

    def overflow_guard(self, depth: int) -> list[Statement]:
        name = self.pick(self.floats)
        static = self.pick(grammar.OVERFLOW_STATIC)
        test = f"{static} {self.pick(grammar.OVERFLOW_TESTS)}".strip().format(a=name)
        if static and " or " in test and not test.endswith(")"):
            test = f"{test.partition(' and ')[0]} and ({test.partition(' and ')[2]})"
        body = self.pick(grammar.OVERFLOW_BODIES).format(a=name)
        found: list[Statement] = []
        if self.chance(0.5):
            found.append(Simple(f"{name} = {self.pick(['self.norm', 'self.linear', 'self.drop'])}({name})"))
        found.append(Compound((Clause(self.header("if", test), (Simple(body),)),)))
        return found

    def masked_write(self, depth: int) -> list[Statement]:
        name, mask = self.pick(self.floats), self.mask()
        found: list[Statement] = []
        if self.chance(0.4):
            found.append(Simple(f"{name} = {self.pick(['self.linear', 'self.norm', 'torch.relu'])}({name})"))
        if self.chance(0.3):
            mask = "own_mask"
            found.append(Simple(f"own_mask = {name} > {self.pick(['0', '1', '9'])}"))
        fill = self.pick(grammar.FILLS).format(a=name)
        write = self.pick(grammar.MASKED_WRITES).format(a=name, m=mask, f=fill)
        test = self.pick(grammar.MASK_TESTS).format(m=mask)
        clauses = [Clause(self.header("if", test), (self.simple(write),))]
        if self.chance(0.08):
            clauses.append(Clause("else:", (self.simple(f"{name} = {self.value(name)}"),)))
        return [*found, Compound(tuple(clauses))]

    def guard(self, depth: int) -> list[Statement]:
        body: tuple[Statement, ...] = (self.simple(self.filled(self.pick(grammar.ERRORS))),)
        test = self.rare_test() if self.chance(0.7) else self.test()
        if self.chance(0.08):
            body = (Simple(self.filled(self.pick(grammar.EFFECTS))), *body)
        clauses = [Clause(self.header("if", test), body)]
        if self.chance(0.1):
            clauses.append(Clause("else:", self.arm([self.pick(self.floats)])))
        return [Compound(tuple(clauses))]

    def assertion(self, depth: int) -> list[Statement]:
        test = f"not {self.wrapped(self.rare_test())}" if self.chance(0.7) else self.test()
        return [self.simple(self.filled(self.pick(grammar.ASSERTIONS), c=test))]

    def message(self, depth: int) -> list[Statement]:
        text = self.simple(self.filled(self.pick(grammar.MESSAGES)))
        form = self.random.random()
        if form < 0.5:
            return [text]
        test = self.static_test() if form < 0.8 else self.test()
        return [Compound((Clause(self.header("if", test), (text,)),))]

    def early_return(self, depth: int) -> list[Statement]:
        base = self.pick(self.floats)
        first, _ = self.own_tensor(base) if self.chance(0.4) else ([], [])
        form = self.random.random()

        def leave() -> tuple[Statement, ...]:
            return (Simple(f"return {self.value(base)}"),)

        clauses = [Clause(self.header("if", self.test()), leave())]
        if form < 0.3:
            return [*first, Compound(tuple(clauses))]
        if form < 0.45:
            clauses.append(Clause(self.header("elif", self.test()), leave()))
        if form < 0.6:
            return [*first, Compound((*clauses, Clause("else:", leave())))]
        return [*first, Compound(tuple(clauses)), *leave()]

    def effect(self, depth: int) -> list[Statement]:
        return [self.simple(self.filled(self.pick(grammar.EFFECTS)))]

    def binding(self, depth: int) -> list[Statement]:
        template, name = self.pick(grammar.BINDINGS), self.new_name()
        statement = self.simple(self.filled(template, new=name))
        if "{new}" in template:
            self.learn(name)
        return [statement]

    def state_branch(self, depth: int) -> list[Statement]:
        taken, other = self.random.choice(surroundings.STATE_BRANCHES)
        clauses = [Clause(self.header("if", self.test()), (Simple(taken),))]
        if other:
            clauses.append(Clause("else:", (Simple(other),)))
        found: list[Statement] = [Compound(tuple(clauses))]
        if self.chance(0.7):
            found.append(self.simple(f"{self.pick(self.floats)} = {self.pick(self.floats)} * self.scale"))
        return found


class Readings(Texts):
    """Numbers, sizes, rows and masks that are read out of tensors."""

    def list_guard(self, depth: int) -> list[Statement]:
        built, test = self.random.choice(surroundings.LIST_GUARDS)
        found: list[Statement] = [Simple(f"shapes = {self.filled(built)}")]
        if self.chance(0.15):
            found.append(Simple(self.pick(["shapes = shapes + 1", "shapes.add_(1)", "sizes = list(sizes)[:1]"])))
        error = (self.simple(self.filled(self.pick(grammar.ERRORS))),)
        return [*found, Compound((Clause(self.header("if", self.filled(test)), error),))]

    def number(self, depth: int) -> list[Statement]:
        """Numbers and rows that are read out of tensors."""
        text = self.filled(self.pick(readings.NUMBERS), m=self.pick(["mask", "(x > 0)"]))
        first: list[Statement] = []
        if "pairs" in text:
            first.append(Simple("pairs = [tuple(each.shape) for each in (x, y)]"))
        return [*first, Simple(text)]

    def mask_or_none(self, depth: int) -> list[Statement]:
        return [Simple(self.filled(self.pick(readings.MASKS_OR_NONE)))]

    def growing(self, depth: int) -> list[Statement]:
        """A number that grows where a tensor says so."""
        test = self.pick(["{m}.any()", "{m}.sum().item() < 3", "({t} > 0).all()", "flag and {m}.any()"])
        return [self.reading(readings.GROWING, {"test": test, "by": self.pick(["1", "1", "2"])})]

    def tested(self, depth: int) -> list[Statement]:
        """A number or flag of a tensor that is tested further down."""
        pieces = {"found": readings.TESTED_VALUES, "test": readings.TESTS, "body": readings.TESTED_BODIES}
        read = self.reading(readings.TESTED, {name: self.pick(each) for name, each in pieces.items()})
        return [Simple(re.sub(r"\bseen\b", f"seen_{self.pick('123456789')}", read.text))]

    def cut_table(self, depth: int) -> list[Statement]:
        return [self.reading(readings.CUT_TABLES, {"places": self.pick(readings.PICKS)})]

    def found_places(self, depth: int) -> list[Statement]:
        pieces = {"ends": self.pick(readings.ENDS), "found": self.pick(readings.FOUND)}
        return [self.reading(readings.FOUND_PLACES, pieces)]

    def rows_filled(self, depth: int) -> list[Statement]:
        return [self.reading(readings.ROWS_FILLED, {"lengths": self.pick(readings.LENGTHS)})]

    def loop_over_data(self, depth: int) -> list[Statement]:
        pieces = {"found": self.pick(readings.FOUND), "body": self.pick(readings.BODIES)}
        return [self.reading(readings.LOOPS_OVER_DATA, pieces)]

    def reading(self, templates: Sequence[str], pieces: dict[str, str]) -> Simple:
        """A template with pieces that are about the same tensors."""
        known = {
            "t": self.pick(self.floats),
            "m": self.pick(["mask", "mask", "(x > 0)"]),
            "dtype": self.pick(readings.DTYPES),
        }
        pieces = {"like": self.pick(readings.LIKE), "fill": self.pick(["1", "1", "-1", "0", "0.5", "True"]), **pieces}
        known.update({name: self.filled(text, **known) for name, text in pieces.items()})
        return Simple(self.filled(self.pick(templates), **known))
