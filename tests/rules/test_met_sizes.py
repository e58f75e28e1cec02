"""GM411: rows repeated by counts, and a tensor that arithmetic puts beside them, which tells how many there are."""

from __future__ import annotations

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.scale = 2

    def forward(self, x: torch.Tensor, means: torch.Tensor, counts: torch.Tensor):
        {body}
        return y
"""
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))
_INPUTS = [
    "torch.randn(3, 3), torch.randn(2, 3), torch.tensor([1, 2])",
    "torch.randn(3, 3), torch.randn(2, 3), torch.tensor([0, 3], dtype=torch.int32)",
    "torch.randn(3, 3), torch.randn(2, 3), torch.tensor([0, 1])",  # a single row, which is spread
    "torch.randn(0, 3), torch.randn(2, 3), torch.tensor([0, 0])",
    "torch.randn(0, 3), torch.randn(2, 3), torch.tensor([1, 0])",
]
_ROWS = "rows = torch.repeat_interleave(means, counts, dim=0)\n        "


def model(body: str) -> str:
    return _MODEL.format(body=body)


def is_written(body: str, **settings: object) -> bool:
    """Whether the compile path is written, without opaque fixes."""
    return "_repeated_to(" in fixed(model(body), **settings)[0]


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("x = self.lin(x)\n        " + _ROWS + "y = x - rows", _INPUTS),
        ("means = self.lin(means)\n        y = x * 2 + -means.repeat_interleave(counts, 0)", _INPUTS),
        ("y = (x - means.repeat_interleave(repeats=counts, dim=-2)).exp()", _INPUTS),
        (_ROWS + "z = (x - rows) ** 2\n        y = z if z.dim() > 5 else z / x + rows * x", _INPUTS[:3]),
        (
            "x, means = x[0], means[:, 0]\n        y = x + means.repeat_interleave(counts)",
            ["torch.randn(2, 3), torch.randn(2, 3), torch.tensor([1, 2])"],
        ),
        (
            "x, means = x[0], means[:, 0]\n        y = x + means.repeat_interleave(counts, None)",
            ["torch.randn(2, 3), torch.randn(2, 3), torch.tensor([1, 0])"],
        ),
        (_ROWS + "y = x < rows", _INPUTS),
        ("rows = x\n        " + _ROWS + "y = x - rows\n        rows = None", _INPUTS[:3]),
        ("means = means.repeat_interleave(counts, dim=0)\n        y = x / means", _INPUTS[:3]),
        (
            "dim = 0 if x.dim() == 2 else 1\n        if means.dim() == 2:\n            z = x.exp()\n"
            "            means = means.repeat_interleave(counts, dim=dim)\n        else:\n            z = means\n"
            "        y = z - means",
            _INPUTS,
        ),
        ("scale = self.scale\n        y = x * scale - means.repeat_interleave(counts, dim=0)", _INPUTS[:2]),
        ("y = x\n        if x.dim() == 2:\n            y = x / means.repeat_interleave(counts, 0)", _INPUTS[:2]),
    ],
)
def test_the_tensor_beside_them_tells_how_many_rows_there_are(body: str, inputs: list[str]) -> None:
    source = model(body)
    after, _ = fixed(source)
    assert "_repeated_to(" in after
    behaves(source, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES)


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.randn(1, 3), torch.randn(2, 3), torch.tensor([1, 2])",  # the other one is spread
        "torch.randn(3), torch.randn(2, 3), torch.tensor([1, 2])",
        "torch.randn(2, 3, 3), torch.randn(2, 3), torch.tensor([1, 2])",
        "torch.tensor(1.0), torch.randn(2, 3), torch.tensor([1, 2])",
        "torch.randn(4, 3), torch.randn(2, 3), torch.tensor([2])",  # one count for all rows
        "torch.randn(4, 3), torch.randn(2, 3), torch.tensor(2)",
        "torch.randn(4, 3), torch.randn(2, 3), 2",
        "3.0, torch.randn(2, 3), torch.tensor([1, 2])",
        "torch.randn(2, 3), torch.randn(1, 3), torch.tensor([2])",
    ],
)
def test_what_the_header_asks_for_decides(inputs: str) -> None:
    source = model(_ROWS + "y = x - rows")
    after, _ = fixed(source)
    behaves(source, after, [inputs], scenarios=_MODES)
    compiles(after, [inputs], scenarios=_MODES, strict=False)


@pytest.mark.parametrize(
    "given",
    [
        (torch.randn(4, 3), torch.randn(2, 3), torch.tensor([1, 2])),
        (torch.randn(3, 3), torch.randn(2, 3), torch.tensor([-1, 4])),
        (torch.randn(3, 3), torch.randn(2, 3), torch.tensor([-1, 2])),
        (torch.randn(2, 3), torch.randn(2, 3), torch.tensor([True, True])),
        (torch.randn(2, 3), torch.randn(2, 3), torch.tensor([1.0, 1.0])),
    ],
)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.filterwarnings("ignore")
def test_compiled_code_raises_where_eager_mode_does(given: tuple[torch.Tensor, ...], backend: str) -> None:
    names: dict[str, type[torch.nn.Module]] = {}
    after, _ = fixed(model(_ROWS + "y = x - rows"))
    exec(compile(after, "model.py", "exec"), names)
    made = names["Model"]()
    with pytest.raises(RuntimeError):
        made(*given)
    torch._dynamo.reset()
    with pytest.raises(RuntimeError):
        torch.compile(made, backend=backend)(*given)


def test_an_object_with_arithmetic_of_its_own_is_left_to_eager_mode() -> None:
    scale = "scale = type('Last', (), {'__mul__': lambda self, x: x[-1:]})()\n        "
    source = model(scale + "y = means.repeat_interleave(counts, 0) - scale * x")
    after, _ = fixed(source)
    assert "isinstance(scale, (torch.Tensor, int, float))" in after
    inputs = ["torch.randn(3, 3), torch.randn(2, 3), torch.tensor([1, 3])"]
    behaves(source, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES, strict=False)


@pytest.mark.parametrize(
    "body",
    [
        _ROWS + "y = x @ rows.T",
        _ROWS + "y = (x - rows, rows)",  # a single row would become several
        _ROWS + "y = x - rows.sum()",
        _ROWS + "y = x - rows if x.sum().shape else x",  # eager mode may never compare the sizes
        _ROWS + "y = x.sum() > 0 and x - rows",
        _ROWS + "y = x\n        if x.dim() == 2:\n            y = x - rows",
        _ROWS + "if means.dim() == 2:\n            return means\n        y = x - rows",
        _ROWS + "x = x[:1]\n        y = x - rows",
        _ROWS + "y = [x - rows for x in (x, x[:1])]",
        _ROWS + "x.resize_(3, 3)\n        y = x - rows",
        _ROWS + "y = x - rows\n        x = x[:1]\n        y = x - rows",
        _ROWS + "y = lambda: x - rows",
        "y = x\n        for _ in x.shape:\n            rows = means.repeat_interleave(counts, 0)\n        y = x - rows",
        "for _ in range(2):\n            rows = means.repeat_interleave(counts, 0)\n        y = x - rows",
        "if x.dim() == 2:\n            rows = means.repeat_interleave(counts, 0)\n            x = x[:1]\n"
        "        else:\n            rows = x\n        y = x - rows",
        _ROWS + "y = x - rows\n        rows += 1\n        y = y + rows.sum()",
        _ROWS + "y = x - rows\n        later = lambda: x - rows\n        x = x[:1]\n        y = later()",
        _ROWS + "means = self.lin\n        y = x - rows * means.weight.exp()",
        "z = x\n        " + _ROWS + "z = self.scale\n        y = x - rows * z.exp()",  # no tensor any more
        "read = lambda: rows\n        " + _ROWS + "y = x - rows\n        y = y + read().sum()",
        "y = x - (x := x[:1]) + means.repeat_interleave(counts, 0)",
        "y = [x := x[:1], x - means.repeat_interleave(counts, 0)]",
        "rows = means.repeat_interleave(counts, 0)[:1]\n        y = x - rows",
        "for k in range(2):\n            if k:\n                x = x[:1]\n                z = x - rows\n"
        "            rows = means.repeat_interleave(counts, 0)\n            y = x - rows",  # `rows` of the round before
        "y = x - means.repeat_interleave(counts, dim=self.lin.in_features)",
        "y = x * self.scale - means.repeat_interleave(counts, dim=0)",
        "y = self.lin(x) - means.repeat_interleave(counts, dim=0)",
        "y = x - self.lin(means).repeat_interleave(counts, dim=0)",  # the header would compute it once more
        "y = x - means.repeat_interleave(counts, dim=0, output_size=3)",
        "y = x - means.repeat_interleave(3, dim=0)",
        "n = self.scale\n        y = x - means.repeat_interleave(n, dim=0)",
        "y = x in means.repeat_interleave(counts, dim=0)",
    ],
)
def test_nothing_is_written_where_the_sizes_may_differ(body: str) -> None:
    assert not is_written(body)


def test_each_round_of_a_loop_has_rows_of_its_own() -> None:
    assert is_written(
        "for _ in range(2):\n            rows = means.repeat_interleave(counts, 0)\n            y = x - rows"
    )


def test_rows_of_all_elements_stand_beside_one_dimension() -> None:
    source = model("means = means[:, 0]\n        y = x + means.repeat_interleave(counts)")
    after, _ = fixed(source)
    assert "x.dim() == 1" in after
    inputs = ["torch.randn(2, 3), torch.randn(2, 3), torch.tensor([1, 2])"]  # the size of another dimension
    behaves(source, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES, strict=False)


@pytest.mark.parametrize("guards", ["skip", "advice"])
def test_without_checks_on_the_device_no_size_is_taken_for_granted(guards: str) -> None:
    assert not is_written(_ROWS + "y = x - rows", guards=guards)


def test_where_its_exception_may_be_caught_it_stays() -> None:
    body = (
        "try:\n            y = x - means.repeat_interleave(counts, 0)\n        except RuntimeError:\n            y = x"
    )
    assert not is_written(body)


def test_torch_may_have_another_name() -> None:
    source = "import torch as th\n\n\nclass Model(th.nn.Module):\n    def forward(self, x, means, counts: th.Tensor):\n"
    source += "        return x - means.repeat_interleave(counts, 0)\n"
    after, _ = fixed(source)
    assert "th._assert_async(fits" in after
    compiles(after, ["torch.randn(3, 3), torch.randn(2, 3), torch.tensor([1, 2])"])
