"""Numbers and sizes that only the data tells, carried through one graph as symbols."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.unbacked_models import CODE, EMPTY, FOUND, INPUTS, NOTHING, NUMBERS, ROWS, TRAINING, model
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.subject import forget, load, register


@pytest.mark.parametrize("source", [ROWS, NUMBERS, FOUND], ids=["rows", "numbers", "found"])
def test_one_graph_serves_whatever_the_data_says(source: str) -> None:
    after, result = fixed(source, **CODE)
    assert result.fixes
    assert fixed(after, **CODE)[0] == after
    behaves(source, after, [*INPUTS, NOTHING], scenarios=FEW_SCENARIOS)
    compiles(after, INPUTS, scenarios=TRAINING[:1])
    compiles(after, INPUTS, scenarios=TRAINING[1:], strict=source is not NUMBERS)  # it cuts to a number


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_number_is_read_under_a_transform_of_functions_as_well() -> None:
    source = model("return x[:, : int(x[0, 0].abs()) + 1] * 2")
    subject = register(fixed(source, **CODE)[0])
    try:
        compiled: Any = torch.compile(load(subject).Model(), backend="eager")
        given = torch.ones(3, dtype=torch.bool), torch.ones(3)
        slope = torch.func.grad(lambda x: compiled(x, *given).sum())(torch.ones(3, 4))
    finally:
        forget(subject)
    assert slope.tolist() == [[2.0, 2.0, 0.0, 0.0]] * 3


def test_rows_of_two_tensors_under_one_mask_are_known_to_be_as_many() -> None:
    source = model("a = x[mask]", "b = (x + 1)[mask]", "return (a * b).sum(0) + x[0]")
    compiles(fixed(source, **CODE)[0], [*INPUTS, NOTHING], scenarios=TRAINING)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_takes_sizes_that_only_the_data_tells() -> None:
    source = register(fixed(ROWS, **CODE)[0])
    try:
        model = load(source).Model()
        x, lengths = torch.randn(3, 4, requires_grad=True), torch.tensor([2, 1, 3])
        compiled: Any = torch.compile(model, backend="inductor")
        for mask in (torch.tensor([True, False, True]), torch.tensor([False, True, False])):
            found, wanted = compiled(x, mask, lengths), model(x, mask, lengths)
            torch.testing.assert_close(found, wanted)
            torch.testing.assert_close(*(torch.autograd.grad(each.sum(), x)[0] for each in (found, wanted)))
    finally:
        forget(source)


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize(
    "index",
    ["[254, 255, 254], dtype=torch.uint8", "[True, False, True]", "[2, 0]", "True", "[[True] * 4] * 3", "[False] * 3"],
    ids=["bytes", "bools", "integers", "one bool", "whole", "nothing"],
)
def test_an_index_of_another_kind_means_what_it_meant(index: str) -> None:
    after, result = fixed(model("return x[mask].cumsum(0).sum() + x[0]"), **CODE)
    assert result.fixes
    compiles(after, [f"torch.randn(3, 4), torch.tensor({index}), torch.tensor([2])"], strict=False)


_INTEGERS = model(
    "begin, n = 0, int((10 * x.abs().max()).item()) + int(given.any())",
    "for length in lengths:",
    "    x = x + x[:, begin : begin + length].sum()",
    "    begin = begin + length % 2",
    "return x * torch.ones(n).sum()",
)


def test_int_takes_numbers_with_a_fraction_and_slices_begin_where_a_tensor_says() -> None:
    after, _ = fixed(_INTEGERS, **CODE)
    assert "_integer_in_graph(10 * x.abs().max()) + _integer_in_graph(given.any())" in after
    assert "x[:, _number_in_graph(begin) : _number_in_graph(begin + length)]" in after
    behaves(_INTEGERS, after, INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, INPUTS, scenarios=TRAINING[:1])
    compiles(after, INPUTS, scenarios=TRAINING[1:], strict=False)


def test_a_number_with_a_fraction_is_read_as_before() -> None:
    after, _ = fixed(model("scale = x.max().item()", "return x * min(scale, 2.0) ** 2"), **CODE)
    assert "and not x.is_floating_point()" in after
    assert "_number_in_graph(x.max())" in after
    compiles(after, INPUTS, strict=False)
    source = register(after)
    try:
        found = torch._dynamo.explain(load(source).Model())(torch.ones(3, 4), torch.ones(3) > 0, torch.ones(3).long())
        assert [reason.user_stack[-1].line for reason in found.break_reasons] == ["scale = x.max().item()"]
    finally:
        forget(source)


@pytest.mark.parametrize(
    "lines",
    [
        ("n = (x.max() / 2).item()",),
        ("n = torch.clamp(x.float().sum() / len(x), min=1).item()",),
        ("n = torch.as_tensor([len(x)], dtype=torch.float)", "n = torch.clamp(n, min=1).item()"),
        ("n = lengths.to(torch.float32).max().item()",),
        ("n = x.softmax(-1).max(-1)[0].tolist()",),
        ("part = x.sigmoid()", "part = part[0] + 1", "n = part.max().item()"),
        ("n = (lengths.max() * 0.5).item()",),
        ("n = mask.any().item()",),
    ],
    ids=["division", "mean", "constructor", "cast", "softmax", "assigned", "product", "bool"],
)
def test_what_is_no_whole_number_is_not_read_in_the_graph(lines: tuple[str, ...]) -> None:
    result = checked(model(*lines, "return x, n"), **CODE)
    assert not any(each.edit for each in result.findings)
    assert any("is no whole number" in (each.declined or "") for each in result.findings)
    assert not any("torch.where" in (each.declined or "") for each in result.findings)


@pytest.mark.parametrize(
    "read",
    [
        "int((x / 2).long().max())",
        "x.softmax(-1).max(-1)[1].tolist()",
        "x.sigmoid().argmax().item()",
        "torch.div(lengths.max(), 2, rounding_mode='floor').item()",
        "x.mean().to(torch.int64).item()",
    ],
)
def test_whole_numbers_made_of_fractions_are_read_in_the_graph(read: str) -> None:
    result = checked(model(f"n = {read}", "return x, n"), **CODE)
    assert any(each.edit for each in result.findings), [each.declined for each in result.findings]


def test_arrays_of_numpy_answer_as_before() -> None:
    source = model(
        "array = np.asarray([[3, 0], [0, 2]])",
        "first, second = array.nonzero()",
        "return x + len(array.tolist()) + array[0, 0].item() + int(array[1, 1]) + float(second[0])",
    ).replace("import torch\n", "import numpy as np\nimport torch\n", 1)
    after, _ = fixed(source, **CODE)
    compiles(after, INPUTS, strict=False)


_SCRIPTED = """
import torch
from torch import nn


