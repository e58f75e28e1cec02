"""How compile paths are laid out: no line that is too long, and nothing that is asked twice."""

from __future__ import annotations

import ast
import re

import pytest

from graphmend_codemod.rules.framework.site_text import SiteText
from tests.tools.fixes import fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, positive: torch.Tensor):
        number_of_them = positive.float().sum()
        {body}
        return loss
"""


def test_a_long_value_is_broken() -> None:
    value = "-(first_of_the_losses.sum() + second_of_the_losses.sum()) / number_of_them"
    body = f"""first_of_the_losses, second_of_the_losses = x.log(), x.exp()
        if number_of_them == 0:
            loss = x.sum()
        else:
            loss = {value}"""
    after, result = fixed(_MODEL.format(body=body))
    assert result.fixes
    assert max(map(len, after.splitlines())) <= 120


def test_a_long_mean_under_a_mask_is_broken() -> None:
    body = """each_of_the_losses_of_this_step = (x - 1).pow(2).mean(-1)
        loss = each_of_the_losses_of_this_step[mask].mean()"""
    source = _MODEL.format(body=body).replace(
        "positive: torch.Tensor", "positive: torch.Tensor, mask: torch.BoolTensor"
    )
    after, result = fixed(source, select=("GM501",))
    assert result.fixes
    assert max(map(len, after.splitlines())) <= 120


def test_a_test_of_several_lines_that_would_be_too_long_gets_lines_of_its_own() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, x, weight=None):
        if (weight is not None) and (not torch.any(weight > 0)) and (
                self.reduction != "none"):
            return (x * weight).sum()
        return mean_of(x, weight)
"""
    after, result = fixed(source, select=("GM111",))
    assert result.fixes
    assert "\n            and (not torch.any(weight > 0)) and (\n" in after
    assert max(map(len, after.splitlines())) <= 100


@pytest.mark.parametrize(
    "body",
    [
        "loss = x\n        if (x.isnan().any() or x.isinf().any()) and x.sum() > 0:\n            loss = x * 2",
        "loss = torch.zeros_like(x)\n        mask = x > 0\n        loss[mask] = torch.tanh(x[mask] * x[mask])",
    ],
)
def test_nothing_is_asked_twice(body: str) -> None:
    after, _ = fixed(_MODEL.format(body=body))
    tests = [node.test for node in ast.walk(ast.parse(after)) if isinstance(node, ast.If)]
    headers = [test for test in tests if isinstance(test, ast.BoolOp) and "is_compiling" in ast.unparse(test)]
    assert headers
    for test in headers:
        asked = [ast.unparse(each) for each in test.values]
        assert len(asked) == len(set(asked))
        assert not any(re.fullmatch(r"(.+) == \\1", each) for each in asked)


def test_a_tensor_is_asked_for_once_where_a_mask_compares_it() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        found = self.distance(x)
        hard = self.middle(found)
        return torch.mean(found[found >= hard])

    def distance(self, x):
        return x * 2

    def middle(self, x):
        return torch.quantile(x, 0.5)
"""
    after, result = fixed(source)
    assert result.fixes
    assert "isinstance(found, torch.Tensor)" in after
    assert "isinstance(found >=" not in after


class _Narrow(SiteText):
    """Lines of 60 columns."""

    line_limit = 60

    def __init__(self) -> None:
        pass

    def indentation(self, deeper: int = 0) -> int:
        return 4 * deeper

    def is_too_long(self, width: int) -> bool:
        return width > self.line_limit


@pytest.mark.parametrize(
    "arguments",
    [
        ["dim=first_of_the_long_names * second_of_the_long_names + third_of_the_long_names"],
        ["*first_of_the_long_names, *second_of_the_long_names, **third_of_the_long_names"],
        ["first_of_the_long_names == second_of_the_long_names", "third == first_of_the_long_names - 1"],
        ["-(first_of_the_long_names + second_of_the_long_names) / third_of_the_long_names", "1"],
        ["(first_of_the_long_names + (second_of_the_long_names * third_of_the_long_names)).sum()", "1"],
        ["((first_of_the_long_names + second_of_the_long_names) ** third_of_the_long_names)"],
        ["lambda x: first_of_the_long_names + second_of_the_long_names + third_of_the_long_names", "k=1"],
        ["'größer' + first_of_the_long_names + second_of_the_long_names + third_of_the_long_names"],
        ["(each for each in first_of_the_long_names + second_of_the_long_names + third_of_the_long_names)"],
        ["not (first_of_the_long_names | second_of_the_long_names | third_of_the_long_names)"],
        ["f(first_of_the_long_names, second_of_the_long_names, (third_of_the_long_names)).flatten().sum()"],
        ["z=first_of_the_long_names if second_of_the_long_names else third_of_the_long_names", "k=1"],
        ["first_of_the_long_names if second_of_the_long_names else third_of_the_long_names", "1"],
        ["(first_of_the_long_names) if not (second_of_the_long_names) else (third_of_the_long_names)"],
    ],
)
def test_a_broken_call_says_the_same(arguments: list[str]) -> None:
    call = _Narrow().call("f(", arguments)
    assert "\n" in call
    assert ast.dump(ast.parse(call)) == ast.dump(ast.parse(f"f({', '.join(arguments)})"))


def test_a_conditional_expression_gets_a_line_for_each_part() -> None:
    call = _Narrow().call(
        "f(", ["z=first_of_the_long_names if second_of_the_long_names else third_of_the_long_names", "k=1"]
    )
    assert max(map(len, call.splitlines())) <= 60


MASKED_LOSS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mae_loss = nn.L1Loss()

    def forward(self, prosody_reference, prosody_prediction, source_mask: torch.Tensor):
        prosody_loss = 0.5 * self.mae_loss(
            prosody_reference.masked_select(source_mask.unsqueeze(-1)),
            prosody_prediction.masked_select(source_mask.unsqueeze(-1)),
        )
        return prosody_loss
"""


def test_an_operator_gets_one_pair_of_brackets() -> None:
    after, _ = fixed(MASKED_LOSS)
    assert "            prosody_loss = (\n                0.5\n                * _mean_under(\n" in after
    assert "(\n                (" not in after


LONG_INDEX = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, input_tokens_of_the_model, number_of_the_sequence, end_of_the_sequence, x: torch.Tensor):
        out = torch.zeros_like(x)
        if x.mean() > 0.5:
            out[number_of_the_sequence, end_of_the_sequence:] = 1.0
        return out
"""


def test_a_condition_of_several_parts_is_broken_where_it_is_too_long() -> None:
    after, _ = fixed(LONG_INDEX)
    assert "is_compiling()" in after
    assert max(map(len, after.splitlines())) <= 120


_CELL = """
from typing import NamedTuple

import torch
from torch import nn


class State(NamedTuple):
    first_value_of_the_state: torch.Tensor
    second_value_of_the_state: torch.Tensor


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.leak = 3

    def forward(self, x: torch.Tensor):
        dims = (*x.shape, 2)
        state = State(
            first_value_of_the_state=torch.full(
                dims,
                torch.as_tensor(self.leak).detach(),
                dtype=torch.float32,
            ),
            second_value_of_the_state=torch.zeros(
                dims,
                dtype=torch.float32,
            ),
        )
        return state.first_value_of_the_state * x[..., None]
"""


def test_a_keyword_over_several_lines_is_put_on_one_with_what_is_exchanged_in_it() -> None:
    after = fixed(_CELL)[0]
    assert "first_value_of_the_state=torch.full(" in after
    assert "self.leak, dtype=torch.float32" in after
