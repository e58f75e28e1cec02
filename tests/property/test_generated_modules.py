"""Generated modules: eager after is eager before, and no rule is idle.

Thousands: `python evaluation/benchmarks/property_run.py`.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.registry import all_rules
from tests.property.cases import Outcome, fix, report, run_case, shrunk
from tests.property.generator import generate
from tests.property.program import Clause, Compound, Program, Simple, shrink
from tests.tools.behaviour import EVERYTHING

CASES = 320 if EVERYTHING else 120
BATCH = 20
OPAQUE_BATCH = BATCH if EVERYTHING else BATCH // 2
COMPILED_EVERY = 20


def outcomes(first: int, count: int, *, opaque: bool = False) -> list[Outcome]:
    seeds = range(first, first + count)
    return [run_case(seed, compiled=seed % COMPILED_EVERY == 0, opaque=opaque) for seed in seeds]


@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_eager_mode_cannot_tell_a_fixed_module_from_the_original(first: int) -> None:
    failed = [outcome for outcome in outcomes(first, BATCH) if outcome.complaints]
    assert not failed, "\n\n".join(report(shrunk(outcome, tries=80)) for outcome in failed[:2])


@pytest.mark.parametrize("first", range(0, CASES // 4, BATCH))
def test_eager_mode_cannot_tell_opaque_fixes_either(first: int) -> None:
    found = outcomes(first, OPAQUE_BATCH, opaque=True)
    assert any({"GM801", "GM802"} & {*outcome.applied} for outcome in found)
    failed = [outcome for outcome in found if outcome.complaints]
    assert not failed, "\n\n".join(report(shrunk(outcome, tries=80)) for outcome in failed[:2])


def test_every_rule_is_exercised() -> None:
    applied: Counter[str] = Counter()
    edits = {rule.code for rule in all_rules() if rule.safety is Safety.SAFE}
    for seed in range(CASES):
        program = generate(seed)
        applied.update(set(fix(program.text, program.company).applied))
        if all(applied[code] >= CASES // 80 for code in edits):
            break
    assert {code: applied[code] for code in edits if applied[code] < CASES // 80} == {}


def test_the_same_seed_gives_the_same_module() -> None:
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)


@pytest.mark.parametrize("seed", range(0, 400, 40))
def test_a_generated_module_parses(seed: int) -> None:
    ast.parse(generate(seed).text)


def test_a_failing_program_is_made_as_small_as_it_can_be() -> None:
    inner = Compound((Clause("if a:", (Simple("keep = 1"), Simple("b = 2"))), Clause("else:", (Simple("c = 3"),))))
    body = (Simple("d = 4"), Compound((Clause("for e in f:", (inner,)),)))
    program = Program("class Model:", "def forward(self):", body, ("(1,)", "(2,)"))
    small = shrink(program, lambda candidate: "keep" in candidate.text)
    assert small.body == (Simple("keep = 1"),)
    assert len(small.inputs) == 1