class Parts:
    def __init__(self, x: torch.Tensor, lengths: torch.LongTensor) -> None:
        self.sizes = (lengths - 1).tolist()
        self.split = torch.split(x, self.sizes)


def padding(lengths: torch.Tensor, longest: int = 0):
    if longest < 1:
        longest = int(torch.max(lengths).item())
    return torch.arange(longest).expand(lengths.shape[0], longest) >= lengths.unsqueeze(1)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        x = x * padding(lengths).sum()
        if not torch.jit.is_scripting():
            x = x + Parts(x, lengths).split[0].sum()
        return x
"""


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_torchscript_passes_by_what_only_torch_compile_reads() -> None:
    after, _ = fixed(_SCRIPTED, **CODE)
    assert after.count("if torch.compiler.is_compiling() and not torch.jit.is_scripting():") == 2
    compiles(after, ["torch.randn(3, 4), torch.tensor([2, 1, 3])", "torch.randn(1, 4), torch.tensor([2])"])
    given, results = (torch.ones(3, 4), torch.tensor([0, 1, 3])), []
    for text in (_SCRIPTED, after):
        source = register(text)
        try:
            results.append(torch.jit.script(load(source).Model())(*given))
        finally:
            forget(source)
    assert torch.equal(*results)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_takes_rows_of_a_tensor_without_any() -> None:
    after, _ = fixed(ROWS, **CODE)
    source = register(after)
    try:
        model, given = load(source).Model(), eval(EMPTY)
        torch._dynamo.reset()
        with torch._dynamo.error_on_graph_break(True):
            assert torch.equal(torch.compile(model)(*given), model(*given))  # type: ignore[no-untyped-call]
    finally:
        forget(source)


def test_nothing_is_written_unless_unsafe_fixes_are_asked_for() -> None:
    assert fixed(ROWS)[0] == ROWS


@pytest.mark.parametrize(
    "lines",
    [
        ["loss = self.loss(x, given)", 'shown = {"loss": loss.item()}', "return x * 2, shown"],
        ["loss = self.loss(x, given)", "shown = dict(loss=loss.item())", "return x * 2, shown"],
        ["loss, shown = self.loss(x, given), {}", 'shown["loss"] = loss.item()', "return x * 2, shown"],
    ],
)
def test_a_statistic_that_is_only_kept_may_be_a_fraction(lines: list[str]) -> None:
    assert "_fraction_in_graph(loss)" in fixed(model(*lines), **CODE)[0]


def test_whole_numbers_that_are_kept_are_carried() -> None:
    source = model('shown = {"longest": lengths.max().item(), "given": int(given.sum())}', "return x * 2, shown")

    after, result = fixed(source, **CODE)

    assert result.fixes
    behaves(source, after, INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, INPUTS, scenarios=TRAINING)
