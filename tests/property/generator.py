"""Random modules, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.property import grammar, layers, readings
from tests.property.program import Clause, Compound, Program, Simple, Statement, render

_DEEPEST = 3
_LIBRARY_SPELLINGS = (
    ("import torch\n", "import torch\n"),
    ("import torch\n", "import torch\n"),
    ("import torch\n", "import torch as th\n\ntorch = th\n"),
    ("import torch\n", 'import torch  # noqa\nimport torch.nn\n__all__ = ["Model"]\n'),
    ("logger = logging.getLogger(__name__)\n", 'logger: logging.Logger = logging.getLogger("subject")\n'),
    ("logger = logging.getLogger(__name__)\n", "logger = logging.getLogger(__name__); silent = None\n"),
)


def generate(seed: int) -> Program:
    """The module with this number."""
    return _Generator(seed).program()


class _Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.floats = ["x"]
        self.masks = ["mask"]
        self.hard = self.random.choice([0.05, 0.1, 0.3])
        self.fresh_names = 0
        self.loops = 0

    def program(self) -> Program:
        given = [name for name, _ in grammar.PARAMETERS if self.chance(0.5)]
        spelled = {name: self.pick(forms) for name, forms in grammar.PARAMETERS}
        ordered = [name for name, _ in grammar.PARAMETERS if name in given]
        first = self.pick(["x: torch.Tensor", "x", "x: torch.FloatTensor"])
        signature = f"def forward({', '.join(['self', first, *(spelled[name] for name in ordered)])}):"
        if self.chance(0.08):
            decorator = self.pick(["@torch.no_grad()", "@torch.inference_mode()", "@torch.autocast('cpu')"])
            signature = f"{decorator}\n    {signature}"
        missing = {
            "y": "y = x * 0.5",
            "mask": "mask = x > 0",
            "flag": "flag = self.training",
            "sizes": "sizes = [[1, 2], [2, 3]]",
        }
        body: list[Statement] = [Simple(text) for name, text in missing.items() if name not in given]
        self.floats.append("y")
        body += self.prelude()
        body += self.block(0, self.random.randint(2, 5))
        body.append(Simple(self.result()))
        old, new = self.random.choice(_LIBRARY_SPELLINGS)
        head = self.head(render(body, 2)).replace(old, new)
        return Program(head, signature, tuple(body), tuple(self.call(ordered) for _ in range(3)))

    def head(self, body: str) -> str:
        """What stands in front of `forward`, with the layers that only some bodies call."""
        classes = made = ""
        if "self.rows(" in body:
            classes = layers.ROWS.format(**{name: self.pick(forms) for name, forms in layers.ROWS_PIECES.items()})
            made = "        self.rows = Rows()\n"
        if "self.tables" in body:
            made += layers.TABLES
        return layers.HEAD.replace("{classes}", classes).replace("{made}", made)

    # pieces

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

    # statements

    def prelude(self) -> list[Statement]:
        """A tensor or two of the function's own."""
        found: list[Statement] = []
        for name in ("h", "a")[: self.random.randint(1, 2)]:
            source = self.pick(
                ["self.norm(x)", "self.linear(x)", "x * 2.0", "x.clone()", "x", "torch.relu(x)", "x + y", "x.float()"]
            )
            found.append(Simple(f"{name} = {source}"))
            self.learn(name)
        return found

    def block(self, depth: int, length: int | None = None) -> tuple[Statement, ...]:
        known = list(self.floats)
        found: list[Statement] = []
        for _ in range(length or self.random.randint(1, 2)):
            found += self.statement(depth)
        if depth:
            self.floats = known
        return tuple(found)

    def statement(self, depth: int) -> list[Statement]:
        makers: list[tuple[int, Callable[[int], list[Statement]]]] = [
            (10, self.assignment),
            (14, self.tensor_branch),
            (5, self.ternary),
            (8, self.overflow_guard),
            (9, self.masked_write),
            (8, self.guard),
            (5, self.assertion),
            (11, self.message),
            (13, self.early_return),
            (6, self.effect),
            (6, self.binding),
            (8, self.state_branch),
            (13, self.list_guard),
            (46, self.number),
            (7, self.mask_or_none),
            (5, self.growing),
            (4, self.cut_table),
            (6, self.found_places),
            (6, self.rows_filled),
            (6, self.loop_over_data),
        ]
        if depth < _DEEPEST:
            makers += [
                (6, self.static_branch),
                (3, self.loop),
                (3, self.attempt),
                (6, self.context),
                (2, self.nested_function),
                (5, self.mixed_branch),
            ]
        weights = [weight for weight, _ in makers]
        maker = self.random.choices([maker for _, maker in makers], weights)[0]
        return maker(depth)

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
        taken, other = self.random.choice(grammar.STATE_BRANCHES)
        clauses = [Clause(self.header("if", self.test()), (Simple(taken),))]
        if other:
            clauses.append(Clause("else:", (Simple(other),)))
        found: list[Statement] = [Compound(tuple(clauses))]
        if self.chance(0.7):
            found.append(self.simple(f"{self.pick(self.floats)} = {self.pick(self.floats)} * self.scale"))
        return found

    def list_guard(self, depth: int) -> list[Statement]:
        built, test = self.random.choice(grammar.LIST_GUARDS)
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

    # statements with blocks

    def static_branch(self, depth: int) -> list[Statement]:
        clauses = [Clause(self.header("if", self.static_test()), self.block(depth + 1))]
        if self.chance(0.3):
            clauses.append(Clause("else:", self.block(depth + 1)))
        return [Compound(tuple(clauses))]

    def mixed_branch(self, depth: int) -> list[Statement]:
        clauses = [Clause(self.header("if", self.test()), self.block(depth + 1))]
        if self.chance(0.3):
            clauses.append(Clause(self.header("elif", self.test()), self.block(depth + 1)))
        if self.chance(0.4):
            clauses.append(Clause("else:", self.block(depth + 1)))
        return [Compound(tuple(clauses))]

    def loop(self, depth: int) -> list[Statement]:
        body = self.block(depth + 1)
        if self.chance(0.3):
            word = self.pick(["break", "continue"])
            body = (
                *body,
                Compound((Clause(self.header("if", self.test()), (Simple(word),)),)),
                *self.block(depth + 1, 1),
            )
        self.loops += 1
        header = self.pick(
            ["for i in range(2):", "for name in ('p', 'q'):", "for row in x:", "for i, row in enumerate(y):"]
        )
        clauses = [Clause(header, body)]
        if self.chance(0.15):
            clauses.append(Clause("else:", self.block(depth + 1, 1)))
        return [Compound(tuple(clauses))]

    def attempt(self, depth: int) -> list[Statement]:
        caught = self.pick(["except ValueError:", "except (RuntimeError, ValueError) as error:", "except Exception:"])
        clauses = [Clause("try:", self.block(depth + 1)), Clause(caught, self.block(depth + 1, 1))]
        if self.chance(0.2):
            clauses.append(Clause("else:", self.block(depth + 1, 1)))
        if self.chance(0.2):
            clauses.append(Clause("finally:", (Simple(self.filled(self.pick(grammar.EFFECTS))),)))
        return [Compound(tuple(clauses), whole=True)]

    def context(self, depth: int) -> list[Statement]:
        return [Compound((Clause(f"with {self.pick(grammar.CONTEXTS)}:", self.block(depth + 1)),))]

    def nested_function(self, depth: int) -> list[Statement]:
        known = list(self.floats)
        name = self.pick(["inner", "step"])
        captured = self.chance(0.5)
        self.floats = [*known, "v"] if captured else ["v"]
        masks, mask = self.mask, self.pick(["mask", "(v > 0)"])
        self.mask = lambda: mask  # type: ignore[method-assign]
        body = (*self.block(_DEEPEST), Simple("return v"))
        self.mask = masks  # type: ignore[method-assign]
        self.floats = known
        target = self.pick(known)
        call = self.simple(f"{target} = {name}({self.pick(known)})")
        return [Compound((Clause(f"def {name}(v):", body),)), call]

    # result and inputs

    def result(self) -> str:
        form = self.random.random()
        if form < 0.15:
            return f"return {self.pick(self.floats)}"
        if form < 0.5:
            return f"return {', '.join(dict.fromkeys(self.pick(self.floats) for _ in range(4)))}"
        if form < 0.8:
            names = sorted(set(self.floats))
            self.random.shuffle(names)
            return f"return {', '.join(names)}"
        if form < 0.9:
            return f'return {{"out": {self.pick(self.floats)}, "count": self.count}}'
        if form < 0.95:
            return f"return self.linear({self.pick(self.floats)})"
        return f"return {self.value()}"

    def call(self, given: Sequence[str]) -> str:
        kinds = {
            "y": grammar.FLOAT_INPUTS[:10],
            "mask": grammar.MASK_INPUTS,
            "flag": ("True", "False"),
            "sizes": grammar.SIZE_INPUTS,
        }
        shape_source = self.pick(grammar.FLOAT_INPUTS if self.chance(0.3) else grammar.FLOAT_INPUTS[:10])
        parts = [shape_source, *(self.pick(kinds[name]) for name in given)]
        if shape_source == "torch.randn(0, 4)" and "mask" in given:
            parts[1 + given.index("mask")] = (
                "torch.ones(0, 4, dtype=torch.bool)"  # more rows than there are fit nowhere
            )
        return f"({', '.join(parts)},)"
