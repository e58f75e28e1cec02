"""Where one condition of a compile path does not hold, the graph breaks no more often than in the author's code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.examples import Example
from graphmend_codemod.rules.framework.registry import all_rules
from graphmend_codemod.rules.framework.rule import Rule
from graphmend_evaluation.counting import BreakRecorder
from tests.tools.compiled import clean_dynamo
from tests.tools.fixes import embedded, fixed
from tests.tools.observe import Scenario, observe
from tests.tools.subject import forget, register

_QUICK = ("GM502-1", "GM502-3", "GM504-2")
"""Examples whose statements move into a function, which would break the graph in a frame of its own."""
_WHILE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        while x.norm() > 1:
            x = x * 0.9
        return x.sum()
"""
_CALLS = ("is_compiling", "is_dynamo_compiling", "_left_to_its_callers")
_FALSE = ast.Name("_no", ast.Load())


def _shown() -> Iterator[Any]:
    for rule in all_rules():
        shown = (each for each in rule.examples if isinstance(each, Example) and each.inputs)
        for number, example in enumerate(shown if rule.safety in (Safety.SAFE, Safety.OPAQUE) else (), 1):
            name = f"{rule.code}-{number}"
            yield pytest.param(rule, example, id=name, marks=() if name in _QUICK else (pytest.mark.slow,))
        if rule.code == "GM801":
            yield pytest.param(rule, Example(_WHILE, "", inputs=("torch.ones(9)",)), id="while")


@pytest.mark.parametrize(("rule", "example"), list(_shown()))
def test_a_condition_that_does_not_hold_adds_no_break(rule: Rule, example: Example, tmp_path: Path) -> None:
    before = embedded(example.before, example.setup)
    after, _ = fixed(before, select=(rule.code,), opaque=rule.safety is Safety.OPAQUE)
    allowed = _breaks(before, example, tmp_path)
    found = {asked: _breaks(text, example, tmp_path) for asked, text in _with_one_false(after)}
    assert {asked: breaks for asked, breaks in found.items() if breaks > allowed} == {}


def _breaks(text: str, example: Example, folder: Path) -> int:
    """The breaks of all calls, and the frames that are skipped for them."""
    source, recorder = register(text), BreakRecorder(folder)
    try:
        with clean_dynamo(), recorder.recording(len(example.inputs)):
            observe(
                source,
                "Model",
                example.inputs,
                Scenario(),
                lambda made: torch.compile(made, backend=recorder.backend, dynamic=False),
            )
    finally:
        forget(source)
    counts = recorder.counts()
    return counts.break_events + len(counts.skipped_frames)


def _with_one_false(text: str) -> Iterator[tuple[str, str]]:
    """Each condition of the headers, and the module where it is false wherever it is asked."""
    for asked in dict.fromkeys(ast.unparse(condition) for _, condition in _conditions(ast.parse(text))):
        tree = ast.parse(text)
        for owner, condition in list(_conditions(tree)):
            if ast.unparse(condition) == asked:
                owner.values[owner.values.index(condition)] = ast.BoolOp(ast.And(), [condition, _FALSE])
        yield asked, f"_no = False\n{ast.unparse(ast.fix_missing_locations(tree))}"


def _conditions(tree: ast.AST) -> Iterator[tuple[ast.BoolOp, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp) and _called(node.values[0]).endswith("compiling"):
            yield from _within(node)


def _within(node: ast.BoolOp) -> Iterator[tuple[ast.BoolOp, ast.expr]]:
    for each in node.values:
        if isinstance(each, ast.BoolOp) and (isinstance(each.op, ast.And) or _called(each.values[-1]).endswith(_CALLS)):
            yield from _within(each)
        elif not _called(each).endswith(_CALLS):
            yield node, each


def _called(node: ast.expr) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""
