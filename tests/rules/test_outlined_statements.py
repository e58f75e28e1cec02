"""Consecutive statements as one opaque operator: what they give, what their gradients are, and what is left alone."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import checked, embedded, fixed

_SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.scale = 0.5
        self.register_buffer("steps", torch.zeros(4))

    def forward(self, x: torch.Tensor):
        h = self.lin(x)
        ...
"""
_AS_ONE = "it calls them as one operator"
X = torch.linspace(-2, 2, 24).view(6, 4).sin()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("statements_subject", None)
    torch._dynamo.reset()


def model_of(text: str) -> Any:
    module = sys.modules["statements_subject"] = types.ModuleType("statements_subject")
    exec(compile(text, "subject.py", "exec"), vars(module))
    torch.manual_seed(0)
    return vars(module)["Model"]()


def run(model: Any, call: Any, x: torch.Tensor) -> list[torch.Tensor | None]:
    model.zero_grad()
    x = x.clone().requires_grad_()
    torch.manual_seed(1)
    out = call(x)
    out.float().square().sum().backward()
    return [out.detach(), x.grad, *(each.grad for each in model.parameters())]


def seeded(call: Any, x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(2)
    found: torch.Tensor = call(x)
    return found


def equal_when_compiled(text: str, *inputs: torch.Tensor, backend: str = "aot_eager") -> None:
    model = model_of(text)
    whole: Any = torch.compile(model, backend=backend, fullgraph=True)
    for x in inputs or (X, X[:3]):
        for old, new in zip(run(model, model, x), run(model, whole, x), strict=True):
            torch.testing.assert_close(new, old)
        with torch.no_grad():
            torch.testing.assert_close(seeded(whole, x), seeded(model, x))


_BODIES = {
    "chosen rows on two sides": """
negs = h[h < 0]
poss = h[h >= 0]

# the hardest of them
hard = negs[negs < (poss.max() if len(poss) > 1 else negs.mean())]
loss = torch.relu(self.scale - hard).pow(2).sum()
return self.lin(h) * loss
""",
    "rows in the middle of an expression": """
total = h[h > 0].cumsum(0).sum()
return self.lin(h) * total
""",
    "rows that have a name": """
rows = h[h < 0]
spread = rows.exp().std()
return self.lin(h) * spread
""",
    "a loop over labels": """
labels = h.detach().argmax(1)
total = h.new_zeros(())
for c in torch.unique(labels):
    rows = h[labels == c]
    if rows.shape[0] > 1:
        total += rows.var(0).sum()
return total * self.lin(h)
""",
    "the rest of the method": """
h = self.lin(h)
_, places, counts = torch.unique(h.round(), return_inverse=True, return_counts=True)
sizes = torch.zeros_like(counts, dtype=torch.float32)
sizes.scatter_add_(0, places.flatten(), h.flatten())
return (sizes / counts)[places]
""",
    "in a loop": """
for i in range(3):
    picked = torch.zeros(4)
    for j in (h[:, i] > 0).nonzero():
        picked[i] += float(h[j, i].detach())
    h = h + picked
return self.lin(h)
""",
    "without gradients": """
with torch.no_grad():
    rank = torch.zeros_like(h)
    for k in torch.unique(h.round().int()):
        rank[h.round().int() == k] = float(k)
return self.lin(h) * rank
""",
    "random numbers": """
kept = torch.zeros_like(h)
if torch.unique((h * 4).round()).numel() > 3:
    kept += torch.rand_like(h) * h
return self.lin(kept) + h
""",
    "a variable of a comprehension": """
w = torch.ones_like(h)
if max(float(h.detach()[:, k].std()) for k in range(4)) > 0.5:
    w = w * 2
k = self.lin(h)
return k * w
""",
    "one arm of a branch": """
weight = torch.ones_like(h)
weight = weight * 2
if torch.unique(h.round()).numel() > 2:
    weight[0] = 0
return self.lin(h) * weight
""",
}


@pytest.mark.parametrize("body", _BODIES.values(), ids=_BODIES)
def test_eager_mode_keeps_the_statements_and_compiled_code_calls_them_as_one(body: str) -> None:
    source = embedded(body, _SOURCE)
    text = fixed(source, opaque=True)[0]
    assert _AS_ONE in text
    behaves(source, text, ["torch.randn(5, 4)", "torch.randn(2, 4)"], scenarios=FEW_SCENARIOS[:2])
    equal_when_compiled(text)
    assert fixed(text, opaque=True)[0] == text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_gives_the_same() -> None:
    text = fixed(embedded(_BODIES["a loop over labels"], _SOURCE), opaque=True)[0]
    equal_when_compiled(text, X, backend="inductor")


def test_they_are_opaque_and_not_applied_unasked() -> None:
    source = embedded(_BODIES["a loop over labels"], _SOURCE)
    assert fixed(source)[0] == source


_LOOP = "for k in torch.unique(h.round()):\n    w[h.round() == k] = float(k)\n"


@pytest.mark.parametrize(
    "body",
    [
        # somebody else refers to what is written, or to what comes in
        f"w = torch.ones_like(h)\nkept = [w]\nprint(kept)\n{_LOOP}return kept[0] * h",
        f"w = self.steps\n{_LOOP}return w * h",
        "y = h.view(-1)\nif torch.unique(h.round()).numel() > 2:\n    y = h.view(-1)\nprint(y)\ny.add_(1)\nreturn h",
        # what comes out is no tensor, or has a size that data decides
        "n = len(torch.unique(h.round()))\nprint(n)\nreturn h * n",
        "order = torch.unique(h.round())\nprint(order)\nreturn order.sum() * h",
        "w = 0\nfor k in torch.unique(h.round()):\n    w = h * k\nprint(w)\nreturn w",
        # it may be unbound, or leaves the statements
        "for k in torch.unique(h.round()):\n    w = h * k\n    print(k)\nreturn w",
        "for i in range(3):\n    if torch.unique(h.round()).numel() > i:\n        break\nprint(i)\nreturn h * i",
        # it has effects
        f"w = torch.ones_like(h)\n{_LOOP}    self.last = k\nreturn w * h",
        f"w = torch.ones_like(h)\n{_LOOP}    h = self.lin(h)\nprint(w)\nreturn w * h",
        # a layer that is called like a method of tensors
        f"w = self.norm(h)\n{_LOOP}print(w)\nreturn w * h",
        # somebody catches what it raises
        f"try:\n    w = torch.ones_like(h)\n    {_LOOP.replace(chr(10), chr(10) + '    ').rstrip()}\n"
        "except RuntimeError:\n    w = h\nprint(w)\nreturn w * h",
        # nothing that goes in is a tensor
        "n = 3\nsource = torch.Generator()\nprint(source)\nw = torch.rand(n, generator=source)\nreturn w[0] * h",
        # a dict
        "w = torch.ones_like(h)\nmore = {'h': h}\nprint(more)\nif torch.unique(more['h']).numel() > 2:\n"
        "    w = w * 2\nprint(w)\nreturn w * h",
        # what a gradient needs changes below, by another name
        f"v = h.view(-1)\nprint(v)\nw = torch.ones_like(h)\n{_LOOP}w = w * h.exp()\nv.add_(1)\nreturn w * h",
    ],
)
def test_what_an_operator_cannot_stand_for_is_left_alone(body: str) -> None:
    source = embedded(body, _SOURCE)
    text, _ = fixed(source, opaque=True, select=("GM801",))
    assert text == source
    assert any(each.code in {"GM801", "GM802"} for each in checked(source, opaque=True).findings)


def test_several_statements_on_a_line_and_an_elif_stay() -> None:
    body = """
    w = torch.ones_like(h)
    if self.training:
        w = h * 2
    elif torch.unique(h.round()).numel() > 2:
        w = h * 3
    if self.scale > 1: w = torch.unique(h.round()).sum() * h
    return self.lin(h) * w
    """
    text = fixed(embedded(body, _SOURCE), opaque=True)[0]
    compile(text, "subject.py", "exec")
    model = model_of(text)
    whole: Any = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(whole(X), model(X))


def test_under_autocast_the_operator_computes_in_its_dtype() -> None:
    body = """
    total = h.float().new_zeros(())
    for c in torch.unique(h.detach().argmax(1)):
        total += (h @ h.T).float()[c].sum()
    return total * h
    """
    model = model_of(fixed(embedded(body, _SOURCE), opaque=True)[0])
    whole: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(whole(X), model(X))


def test_a_number_that_is_counted_up_is_told_apart_while_tracing() -> None:
    body = """
    count = 0
    w = torch.zeros_like(h)
    for k in torch.unique(h.round()):
        count += 1
        w[h.round() == k] = float(count)
    return self.lin(h) * w
    """
    text = fixed(embedded(body, _SOURCE), opaque=True)[0]
    assert _AS_ONE in text
    equal_when_compiled(text)


def test_constructors_of_old_code_have_no_effects() -> None:
    body = """
    order = torch.zeros(4)
    for k in torch.unique(h.round()):
        order[torch.autograd.Variable(torch.LongTensor([0, 2]), requires_grad=False)] = float(k.detach())
    return self.lin(h) * order
    """
    text = fixed(embedded(body, _SOURCE), opaque=True, select=("GM801",))[0]
    assert _AS_ONE in text
    equal_when_compiled(text)
