"""GM411: a window between tensors that is stored in a place of a fixed size, which says how wide it is."""

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
    def forward(self, x: torch.Tensor, starts: torch.Tensor, n: int = 3):
        y = x.new_zeros(2, 4, 3)
        {body}
        return y
"""
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))
_INPUTS = [
    "torch.randn(2, 4, 7), torch.tensor([2, 4])",
    "torch.randn(2, 4, 7), torch.tensor([0, 6])",  # one element is left, which is spread
    "torch.randn(2, 4, 7), torch.tensor([-5, -7])",
]
_LOOP = "for i in range(x.size(0)):\n            first = starts[i]\n            y[i] = x[i, :, first:first + n]"


def model(body: str) -> str:
    return _MODEL.format(body=body)


def is_written(body: str, **settings: object) -> bool:
    return "_window_for(" in fixed(model(body), **settings)[0]


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        (_LOOP, _INPUTS),
        (_LOOP.replace("first = starts[i]\n            ", "").replace("first", "starts[i]"), _INPUTS),
        ("y[0] = x[0, :, int(starts[0]):starts[1].item()]", ["torch.randn(2, 4, 7), torch.tensor([2, 5])"]),
        (
            "y[0] = x[1, :, :starts[0]]",
            ["torch.randn(2, 4, 7), torch.tensor([3])", "torch.randn(2, 4, 7), torch.tensor([-4])"],
        ),
        ("y[:, 1] = x[:, 2, starts[0]:starts[1]]", ["torch.randn(2, 4, 7), torch.tensor([2, 5])"]),
        ("y[..., :2] = x[0, starts[0]:starts[1], 1:3]", ["torch.randn(2, 7, 5), torch.tensor([1, 5])"]),
        (
            "y[1] = x[0, starts[0]:starts[1], starts[1]:starts[2]]",
            ["torch.randn(2, 7, 9), torch.tensor([1, 5, 8])", "torch.randn(2, 7, 9), torch.tensor([1, 2, 3])"],
        ),
        ("y[0] = x[starts[0]:starts[0] + 1]", ["torch.randn(4, 4, 3), torch.tensor([2])"]),  # more dimensions
        ("y[0, :, :0] = x[0, :, starts[0]:starts[1]]", ["torch.randn(2, 4, 7), torch.tensor([4, 2])"]),
        ("y[0] = x[starts[0]:]", ["torch.randn(4, 3), torch.tensor([2])"]),  # that ends as one, by dimension
    ],
)
def test_the_place_tells_how_wide_the_window_is(body: str, inputs: list[str]) -> None:
    source = model(body)
    after, _ = fixed(source)
    assert "_window_for(" in after
    behaves(source, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES)


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.randn(2, 4, 7), [2, 4]",
        "torch.randn(2, 4, 7), torch.tensor([[2], [4]])",
        "torch.randn(2, 4, 7), torch.tensor([2, 4], dtype=torch.int32)",
        "torch.randn(2, 4, 7), torch.tensor([2, 4], dtype=torch.uint8)",
        "torch.randn(2, 4, 7), (None, 4), None",
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_the_header_asks_for_decides(inputs: str) -> None:
    source = model(_LOOP)
    after, _ = fixed(source)
    behaves(source, after, [inputs], scenarios=_MODES)
    if "None" not in inputs:
        compiles(after, [inputs], scenarios=_MODES, strict=False)


@pytest.mark.parametrize("starts", [[0, 5], [-8, 0], [9, 0], [-1, 0], [-2, 0], [[1, 2], [3, 4]]])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.filterwarnings("ignore")
def test_compiled_code_raises_where_eager_mode_does(starts: list[object], backend: str) -> None:
    names: dict[str, type[torch.nn.Module]] = {}
    after, _ = fixed(model(_LOOP))
    exec(compile(after, "model.py", "exec"), names)
    made, given = names["Model"](), (torch.randn(2, 4, 7), torch.tensor(starts))
    with pytest.raises((RuntimeError, TypeError)):
        made(*given)
    torch._dynamo.reset()
    with pytest.raises((RuntimeError, TypeError)):
        torch.compile(made, backend=backend)(*given)


@pytest.mark.parametrize(
    "body",
    [
        "y = x[0, :, starts[0]:starts[0] + n]",  # nothing says how wide it is
        "y[0] = x[0, :, starts[0]:starts[1]] * 2",
        "y[0] = y[1, :, starts[0]:]",  # the same memory
        "x[0] = x[1, :, starts[0]:starts[1]]",
        "y = x[:, :4]\n        y[0] = x[1, :, starts[0]:starts[1]]",
        "z = y\n        y[0] = x[1, :, starts[0]:starts[1]]\n        y = z",
        "y[starts[0]] = x[0, :, starts[0]:starts[1]]",
        "y[:, :, :starts[2]] = x[:, :, starts[0]:starts[1]]",
        "y[0] = x[0, :, starts[0]:starts[1]:2]",
        "y[0] = x[0, [0, 1, 2, 3], starts[0]:starts[1]]",
        "y[0] = x[0, :, None, starts[0]:starts[1]]",
        "y[0] = x[0].clone()[:, starts[0]:starts[1]]",
        "y[0] += x[0, :, starts[0]:starts[1]]",
        "y[0] = y[1] = x[0, :, starts[0]:starts[1]]",
        "y[0] = x[0, :, starts.sort()[0][0]:starts[1]]",  # the header would compute it once more
        "y = [None]\n        y[0] = x[0, :, starts[0]:starts[1]]",
        "y[0] = x[0, :, 1:n]",
    ],
)
def test_nothing_is_written_elsewhere(body: str) -> None:
    assert not is_written(body)


@pytest.mark.parametrize("guards", ["skip", "advice"])
def test_without_checks_on_the_device_no_width_is_taken_for_granted(guards: str) -> None:
    assert not is_written(_LOOP, guards=guards)


def test_where_its_exception_may_be_caught_it_stays() -> None:
    body = "try:\n            y[0] = x[0, :, starts[0]:starts[1]]\n        except RuntimeError:\n            pass"
    assert not is_written(body)


def test_torch_may_have_another_name() -> None:
    after, _ = fixed(
        model(_LOOP)
        .replace("torch", "th")
        .replace("import th", "import torch as th", 1)
        .replace("from th", "from torch")
    )
    assert "th._assert_async(fits" in after
    assert "th.int64" in after
    compiles(after, _INPUTS[:1])
