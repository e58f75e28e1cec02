"""GM801: functions that their authors cache, whose results compiled code keeps as constants."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.operators import compiled_like_eager, forgotten, loaded, made  # noqa: F401
from tests.tools.fixes import declined, fixed

pytestmark = pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")

_NODES = """
from functools import cache, lru_cache

import numpy as np
import torch
from torch import nn


class Legendre:
    @staticmethod
    @cache
    def nodes(n: int, **kwargs):
        nodes, weights = np.polynomial.legendre.leggauss(n)
        return torch.as_tensor(nodes, **kwargs), torch.as_tensor(weights, **kwargs)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.n = 3

    def forward(self, x: torch.Tensor):
        nodes, weights = Legendre.nodes(self.n, dtype=x.dtype, device=x.device)
        return self.scale * (x[..., None] * nodes).sin() @ weights
"""
_PLAIN = """
from functools import lru_cache

import numpy as np
import torch
from torch import nn


@lru_cache(maxsize=4)
def nodes(n, /, *more, dtype=torch.float32):
    return torch.from_numpy(np.polynomial.legendre.leggauss(n)[0]).to(dtype)


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        return x.sum() * nodes(x.shape[-1], 1, dtype=x.dtype)
"""


@pytest.mark.parametrize("source", [_NODES, _PLAIN])
def test_what_a_cached_function_of_numbers_gives_is_a_constant(source: str) -> None:
    assert "_as_constant(" in fixed(source, opaque=True)[0]
    model = made(source)
    compiled_like_eager(model, torch.randn(2, 4))
    compiled_like_eager(model, torch.randn(3, 4, dtype=torch.float64))


def test_another_number_is_another_constant() -> None:
    model = made(_NODES)
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    x = torch.randn(2, 4)
    for number in (3, 5, 3):
        model.n = number
        torch.testing.assert_close(compiled(x), model(x))


def test_a_size_that_may_change_breaks_the_graph_as_before() -> None:
    model = made(_PLAIN)
    compiled: Any = torch.compile(model, backend="aot_eager", dynamic=True)
    for size in (4, 5, 7):
        x = torch.randn(2, size)
        torch.testing.assert_close(compiled(x), model(x))


def test_a_tensor_is_no_constant() -> None:
    """The cache tells tensors apart by identity, and the graph would keep what one of them gave."""
    source = _PLAIN.replace(
        "x.sum() * nodes(x.shape[-1], 1, dtype=x.dtype)", "x.sum() * nodes(4, x) + nodes(5, 1).sum()"
    )
    source = source.replace(".to(dtype)", ".to(dtype) * more[0]")
    model = made(source)
    compiled: Any = torch.compile(model, backend="aot_eager")
    for seed in (1, 2):
        x = torch.randn(2, 4, generator=torch.Generator().manual_seed(seed))[0]
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("@lru_cache(maxsize=4)", "@lru_cache(maxsize=4)\n@torch.no_grad()", "is decorated"),
        (".to(dtype)", ".to(dtype) + torch.ones(1, requires_grad=True)", "requires gradients"),
    ],
)
def test_what_a_constant_would_hide_is_the_reason(old: str, new: str, because: str) -> None:
    declined(_PLAIN.replace(old, new), because, opaque=True)


def test_a_method_of_an_autograd_function_is_declined() -> None:
    """Dynamo does not trace it, so the compile path in it would never be seen."""
    declined(_NODES.replace("class Legendre:", "class Legendre(torch.autograd.Function):"), "move it out", opaque=True)
