"""Numbers and sizes that only the data tells, carried through one graph as symbols."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario
from tests.tools.subject import forget, load, register

_CODE = {"select": ("GM802",), "opaque": True}
_TRAINING = (Scenario(False, "off"), Scenario(True, "leaves"))


def _model(*lines: str) -> str:
    body = "\n".join(f"        {line}" for line in lines)
    head = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
    head += "    def forward(self, x: torch.Tensor, given: torch.Tensor, lengths: torch.LongTensor):\n"
    return f"{head}        mask = ~given\n{body}\n"


_INPUTS = (
    "torch.randn(3, 4), torch.tensor([True, False, True]), torch.tensor([2, 1, 3])",
    "torch.randn(3, 4), torch.tensor([False, True, True]), torch.tensor([4, 4, 1])",
)
_NOTHING = "torch.randn(3, 4), torch.tensor([False, False, False]), torch.tensor([0, 0, 1])"

_EMPTY = "torch.zeros(0, 4), torch.zeros(0, dtype=torch.bool), torch.tensor([1])"

_ROWS = _model(
    "rows = x[mask]",
    "scaled, twice = (2 * x)[mask, :2], rows * rows",
    "out = torch.zeros_like(x)",
    "out[mask] = twice.exp()",
    "return out + (scaled.sum() + rows[:, :2].mean(0)).sum()",
)
_NUMBERS = _model(
    "longest = int(lengths.max())",
    "sizes = lengths.tolist()",
    "parts = torch.zeros(sum(sizes), 2) + x.sum()",
    "return parts.sum() + torch.arange(longest).sum() + x[:, : lengths.min()].sum()",
)
_FOUND = _model(
    "places = mask.nonzero()",
    "rows, = torch.where(mask)",
    "chosen = torch.masked_select(x, mask.view(-1, 1))",
    "return x[places[:, 0]].sum(0) + x[rows].exp().sum() + chosen.sin().sum()",
)


@pytest.mark.parametrize("source", [_ROWS, _NUMBERS, _FOUND], ids=["rows", "numbers", "found"])
def test_one_graph_serves_whatever_the_data_says(source: str) -> None:
    after, result = fixed(source, **_CODE)
    assert result.fixes
    assert fixed(after, **_CODE)[0] == after
    behaves(source, after, [*_INPUTS, _NOTHING], scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, scenarios=_TRAINING)


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_number_is_read_under_a_transform_of_functions_as_well() -> None:
    source = _model("return x[:, : int(x[0, 0].abs()) + 1] * 2")
    subject = register(fixed(source, **_CODE)[0])
    try:
        compiled: Any = torch.compile(load(subject).Model(), backend="eager")
        given = torch.ones(3, dtype=torch.bool), torch.ones(3)
        slope = torch.func.grad(lambda x: compiled(x, *given).sum())(torch.ones(3, 4))
    finally:
        forget(subject)
    assert slope.tolist() == [[2.0, 2.0, 0.0, 0.0]] * 3


def test_rows_of_two_tensors_under_one_mask_are_known_to_be_as_many() -> None:
    source = _model("a = x[mask]", "b = (x + 1)[mask]", "return (a * b).sum(0) + x[0]")
    compiles(fixed(source, **_CODE)[0], [*_INPUTS, _NOTHING], scenarios=_TRAINING)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_takes_sizes_that_only_the_data_tells() -> None:
    source = register(fixed(_ROWS, **_CODE)[0])
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
    after, result = fixed(_model("return x[mask].cumsum(0).sum() + x[0]"), **_CODE)
    assert result.fixes
    compiles(after, [f"torch.randn(3, 4), torch.tensor({index}), torch.tensor([2])"], strict=False)


_INTEGERS = _model(
    "begin, n = 0, int((10 * x.abs().max()).item()) + int(given.any())",
    "for length in lengths:",
    "    x = x + x[:, begin : begin + length].sum()",
    "    begin = begin + length % 2",
    "return x * torch.ones(n).sum()",
)


def test_int_takes_numbers_with_a_fraction_and_slices_begin_where_a_tensor_says() -> None:
    after, _ = fixed(_INTEGERS, **_CODE)
    assert "_integer_in_graph(10 * x.abs().max()) + _integer_in_graph(given.any())" in after
    assert "x[:, _number_in_graph(begin) : _number_in_graph(begin + length)]" in after
    behaves(_INTEGERS, after, _INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, scenarios=_TRAINING)


def test_a_number_with_a_fraction_is_read_as_before() -> None:
    after, _ = fixed(_model("scale = x.max().item()", "return x * min(scale, 2.0) ** 2"), **_CODE)
    assert "and not x.is_floating_point()" in after
    assert "_number_in_graph(x.max())" in after
    compiles(after, _INPUTS, strict=False)
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
    result = checked(_model(*lines, "return x, n"), **_CODE)
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
    result = checked(_model(f"n = {read}", "return x, n"), **_CODE)
    assert any(each.edit for each in result.findings), [each.declined for each in result.findings]


def test_arrays_of_numpy_answer_as_before() -> None:
    source = _model(
        "array = np.asarray([[3, 0], [0, 2]])",
        "first, second = array.nonzero()",
        "return x + len(array.tolist()) + array[0, 0].item() + int(array[1, 1]) + float(second[0])",
    ).replace("import torch\n", "import numpy as np\nimport torch\n", 1)
    after, _ = fixed(source, **_CODE)
    compiles(after, _INPUTS, strict=False)


@pytest.mark.parametrize(
    "lines",
    [
        ("count = int(lengths.max())", "for i in range(count):", "    x = x + i", "return x"),
        ("count = int(lengths.max())", "return x + 1 if count > 2 else x"),
        ("self.count = int(lengths.max())", "return x"),
        ("return int(lengths.max())",),
        ("rows = x[mask]", "for row in rows:", "    x = x + row", "return x"),
        ("rows = x[mask]", "if mask is not None and len(rows):", "    x = x + rows.sum()", "return x"),
    ],
    ids=["range", "test", "kept", "returned", "rows", "length"],
)
def test_what_decides_what_runs_next_is_left_alone(lines: tuple[str, ...]) -> None:
    assert not [each for each in checked(_model(*lines), **_CODE).findings if each.edit is not None]


def test_a_test_for_none_or_of_the_dtype_decides_nothing() -> None:
    source = _model(
        "rows = x[mask]",
        "if rows is not None and rows.dtype == x.dtype:",
        "    x = x + rows.cumsum(0).sum()",
        "return x",
    )
    compiles(fixed(source, **_CODE)[0], _INPUTS)


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
    after, _ = fixed(_SCRIPTED, **_CODE)
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
    after, _ = fixed(_ROWS, **_CODE)
    source = register(after)
    try:
        model, given = load(source).Model(), eval(_EMPTY)
        torch._dynamo.reset()
        with torch._dynamo.error_on_graph_break(True):
            assert torch.equal(torch.compile(model)(*given), model(*given))  # type: ignore[no-untyped-call]
    finally:
        forget(source)


def test_nothing_is_written_unless_unsafe_fixes_are_asked_for() -> None:
    assert fixed(_ROWS)[0] == _ROWS


@pytest.mark.parametrize(
    "body",
    [
        "index = int(torch.empty(1).uniform_(0.0, 3.0).item())\n        return x * self.scales[index]",
        "return x * self.scales[int(x.argmax())]",
    ],
)
def test_a_number_that_looks_something_up_in_a_list_is_read_as_before(body: str) -> None:
    source = f"""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [0.5, 1.0, 2.0]

    def forward(self, x: torch.Tensor):
        {body}
