"""Numbers that a test chooses (GM101): where a 0-dim tensor gives what the number gives, and where it would not."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x, y=None):
        {body}
"""
_SCENARIOS = (Scenario(False, "off"), Scenario(True, "leaves"), Scenario(True, "inner", "one nan"))
_SCALE = "scale = 1.0 if x.max() <= 1.0 else 255.0\n"


def model(body: str) -> str:
    return _MODEL.format(body="\n        ".join(body.strip("\n").split("\n")))


@pytest.mark.parametrize(
    "body",
    [
        f"{_SCALE}return x / scale",
        f"{_SCALE}return x.clone().float().div_(scale) + self.weight",
        f"{_SCALE}return torch.mul(x, scale) * self.weight",
        f"{_SCALE}z = x.flip(0)\nreturn (z - scale) * self.weight",
        f"{_SCALE}return x.max() / scale",
        "scale = 255.0\nif x.max() <= 1.0:\n    scale = -1\nreturn scale - x",
        "if x.max() <= 1.0:\n    scale = 0.1\nelse:\n    scale = 3\nreturn scale * x + x / scale",
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_number_is_selected_on_the_device(body: str, dtype: str) -> None:
    after, _ = fixed(model(body))
    assert "torch.where(" in after, after
    given = [f"torch.tensor([0.5, -1.0, {top}], dtype=torch.{dtype})" for top in ("0.9", "7.0")]
    behaves(model(body), after, given, scenarios=FEW_SCENARIOS[:3])
    compiles(after, given, scenarios=_SCENARIOS)


@pytest.mark.parametrize(
    ("body", "given"),
    [
        # A float of a 0-dim tensor would not give integers the default dtype.
        (f"{_SCALE}return x / scale", "torch.arange(3)"),
        (f"{_SCALE}return x * scale", "torch.arange(3, dtype=torch.int8)"),
        # Half precision rounds 0.1, and does not hold 1e-8 at all.
        ("scale = 0.1 if x.max() <= 1.0 else 1e-8\nreturn x / scale", "torch.full((3,), 2.0).half()"),
        ("scale = 0.1 if x.max() <= 1.0 else 1e-8\nreturn x / scale", "torch.full((3,), 0.5).bfloat16()"),
        (f"{_SCALE}return x / scale", "torch.full((3,), 0.5).half()"),
    ],
)
def test_a_dtype_that_a_tensor_would_change_is_asked_for(body: str, given: str) -> None:
    after, _ = fixed(model(body), select=("GM101",))
    assert "torch.where(" in after, after
    behaves(model(body), after, [given], scenarios=FEW_SCENARIOS[:1])
    compiles(after, [given], strict=False)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        (f"{_SCALE}return x / scale, scale", "is used as a Python number"),
        (f"{_SCALE}f = lambda: [scale]\nreturn x / scale, f()", "read by another function"),
        (f"{_SCALE}return x[: int(scale)]", "is used as a Python number"),
        (f"{_SCALE}return x ** scale", "is used as a Python number"),
        (f"{_SCALE}return x.to('cpu') / scale", "another device"),
        (f"{_SCALE}return y.relu() / scale", "another device"),
        (f"{_SCALE}return self.weight / scale", "another device"),
        (f"{_SCALE}return x.half() / scale + x / scale", "several dtypes"),
        (f"{_SCALE}scale += 1\nreturn x / scale", "bound in several places"),
        (f"{_SCALE}if scale > 2:\n    x = x * 2\nreturn x / scale", "elsewhere than in arithmetic"),
        (f"{_SCALE}return [each / scale for each in x]", "is used as a Python number"),
        ("scale = 1 if x.max() <= 1.0 else 0.3\nreturn x.bfloat16() / scale", "may not hold the number"),
    ],
)
def test_other_uses_need_the_number(body: str, because: str) -> None:
    declined(model(body), because=because, select=("GM101",))
