"""Which code says that it runs without gradients."""

from __future__ import annotations

import ast

import pytest

from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.rules.proofs.gradients.unrecorded import under_no_grad


@pytest.mark.parametrize(
    ("context", "off"),
    [
        ("torch.no_grad()", True),
        ("torch.autograd.no_grad()", True),
        ("torch.inference_mode()", True),
        ("torch.inference_mode(mode=False)", False),
        ("torch.enable_grad()", False),
        ("lock", False),
        ("locks[0]", False),
    ],
)
def test_a_context_turns_gradients_off(context: str, off: bool) -> None:
    tree = ast.parse(f"with {context}:\n    x.add_(1)\n")
    assert bool(under_no_grad(ast.walk(tree), dotted)) is off
    again = ast.parse(f"with {context}:\n    with torch.enable_grad():\n        x.add_(1)\n")
    assert not under_no_grad(ast.walk(again), dotted)
