"""`import torch as th` changes no verdict and no edit but in that name: every rule's examples are fixed under both."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest

from graphmend_codemod.rules.framework.examples import Example
from graphmend_codemod.rules.framework.registry import all_rules
from tests.tools.behaviour import EVERYTHING
from tests.tools.fixes import embedded, fixed

SOURCES = [
    pytest.param(text, id=f"{rule.code}-{number}")
    for rule in all_rules()
    for number, each in enumerate(rule.examples, 1)
    if isinstance(each, Example) and (EVERYTHING or number % 3 == 1)
    for text in [embedded(each.before, each.setup)]
    if "import torch.nn.functional\n" not in text and "torch." in text
]


def _renamed(text: str) -> str:
    """The module, which calls torch `th`; what it imports from torch keeps its name."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    for before, token, behind in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        if token.string != "torch" or token.type != tokenize.NAME or before.string in {".", "from"}:
            continue
        if before.string == "import" and (behind.string == "." or token.line.lstrip().startswith("from")):
            continue
        row, column = token.start
        line = lines[row - 1]
        name = "torch as th" if before.string == "import" else "th"
        lines[row - 1] = line[:column] + name + line[column + len("torch") :]
    return "".join(lines)


@pytest.mark.parametrize("source", SOURCES)
def test_edits_use_the_name_that_the_module_has_for_torch(source: str) -> None:
    options = {"opaque": True, "unsafe_fixes": True}
    plain, aliased = fixed(source, **options), fixed(_renamed(source), **options)
    # Where a line is shorter, other lines are broken.
    assert ast.unparse(ast.parse(aliased[0])) == ast.unparse(ast.parse(_renamed(plain[0])))
    assert fixed(aliased[0], **options)[0] == aliased[0]
    assert [each.code for each in aliased[1].remaining] == [each.code for each in plain[1].remaining]


def test_a_variable_of_that_name_is_kept_apart() -> None:
    source = """
import torch as th
from torch import nn


class Model(nn.Module):
    def forward(self, x: th.Tensor):
        torch = 3
        while x.norm() > 1:
            x = x / torch
        return x
"""
    text, result = fixed(source, opaque=True)
    assert text == source
    assert any("`torch`" in (each.declined or "") for each in result.remaining)
