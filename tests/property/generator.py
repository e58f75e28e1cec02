"""Random modules, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.property import company, grammar, layers, surroundings
from tests.property.program import Clause, Compound, Program, Simple, Statement, render
from tests.property.scripts import Scripts
from tests.property.statements import Branches, Readings

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


class _Generator(Branches, Readings, Scripts):
    def program(self) -> Program:
        if self.chance(0.03):
            return self.script()
        given = [name for name, _ in surroundings.PARAMETERS if self.chance(0.5)]
        spelled = {name: self.pick(forms) for name, forms in surroundings.PARAMETERS}
        ordered = [name for name, _ in surroundings.PARAMETERS if name in given]
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
        calls = tuple(self.call(ordered) for _ in range(3))
        return Program(head, signature, tuple(body), calls, self.company())

    def company(self) -> str:
        """Another file of the project, for every fourth module: what it does, no look at the module shows."""
        form = self.random.random()
        if form < 0.75:
            return ""
        if form < 0.82:
            template = self.pick(company.SUBCLASSES)
            return company.subclass(template, self.pick(company.RESULTS), self.pick(company.CHANGES))
        if form < 0.90:
            return company.changed(self.pick(company.CHANGES))
        if form < 0.94:
            return company.changed(self.pick(company.HOOKS))
        return company.catching(self.pick(company.CATCHES))

    def head(self, body: str) -> str:
        """What stands in front of `forward`: functions and layers that the body calls, and no others."""
        used = [part for call, part in layers.PARTS.items() if call in body]
        functions = "".join(part.function for part in used)
        classes = "".join(part.layer for part in used)
        made = "".join(part.made for part in used)
        if "self.rows(" in body:
            classes += layers.ROWS.format(**{name: self.pick(forms) for name, forms in layers.ROWS_PIECES.items()})
            made += "        self.rows = Rows()\n"
        if "self.seen(" in body:
            classes += layers.SEEN.format(**{name: self.pick(forms) for name, forms in layers.SEEN_PIECES.items()})
            made += "        self.seen = Seen()\n"
        if "self.tables" in body:
            made += layers.TABLES
        pieces = {"{functions}": functions, "{classes}": classes, "{made}": made}
        head = layers.HEAD
        for mark, text in pieces.items():
            head = head.replace(mark, text)
        return head

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
            (24, self.masked_write),
            (8, self.guard),
            (5, self.assertion),
            (11, self.message),
            (13, self.early_return),
            (6, self.effect),
            (6, self.binding),
            (8, self.state_branch),
            (13, self.list_guard),
            (56, self.number),
            (7, self.mask_or_none),
            (5, self.growing),
            (12, self.tested),
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
        return [Compound((Clause(f"with {self.pick(surroundings.CONTEXTS)}:", self.block(depth + 1)),))]

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
            "y": surroundings.FLOAT_INPUTS[:10],
            "mask": surroundings.MASK_INPUTS,
            "flag": ("True", "False"),
            "sizes": surroundings.SIZE_INPUTS,
        }
        shape_source = self.pick(surroundings.FLOAT_INPUTS if self.chance(0.3) else surroundings.FLOAT_INPUTS[:10])
        parts = [shape_source, *(self.pick(kinds[name]) for name in given)]
        if shape_source == "torch.randn(0, 4)" and "mask" in given:
            parts[1 + given.index("mask")] = (
                "torch.ones(0, 4, dtype=torch.bool)"  # more rows than there are fit nowhere
            )
        return f"({', '.join(parts)},)"
