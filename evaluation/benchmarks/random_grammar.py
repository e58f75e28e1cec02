"""Random programs for fixes: a module, the same for the same seed, of the statements of a few families.

Few families a program, so that each meets the others often, and programs stay small enough to be fixed.
`random_code/` has a file of statements for each family, with an empty line between them, and expressions and makers of
names by kind. A lower-case hole is a name that is bound by then, an upper-case one an expression of its kind, and
`{=f}` a name that the statement binds:

    f  a tensor of floats, (n, 3)      m  a mask, (n, 3)       p  a number of Python that a tensor gave
    r  one float a row, (n,)           k  a mask of rows       q  a list of tensors (n, 3)
    v  one float a column, (3,)        i  classes 0 to 2       h  half or double precision, (n, 3)
    s  one float without dimensions    l  lengths 0 to 3

`E` is a plainer `F`. `T` is a test that a tensor decides, `U` a plainer one, `B` one that Python decides, `G` one
that is seldom true. `{c}` is a number, `{n}` a small integer; `{block}`, `{arm}` and `{line}` are statements, `{ret}`
is what the function returns. `{own}` makes a tensor, mostly one that nothing shares, which is `{o}` below. Two of five
programs are calm: their arms assign and do no more.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import indent

from benchmarks import random_layers as layers

_CODE = Path(__file__).with_name("random_code")
_HOLE = re.compile(r"\{\{|\}\}|\{(=?)(\w+)\}")
_NUMBERS = ("0", "1", "-2", "3", "0.5", "0.0")
_NAMES = {
    kind: tuple(f"{name}{number}" for number in ("", "1", "2"))
    for kind, name in zip(
        "rvsmkilpqh",
        ("rows_of", "column", "total", "chosen_of", "keep", "kinds_of", "spans_of", "num", "parts", "low"),
        strict=True,
    )
} | {"f": tuple("abcd")}
_DEEPEST = 2
_SHARING = (
    "{f}",
    "{f}[0]",
    "{f}.view(-1)",
    "{f}[:, :2]",
    "{f}.detach()",
    "{f}.t()",
    "{f}[1:]",
    "self.s",
    "x",
    "{f}.clone()",
)
_THROUGH = (
    "NAME.mul_(0.5)",
    "NAME.add_({c})",
    "NAME[0] = {c}",
    "{f} = {f} + NAME.sum()",
    "NAME.zero_()",
    "{f} = {f} * NAME.mean()",
)
_IN_HELPERS = (
    (r"(self\.training|flag|self\.on)", "True"),
    ("[xy]", "u"),
    ("mask", "(u.sum(-1) > 0)"),
    ("(labels|lengths)", "u.argmax(-1)"),
)
"""What stands in helpers for what only `forward` has."""
_IN_FUNCTIONS = (
    (r"self\.linear", "torch.sigmoid"),
    (r"self\.norm", "torch.tanh"),
    (r"self\.s", "u[0]"),
    (r"self\.w", "u[-1]"),
    (r"self\.limit", "2"),
    (r"len\(self\.kept\)", "1"),
    (r"self\.seen", "u.argmax()"),
)
"""What stands in functions for what only methods have."""
_READ = {
    "r": "{}[:, None]",
    "v": "{}",
    "s": "{}",
    "m": "{}",
    "k": "{}[:, None]",
    "i": "{}[:, None]",
    "l": "{}[:, None]",
    "p": "{}",
    "q": "sum({})",
    "h": "{}",
}


@dataclass(frozen=True)
class RandomProgram:
    """A module's text, and the calls to make, as expressions."""

    seed: int
    text: str
    inputs: tuple[str, ...]
    families: tuple[str, ...]


def generate(seed: int, families: Sequence[str] = ()) -> RandomProgram:
    """The program with this number, of some of `families`; without them of any."""
    return _Writer(seed, families).program()


@cache
def all_families() -> tuple[str, ...]:
    """The families of statements, by name."""
    return tuple(sorted(path.stem for path in _CODE.glob("*.txt")))


@cache
def _templates(family: str) -> tuple[str, ...]:
    return tuple((_CODE / f"{family}.txt").read_text(encoding="utf-8").rstrip("\n").split("\n\n"))


@cache
def _parts(name: str) -> dict[str, tuple[str, ...]]:
    """Expressions or makers by kind: `[kind]`, and a line for each."""
    found: dict[str, list[str]] = {}
    for line in (_CODE / f"{name}.parts").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = found.setdefault(line.strip("[]"), [])
        elif line:
            lines.append(line)
    return {kind: tuple(lines) for kind, lines in found.items()}


