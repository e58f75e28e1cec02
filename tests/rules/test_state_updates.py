"""Methods that change tensors of their instance as one operator: what is changed, and what is left alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from graphmend_codemod.rules.proofs.outlining.symbols import unbacked
from tests.rules.stateful_models import forgotten, loaded, run  # noqa: F401
from tests.tools.fixes import checked, fixed

_QUEUE = """
import torch
from torch import nn


def step(x, means):
    return means + x.mean()


class Model(nn.Module):
    def __init__(self, shared=False):
        super().__init__()
        self.register_buffer("bank", torch.zeros(5, 3))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))
        self.register_buffer("scale", torch.ones(3))
        self.size, self.shared, self.rounds = (5, 3), shared, 0

    @torch.no_grad()
    def put(self, rows, factor=1.0):
        if self.shared and torch.distributed.get_world_size() > 1:
            torch.distributed.all_reduce(rows)
        place = int(self.place)
        if place + len(rows) >= self.size[0]:
            self.bank[place:] = rows[: self.size[0] - place] * self.scale
            self.place.zero_()
        else:
            self.bank[place : place + len(rows)] = rows * factor
            self.move(len(rows))
        self.rounds = 0

    def move(self, count):
        self.place.add_(count)

    def forward(self, x: torch.Tensor):
        y = torch.tanh(x)
        old = self.bank.clone().detach()
        self.put(y)
        return (y @ old.t()).sum() + (y @ self.bank.t()).sum()


class Other(Model):
    def move(self, count):
        self.place.add_(2 * count)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_queue_is_filled_in_one_graph_with_the_gradients_of_eager_mode(backend: str) -> None:
    eager = loaded(_QUEUE).Model()
    model = copy.deepcopy(eager)
    whole: Any = torch.compile(model, backend=backend, fullgraph=True)
    for number in range(3):
        x = torch.randn(2, 3, generator=torch.Generator().manual_seed(number))
        for old, new in zip(run(eager, eager, x), run(model, whole, x), strict=True):
            torch.testing.assert_close(new, old)


def test_the_operator_of_a_method_has_a_name_of_its_own() -> None:
    loaded(_QUEUE.replace("def put(", "def update(").replace("self.put(", "self.update("))


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_what_shares_memory_with_another_tensor_of_the_module_breaks_the_graph_as_before() -> None:
    eager = loaded(_QUEUE.replace("+ (y @ self.bank.t()).sum()", "+ (y @ self.first.t()).sum()")).Model()
    eager.first = eager.bank[:2]
    eager, model = copy.deepcopy(eager), copy.deepcopy(eager)
    compiled: Any = torch.compile(model, backend="aot_eager")
    for _ in range(2):
        for old, new in zip(run(eager, eager, X), run(model, compiled, X), strict=True):
            torch.testing.assert_close(new, old)


def test_a_method_that_something_wraps_later_is_not_wrapped_inside_of_the_operator_as_well() -> None:
    module = loaded(_QUEUE)
    eager, put = module.Model(), module.Model.put
    module.Model.put = lambda self, rows: put(self, rows + 1)
    model = copy.deepcopy(eager)
    compiled: Any = torch.compile(model, backend="eager")
    for old, new in zip(run(eager, eager, X), run(model, compiled, X), strict=True):
        torch.testing.assert_close(new, old)


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_what_the_operator_cannot_take_breaks_the_graph_as_before() -> None:
    module = loaded(_QUEUE)
    for kind, change in (("Other", {}), ("Model", {"rounds": 1, "size": torch.tensor([5, 3])})):
        eager = getattr(module, kind)()
        vars(eager).update(change)
        model = copy.deepcopy(eager)
        compiled: Any = torch.compile(model, backend="eager")
        for old, new in zip(run(eager, eager, X), run(model, compiled, X), strict=True):
            torch.testing.assert_close(new, old)
        assert model.rounds == eager.rounds


X = torch.randn(2, 3, generator=torch.Generator().manual_seed(9))


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("self.rounds = 0\n\n", "self.rounds = place\n\n", "changes `self.rounds`"),
        ("place = int(self.place)", "rows[0] = 2\n        place = int(self.place)", "one of its arguments"),
        ("self.rounds = 0\n\n", "log(self)\n\n", "handed on"),
        ("self.rounds = 0\n\n", "self.bank.resize_(place)\n\n", "changes the shape"),
        ("self.rounds = 0\n\n", "self.hook(place)\n\n", "may have side effects"),
        ("self.rounds = 0\n\n", "return place\n\n", "returns something"),
        ("* self.scale", "* self.config.scale", "`self.config.scale` is not held"),
    ],
)
def test_what_would_show_is_left_alone(old: str, new: str, because: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbacked, "captured", lambda *_: None)  # which has a reason of its own
    source = _QUEUE.replace(old, new, 1)
    assert source != _QUEUE
    reasons = [each.declined or "" for each in checked(source, opaque=True, select=("GM801",)).findings]
    assert any(because in reason for reason in reasons), reasons
    assert fixed(source, opaque=True, select=("GM801",))[0] == source


_CODEBOOK = """
import torch
from torch import nn


def elsewhere(dead):
    raise AssertionError(open(dead))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.arange(12.0).view(4, 3))
        self.register_buffer("counts", torch.tensor([0.0, 3.0, 1.0, 4.0]))

    @torch.no_grad()
    def refill(self, rows, dead):
        if torch.compiler.is_compiling() and rows.dim() == 2:
            places = elsewhere(dead)
        else:
            places = dead.nonzero(as_tuple=True)[0]
        self.codes[places] = rows[torch.arange(len(places)) % len(rows)]

    @torch.no_grad()
    def expire(self, rows):
        dead = self.counts < 2
        if not dead.any():
            return
        self.refill(rows, dead)
        self.counts[dead] = 2

    def forward(self, x: torch.Tensor):
        self.expire(x)
        return (x @ self.codes.t()).sum()
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attribute")
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_method_that_calls_one_with_a_compile_path_of_its_own_is_one_operator(backend: str) -> None:
    after, _ = fixed(_CODEBOOK, opaque=True)
    assert "return _expire_operator(self, rows)" in after
    eager = loaded(_CODEBOOK).Model()
    model = copy.deepcopy(eager)
    compiled: Any = torch.compile(model, backend=backend, fullgraph=True)
    for _ in range(2):
        for old, new in zip(run(eager, eager, X), run(model, compiled, X), strict=True):
            torch.testing.assert_close(new, old)


@pytest.mark.parametrize("test", ["self.training", "log(rows) and torch.compiler.is_compiling()", "is_compiling()"])
def test_what_eager_mode_may_run_counts(test: str) -> None:
    source = _CODEBOOK.replace("torch.compiler.is_compiling() and rows.dim() == 2", test)
    assert "_expire_operator" not in fixed(source, opaque=True)[0]


def test_what_torchscript_leaves_to_python_is_one_operator() -> None:
    source = _CODEBOOK.replace("    @torch.no_grad()\n    def expire", "    @torch.jit.ignore\n    def expire", 1)
    source = source.replace("self.codes[places] =", "self.codes.data[places] =")
    source = source.replace("self.counts[dead] =", "self.counts.data[dead] =")
    assert "_expire_operator" in fixed(source, opaque=True)[0]
