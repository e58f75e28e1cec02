"""GM605: a size's test that is handed to attention as a flag is answered while tracing."""

from __future__ import annotations

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, noop
from tests.tools.versions import NEWER_TORCH

MODULE = """\
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.causal = {causal}

    def forward(self, x: torch.Tensor, mask=None):
        _, _, length, width = x.shape
        half = length // 2
        flag = {test}
        return F.scaled_dot_product_attention(x, x, x, is_causal=flag)
"""
LENGTHS = [f"torch.randn(1, 2, {length}, 4)" for length in (5, 6, 1, 8, 2)]


def module(test: str, causal: str = "True") -> str:
    return MODULE.format(test=test, causal=causal)


@pytest.mark.parametrize(
    "test",
    [
        "length > 1",
        "x.shape[2] > 1",
        "mask is None and 1 < x.size(2)",
        "mask is not None or length >= 2",
        "self.causal and length != 1",
        "length == 1 and mask is None",
        "length <= 1 or length > 1",
    ],
)
def test_lengths_that_become_dynamic_do_not_break_the_graph(test: str) -> None:
    before = module(test)
    with pytest.raises(AssertionError, match="TypeError when making fake tensor call"):
        compiles(before, LENGTHS[:2], dynamic=None)
    after, _ = fixed(before)
    assert "True if" in after
    compiles(after, LENGTHS, dynamic=None)
    behaves(before, after, LENGTHS)


@pytest.mark.parametrize(
    "test",
    [
        "length > 1 and mask is None",  # what `and` gives is its last operand
        "not (length <= 1)",
        "True if length > 1 else False",
        "mask is None",
        "bool(self.causal)",
    ],
)
def test_flag_that_is_a_bool_is_left_alone(test: str) -> None:
    if not (NEWER_TORCH and test.startswith("not ")):  # torch 2.15 does not take a negated test of a size that may vary
        compiles(module(test), LENGTHS, dynamic=None)
    noop(module(test))


@pytest.mark.parametrize(
    ("test", "because"),
    [
        ("length > 512", "would tie the graph to a range of lengths"),
        ("half > 1", "would tie the graph to a range of lengths"),
        ("length == width", "would tie the graph to a range of lengths"),
        ("length == 2", "would tie the graph to a range of lengths"),
        ("1 < length < 9", "would tie the graph to a range of lengths"),
        ("self.asks() and length > 1", "may be no bool"),
        ("x and length > 1", "may be no bool"),
    ],
)
def test_other_tests_say_why_not(test: str, because: str) -> None:
    declined(module(test), because=because)


def test_length_that_was_marked_as_dynamic_stays_so() -> None:
    """A test against 512 would end in an error there: the size would be tied to a range."""
    after, _ = fixed(module("length > 1"))
    space: dict[str, type[torch.nn.Module]] = {}
    exec(compile(after, "marked", "exec"), space)
    torch.compiler.reset()
    x = torch.randn(1, 2, 5, 4)
    torch._dynamo.mark_dynamic(x, 2)
    model = space["Model"]()
    assert torch.equal(torch.compile(model, backend="eager")(x), model(x))


@pytest.mark.parametrize("causal", ["None", "0", "1", "'yes'"])
def test_flag_of_a_class_that_is_no_bool_raises_as_before(causal: str) -> None:
    before = module("self.causal and length > 1", causal)
    after, _ = fixed(before)
    assert "isinstance(self.causal, bool)" in after
    behaves(before, after, LENGTHS)
    compiles(after, LENGTHS, dynamic=None, strict=False)


def test_tensor_that_is_compared_with_none_is_no_obstacle() -> None:
    source = module("mask is not None and length > 1").replace("mask=None", "mask: torch.Tensor | None = None")
    after, _ = fixed(source)
    assert "True if mask is not None and length > 1 else False" in after
    declined(source.replace("mask is not None", "mask > 0"), because="`mask > 0` may be a tensor")


def test_name_that_holds_something_else_as_well_is_no_plain_size() -> None:
    source = module("length > 1").replace("half = length // 2", "length = length // 2")
    declined(source, because="would tie the graph to a range of lengths")


def test_flag_that_nobody_hands_on_is_no_site() -> None:
    noop(module("length > 1").replace("is_causal=flag", "is_causal=False"))
