"""GM604: the gradient that compiled code takes by `torch.func.vjp` is that of `torch.autograd.grad`."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_HEAD = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Dropout(0.5))
        self.norm = nn.BatchNorm1d(3)
        self.k = 2.0

    def forward(self, x: torch.Tensor):
"""
_INPUTS = ("torch.randn(4, 3)", "torch.randn(2, 3, requires_grad=True)")
_GRADIENTS = (Scenario(False, "leaves"), Scenario(True, "leaves"))


def _model(*lines: str) -> str:
    return _HEAD + "\n".join(f"        {line}" for line in lines) + "\n"


@pytest.mark.parametrize(
    "lines",
    [
        (
            "z = x.clone().requires_grad_()",
            "y = self.net(z)",
            "a = torch.autograd.grad(y, z, y, create_graph=True)[0]",
            "b = torch.autograd.grad(outputs=[y], inputs=[z], grad_outputs=[torch.ones_like(y)], retain_graph=True)[0]",
            "return a + b + y",
        ),
        (
            "for i in range(2):",
            "    z = x.detach().requires_grad_(True)",
            "    h = z",
            "    if self.k > 1:",
            "        for layer in self.net:",
            "            h = layer(h) * self.k  # deeper",
            "    y = h.pow(2).sum()",
            "    x = x - torch.autograd.grad(y, z, create_graph=self.training)[0]",
            "return x",
        ),
        (
            "with torch.enable_grad():",
            "    x = x.clone().requires_grad_()",
            "    y = self.net(x)",
            "every = torch.eye(3).expand(len(y), -1, -1).movedim(-1, 0)",
            "return torch.autograd.grad(y, x, every, create_graph=True, is_grads_batched=True)[0]",
        ),
    ],
    ids=["twice", "loop", "batched"],
)
def test_gradients_of_gradients_are_those_of_eager_mode(lines: tuple[str, ...]) -> None:
    source = _model(*lines)
    after, result = fixed(source)
    assert result.fixes
    assert fixed(after)[0] == after
    behaves(source, after, _INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, scenarios=_GRADIENTS)


def test_layers_that_change_buffers_break_the_graph_as_before() -> None:
    source = _model(
        "z = x.clone().requires_grad_()",
        "y = self.norm(z).sum()",
        "return torch.autograd.grad(y, z, create_graph=True)[0]",
    )
    compiles(fixed(source)[0], _INPUTS, scenarios=_GRADIENTS, strict=False)


_KEEPING = """class Keeping(nn.Linear):
    def forward(self, x):
        self.last = super().forward(x)
        return self.last


class Model"""


@pytest.mark.parametrize("net", ["Keeping(3, 3)", "nn.Sequential(nn.Tanh(), Keeping(3, 3))"])
def test_layers_that_keep_what_they_compute_break_the_graph_as_before(net: str) -> None:
    source = _model(
        "z = x.clone().requires_grad_()",
        "y = self.net(z).sum()",
        "return torch.autograd.grad(y, z)[0]",
    )
    source = source.replace("class Model", _KEEPING).replace(
        source[source.index("nn.Seq") : source.index("\n        self.norm")], net
    )
    compiles(fixed(source)[0], _INPUTS, scenarios=_GRADIENTS, strict=False)


def test_layers_that_write_into_the_leaf_break_the_graph_as_before() -> None:
    before = _model(
        "x = x.clone().requires_grad_()",
        "y = self.net(x)",
        "return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]",
    ).replace("nn.Linear(3, 3), nn.Tanh(), nn.Dropout(0.5)", "nn.ReLU(inplace=True), nn.Linear(3, 3)")
    after, _ = fixed(before)
    assert "_change_nothing(self.net)" in after
    compiles(after, _INPUTS[:1], scenarios=[Scenario(gradients="inner")], strict=False)


def test_where_other_code_runs_the_fix_is_unsafe() -> None:
    source = _model(
        "z = x.clone().requires_grad_()", "y = given(z).sum()", "return torch.autograd.grad(y, z, create_graph=True)[0]"
    ).replace("class Model", 'given = dict(tanh=torch.tanh)["tanh"]\n\n\nclass Model')
    after, _ = fixed(source)
    assert after == source
    assert "vjp" in fixed(source, unsafe_fixes=True)[0]


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        (("z = x.clone().requires_grad_()", "y = self.net(z)", "w = z + 1", "{}"), "is used behind the gradient"),
        (("z = x.clone().requires_grad_()", "h = z + 1", "y = self.net(h)", "{} + h"), "`h` is used behind"),
        (("z = x.clone().requires_grad_()", "y = self.net(z)", "y.sum().backward()", "{}"), "is another gradient"),
        (("z = x.clone().requires_grad_()", "y = self.net(z)", "y = y.add_(1)", "{}"), "cannot be moved"),
        (("z = x.clone().requires_grad_()", "y = Own.apply(z)", "{}"), "may have its own gradient"),
        (("z = x.clone().requires_grad_()", "own = Own", "y = own.apply(z)", "{}"), "may have its own gradient"),
        (("h = x", "z = x.clone().requires_grad_()", "h = h + z", "y = self.net(h)", "{}"), "is bound again"),
        (("z = (x + 1).requires_grad_()", "y = self.net(z)", "{}"), "does not get a new tensor"),
    ],
)
def test_what_would_show_is_declined(lines: tuple[str, ...], because: str) -> None:
    gradient = "return torch.autograd.grad(y, z, torch.ones_like(y), create_graph=True)[0]"
    declined(_model(*(line.format(gradient) for line in lines)), because=because, select=("GM604",))


def test_results_that_may_not_depend_on_the_input_are_declined() -> None:
    source = _model(
        "z = x.clone().requires_grad_()", "y = self.net(z).sum()", "return torch.autograd.grad(y, z, allow_unused=True)"
    )
    reasons = [each.declined or "" for each in checked(source, select=("GM604",)).findings]
    assert any("`allow_unused`" in each for each in reasons)


def test_two_results_of_one_name_are_declined() -> None:
    """Each `vjp` is that of its own result."""
    block = ("z = {}.clone().requires_grad_()", "y = self.net(z)", "{} = torch.autograd.grad(y, z, y)[0]")
    lines = [line.format(name) for name in ("x", "x") for line in block]
    declined(_model(*lines, "return x"), because="stands above what makes `y`")


_MADE = ("with torch.enable_grad():", "    x = x.clone().requires_grad_()", "    y = self.net(x)")
_TAKEN = "slope = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]"


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        ((*_MADE, _TAKEN, "other = torch.autograd.grad(x, y)[0]", "return slope, other"), "is another gradient"),
        ((*_MADE, "    k = self.k + 1", _TAKEN, "return slope * k"), "more than the result is made"),
        ((*_MADE, _TAKEN, "y = y * 2", _TAKEN, "return slope"), "`y` is bound once more"),
        (
            (*_MADE, "slope = torch.autograd.grad(*[y, x])[0]", "return slope"),
            "arguments of the gradient are not known",
        ),
        (("with torch.no_grad():", *_MADE[1:], f"    {_TAKEN}", "return slope"), "gradients may be off"),
    ],
)
def test_gradients_beside_other_work_are_declined(lines: tuple[str, ...], because: str) -> None:
    declined(_model(*lines), because, select=("GM604",))
