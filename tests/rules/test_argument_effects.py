"""GM201, GM202, GM602: what a message's arguments do is not left out of compiled code together with the message."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.tools.fixes import declined, fixed

_MODEL = """
import logging

import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger(__name__)


class Counter:
    def __init__(self):
        self.reads = 0
        self.plain = 3

    @property
    def size_of_it(self):
        self.reads += 1
        return self.reads

    @property
    def quiet(self):
        return self.reads + len(str(self.plain))

    def get(self, name):
        self.reads += 1
        return name

    def keys(self):
        return list("ab")

    def __str__(self):
        self.reads += 1
        return "counter"


class Lazy:
    def __getattr__(self, name):
        Lazy.asked = name
        return name

    def __len__(self):
        self.asked = 1
        return 1

    def __add__(self, other):
        self.asked = 2
        return other


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter()
        self.lazy = Lazy()
        self.calls = 0

    @property
    def next_call(self):
        self.calls = self.calls + 1
        return self.calls

    def forward(self, x: torch.Tensor, other=None, **kwargs):
        {said}
        return x * 2
"""


@pytest.mark.parametrize(
    ("said", "effect"),
    [
        ('logger.info(f"{x.shape} {self.next_call}")', "self.next_call"),
        ('logger.info("%s %s", x.shape, self.counter.size_of_it)', "self.counter.size_of_it"),
        ('logger.info("%s %s", x.shape, other.size_of_it)', "other.size_of_it"),
        ('logger.info("%s %s", x.shape, getattr(other, "size_of_it"))', 'getattr(other, "size_of_it")'),
        ('logger.info("%s %s", x.shape, getattr(other, x.name))', "getattr(other, x.name)"),
        ('print(x.mean(), other.get("a"))', 'other.get("a")'),
        ('print(x.mean(), self.counter.get("a"))', 'self.counter.get("a")'),
        ('print(x.mean(), f"{self.counter}")', "self.counter"),
        ("print(x.mean(), self.counter)", "self.counter"),
        ("print(F.relu(x, inplace=True).mean())", "F.relu(x, inplace=True)"),
        ("print(F.relu(x, True).mean())", "F.relu(x, True)"),
        ("print(torch.add(x, 1, out=x))", "torch.add(x, 1, out=x)"),
        ("print(x.mean(), next(other))", "next(other)"),
        ("torch._dynamo.mark_static_address(other.size_of_it)", "other.size_of_it"),
        ("print(self.lazy.name)", "self.lazy.name"),
        ("print(len(self.lazy))", "self.lazy"),
        ("print(self.lazy + 1)", "self.lazy"),
        ("rows = zip(x, x)\n        print(*rows)", "rows"),
        ("rows = iter(x)\n        print(1 in rows)", "rows"),
        ("rows = iter(x)\n        print([each for each in rows])", "rows"),
    ],
)
def test_what_may_act_is_not_left_out(said: str, effect: str) -> None:
    declined(_MODEL.replace("{said}", said), because=f"`{effect}` in its arguments would not run")


@pytest.mark.parametrize(
    "said",
    [
        'logger.info(f"{x.shape} {self.calls} {self.counter.plain} {self.__class__.__name__}")',
        'logger.info("%s %s", x.shape, self.counter.quiet)',
        'print(x.mean(), kwargs.get("a"), list(kwargs.values()))',
        "print(x.mean(), other.keys())",
        "rows = [1, 2]\n        print(*rows, 1 in rows, [each for each in rows])",
        "print(F.relu(x).mean(), x.sum(0, True), x[0], torch.isnan(x).any())",
    ],
)
def test_what_only_reads_may_be_left_out(said: str) -> None:
    assert "    if not torch.compiler.is_compiling():" in fixed(_MODEL.replace("{said}", said))[0]


@pytest.mark.parametrize("said", ["self", "f'{self!r}'", "[self]", "self.part", "str(self.part)"])
@pytest.mark.parametrize("acts", [True, False])
def test_a_layer_shows_what_its_extra_repr_does(said: str, acts: bool) -> None:
    body = "self.calls += 1\n        " if acts else ""
    shows = f"\n    def extra_repr(self):\n        {body}return str(self.calls)\n\n    def forward"
    source = _MODEL.replace("{said}", f"print({said})").replace("\n    def forward", shows)
    source = source.replace("self.calls = 0\n", "self.calls = 0\n        self.part = nn.Linear(2, 2)\n", 1)
    if acts:
        declined(source, because="in its arguments would not run")
    else:
        assert "is_compiling" in fixed(source)[0]


def test_a_property_of_another_file_counts(tmp_path: Path) -> None:
    said = 'logger.info("%s %s", x.shape, other.total)'
    (tmp_path / "model.py").write_text(_MODEL.replace("{said}", said))
    other = "class Other:\n    @property\n    def total(self):\n        {body}\n        return 1\n"
    files = [tmp_path / "model.py"]
    (tmp_path / "other.py").write_text("import torch\n\n\n" + other.format(body="self.asked = True"))
    for named in (files, [tmp_path]):
        (finding,) = api.check(named, Settings(tmp_path), cache=False).findings
        assert "`other.total`" in (finding.declined or "")
    (tmp_path / "other.py").write_text("import torch\n\n\n" + other.format(body="pass"))
    for named in (files, [tmp_path]):
        (finding,) = api.check(named, Settings(tmp_path), cache=False).findings
        assert finding.edit is not None
