"""Methods that start or refresh a codebook as one operator: functions that they are handed, messages, gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.rules.stateful_models import forgotten, loaded, run  # noqa: F401
from tests.tools.fixes import checked, fixed

_CODEBOOK = """
import logging

import torch
from torch import nn

logger = logging.getLogger("codebook_subject")


def nothing(*args):
    pass


def doubled(x):
    x.mul_(2)


def spread(x):
    torch.distributed.all_reduce(x)


def first_rows(rows, count):
    return rows[:count] * 2


def means_of(rows, count, pick=first_rows, reduce=nothing):
    means = pick(rows, count)
    for _ in range(2):
        means = (means + rows.mean(0)) / 2
        reduce(means)
    return means


class Codebook(nn.Module):
    def __init__(self, shared=False):
        super().__init__()
        self.reduce = spread if shared else nothing
        self.pick = first_rows
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("codes", torch.zeros(3, 4))
        self.register_buffer("used", torch.ones(3))

    def start(self, rows, mask=None):
        if self.ready:
            return
        if len(rows) < 8:
            logger.warning(f"only {len(rows)} rows")
        self.codes.data.copy_(means_of(rows, 3, self.pick, reduce=self.reduce))
        self.ready.data.copy_(torch.Tensor([True]).squeeze())

    def refresh(self, rows):
        dead = self.used < 0.5
        if not torch.any(dead):
            return
        self.replace(rows[None], dead[None])

    def replace(self, batch, masks):
        for index, (rows, mask) in enumerate(zip(batch, masks)):
            mask[0] = False
            new = self.pick(rows, int(mask.sum()))
            self.codes.data[mask] = new
            self.used.data[mask] = 1.0

    def forward(self, x: torch.Tensor):
        self.start(x)
        near = torch.cdist(x, self.codes).argmin(-1)
        self.refresh(x)
        return (x * x).sum() + near.sum()
"""
_X = torch.randn(6, 4, generator=torch.Generator().manual_seed(3))


def same(eager: Any, backend: str, *, whole: bool) -> None:
    """Eager mode and compiled code agree over several calls, with codes that die in between."""
    model = copy.deepcopy(eager)
    compiled: Any = torch.compile(model, backend=backend, fullgraph=whole)
    for number in range(4):
        if number == 2:
            for each in (eager, model):
                each.used[1:] = 0
        if number == 3:  # as `load_state_dict` does
            for each in (eager, model):
                each.ready.fill_(False)
        x = _X + number
        for old, new in zip(run(eager, eager, x), run(model, compiled, x), strict=True):
            torch.testing.assert_close(new, old)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_codebook_is_started_and_refreshed_in_one_graph(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    same(loaded(_CODEBOOK).Codebook(), backend, whole=True)
    assert [each.message for each in caplog.records].count("only 6 rows") == 4  # both modes, started twice


def test_another_function_than_the_guessed_one_breaks_the_graph_as_before() -> None:
    module = loaded(_CODEBOOK)
    eager = module.Codebook()
    eager.reduce = module.doubled
    same(eager, "eager", whole=False)


def test_a_subclass_with_another_method_breaks_the_graph_as_before() -> None:
    module = loaded(
        _CODEBOOK
        + """

class Other(Codebook):
    def replace(self, batch, masks):
        self.codes.data.add_(1)
"""
    )
    same(module.Other(), "eager", whole=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.codes.data.copy_(", "self.codes.copy_("),
        ("self.codes.data.copy_(means", "held = self.codes\n        held.copy_(means"),
    ],
)
def test_a_change_that_autograd_sees_needs_gradients_off(old: str, new: str) -> None:
    after, _ = fixed(_CODEBOOK.replace(old, new), select=("GM801",), opaque=True)
    start = after[after.index("    def start") : after.index("    def refresh")]
    refresh = after[after.index("    def refresh") : after.index("    def replace")]
    assert "not torch.is_grad_enabled()" in start
    assert "not torch.is_grad_enabled()" not in refresh


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("self.pick = first_rows", "self.pick = make()", "may have side effects"),
        (
            "return rows[:count] * 2",
            "torch.distributed.barrier()\n    return rows[:count] * 2",
            "may have side effects",
        ),
        ("mask[0] = False", "rows[0] = 0", "one of its arguments"),
        ('logger.warning(f"only', 'rows.hook(f"only', "may have side effects"),
        ("if self.ready:", "first_rows = rows\n        if self.ready:", "a variable of the method"),
    ],
)
def test_what_would_show_is_left_alone(old: str, new: str, because: str) -> None:
    from graphmend_codemod.rules.proofs.outlining.functions import state_updates

    reasons: list[str] = []
    original = state_updates.edit

    def noted(site: Any) -> Any:
        try:
            return original(site)
        except Exception as reason:
            reasons.append(str(reason))
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_updates, "edit", noted)
        checked(_CODEBOOK.replace(old, new), select=("GM801",), opaque=True)
    assert any(because in each for each in reasons), reasons
