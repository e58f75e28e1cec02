"""Numbers with a fraction that code only keeps or computes with: symbols of whole numbers in one graph."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario
from tests.tools.subject import forget, load, register

_CODE = {"select": ("GM802",), "opaque": True}
_TRAINING = (Scenario(False, "off"), Scenario(True, "leaves"))
_INPUTS = ("torch.randn(3, 4)", "10 * torch.randn(3, 4)", "torch.zeros(3, 4)", "1e-30 * torch.randn(3, 4)")


def _model(*lines: str) -> str:
    body = "\n".join(f"        {line}" for line in lines)
    head = "import torch\nfrom torch import nn\n\nlast = 0.0\n\n\nclass Model(nn.Module):\n"
    head += (
        "    def __init__(self):\n        super().__init__()\n        self.shown = None\n        self.mean = 0.5\n\n"
    )
    return f"{head}    def forward(self, x):\n        loss = x.square().mean()\n{body}\n"


_KEPT = {
    "a dict": ('return loss, {"loss": loss.item(), "half": loss.item() / 2}',),
    "a dict by its class": ("return loss, dict(loss=loss.item(), least=float(x.min()))",),
    "a name and a dict": (
        "n = loss.item()",
        "most = 2 * abs(n)",
        'stats = {"n": n}',
        'stats["most"] = most',
        "return loss, stats",
    ),
    "an update": ("stats = {}", "stats.update(loss=loss.item())", "return loss, stats"),
    "an attribute": ("self.shown = loss.item()", "return loss * 2"),
    "a dict in a dict": ('return {"loss": loss, "log": {"mean": x.mean().item()}}',),
    "a number of the dict": ('stats = {"n": loss.item()}', 'return x * stats["n"], stats'),
}


@pytest.mark.parametrize("lines", _KEPT.values(), ids=list(_KEPT))
def test_one_graph_keeps_the_number(lines: tuple[str, ...]) -> None:
    source = _model(*lines)
    after, result = fixed(source, **_CODE)
    assert result.fixes
    assert fixed(after, **_CODE)[0] == after
    behaves(source, after, _INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, scenarios=_TRAINING)


_OTHERS = {
    "tested": ("n = loss.item()", "if n > 1:", "    x = x * 2", "return x"),
    "tested in the dict": ('stats = {"n": loss.item()}', 'if stats["n"]:', "    x = x * 2", "return x"),
    "tested in an expression": ("n = loss.item()", "return x * (n or 1.0)"),
    "negated": ("n = loss.item()", 'return x, {"none": not n}'),
    "a size": ("n = loss.item()", "return x.new_zeros(int(n)).sum() + x"),
    "an end": ("n = loss.item()", "return torch.arange(n).sum() + x"),
    "an end in the dict": ('stats = {"n": loss.item()}', 'return torch.arange(stats["n"]).sum() + x'),
    "a key": ("n = loss.item()", "return x, {n: 1}"),
    "an attribute that is read": ("self.mean = 0.9 * self.mean + loss.item()", "return x * self.mean"),
    "an attribute that grows": ("self.mean += loss.item()", "return x * 2"),
    "a list that outlives the call": ("self.shown.append(loss.item())", "return x * 2"),
    "a name of the module": ("global last", "last = loss.item()", "return x * 2"),
    "a number for the caller": ("return x, loss.item()",),
    "all values": ('stats = {"n": loss.item()}', "return x * sum(stats.values())"),
    "the larger one": ("n = loss.item()", 'return x, {"n": max(n, 1.0)}'),
    "itself": ("n = loss.item()", 'return x, {"n": n - n}'),
    "nothing of it": ("n = loss.item()", 'return x, {"n": 0 * n}'),
    "a quotient of two": ("n, m = loss.item(), x.max().item()", 'return x, {"n": n / m}'),
    "a power": ("n = loss.item()", 'return x, {"n": n**0.5}'),
    "another function": ("n = loss.item()", 'return x, {"n": str(n)}'),
}


@pytest.mark.parametrize("lines", _OTHERS.values(), ids=list(_OTHERS))
def test_a_number_that_something_else_gets_is_read_as_before(lines: tuple[str, ...]) -> None:
    after, _ = fixed(_model(*lines), **_CODE)
    assert "_fraction_in_graph" not in after


def test_truth_values_and_complex_numbers_are_read_as_before() -> None:
    source = _model('return {"seen": (x > 0).any().item(), "first": x[0, 0].item()}')
    assert "_fraction_in_graph" not in fixed(source, **_CODE)[0]
    after, _ = fixed(_model('return x, {"first": x[0, 0].item()}'), **_CODE)
    compiles(after, ["torch.ones(3, 4, dtype=torch.cfloat)", "torch.ones(3, 4).bool()"], strict=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_every_number_is_what_it_was(backend: str) -> None:
    """Bit for bit: the smallest and the largest, those of each dtype, infinities and what is no number."""
    after, _ = fixed(_model('return x + 1, {"first": x[0].item(), "other": float(x[1])}'), **_CODE)
    source = register(after.replace("x.square().mean()", "x.sum()"))
    try:
        model = load(source).Model()
        compiled: Any = torch.compile(model, backend=backend, fullgraph=True)
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8):
            numbers = [0.0, 1.0, 3.14159, 1e-40, 200.0, 2.0**-149, 1e38, 1e300, 5e-324, 7e-12]
            if dtype.is_floating_point:
                numbers += [-1.5, math.inf, -math.inf, math.nan]
            for first, second in zip(numbers, reversed(numbers), strict=True):
                if not dtype.is_floating_point and max(first, second) > 255:
                    continue
                x = torch.tensor([first, second], dtype=torch.float64).to(dtype)
                found, wanted = compiled(x)[1], model(x)[1]
                assert {name: repr(each) for name, each in found.items()} == {
                    name: repr(each) for name, each in wanted.items()
                }
    finally:
        forget(source)


def test_a_statistic_that_is_also_tested_has_a_reason() -> None:
    found = checked(_model('stats = {"n": loss.item()}', 'if stats["n"] > 1:', "    x = x * 2", "return x"), **_CODE)
    assert [each.declined for each in found.findings if each.edit is None]


def test_an_older_torch_reads_the_number_as_before() -> None:
    source = _model('return x, {"first": x[0, 0].item()}')
    older, _ = fixed(source, target_torch=(2, 6), **_CODE)
    assert "if _is_torch_2_13_compiling():" in older
    assert "_is_torch_2_13_compiling" not in fixed(source, target_torch=(2, 13), **_CODE)[0]
    assert "_fraction_in_graph" in fixed(source, target_torch=(2, 13), **_CODE)[0]
