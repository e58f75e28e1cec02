"""GM801: a function that draws with NumPy and fills an array is called as one operator, with NumPy's own numbers."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy
import pytest
import torch

from tests.tools.fixes import fixed
from tests.tools.subject import forget, load, register

pytestmark = pytest.mark.filterwarnings("ignore:To copy construct from a tensor")  # Dynamo's, of torch.tensor(array)
_MODEL = """
import random

import numpy as np
import torch
from torch import nn


def places(shape, prob: float, length: int, mask=None, least=0):
{body}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask=None):
        x = self.inner(x)
        found = places((x.shape[0], x.shape[1]), prob=0.3, length=2, mask=mask)
        found = torch.tensor(found, device=x.device, dtype=torch.bool)
        x[found] = 0
        return x
"""
_SPANS = """
    rows, columns = shape
    if length < 1:
        raise ValueError("length")
    drawn = np.random.rand(1).item()

    def number(known):
        return max(int(prob * known / length + drawn), least)

    lengths = mask.detach().sum(-1).tolist() if mask is not None else [columns for _ in range(rows)]
    found = np.zeros((rows, columns), dtype=bool)
    chosen = []
    if number(columns) == 0:
        return found
    for known in lengths:
        chosen.append(np.random.choice(np.arange(known - 1), number(columns), replace=False))
    chosen = np.array(chosen)
    chosen = np.broadcast_to(chosen[:, :, None], (rows, number(columns), length)).reshape(rows, -1)
    chosen = chosen + np.arange(2)[None, :1]
    if chosen.max() > columns - 1:
        chosen[chosen > columns - 1] = columns - 1
    np.put_along_axis(found, chosen, 1, -1)
    return found
"""


def model(body: str) -> str:
    return _MODEL.format(body=indent(dedent(body).strip("\n"), "    "))


def run(source: str, calls: list[tuple[Any, ...]], **how: Any) -> None:
    """Assert that one graph gives what eager mode gives, gradients and NumPy's generator included."""
    written = register(source)
    try:
        module: Any = load(written)
        torch.manual_seed(0)
        eager = module.Model()
        torch._dynamo.reset()
        compiled: Any = torch.compile(eager, fullgraph=True, **how)
        for seed, call in enumerate(calls):
            results = []
            for each in (eager, compiled):
                eager.zero_grad()
                numpy.random.seed(seed)
                found = each(*call)
                found.square().sum().backward()
                results.append((found.detach(), eager.inner.weight.grad.clone(), numpy.random.rand()))
            (one, grad, after), (other, other_grad, other_after) = results
            torch.testing.assert_close(one, other)
            torch.testing.assert_close(grad, other_grad)
            assert after == other_after
    finally:
        forget(written)


@pytest.mark.parametrize("how", [{"backend": "aot_eager"}, {"backend": "aot_eager", "dynamic": True}])
def test_one_graph_draws_what_eager_mode_draws(how: dict[str, Any]) -> None:
    after, _ = fixed(model(_SPANS), opaque=True)
    assert "_places_operator(shape, prob, length, mask, least)" in after
    mask = torch.ones(3, 8, dtype=torch.long)
    run(after, [(torch.randn(3, 8, 4),), (torch.randn(3, 8, 4), mask), (torch.randn(2, 9, 4),)], **how)


def test_equal_calls_and_one_whose_result_is_not_used_draw_as_often_and_in_order() -> None:
    again = "        again = places((x.shape[0], x.shape[1]), 0.3, 2)\n        x[torch.tensor(again)] = 1\n"
    source = model(_SPANS).replace(
        "        x[found] = 0\n", f"        x[found] = 0\n{again}        places((3, 8), 0.3, 2)\n{again}"
    )
    after, _ = fixed(source, opaque=True)
    run(after, [(torch.randn(3, 8, 4),)] * 2, backend="aot_eager")


