"""Numbers that only the data tells (GM802) as arguments of operators that ask for their value."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.unbacked_models import CODE, TRAINING
from tests.tools.compiled import compiled_differences, compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(2))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor):
        n = self.n.item()
        {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "return torch.lerp(x, x * 2, 1.0 / n)",
        "return self.mean.lerp_(x.detach().mean(0), weight=n)",
        "w = 1 / max(n, 1)\n        return x.lerp(x * 2, w)",
    ],
)
def test_a_weight_that_decides_how_torch_computes_stays_outside_of_the_graph(line: str) -> None:
    declined(_MODEL.format(line=line), "asks how large its weight is", **CODE)


@pytest.mark.parametrize(
    "line",
    [
        "return torch.add(x, x * 2, alpha=n)",
        "return torch.baddbmm(x[None], x[None], x[None, :, :3] @ x, beta=n)",
        "return F.celu(x, n)",
        "return F.celu(x, alpha=1.0 / n)",
        "return torch.xlogy(x, n)",
        "return n**x",
        "return x.abs() ** n",
    ],
)
def test_a_gradient_that_asks_for_a_number_is_asked_for(line: str) -> None:
    after = fixed(_MODEL.format(line=line), **CODE)[0]
    assert "not torch.is_grad_enabled()" in after, after
    backend = "aot_eager_decomp_partition"
    assert not list(compiled_differences(after, ["torch.rand(3, 4)"], scenarios=TRAINING, backend=backend))


@pytest.mark.parametrize(
    "line",
    ["return torch.lerp(x, x.clamp(max=n), 0.5)", "return torch.lerp(x, x * n, 0.5).clamp(max=n)"],
)
def test_a_number_that_no_operator_asks_for_is_in_the_graph_with_gradients(line: str) -> None:
    after = fixed(_MODEL.format(line=line), **CODE)[0]
    assert "_number_in_graph(self.n)" in after
    assert "not torch.is_grad_enabled()" not in after, after
    backend = "aot_eager_decomp_partition"
    assert not list(compiled_differences(after, ["torch.rand(3, 4)"], scenarios=TRAINING, backend=backend))


_TAKE_NONE = [
    "F.adaptive_avg_pool1d(x[None], n)",
    "F.adaptive_avg_pool2d(x[None], (n, n))",
    "F.adaptive_max_pool2d(x[None], output_size=n)",
    "F.affine_grid(torch.eye(2, 3)[None], (1, 1, n, n), align_corners=False)",
    "F.avg_pool2d(x[None], n)",
    "F.max_pool1d(x[None], n)",
    "F.max_pool2d(x[None], 2, stride=n)",
    "F.lp_pool2d(x[None], 2, n)",
    "F.one_hot(torch.arange(2), n)",
    "F.unfold(x[None, None], n)",
    "F.interpolate(x[None, None], size=(n, n + 1), mode='bilinear', align_corners=True)",
    "F.interpolate(x[None, None], (n, n), mode='area')",
    "torch.linspace(0, 1, n)",
    "torch.logspace(0, 1, 2 * n)",
    "torch.hann_window(n)",
    "torch.kaiser_window(n)",
    "torch.tensor_split(x, n)[0]",
    "torch.diagonal(x, n)",
    "torch.diag_embed(x, n)",
    "x.chunk(n)[0]",
    "x.unfold(1, n, 1)",
]


@pytest.mark.parametrize("call", _TAKE_NONE)
def test_a_number_that_an_operator_takes_as_a_number_of_python_alone_stays_outside_of_the_graph(call: str) -> None:
    declined(_MODEL.format(line=f"return {call}"), "takes no symbol", **CODE)


@pytest.mark.parametrize(
    "call",
    [
        "F.interpolate(x[None, None], size=(n, n), mode='bilinear')",
        "F.interpolate(x[None, None], size=(n, n), mode='bilinear', align_corners=False)",
        "F.interpolate(x[None], n)",
        "self.chunk(n)",
        "x.roll(n, 0)",
    ],
)
def test_a_number_that_an_operator_takes_as_a_symbol_is_in_the_graph(call: str) -> None:
    model = _MODEL.format(line=f"return {call}") + "\n    def chunk(self, n):\n        return torch.zeros(n)\n"
    after = fixed(model, **CODE)[0]
    assert "_number_in_graph(self.n)" in after
    assert not list(compiled_differences(after, ["torch.rand(3, 4)"], scenarios=TRAINING))


@pytest.mark.slow
@pytest.mark.parametrize("call", _TAKE_NONE)
def test_an_operator_that_takes_no_symbol_breaks_the_graph(call: str) -> None:
    """What the table of such operators says, asked of torch itself."""
    scope: dict[str, Any] = {}
    exec(fixed(_MODEL.format(line="return torch.zeros(n)"), **CODE)[0].replace("torch.zeros(n)", call), scope)
    model: torch.nn.Module = scope["Model"]()
    torch.compiler.reset()
    with torch._dynamo.error_on_graph_break(True), pytest.raises(torch._dynamo.exc.UserError), torch.no_grad():
        torch.compile(model, backend="eager")(torch.rand(3, 4))


_OF_SIZES = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = 2

    def forward(self, x: torch.Tensor, k: torch.Tensor):
        w = x.size(1) // 2
        {line}
        return x.new_zeros(n) + x.sum()
"""


@pytest.mark.parametrize(
    ("line", "folded"),
    [
        ("n = torch.div(x.size(1), w, rounding_mode='trunc')", True),
        ("n = torch.div(x.size(1), w, rounding_mode='floor') + 1", True),
        ("n = torch.div(x.size(1), w, rounding_mode='trunc') + torch.mul(w, 2)", True),
        ("n = torch.div(x.size(1), w, rounding_mode='trunc') + k.sum()", False),
        ("n = torch.div(x.size(1), k.sum(), rounding_mode='trunc')", False),
        ("n = torch.div(k.sum(), w, rounding_mode='trunc')", False),
        ("w = torch.mul(w, 2)\n        n = w + k.sum()", False),
        ("n = torch.mul(w, 2, out=k)", False),
        ("n = torch.mul(w, 2)\n        n = k.sum()", False),
        ("n = torch.sum(k)", False),
    ],
)
def test_what_torch_computes_of_sizes_is_no_symbol(line: str, folded: bool) -> None:
    """Dynamo knows it: an operator that read it would give a plain number, and the graph would break there."""
    source = _OF_SIZES.format(line=line)
    reasons = [each.declined or "" for each in checked(source, opaque=True, select=("GM802",)).findings]
    assert any("which Dynamo computes itself" in each for each in reasons) is folded, reasons
    if folded:
        compiles(source, ["torch.rand(3, 4), torch.tensor([1])"], scenarios=[Scenario(False, "off")])
