"""GM203: a flag is left alone under torch.compile only where that changes no gradient and no flag that anybody sees."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.linear = nn.Linear(4, 4)
        self.pool = nn.ReLU()
        self.checkpointing = False
        self.flag = True

    def forward(self, x: torch.Tensor):
        {body}
        return x


def make_frozen():
    model = Model()
    for parameter in model.parameters():
        parameter.requires_grad = False
    return model


def make_checkpointing():
    model = Model()
    model.checkpointing = True
    return model
"""
_MODES = (Scenario(True, "parameters"), Scenario(False, "off"))
_LAYERS = """x = x[:, None]
        if self.flag and self.training:
            x.requires_grad = True
        for layer in self.layers:
            if self.checkpointing and self.training:
                x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)"""


def model(body: str) -> str:
    return _MODEL.format(body=body)


@pytest.mark.parametrize(
    "body",
    [
        _LAYERS,
        "y = x * 2\n        y.requires_grad_()\n        y = self.linear(y)\n        x = y",
        "for p in self.pool.parameters():\n            p.requires_grad = False\n        x = self.linear(x)",
        "self.linear.weight.requires_grad = True\n        x = self.linear(x)",
        "x = self.linear(x)\n        y = x.detach()\n        y.requires_grad = False\n        x = x + y",
    ],
)
def test_a_flag_that_changes_nothing_breaks_nothing(body: str) -> None:
    before = model(body)
    after, _ = fixed(before)
    behaves(before, after, ["torch.ones(2, 4)"] * 2, scenarios=_MODES)
    compiles(after, ["torch.ones(2, 4)"] * 2, scenarios=_MODES)


@pytest.mark.parametrize("name", ["make_frozen", "make_checkpointing"])
def test_a_flag_that_counts_is_set(name: str) -> None:
    after, _ = fixed(model(_LAYERS))
    behaves(model(_LAYERS), after, ["torch.ones(2, 4)"], name=name, scenarios=_MODES)
    compiles(after, ["torch.ones(2, 4)"], name=name, scenarios=_MODES, strict=False)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("y = x[:, None]\n        y.requires_grad = True\n        x = y.sum()", "reads it"),
        ("y = x[:, None]\n        y.requires_grad = True\n        x = self.linear(y) * y", "reads it"),
        (
            "y = x[:, None]\n        y.requires_grad = True\n        self.seen = y\n        y = self.linear(y)",
            "reads it",
        ),
        ("x.requires_grad_(True)", "where it changes the flag"),
        ("for layer in self.layers:\n            y = x * 1\n            y.requires_grad = True", "no layer takes"),
    ],
)
def test_a_tensor_that_anything_else_reads_keeps_its_flag(body: str, because: str) -> None:
    declined(model(body), because=because, select=("GM203",))


def test_a_tensor_that_has_another_name_keeps_its_flag() -> None:
    source = model(
        "y = x[:, None]\n        z = y\n        y.requires_grad = True\n        y = self.linear(y)\n        x = z"
    )
    after, _ = fixed(source)
    assert "self.linear.parameters()" not in after
    compiles(after, ["torch.ones(2, 4)"], scenarios=_MODES, strict=False)


@pytest.mark.parametrize(
    "body",
    [
        "if not x.requires_grad:\n            x.requires_grad = True",
        "if self.flag and x.requires_grad:\n            x.requires_grad = False",
        "if x.dim() == 2 and not x.requires_grad:\n            x.requires_grad = True",
    ],
)
def test_a_flag_that_a_test_around_says_to_change_is_left_alone(body: str) -> None:
    declined(_MODEL.format(body=body), because="it changes the flag", select=("GM203",))


def test_a_module_is_no_tensor() -> None:
    source = model("self.linear.requires_grad_(False)\n        self.requires_grad_(True)\n        x = self.linear(x)")
    after, _ = fixed(source, select=("GM203",))
    assert after == source


_LEAVES = (Scenario(True, "leaves"), Scenario(True, "inner"))