def test_an_error_of_the_function_is_raised() -> None:
    after, _ = fixed(model(_SPANS).replace("length=2", "length=0"), opaque=True)
    written = register(after)
    try:
        module: Any = load(written)
        call: Any = torch.compile(module.Model(), backend="eager")
        with pytest.raises(ValueError, match="length"):
            call(torch.randn(3, 8, 4))
    finally:
        forget(written)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("found = np.zeros((rows, columns), dtype=bool)", "found = np.zeros((rows, int(drawn * 4)), dtype=bool)"),
        ("found = np.zeros((rows, columns), dtype=bool)", "found = np.zeros((rows, columns), dtype=mask)"),
        ("    return found\n", "    return found[1:]\n"),
        ("    chosen = []\n", "    found = np.ones((rows, rows))\n    chosen = []\n"),
        ("    chosen = []\n", "    mask[0] = 1\n    chosen = []\n"),
        ("    chosen = []\n", "    view = mask.numpy()\n    view[0] = 1\n    chosen = []\n"),
        ("    chosen = []\n", "    view = np.asarray(mask)\n    view[0] = 1\n    chosen = []\n"),
        ("    chosen = []\n", "    for row in mask:\n        row[0] = 1\n    chosen = []\n"),
        ("    chosen = []\n", "    random.shuffle(mask)\n    chosen = []\n"),
        ("    chosen = []\n", "    np.random.shuffle(mask)\n    chosen = []\n"),
        ("    chosen = []\n", "    np.add(1, 1, out=mask)\n    chosen = []\n"),
        ("    chosen = []\n", "    mask.fill_(1)\n    chosen = []\n"),
        ("    chosen = []\n", "    mask += 1\n    chosen = []\n"),
        ("    chosen = []\n", "    print(mask)\n    chosen = []\n"),
        ("    chosen = []\n", "    np.save('x', found)\n    chosen = []\n"),
        ("    chosen = []\n", "    torch.rand(2)\n    chosen = []\n"),
        ("    chosen = []\n", "    global KEPT\n    KEPT = found\n    chosen = []\n"),
        ("    chosen = []\n", "    places.kept = found\n    chosen = []\n"),
        ("    rows, columns = shape\n", "    rows, columns = shape\n    if least:\n        columns = 3\n"),
        ("    rows, columns = shape\n", "    rows, columns = mask.sum(), 3\n"),
    ],
)
def test_what_an_operator_cannot_do_is_left_alone(old: str, new: str) -> None:
    source = model(_SPANS)
    assert old in source
    after, _ = fixed(source.replace(old, new), opaque=True)
    assert "_places_operator" not in after


_DRAW = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, layerdrop=0.5):
        super().__init__()
        self.layerdrop = layerdrop
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        for _ in range(3):
            p = {draw}
            skip = self.training and (p < self.layerdrop)
            if not skip:
                x = self.inner(x)
        return x
"""


@pytest.mark.parametrize("draw", ["np.random.uniform(0, 1)", "np.random.rand()", "np.random.uniform(0.5, 2)"])
def test_a_number_that_only_tests_ask_for_is_drawn_by_an_operator(draw: str) -> None:
    after, _ = fixed(_DRAW.format(draw=draw), opaque=True)
    assert "p = _uniform_in_graph(" in after
    written = register(after)
    try:
        module: Any = load(written)
        eager = module.Model().eval()
        run: Any = torch.compile(eager, backend="aot_eager", fullgraph=True)
        ends = []
        for each in (eager, run):
            numpy.random.seed(3)
            each(torch.ones(2, 4))
            ends.append(numpy.random.rand())
        assert ends[0] == ends[1]
        training: Any = torch.compile(module.Model(), backend="aot_eager")
        for seed in range(4):
            numpy.random.seed(seed)
            found = training(torch.ones(2, 4))
            numpy.random.seed(seed)
            torch.testing.assert_close(found, training._orig_mod(torch.ones(2, 4)))
    finally:
        forget(written)


@pytest.mark.parametrize(
    ("draw", "old", "new"),
    [
        ("np.random.uniform(0, 1)", "x = self.inner(x)", "x = self.inner(x) * p"),
        ("np.random.uniform(0, 1)", "return x", "return x, p < 1"),
        ("np.random.uniform(0, 1)", "skip = self", "self.kept = p < 1; skip = self"),
        ("np.random.uniform(0, 1)", "return x", "return x * skip"),
        ("np.random.uniform(0, 1)", "(p < self.layerdrop)", "(p is None)"),
        ("np.random.uniform(0, x)", "", ""),
        ("np.random.rand(2)", "", ""),
    ],
)
def test_a_number_with_other_uses_is_drawn_as_it_was(draw: str, old: str, new: str) -> None:
    after, _ = fixed(_DRAW.format(draw=draw).replace(old, new), opaque=True)
    assert "_uniform_in_graph" not in after
