"""A compile path computes, asks or says nothing that eager mode would have skipped, and that could be told."""

from __future__ import annotations

import textwrap

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.check = True

    def forward(self, x: torch.Tensor):
{body}
        return x * 2
"""


def model(body: str) -> str:
    return _MODEL.format(body=textwrap.indent(body, " " * 8))


INPUTS = ["torch.ones(2, 3)", "-torch.ones(2, 3)"]


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 0 and (x @ x.expand(2, 3)).sum() > 0:\n    x = x + 1",
        "if (x > 0).any() and (x[len(x)] < 0).any():\n    raise ValueError('negative')",
        "assert (x < 0).any() or (x[len(x)] > 0).all(), f'{x}'",
    ],
)
def test_an_operand_that_may_raise_stays_behind_the_one_before_it(body: str) -> None:
    after, result = fixed(model(body))
    assert after == model(body)
    assert any("eager mode" in (each.declined or "") for each in result.remaining)


@pytest.mark.parametrize("sign", ["and", "or"])
def test_a_row_that_may_not_exist_is_asked_for(sign: str) -> None:
    after, _ = fixed(model(f"if x.sum() > 0 {sign} x[5].sum() > 0:\n    x = x + 1"))
    assert "x.shape[0] > 5" in after
    compiles(after, ["torch.ones(6, 3)"])
    compiles(after, ["-torch.ones(2, 3)"], strict=False)


def test_the_largest_element_is_asked_for_where_there_is_one() -> None:
    after, _ = fixed(model("if (x > 0).any() and x.max() > 0.5:\n    x = x + 1"))
    assert "x.numel() > 0" in after
    compiles(after, ["torch.ones(2, 3)", "torch.ones(0, 3)"], strict=False)


def test_a_skipped_mean_asks_for_a_floating_dtype() -> None:
    after, _ = fixed(model("if (x > 9).any() and x.mean() > 0.5:\n    raise ValueError('large')"))
    assert "x.is_floating_point()" in after
    compiles(after, ["torch.ones(2, 3)", "torch.ones(2, 3, dtype=torch.long)"], strict=False)


@pytest.mark.parametrize(
    "body",
    [
        "if (h := x * 2).sum() > 0:\n    x = h + 1",
        "if (h := x.detach()).sum() > 3:\n    return h",
        "if ((h := x) < 0).any():\n    raise ValueError('negative')",
    ],
)
def test_a_name_that_the_test_binds_is_not_asked_for_above_it(body: str) -> None:
    after, _ = fixed(model(body))
    assert after == model(body)


def test_no_gradient_of_zero_goes_where_eager_mode_sends_none() -> None:
    after, _ = fixed(model("h = x.sqrt()\nif x.min() > 0:\n    x = h * 2.0\nelse:\n    x = x * 1.0"))
    assert "not torch.is_grad_enabled()" in after
    compiles(after, ["torch.tensor([[4.0, 0.0]])"], scenarios=[Scenario(gradients="inner")], strict=False)


def test_a_header_computes_nothing() -> None:
    before = model("if x.sum() > 0:\n    x = x.sqrt() / x.abs()\nelse:\n    x = -x / (x + x.abs())")
    after, _ = fixed(before)
    header = after.partition("condition = ")[0].partition("if (")[2]
    assert "abs()" not in header
    assert "-x" not in header


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("if (x < 0).any():\n    logger.error('negative')\n    raise ValueError(x)", "the `raise` after it"),
        ("try:\n    print(self.missing)\nexcept AttributeError:\n    x = x + 1", "may raise inside `try`"),
        (
            "warnings.simplefilter('error')\ntry:\n    warnings.warn('x')\nexcept UserWarning:\n    x = x + 1",
            "may raise inside `try`",
        ),
        ("each = (self.linear(x) for _ in range(2))\nprint(list(each))", "would not run under torch.compile"),
    ],
)
def test_a_message_stays_where_more_than_the_message_would_go(body: str, because: str) -> None:
    reasons = [each.declined or "" for each in checked(model(body)).findings if each.code == "GM201"]
    assert because in reasons[0]


def test_a_message_goes_with_the_question_for_its_level() -> None:
    after, _ = fixed(model("if logger.isEnabledFor(logging.DEBUG):\n    logger.debug('x %s', x)"))
    assert after.index("is_compiling") < after.index("isEnabledFor")


@pytest.mark.parametrize(
    "body",
    [
        "if (x < 0).any() and self.check:\n    x = self.linear(x)",
        "n = 0\nwhile x.sum() > 1 and n < 3:\n    x, n = x / 2, n + 1",
    ],
)
def test_what_decides_nothing_is_not_asked_first(body: str) -> None:
    assert not any(each.code == "GM111" for each in checked(model(body)).findings)


def test_a_dtype_that_makes_the_branch_pointless_is_not_asked_for() -> None:
    declined(model("if x.sum() > 0:\n    return x.double()\nreturn x"), because="different dtype in each branch")


def test_an_address_tells_a_copy() -> None:
    declined(
        model("y = x\nif x.sum() > 0:\n    x = x + 1\nx = x * (x.data_ptr() == y.data_ptr())"),
        because="tells one tensor from another",
    )


def test_a_torch_of_the_function_alone_has_no_operator() -> None:
    source = """
    from torch import nn


    def fill(ids):
        import torch

        starts = torch.nonzero(ids)
        y = torch.zeros(ids.shape, dtype=torch.long)
        for row, column in starts.tolist():
            y[row, column:] += 1
        return y


    class Model(nn.Module):
        def forward(self, x):
            return fill(x.long())
    """
    assert "custom_op" not in fixed(textwrap.dedent(source))[0]


def test_a_layer_that_was_replaced_may_return_integers() -> None:
    source = model("h = self.linear(x)\nif torch.isinf(h).any():\n    h = torch.clamp(h, max=6.0)\nx = h")
    after, _ = fixed(source)
    assert "h.is_floating_point()" in after
    counted = after.replace("nn.Linear(3, 3)", "Counts()").replace("\n\nclass Model", "\n" + _COUNTS + "\nclass Model")
    compiles(counted, ["torch.ones(2, 3)"], strict=False)


_COUNTS = """
class Counts(nn.Module):
    def forward(self, x):
        return torch.arange(3)

"""


def test_what_asks_for_the_object_sees_no_product() -> None:
    body = "y = x\nif mask is not None and not torch.all(mask == 1):\n    x = x * mask\nx = x + int(x is y)"
    declined(
        model(body).replace("x: torch.Tensor", "x: torch.Tensor, mask=None"), because="tells one tensor from another"
    )


def test_an_empty_tensor_still_raises_where_a_flag_decides() -> None:
    before = model("if x.amax() > 9 and flag:\n    x = self.linear(x)").replace("x: torch.Tensor", "x, flag=False")
    after, _ = fixed(before)
    assert "x.numel() > 0" in after
    compiles(after, ["torch.ones(2, 3)", "torch.ones(0, 3)"], strict=False)


@pytest.mark.parametrize("test", ["(x.sum() > 0) == True", "True != (x.sum() > 0)", "(x > 0).any() == (x > 2).any()"])
def test_a_comparison_of_comparisons_keeps_its_brackets(test: str) -> None:
    after, _ = fixed(model(f"if {test}:\n    raise ValueError('found')"))
    assert "_assert_async" in after
    compiles(after, INPUTS)