@pytest.mark.parametrize(
    "body",
    [
        "total = torch.tensor(0.5, requires_grad=True, **of(x))\n"
        "        return x * 2, total + x.sum() if self.flag else total",
        "total = torch.zeros(x.size(0), 4, requires_grad=True, device=x.device)\n        return total",
        "y = self.linear(x)\n        total = torch.ones_like(y, requires_grad=True)\n"
        "        x = total.index_add(0, x[:, 0].long() * 0, y)",
    ],
)
def test_a_constant_requires_a_gradient_without_being_a_leaf(body: str) -> None:
    before = model(body) + "\n\ndef of(x):\n    return {'dtype': x.dtype}\n"
    after, _ = fixed(before)
    assert "[:0].sum()" in after
    behaves(before, after, ["torch.randn(2, 4)"], scenarios=(*_LEAVES, *_MODES))
    compiles(after, ["torch.randn(2, 4)"], scenarios=_LEAVES)
    compiles(after, ["torch.randn(2, 4)"], scenarios=_MODES, strict=False)


@pytest.mark.parametrize(
    ("use", "because"),
    [
        ("total += x.sum()", "needs a leaf"),
        ("total.mul_(2)", "needs a leaf"),
        ("(total * x.sum()).backward()\n        x = x * total.grad", "needs a leaf"),
        ("x = torch.autograd.grad(total * x.sum(), total)[0]", "needs a leaf"),
    ],
)
def test_a_constant_that_is_used_as_a_leaf_stays_one(use: str, because: str) -> None:
    declined(model(f"total = torch.tensor(0.0, requires_grad=True, device=x.device)\n        {use}"), because)


_OFF = (Scenario(gradients="off"), Scenario(gradients="inference"))
_MADE = "y = self.linear(x)\n        total = torch.zeros_like(y, requires_grad=True)\n        "


@pytest.mark.parametrize(
    "use",
    [
        "x = total.index_add(0, x[:, 0].long() * 0, y)",
        "x = torch.where(y > 0, total, y) - total",
        "x = torch.cat([y, total * 2]) if False else torch.add(y, total)",
    ],
)
def test_a_constant_that_is_only_computed_with_keeps_no_flag_while_gradients_are_off(use: str) -> None:
    before = model(_MADE + use)
    after, _ = fixed(before)
    assert "and (y.requires_grad or not torch.is_grad_enabled())" in after
    behaves(before, after, ["torch.randn(2, 4)"] * 2, scenarios=(*_OFF, *_LEAVES, *_MODES))
    compiles(after, ["torch.randn(2, 4)"], scenarios=(*_OFF, *_LEAVES))
    compiles(after, ["torch.randn(2, 4)"], name="make_frozen", scenarios=_MODES, strict=False)


@pytest.mark.parametrize(
    "use",
    [
        "x = total if self.flag else total * y",
        "x = total.to(y.dtype)",
        "x = total[0] * y",
        "self.seen = total * y, total",
        "x = self.pool(total)",
        "x = torch.add(y, total, out=total)",
        "with torch.enable_grad():\n            x = total * y",
        "torch.set_grad_enabled(True)\n        x = total * y",
        "x = (lambda: total * y)()",
    ],
)
def test_a_constant_that_leaves_or_meets_gradients_keeps_its_flag_while_they_are_off(use: str) -> None:
    after, _ = fixed(model(_MADE + use))
    assert "not torch.is_grad_enabled()" not in after


_RETURNED = """
import torch
from torch import nn


def nothing(query):
    if query.dim() > 1:
        return torch.zeros_like(query).requires_grad_()
    return query


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.out = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return x + self.out(nothing(self.query(x)))
"""


def test_a_constant_that_a_function_returns_requires_a_gradient_as_before() -> None:
    after, _ = fixed(_RETURNED)
    assert "return torch.zeros_like(query) + query.flatten()[:0].sum()" in after
    calls = ["torch.randn(2, 4)", "torch.full((2, 4), float('inf'))"]
    behaves(_RETURNED, after, calls, scenarios=(Scenario(), Scenario(training=True, gradients="inner")))
    namespace: dict[str, Any] = {}
    exec(compile(after, "returned", "exec"), namespace)
    model = namespace["Model"]()
    x = torch.randn(2, 4, requires_grad=True)
    expected = torch.autograd.grad(model(x).square().sum(), [x, *model.out.parameters()])
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    found = torch.autograd.grad(compiled(x).square().sum(), [x, *model.out.parameters()])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("zeros_like(query)", "zeros_like(query, dtype=torch.float64)"),
        ("return x +", "self.query.weight.grad = None\n        return x +"),
        ("torch.zeros_like(query)", "torch.zeros(2, 4)"),
    ],
)
def test_a_constant_that_may_have_to_be_a_leaf_is_left_alone(old: str, new: str) -> None:
    source = _RETURNED.replace(old, new)
    assert new in source
    assert fixed(source, select=("GM203",))[0] == source