"""
    declined(source, "may look the number up in a list", opaque=True)


_ASKED_IN_TRAINING = _model(
    "rows = x[mask]",
    "if self.training:",
    "    if len(rows) > 1:",
    "        x = x + rows.sum()",
    "return x + rows.sum(0)",
)
_ASKED_OTHERWISE = _ASKED_IN_TRAINING.replace(
    "if self.training:", "if not self.training:\n            x = x * 2\n        else:"
)
_ASKED_OF_A_LIMIT = _model(
    "rows = x[mask]",
    "if limit is not None and len(rows) > limit:",
    "    rows = rows[:limit]",
    "return x + rows.sum(0)",
).replace("lengths: torch.LongTensor", "lengths: torch.LongTensor, limit=None")


@pytest.mark.parametrize("source", [_ASKED_IN_TRAINING, _ASKED_OTHERWISE, _ASKED_OF_A_LIMIT])
def test_what_python_passes_by_decides_nothing(source: str) -> None:
    after, _ = fixed(source, **_CODE)
    behaves(source, after, [*_INPUTS, _NOTHING], scenarios=FEW_SCENARIOS)
    compiles(after, [*_INPUTS, _NOTHING], scenarios=[Scenario(False, "off")])
    compiles(after, [*_INPUTS, _NOTHING], scenarios=[Scenario(True, "leaves")], strict=False)


def test_a_limit_that_is_given_breaks_the_graph_as_before() -> None:
    after, _ = fixed(_ASKED_OF_A_LIMIT, **_CODE)
    assert "limit is None" in after
    compiles(after, [f"{each}, 1" for each in _INPUTS], strict=False)


@pytest.mark.parametrize(
    "lines",
    [
        ("rows = x[mask]", "given = None if len(x) > 5 else given", "if given is not None and len(rows) > 1:"),
        ("rows = x[mask]", "self.quiet = given", "if self.quiet is None and len(rows) > 1:"),
        ("rows = x[mask]", "if given.dim() and len(rows) > 1:"),
        ("rows = x[mask]", "if len(rows) > 1 and given is None:"),
        ("rows = x[mask]", "if given is None or len(rows) > 1:"),
    ],
    ids=["bound anew", "stored", "may raise", "asked behind", "or"],
)
def test_what_may_change_before_it_is_asked_passes_nothing_by(lines: tuple[str, ...]) -> None:
    source = _model(*lines, "    x = x + rows.sum()", "return x")
    assert not [each for each in checked(source, **_CODE).findings if each.edit is not None]


def test_a_mask_in_another_layout_is_a_mask() -> None:
    source = _model(
        "chosen = x > 0",
        "chosen = chosen.view(-1)",
        "rows = x.view(-1)[chosen]",
        "near = mask & (lengths > 1)",
        "both = near.clone()",
        "further = (2 * x)[both]",
        "more = []",
        "for i in range(len(x)):",
        "    more.append(x[i][(x > 1)[i]].sin().sum())",
        "return x + rows.sin().sum() + further.sin().sum() + sum(more)",
    )
    after, _ = fixed(source, **_CODE)
    assert sum("_places_in_graph(" in line for line in after.splitlines()) == 4
    compiles(after, [*_INPUTS, _NOTHING], scenarios=_TRAINING)


def test_a_name_that_also_holds_places_is_asked_while_tracing() -> None:
    source = _model(
        "chosen = x[:, 0] > 0", "if x.shape[1] > 3:", "    chosen = lengths - 1", "return x[chosen].sum(0) + x"
    )
    compiles(
        fixed(source, **_CODE)[0], ["torch.randn(3, 4), torch.ones(3).bool(), torch.tensor([2, 1, 3])"], strict=False
    )


def test_a_range_in_steps_between_two_numbers_is_left_alone() -> None:
    """How long it is follows from a quotient of both, and the graph breaks wherever that is asked for."""
    source = _model(
        "first, last = lengths[0] - lengths[1], lengths[0] - lengths[2]",
        "places = torch.arange(first, last - 1, -2, dtype=torch.long)",
        "return x + places.sum()",
    )
    found = checked(source, **_CODE).findings
    assert not [each for each in found if each.edit is not None]
    assert [each for each in checked(source, opaque=True).findings if each.declined]


@pytest.mark.parametrize(
    "lines",
    [
        ["loss = self.loss(x, given)", 'shown = {"loss": loss.item()}', "return x * 2, shown"],
        ["loss = self.loss(x, given)", "shown = dict(loss=loss.item())", "return x * 2, shown"],
        ["loss, shown = self.loss(x, given), {}", 'shown["loss"] = loss.item()', "return x * 2, shown"],
    ],
)
def test_a_statistic_that_is_only_kept_may_be_a_fraction(lines: list[str]) -> None:
    assert "_fraction_in_graph(loss)" in fixed(_model(*lines), **_CODE)[0]


def test_whole_numbers_that_are_kept_are_carried() -> None:
    source = _model('shown = {"longest": lengths.max().item(), "given": int(given.sum())}', "return x * 2, shown")

    after, result = fixed(source, **_CODE)

    assert result.fixes
    behaves(source, after, _INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, scenarios=_TRAINING)


@pytest.mark.parametrize(
    "lines",
    [
        ("a, b = lengths[0], lengths[1]", "return x[a : a + 1, b : b + 2].sum() + x"),
        ("a = int(lengths[0])", "b = int(lengths[1])", "return x[a : a + 1, b:].sum() + x"),
    ],
)
def test_a_part_that_begins_at_several_numbers_is_left_alone(lines: tuple[str, ...]) -> None:
    """torch 2.13 ends compilation with an error there, where one such number or several ends are fine."""
    result = checked(_model(*lines), **_CODE)
    assert not any(each.edit for each in result.findings)
    ends = tuple(
        line.replace("a : a + 1, b : b + 2", ": a, : b").replace("a : a + 1, b:", ": a, : b") for line in lines
    )
    after, ended = fixed(_model(*ends), **_CODE)
    assert ended.fixes
    compiles(after, _INPUTS)


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        (("rows = self.made()[mask]", "return rows.cumsum(0).sum() + x"), "its gradient cannot be compiled"),
        (("rows = x[x > 0]", "return torch.logsumexp(rows, 0) + x"), "the graph breaks there"),
        (("a, b = x[x > 0].chunk(2)", "return a.sum() + b.sum() + x"), "the graph breaks there"),
    ],
)
def test_what_asks_how_many_rows_there_are_is_left_alone(lines: tuple[str, ...], because: str) -> None:
    findings = checked(_model(*lines), **_CODE).findings
    assert [each for each in findings if because in (each.declined or "")], findings


@pytest.mark.parametrize(
    "line",
    [
        "rows.exp().std()",
        "rows.prod()",
        "rows.cumsum(0).sum()",
        "rows.mean().prod()",
        "torch.norm(rows)",
        "rows.chunk(2, dim=1)[0].norm()",
    ],
)
def test_a_gradient_that_cannot_be_compiled_is_asked_for(line: str) -> None:
    source = _model("rows = x[x[:, 0] > 0]", f"return {line} + x")
    after, _ = fixed(source, **_CODE)
    asks = "not (torch.is_grad_enabled() and x.requires_grad)" in after
    assert asks is ("mean" not in line and "norm" not in line)
    compiles(after, _INPUTS)
    both, _ = fixed(source, opaque=True, select=("GM8",))
    assert ("_places_in_graph" in both) is not asks  # an operator has a gradient
