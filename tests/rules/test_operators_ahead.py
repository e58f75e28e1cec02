"""Opaque operators have no derivative ahead (forward mode) and no data (meta): there the graph breaks as before."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.operators import forgotten, made  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch scripts its decompositions

_HEAD = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)
        self.register_buffer("bank", torch.zeros(4, 3))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def put(self, rows):
        place = int(self.place)
        self.bank[place : place + len(rows)] = rows
        self.place[0] = (place + len(rows)) % 4

"""
_QUEUE = _HEAD + "    def forward(self, x: torch.Tensor):\n        self.put(x)\n        return x + self.bank[:2]\n"
_UNIQUE = _HEAD + "    def forward(self, x: torch.Tensor):\n        u = torch.unique(x)\n        return u * 2\n"
_COUNTS = (
    _HEAD + "    def forward(self, x: torch.Tensor):\n"
    "        c = torch.bincount(x.long().flatten().abs(), x.flatten())\n        return c * 2\n"
)
_LAYER = _HEAD + "    def forward(self, x: torch.Tensor):\n        return self.rnn(x)[0]\n"
X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0]])


def ahead(call: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    forward_ad: Any = torch.autograd.forward_ad
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(call(forward_ad.make_dual(X, torch.ones_like(X))))
        return found.primal, found.tangent


def test_a_queue_gets_the_derivative_of_what_is_put_into_it() -> None:
    eager, compiled = made(_QUEUE), made(_QUEUE)
    whole: Any = torch.compile(compiled, backend="eager")
    expected, found = ahead(eager), ahead(whole)
    assert expected[1] is not None
    assert found[1] is not None
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("source", [_UNIQUE, _COUNTS])
def test_what_has_no_derivative_ahead_says_so(source: str) -> None:
    whole: Any = torch.compile(made(source), backend="eager")
    torch.testing.assert_close(whole(X), made(source)(X))
    with pytest.raises(NotImplementedError):
        ahead(whole)


def test_a_recurrent_layer_without_data_gives_shapes() -> None:
    model = made(_LAYER).to("meta")
    whole: Any = torch.compile(model, backend="eager")
    assert whole(torch.empty(5, 3, device="meta")).shape == (5, 4)
