"""Statements that break the graph by what they do with an object, an array or the truth of a tensor."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
import torch
from torch import nn

from tests.tools.fixes import checked

_MODULE = """
import contextlib
import random
import threading
import numpy as np
import torch
from torch import nn

LOCK = threading.Lock()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
        self.off = torch.no_grad()
        self.plain = contextlib.nullcontext()
        self.layer = nn.Linear(4, 4)
        self.rate = 0.5
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x: torch.Tensor):
        {statement}
        return x
"""


def _breaks(statement: str) -> bool:
    return bool(checked(_MODULE.format(statement=statement)).findings)


@pytest.mark.parametrize(
    "statement",
    [
        "with self.lock: x = x + 1",
        "with LOCK: x = x + 1",
        "with self.off: x = x + 1",
        "with torch.device('cpu'): x = x + torch.ones(4)",
        "with contextlib.ExitStack() as stack: x = x + 1",
        "ok = (x > 0).all() and (x < 1).all()",
        "ok = x.isnan().any() or x.isinf().any()",
        "ok = 0 < x.sum() < 1",
        "ok = not (x > 0).all()",
        "ok = x.dim() == 0 or not x.any()",
        "print(not x.isnan().any())",
        "a = x.numpy()\n        b = np.ones(3).astype(a.dtype)",
        "a = np.asarray(x)\n        b = np.zeros(3, dtype=a.dtype)",
        "b = np.mgrid[0:3, 0:2]",
        "b = np.r_[1, 2, 3]",
        "b = torch.FloatTensor(np.ones(3))",
        "a = np.ones(3)\n        b = torch.Tensor(a)",
        "m = (x > 0).any(1)\n        x = x[m]",
        "x = x.split([h * w for h, w in x.long()])[0]",
        "x = x.topk(x.long().max().clamp(1, 3))[0]",
        "self.layer.requires_grad_(False)",
        "p = x.data_ptr()",
        "s = x.untyped_storage()",
        "old = x.grad_fn is None",
        "order = torch.cat((torch.tensor([1, 0]), torch.arange(2, x.dim()))); x = x.permute(*order)",
        "torch._check(x.dim() == 1, 'one dimension')",
        "torch._check_value(x.dim() == 1, f'{x.dim()}')",
        "torch._check(x.dim() == 1, lambda: f'{x.dim()}')",
        "p = 1 - random.uniform(0, 1)",
        "p = self.rate * random.uniform(0, 1)",
        "p = random.randint(1, 3) + x.shape[0]",
        "p = -random.uniform(0, 1)",
    ],
)
def test_what_dynamo_does_not_trace(statement: str) -> None:
    assert _breaks(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "with self.plain: x = x + 1",
        "with torch.no_grad(): x = x + 1",
        "guard = torch.no_grad()\n        with guard: x = x + 1",
        "ok = x.shape[0] > 1 and x.dim() == 2",
        "ok = 0 < x.shape[0] < 4",
        "ok = not self.training or not x.shape[0]",
        "ok = not x.dim() == 1",
        "ok = self.training and (x > 0).all()",
        "kind = x.dtype",
        "b = torch.FloatTensor([1.0, 2.0])",
        "b = torch.as_tensor(np.ones(3))",
        "b = np.zeros(3, dtype=np.float32)",
        "x = x.split([h for h in (2, 2)])[0]",
        "m = x.any()",
        "old = x.requires_grad",
        "x = x[None].permute(*[1, 0])",
        "order = [*range(x.dim())]; x = x.permute(*reversed(order))",
        "x = x.reshape(*x.shape[:-1], 2, 2)",
        "torch._check(x.dim() == 1)",
        "n = x.dim(); torch._check(n == 1, lambda: f'{n} dimensions')",
        "x = x * random.uniform(0, 1)",
        "x = self.scale * random.uniform(0, 1)",
    ],
)
def test_what_it_traces(statement: str) -> None:
    assert not _breaks(statement)


class _Holds(nn.Module):
    """What the table above says of objects that exist already is what Dynamo does."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.off = torch.no_grad()

    def locked(self, x: torch.Tensor) -> torch.Tensor:
        with self.lock:
            return x + 1

    def without_gradients(self, x: torch.Tensor) -> torch.Tensor:
        with self.off:
            return x + 1

    def both(self, x: torch.Tensor) -> torch.Tensor:
        ok = (x > -9).all() and (x < 9).all()
        return torch.where(ok, x, 0)

    def typed(self, x: torch.Tensor) -> torch.Tensor:
        array = x.numpy()
        return x + torch.from_numpy(np.ones(4).astype(array.dtype))

    def asked(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if (x * 2).grad_fn is None else x

    def told(self, x: torch.Tensor) -> torch.Tensor:
        torch._check(x.dim() == 1, "one dimension")  # type: ignore[no-untyped-call]
        return x + 1

    def told_of_it(self, x: torch.Tensor) -> torch.Tensor:
        torch._check(x.dim() == 1, lambda: f"{x.dim()}")  # type: ignore[no-untyped-call]
        return x + 1

    def drawn(self, x: torch.Tensor) -> torch.Tensor:
        return x * (1 - random.uniform(0, 1))


_NAMES = ["locked", "without_gradients", "both", "typed", "asked", "told", "told_of_it", "drawn"]


@pytest.mark.parametrize("name", _NAMES)
def test_dynamo_agrees(name: str) -> None:
    if name == "told" and torch.__version__ >= "2.15":
        pytest.skip("this torch takes such a message")
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(getattr(_Holds(), name), backend="eager", fullgraph=True)(
            torch.ones(4, requires_grad=name == "asked")
        )  # type: ignore[no-untyped-call]
