"""What a fix costs decides how safe it can be."""

from __future__ import annotations

import pytest

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.registry import all_rules
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule


def made(safety: Safety, cost: Cost) -> Rule:
    return Rule("gm999_tried", "tried (GM999): a rule.\n\nWhy.\n", "try", Contract(cost), safety=safety)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_says_what_it_costs_and_a_multiplying_one_is_not_safe(rule: Rule) -> None:
    assert isinstance(rule.contract.cost, Cost)
    assert rule.contract.cost is not Cost.MULTIPLIED or rule.safety is not Safety.SAFE
    assert rule.contract.cost in (Cost.NONE, Cost.OUTLINED) or rule.contract.cost_note, "say what is computed more"


def test_a_safe_rule_that_multiplies_work_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="GM999 multiplies work"):
        made(Safety.SAFE, Cost.MULTIPLIED)


def test_a_rule_that_multiplies_work_is_unsafe_whatever_a_verdict_says() -> None:
    rule = made(Safety.UNSAFE, Cost.MULTIPLIED)
    assert rule.safety_of(Diagnostic("found")) is Safety.UNSAFE
    assert rule.safety_of(Diagnostic("found", safety=Safety.SAFE)) is Safety.UNSAFE
    assert rule.safety_of(Diagnostic("found", safety=Safety.ADVICE)) is Safety.ADVICE