class _Writer:
    def __init__(self, seed: int, families: Sequence[str]) -> None:
        self.seed = seed
        self.random = random.Random(f"random program {seed}")
        known = [name for name in families or all_families() if name != "plain"]
        self.families = ("plain", *self.random.sample(known, min(len(known), self.random.choice([1, 2, 2, 3, 4]))))
        self.names: dict[str, list[str]] = {}
        self.before: list[str] = []
        self.shared, self.calm = 0, self.random.random() < 0.4
        self.results = self.random.choice([1, 2, 4, 4, 4, 4])

    def program(self) -> RandomProgram:
        """Its functions, its layers and its `forward`."""
        tensor = ": torch.Tensor" if self.random.random() < 0.6 else ""
        text = layers.HEAD
        if "calls" in self.families:
            text += f"def mix(u{tensor}, v{tensor}):\n{self.helper(['u', 'v'], 1)}\n\n"
            text += layers.PART.replace("{tensor}", tensor) + self.helper(["u"], 2) + "\n\n"
        else:
            text += layers.PART.replace("{tensor}", tensor) + "        return self.inner(u)\n\n\n"
        text += layers.MODEL
        if "calls" in self.families:
            text += f"    def step(self, u{tensor}, v{tensor}):\n{self.helper(['u', 'v'], 2)}\n"
        given = ", ".join(f"{name}{tensor}" for name in ("x", "y", "mask", "labels", "lengths"))
        text += f"    def forward(self, {given}, flag: bool = True):\n"
        text += indent(self.forward(), " " * 8)
        return RandomProgram(self.seed, text, self.inputs(), self.families[1:])

    def forward(self) -> str:
        self.names = {}
        begin = ["a, b = x * 1.0, y + 0.0", "c = x - y", "d = y * x"]
        form = self.random.random()
        if form < 0.4:
            begin = ["a, b = x * 1.0, x + 1.0", "c = torch.relu(x)", "d = a * x"]
        elif form < 0.6:
            begin = ["a = x", "b = y", "c = x - y", self.random.choice(["d = c", "d = x.clone()", "d = a[:]"])]
        self.names["f"] = list("abcd")
        body = "\n".join(begin) + "\n" + self.block(self.random.choice([1, 2, 2, 3, 3, 4]), 0)
        return body + self.read() + self.statement_text("return {ret}") + "\n"

    def read(self) -> str:
        """Statements that bring what names hold into what is returned, lest most of the program is of no use."""
        lines = []
        for kind, text in _READ.items():
            for name in self.names.get(kind, ()):
                if self.random.random() < 0.6:
                    lines.append(f"{self.pick('f')} = {self.pick('f')} + {text.format(name)}\n")
        return "".join(lines)

    def helper(self, parameters: list[str], depth: int) -> str:
        """The body of a function of tensors (n, 3), of fewer families; `depth` is 1 for one outside of classes."""
        kept, families, results = self.names, self.families, self.results
        self.names, self.results = {"f": list(parameters)}, 1
        self.families = tuple(name for name in families if name not in ("calls", "lists", "experts", "state"))
        body = self.block(self.random.choice([1, 2]), 0) + self.read() + self.statement_text("return {ret}") + "\n"
        for own, other in (*_IN_HELPERS, *(_IN_FUNCTIONS if depth == 1 else ())):
            body = re.sub(rf"(?<![\w.]){own}(?!\w)", other, body)
        self.names, self.families, self.results = kept, families, results
        return indent(body, " " * 4 * depth)

    def block(self, length: int, depth: int) -> str:
        known = {kind: list(names) for kind, names in self.names.items()}
        text = "".join(self.watched(depth) for _ in range(length))
        if depth:
            self.names = known
        return text

    def watched(self, depth: int) -> str:
        """A statement, in some programs between a view and a write through it, or beside another name of a tensor."""
        if depth or self.calm or "views" not in self.families or self.random.random() < 0.6:
            return self.statement(depth)
        name, self.shared = f"shared{self.shared}", self.shared + 1
        begin = self.text(f"{name} = {self.random.choice(_SHARING)}", [])
        text = self.statement(depth)
        end = self.text(self.random.choice(_THROUGH).replace("NAME", name), [])
        return "\n".join([begin, text.rstrip("\n"), end, ""])

    def statement(self, depth: int) -> str:
        """A statement with what its names need in front of it."""
        family = self.random.choice(self.families if self.random.random() < 0.85 else ("plain", "branches"))
        template = self.random.choice(_templates(family))
        for _ in range(20):
            deep = depth >= _DEEPEST and "\n" in template and "{arm}" not in template
            if not deep and not ("{ret}" in template and depth > 1):
                break
            template = self.random.choice(_templates("plain"))
        kept, self.before = self.before, []
        text = self.filled(template, depth)
        text = "".join(self.before) + text
        self.before = kept
        return text

    def filled(self, template: str, depth: int) -> str:
        """The lines of a template, with its blocks."""
        lines, own = [], ""
        for line in template.split("\n"):
            word = line.strip()
            space = line[: len(line) - len(line.lstrip())]
            if word == "{own}":
                own = self.name("f")
                made = self.expression("F") if self.random.random() < 0.3 else f"{self.pick('f')}.clone()"
                lines += [f"{own} = {made}"] if self.random.random() < 0.85 else []
            elif word == "{arm}":
                lines.append(indent(self.arm(), space).rstrip("\n"))
            elif word in ("{block}", "{line}"):
                block = self.block(self.random.choice([1, 1, 2, 3]) if word == "{block}" else 1, depth + 1)
                lines.append(indent(block, space).rstrip("\n"))
            else:
                targets: list[tuple[str, str]] = []
                lines.append(space + self.text(word.replace("{o}", own), targets))
                for kind, name in targets if not space else ():
                    self.bind(kind, name)
        return "\n".join(lines) + "\n"

    def arm(self) -> str:
        """One to three statements of a branch that assigns, as most do."""
        known = {kind: list(names) for kind, names in self.names.items()}
        kept, self.before = self.before, []
        lines = [
            self.text(self.random.choice(_parts("arms")["arm"]), []) for _ in range(self.random.choice([1, 1, 2, 2, 3]))
        ]
        text = "".join([*self.before, "\n".join(lines), "\n"])
        self.before, self.names = kept, known
        return text

    def statement_text(self, template: str) -> str:
        kept, self.before = self.before, []
        text = self.text(template, [])
        text = "".join(self.before) + text
        self.before = kept
        return text

    def text(self, template: str, targets: list[tuple[str, str]], level: int = 0) -> str:
        """The template with its holes filled; names that it binds go into `targets`."""

        def hole(match: re.Match[str]) -> str:
            if match[0] in ("{{", "}}"):
                return match[0][0]
            word = match[2]
            if match[1]:
                name = self.name(word)
                targets.append((word, name))
                return name
            if word == "c":
                return self.random.choice(_NUMBERS)
            if word == "n":
                return self.random.choice("012")
            if word == "ret":
                return self.returned()
            if word.islower():
                return self.pick(word)
            part = self.expression(word, level + 1)
            followed = template[match.end() : match.end() + 1] in (".", "[")
            return f"({part})" if followed and re.search(r"[ ~-]", part) else part

        return _HOLE.sub(hole, template)

    def returned(self) -> str:
        """As many tensors as the function returns everywhere; four are mostly all that it knows."""
        if self.results == 4 and self.random.random() < 0.7:
            return "a, b, c, d"
        many = range(self.results)
        return ", ".join(self.expression("E") if self.random.random() < 0.3 else self.pick("f") for _ in many)

    def expression(self, kind: str, level: int = 0) -> str:
        choices = _parts("expressions")[kind]
        template = self.random.choice(choices)
        while level > 2 and re.search(r"\{[A-Z]\}", template):
            template = self.random.choice(choices)
        return self.text(template, [], level)

    def pick(self, kind: str) -> str:
        """A name of this kind; where there is none, a statement in front makes one."""
        known = self.names.setdefault(kind, [])
        if not known:
            targets: list[tuple[str, str]] = []
            made = self.text(self.random.choice(_parts("makers")[kind]), targets) + "\n"
            self.before.append(made)
            self.bind(*targets[-1])
        return self.random.choice(self.names[kind])

    def name(self, kind: str) -> str:
        return self.random.choice(_NAMES[kind])

    def bind(self, kind: str, name: str) -> None:
        known = self.names.setdefault(kind, [])
        if name not in known:
            known.append(name)

    def inputs(self) -> tuple[str, ...]:
        """Calls with other values, some with another number of rows."""
        sizes = self.random.choice([(2, 2, 2), (3, 3, 3), (4, 4, 4), (3, 3, 3, 3), (2, 4, 1), (1, 1, 2), (3, 0)])
        odd = self.random.random() < 0.2
        calls = []
        for rows in sizes:
            floats = layers.ODD_FLOATS if odd and self.random.random() < 0.4 else layers.FLOATS
            parts = [
                self.random.choice(floats),
                self.random.choice(layers.FLOATS),
                self.random.choice(layers.MASKS),
                self.random.choice(layers.LABELS),
                self.random.choice(layers.LENGTHS),
                self.random.choice(["True", "True", "False"]),
            ]
            calls.append(f"({', '.join(parts)})".replace("{n}", str(rows)))
        return tuple(calls)
