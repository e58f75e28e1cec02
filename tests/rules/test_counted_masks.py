"""GM411: masks that sizes and constants alone decide, whose elements are counted while Dynamo traces."""

from __future__ import annotations

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 2

    def forward(self, x, lengths=None):
        n = x.shape[0]
        x = x @ x.T
        {body}
        return y
"""
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))
_PAIRS = """same = torch.eye(n, dtype=torch.bool, device=x.device)
        half = n // 2
        same[half:, :half] = same[:half, half:] = same[:half, :half]
        """
_HELD = """class Held:
    def __init__(self, x):
        self.x, self.shape, self.device = x, x.shape, x.device

    def __getitem__(self, mask):
        return self.x * (2 if isinstance(mask, tuple) else 3)


class Model("""


def model(body: str) -> str:
    return _MODEL.format(body=body)


@pytest.mark.parametrize(
    "body",
    [
        _PAIRS + "y = x[~same].view(n, -1).exp()",
        "upper = torch.ones(n, n).triu(1).bool()\n        y = x[upper].exp(), x[~upper].mul(2)",
        "upper = torch.ones(n, n, dtype=torch.bool)\n        for i in range(n):\n"
        "            upper[i, : i + 1] = False\n        y = x[upper].exp()",
        "kept = torch.ones(x.shape[0], x.size(1)).tril().flatten()\n"
        "        places = kept.nonzero()\n        y = x.flatten()[places]",
        "kept = torch.arange(n) % self.steps == 0\n        rows, = torch.nonzero(kept, as_tuple=True)\n"
        "        y = x[rows] + x[kept]",
        "band = torch.zeros(n, n).fill_diagonal_(1)\n        y = x[band.nonzero(as_tuple=True)].cos()",
    ],
    ids=["pairs", "triangle", "loop", "places", "attribute", "filled"],
)
def test_what_sizes_decide_is_counted_while_tracing(body: str) -> None:
    before = model(body)
    after, _ = fixed(before)
    assert "_counted_places(" in after
    inputs = ["torch.randn(4, 3)", "torch.randn(6, 3)", "torch.randn(1, 2)"]
    behaves(before, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES)


def test_other_sizes_are_counted_again() -> None:
    after, _ = fixed(model(_PAIRS + "y = x[~same].view(n, -1)"))
    names: dict[str, type[torch.nn.Module]] = {}
    exec(after, names)
    module = names["Model"]()
    compiled = torch.compile(module, backend="eager", dynamic=True, fullgraph=True)
    for size in (4, 6, 8, 10):
        given = torch.randn(size, 3)
        assert torch.equal(compiled(given), module(given))


@pytest.mark.parametrize(
    "body",
    [
        # what the data, or chance, decides
        "kept = torch.ones_like(x).bool()\n        kept[0] = x[0] > 0\n        y = x[kept]",
        "kept = torch.zeros(n).bernoulli_().bool()\n        y = x[kept]",
        "kept = torch.rand(n) > 0.5\n        y = x[kept]",
        "kept = torch.eye(n).bool()\n        kept &= x > 0\n        y = x[kept]",
        "kept = torch.arange(n)[None, :] < lengths[:, None]\n        y = x[kept]",
        # written under another name, or where the data says
        "kept = torch.ones(n, n).bool()\n        other = kept\n        other[0] = x[0] > 0\n        y = x[kept]",
        "kept = torch.ones(n, n).bool()\n        self.keep(kept)\n        y = x[kept]",
        "kept = torch.ones(n, n).bool()\n        if self.training:\n            kept[0] = False\n        y = x[kept]",
        "kept = torch.ones(n, n).bool()\n        for row in kept:\n            row[0] = False\n        y = x[kept]",
        "kept = torch.ones(n, n).bool()\n        first = kept[0]\n        first[0] = False\n        y = x[kept]",
        "kept = torch.ones(n, n).bool()\n        torch.gt(x, 0, out=kept)\n        y = x[kept]",
        # other sizes where it is used
        "kept = torch.ones(n).bool()\n        n = 1\n        y = x[kept]",
        "y = 0\n        kept = torch.ones(n).bool()\n        for step in range(2):\n            y = y + x[kept].sum()\n"
        "            kept = torch.arange(n) > step",
        # an attribute that may be another number by then
        "kept = torch.ones(n, n).triu(self.steps).bool()\n        self.steps += 1\n        y = x[kept]",
        "kept = torch.ones(n, n).triu(self.steps).bool()\n        setattr(self, 'steps', 0)\n        y = x[kept]",
        "kept = torch.ones(n, n).triu(self.steps).bool()\n        self.__dict__['steps'] = 0\n        y = x[kept]",
        "kept = torch.ones(n, n).triu(self.steps).bool()\n        x = self.linear(x)\n        y = x[kept]",
        # a name that means something else in the statement
        "kept = torch.ones(n, n).triu(n - 2).bool()\n        y = [x[kept] for n in (1, 2)]",
        "kept = torch.ones(n, n).triu(n - 2).bool()\n        y = (n := 1) + x[kept]",
        # what the counting function does not know
        "from torch import ones\n        kept = ones(n, n).bool()\n        y = x[kept]",
        "import torch as th\n        kept = th.ones(n, n).bool()\n        y = x[kept]",
        # functions that are only called as torch's are
        "kept = torch.ones(n, n).bool()\n        self.where(kept)\n        y = x[kept]",
        "kept = torch.ones(n, n).bool()\n        self.masked_select(kept)\n        y = x[kept]",
        # what an earlier round wrote
        "y = []\n        kept = torch.zeros(n, n).bool()\n        for step in range(n):\n"
        "            kept[0, step] = True\n            y.append(x[kept])",
        "y = 0\n        kept = torch.arange(n) > 1\n        for step in range(2):\n            y = y + x[kept].sum()\n"
        "            kept.fill_(step == 1)",
    ],
)
def test_what_else_may_decide_is_not_counted(body: str) -> None:
    after, _ = fixed(model(body))
    assert "_counted_places(" not in after
    assert checked(model(body)).findings


@pytest.mark.parametrize("name", ["len", "range", "int", "isinstance"])
def test_a_name_of_python_that_means_something_else_is_not_called(name: str) -> None:
    after, result = fixed(model(_PAIRS + "y = x[~same]").replace("lengths=None", f"{name}=None"))
    assert "_counted_places(" not in after
    assert any("means something else" in (each.declined or "") for each in result.remaining)


def test_a_mask_without_dimensions_is_read_as_before() -> None:
    before = model("kept = torch.ones((), dtype=torch.bool)\n        y = x[kept], kept.nonzero()")
    after, _ = fixed(before)
    compiles(after, ["torch.ones(2, 3)"], scenarios=_MODES, strict=False)


def test_a_property_that_counts_its_reads_is_no_size() -> None:
    before = model("kept = torch.ones(n, n).triu(self.asked).bool()\n        y = x[kept]").replace(
        "    def forward",
        "    @property\n    def asked(self):\n        self.steps += 1\n        return self.steps\n\n    def forward",
    )
    after, _ = fixed(before)
    assert "_counted_places(" not in after


@pytest.mark.parametrize(
    ("body", "steps", "inputs"),
    [
        ("kept = torch.full((n, n), self.steps).bool()\n        y = x[kept]", "0.5", ["torch.ones(3, 3)"]),
        ("kept = torch.ones(n, n).triu(self.steps).bool()\n        y = x[kept]", "-1", ["torch.ones(3, 3)"]),
        ("kept = torch.ones(n, n).triu().long()\n        y = x[kept]", "0", ["torch.randn(3, 3)"]),
        ("kept = torch.ones(n, n).triu().bool()\n        y = Held(x)[kept]", "0", ["torch.randn(3, 3)"]),
        (
            "kept = torch.ones(n, n).triu().bool()\n        held = Held(x)\n        y = held[kept]",
            "0",
            ["torch.ones(3, 3)"],
        ),
    ],
    ids=["a float", "below zero", "positions", "a call", "no tensor"],
)
def test_what_the_header_asks_for_may_be_false(body: str, steps: str, inputs: list[str]) -> None:
    before = model(body).replace("self.steps = 2", f"self.steps = {steps}").replace("class Model(", _HELD, 1)
    after, _ = fixed(before)
    behaves(before, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES, strict=False)


def test_a_mask_of_another_shape_raises_as_before() -> None:
    after, _ = fixed(model("kept = torch.ones(n, n - 1).triu().bool()\n        y = x[kept]"))
    assert "_counted_places(" in after
    names: dict[str, type[torch.nn.Module]] = {}
    exec(after, names)
    with pytest.raises(IndexError, match="mask"):
        torch.compile(names["Model"](), backend="eager")(torch.randn(3, 3))


@pytest.mark.parametrize("strict", [False, True])
def test_what_could_be_exported_still_can_be(strict: bool) -> None:
    """Without Dynamo, `torch.export` runs constant functions with tensors that hold nothing."""
    after, _ = fixed(model(_PAIRS + "y = x[~same].view(n, -1).exp()"))
    assert "_counted_places(" in after
    names: dict[str, type[torch.nn.Module]] = {}
    exec(after, names)
    module, given = names["Model"](), torch.randn(4, 3)
    program = torch.export.export(module, (given,), strict=strict)
    assert torch.equal(program.module()(given), module(given))
