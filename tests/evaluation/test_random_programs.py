"""Random programs: the same for the same seed, and a fault that is put into a rule is found."""

from __future__ import annotations

import ast

import pytest
from benchmarks.random_checks import How, judged
from benchmarks.random_grammar import RandomProgram, all_families, generate
from benchmarks.random_shrink import shrunk, smaller

from graphmend_codemod.rules.proofs.outlining.statements.region_outlining import Region
from tests.property import cases

_PROGRAM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        rows = x * 2.0
        other = y + 1.0
        kinds = rows.argmax(-1)
        result = rows.clone()
        for i in range(3):
            chosen = kinds == i
            if chosen.any():
                result[chosen] = self.experts[i](rows[chosen])
        torch._dynamo.graph_break()
        rows.zero_()
        other = other * 3.0
        return result, other
"""
_INPUTS = ("torch.randn(4, 3), torch.randn(4, 3)", "torch.randn(2, 3), torch.zeros(2, 3)")


def test_the_same_seed_gives_the_same_program() -> None:
    assert generate(7) == generate(7)
    assert generate(7).text != generate(8).text


@pytest.mark.parametrize("family", all_families())
def test_programs_of_each_family_parse(family: str) -> None:
    programs = [generate(seed, [family]) for seed in range(20)]
    for program in programs:
        ast.parse(program.text)
    assert any(program.families == (family,) for program in programs) or family == "plain"


def test_a_fault_of_a_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = RandomProgram(1, _PROGRAM, _INPUTS, ())
    assert judged(program, How()).faults == []
    monkeypatch.setattr(Region, "is_given_and_written_later", lambda region, given: False)
    cases._fix.cache_clear()
    try:
        found = judged(program, How())
        assert {each.kind for each in found.faults} == {"compiled gradients"}
        assert len(shrunk(found, How(), 2).program.inputs) == 1
    finally:
        cases._fix.cache_clear()


def test_smaller_programs_lack_a_call_or_a_statement_and_can_be_compiled() -> None:
    found = [*smaller(RandomProgram(1, _PROGRAM, _INPUTS, ()))]
    assert [len(each.inputs) for each in found[:2]] == [1, 1]
    sizes = [len(list(ast.walk(ast.parse(each.text)))) for each in found[2:]]
    assert len(sizes) > 10
    assert max(sizes) < len(list(ast.walk(ast.parse(_PROGRAM))))
