"""Statements that break the graph by what they do with an object, an array or the truth of a tensor."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from torch import nn

from tests.tools.fixes import checked

_MODULE = """
import contextlib
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
        "ok = self.training and (x > 0).all()",
        "kind = x.dtype",
        "b = torch.FloatTensor([1.0, 2.0])",
        "b = torch.as_tensor(np.ones(3))",
        "b = np.zeros(3, dtype=np.float32)",
        "x = x.split([h for h in (2, 2)])[0]",
        "m = x.any()",
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


@pytest.mark.parametrize("name", ["locked", "without_gradients", "both", "typed"])
def test_dynamo_agrees(name: str) -> None:
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(getattr(_Holds(), name), backend="eager", fullgraph=True)(torch.ones(4))  # type: ignore[no-untyped-call]