_FLAGGED = """
import torch
from torch import nn


def with_loss(value, requires_grad=True):
    loss = torch.zeros(1, device=value.device, requires_grad=requires_grad)
    return value, loss


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        device = x.device
        x = self.linear(x)
        loss = torch.tensor([0.0], device=device, requires_grad=self.training)
        if self.training:
            loss = loss + x.square().mean()
        x, other = with_loss(x)
        with torch.no_grad():
            _, none = with_loss(x, requires_grad=False)
        shift = torch.zeros(x.shape[:-1] + (1,), device=x.device, requires_grad=x.requires_grad)
        return torch.cat([x, shift], -1), loss + none, other * x.sum()


def make_evaluated():
    return Model().eval()
"""


@pytest.mark.parametrize("name", ["Model", "make_evaluated"])
@pytest.mark.parametrize("given", ["torch.randn(2, 4)", "torch.randn(0, 4)"])
def test_a_flag_that_a_name_or_the_mode_decides_is_asked_for(name: str, given: str) -> None:
    after, _ = fixed(_FLAGGED)
    assert "and self.training is True" in after
    assert "and requires_grad is True" in after
    assert "and x.requires_grad\n" in after
    behaves(_FLAGGED, after, [given], name=name)
    compiles(after, [given], name=name, scenarios=(Scenario(True, "parameters"), Scenario(True, "inputs")))


@pytest.mark.parametrize("flag", ["self.learns", "bool(self.training)", "flag"])
def test_a_flag_that_may_run_code_or_is_no_local_is_left_alone(flag: str) -> None:
    body = f"total = torch.tensor(0.0, device=x.device, requires_grad={flag})\n        x = x * total"
    declined(model(body).replace("import torch\n", "import torch\n\nflag = True\n", 1), "Dynamo does not trace it")


def test_a_device_of_a_name_that_is_no_parameter_tells_nothing_of_gradients() -> None:
    body = "y = x * 2\n        device = y.device\n        del y\n        "
    body += "total = torch.tensor(0.0, device=device, requires_grad=True)\n        x = x * total"
    declined(model(body), "no tensor that may require a gradient is named in it")


_LEAF = "total = torch.tensor(0.0, requires_grad=True, device=x.device)\n        "


@pytest.mark.parametrize(
    "kept",
    [
        "self.last = total",
        "self.last, _ = total, 1",
        "self.kept.append(total)",
        "setattr(self, 'last', total)",
        "other = total\n        self.last = [other]",
        "for row in x:\n            total = total + row.sum()\n        self.last = total",
    ],
)
def test_a_leaf_that_is_kept_stays_one(kept: str) -> None:
    declined(model(f"{_LEAF}{kept}\n        x = x + total"), because="others may ask that for a leaf")


@pytest.mark.parametrize(
    "kept", ["total = total + x.sum()\n        self.last = total", "self.last = total * 2", "pass"]
)
def test_what_is_computed_with_a_leaf_may_be_kept(kept: str) -> None:
    assert ".flatten()[:0].sum()" in fixed(model(f"{_LEAF}{kept}\n        x = x + total"))[0]


@pytest.mark.parametrize(
    ("made", "new"),
    [
        ("torch.zeros(3)", True),
        ("x[:, None]", True),
        ("self.state", False),
        ("self.state if x is None else torch.zeros(3)", False),
    ],
)
def test_the_flag_of_what_the_function_has_made_changes_each_time(made: str, new: bool) -> None:
    body = f"kept = Kept(v={made}, i=x)\n        kept.v.requires_grad = True\n        x = x * kept.v"
    source = model(body)
    if new:
        declined(source, because="`kept.v` is made in this function")
    else:
        assert "kept.v.requires_grad is True" in fixed(source)[0]
