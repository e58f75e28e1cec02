"""Operators of methods that change state, given views of what they change."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.stateful_models import forgotten, loaded  # noqa: F401
from tests.tools.fixes import fixed

_CALLED = """
import torch
from torch import nn


def put(queue, rows):
    queue[0].copy_(rows[0] * 2)
    queue[1].copy_(rows[1])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("queue", torch.arange(12.0).view(4, 3))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def put(self, rows):
        self.queue[0] = rows[0] * 2
        self.queue[1] = rows[1]

    @torch.no_grad()
    def step(self, rows: torch.Tensor):
        if int(self.place) > 2:
            return
        {call}

    def forward(self, x: torch.Tensor):
        self.step(self.queue[:2])
        return self.queue * x
"""


_WRITTEN_HERE = """self.queue[0] = rows[0] * 2
        self.queue[1:] = rows[1] + self.queue[2]"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("call", "backend"),
    [
        ("self.put(rows)", "inductor"),  # which gets the same call for each of them
        ("self.put(rows)", "aot_eager"),
        ("put(self.queue, rows)", "aot_eager"),
        (_WRITTEN_HERE, "aot_eager"),
    ],
)
@pytest.mark.parametrize(
    "given", ["self.queue[:2]", "self.queue.view(-1)[3:9].view(2, 3)", "self.queue.t()[:2, :3]", "x[:2]"]
)
def test_an_argument_that_is_a_view_of_what_changes_changes_too(call: str, given: str, backend: str) -> None:
    """The operator gets copies, in which the same tensors share memory as in eager mode."""
    source = _CALLED.replace("{call}", call).replace("self.queue[:2])", f"{given})")
    assert "_step_operator(" in fixed(source, opaque=True)[0]
    model, again = loaded(source).Model(), loaded(source).Model()
    whole: Any = torch.compile(again, backend=backend, fullgraph=True)
    x = torch.randn(4, 3)
    for _ in range(2):
        torch.testing.assert_close(whole(x), model(x))
        torch.testing.assert_close(again.queue, model.queue)
