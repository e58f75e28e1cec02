"""GM801: what several processes do together is no reason where the compile path asks that there is one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.rules.stateful_models import forgotten, loaded, run  # noqa: F401
from tests.tools.fixes import fixed, fixed_among

_TOGETHER = """
import torch


def world_size():
    if torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    else:
        return 1


def is_distributed():
    return world_size() > 1


def broadcast(tensors, source=0):
    \"\"\"Give all processes the same.\"\"\"
    if not is_distributed():
        return
    for each in tensors:
        torch.distributed.broadcast(each.data, source)
"""
_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("started", torch.zeros(1))
        self.register_buffer("codes", torch.zeros(2, 3))

    def start(self, rows):
        if self.started:
            return
        self.codes.data.copy_(rows[:2] * 2)
        self.started.data.fill_(1)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.barrier()
        broadcast(self.buffers())

    def forward(self, x: torch.Tensor):
        self.start(x)
        return (torch.tanh(x) @ self.codes.t()).sum()
"""
_HEADER = "not (torch.distributed.is_available() and torch.distributed.is_initialized())"
X = torch.randn(2, 3, generator=torch.Generator().manual_seed(9))


def source(together: str = _TOGETHER, model: str = _MODEL) -> str:
    return together + model.replace("import torch\n", "", 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attribute")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_codebook_that_one_process_starts_is_one_graph(backend: str) -> None:
    assert _HEADER in fixed(source(), opaque=True)[0]
    eager = loaded(source()).Model()
    model = copy.deepcopy(eager)
    compiled: Any = torch.compile(model, backend=backend, fullgraph=True)
    for number in range(2):
        for old, new in zip(run(eager, eager, X + number), run(model, compiled, X + number), strict=True):
            torch.testing.assert_close(new, old)


def test_functions_of_another_file_are_followed(tmp_path: Path) -> None:
    model = _MODEL.replace("import torch\n", "import torch\nfrom together import broadcast\n", 1)
    after, _ = fixed_among(tmp_path, model, {"together.py": _TOGETHER}, opaque=True)
    assert _HEADER in after


def test_a_function_that_another_file_replaces_is_not_followed(tmp_path: Path) -> None:
    model = _MODEL.replace("import torch\n", "import torch\nfrom together import broadcast\n", 1)
    others = {"together.py": _TOGETHER, "patch.py": "import together\n\ntogether.broadcast = print\n"}
    after, _ = fixed_among(tmp_path, model, others, opaque=True)
    assert "_start_operator" not in after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if not is_distributed()", "if is_distributed()"),
        ("    if not is_distributed()", "    log(tensors)\n    if not is_distributed()"),
        ("return world_size() > 1", "return world_size() >= 1"),
        ("return world_size() > 1", "return start_processes() > 1"),
        ("        return 1\n", "        return count\n"),
        ("def broadcast(", "@wrapped\ndef broadcast("),
        ("torch.distributed.is_initialized():\n", "initialized():\n"),
        ("    for each in tensors:\n", "    for each in tensors:\n        yield\n"),
    ],
)
def test_what_one_process_may_do_as_well_is_a_reason(old: str, new: str) -> None:
    together = _TOGETHER.replace(old, new, 1)
    assert together != _TOGETHER
    assert "_start_operator" not in fixed(source(together), opaque=True)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("broadcast(self.buffers())", "hook(self.buffers())"),
        ("broadcast(self.buffers())", "for each in self.buffers():\n            each.zero_()"),
        ("broadcast(self.buffers())", "broadcast(self.hook())"),
        ("torch.distributed.is_available() and", "self.ready() or"),
        ("def start(", "def buffers(self):\n        self.calls = self.count()\n        return []\n\n    def start("),
    ],
)
def test_what_the_method_does_besides_is_a_reason(old: str, new: str) -> None:
    model = _MODEL.replace(old, new, 1)
    assert model != _MODEL
    assert "_start_operator" not in fixed(source(model=model), opaque=True)[0]


def test_a_subclass_goes_on_as_before() -> None:
    assert "type(self) is Model" in fixed(source(), opaque=True)[0]
