"""Random modules that TorchScript can compile, handed to it by another file of the project."""

from __future__ import annotations

from tests.property import company
from tests.property.program import Clause, Compound, Program, Simple, Statement
from tests.property.texts import Texts

_HEAD = """\
import logging
import warnings

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.limit = 0.5
"""

_VALUES = """
{t} * 2.0
{t} - {u}
{t}.sqrt()
torch.relu({t})
F.silu({t}, inplace=True)
torch.clamp({t}, max=0.5)
self.norm({t})
self.linear({t})
{t}.masked_fill({m}, 0.0)
torch.where({m}, {t}, {u})
{t} / {t}
torch.nan_to_num({t})
{t} + self.limit
""".strip().splitlines()

_TESTS = """
bool({t}.sum() > {n})
{t}.sum() > {n}
bool(({t} > {n}).any())
bool({m}.all())
{m}.any()
torch.isinf({t}).any()
torch.equal({t}, {u})
float({t}.sum()) > {n}
self.training
""".strip().splitlines()

_SINGLE = """
{t} = {t} * float({t}.max())
{t} = {t} / {t}.abs().max().item()
assert bool(({t} == {t}).all()), "nan"
print("here")
warnings.warn("old")
{t}[{m}] = 0.0
{t} = {t} * ({t} > 0)
{t} = {t} + {t}[{m}].sum()
""".strip().splitlines()


class Scripts(Texts):
    """Modules of the few statements that TorchScript has."""

    def script(self) -> Program:
        """A module whose `forward` can be scripted, and a file that does so."""
        self.floats = ["x", "y"]
        body: list[Statement] = [Simple("y = x * 0.5"), Simple("mask = x > 0")]
        for _ in range(self.random.randint(1, 4)):
            body.append(self._statement())
        body.append(Simple(f"return {self.pick(['x', 'y', 'x + y'])}"))
        inputs = ("torch.randn(2, 4)", "-torch.rand(2, 4)", "torch.zeros(2, 4)")
        return Program(_HEAD, "def forward(self, x: torch.Tensor):", tuple(body), inputs, company.scripting())

    def _statement(self) -> Statement:
        form = self.random.random()
        name = self.pick(self.floats)
        if form < 0.35:
            return Simple(self._filled(self.pick(_SINGLE), name))
        test = self._filled(self.pick(_TESTS), name)
        if form < 0.5:
            return Compound((Clause(f"if {test}:", (Simple('raise ValueError("bad")'),)),))
        if form < 0.65:
            return Compound((Clause(f"if {test}:", (Simple(f"return {self._value(name)}"),)),))
        clauses = [Clause(f"if {test}:", (Simple(f"{name} = {self._value(name)}"),))]
        if self.chance(0.5):
            clauses.append(Clause("else:", (Simple(f"{name} = {self._value(name)}"),)))
        return Compound(tuple(clauses))

    def _value(self, name: str) -> str:
        return self._filled(self.pick(_VALUES), name)

    def _filled(self, template: str, name: str) -> str:
        return template.format(t=name, u=self.pick(self.floats), m="mask", n=self.pick(["0.0", "1.0", "-3.0"]))
