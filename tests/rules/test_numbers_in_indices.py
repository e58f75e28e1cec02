"""GM802: numbers that only the data tells as indices, where torch.compile takes a symbol and where it does not."""

from __future__ import annotations

import textwrap

import pytest
import torch

from tests.tools.fixes import declined, fixed
from tests.tools.subject import forget, load, register

_CODE = {"select": ("GM802",), "opaque": True}
_BESIDE, _WRITTEN = "beside other indices", "Inductor has to know where it ends"


def _model(lines: str) -> str:
    head = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
    return f"{head}        n = x[0].argmax() % 3\n{textwrap.indent(textwrap.dedent(lines), ' ' * 8)}\n"


def _inductor_agrees(source: str) -> None:
    name = register(source)
    try:
        model, x = load(name).Model(), torch.randn(4, 8, generator=torch.Generator().manual_seed(1))
        torch._dynamo.reset()
        assert torch.allclose(torch.compile(model)(x), model(x))  # type: ignore[no-untyped-call]
    finally:
        forget(name)


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        ("return x[:, n.item()] * 2", _BESIDE),
        ("k = int(n)\nreturn x[0, k + 1] * 2", _BESIDE),
        ("x = x.clone()\nx[..., n.item()] = 0\nreturn x", _BESIDE),
        ("x = x.clone()\nx[:, : n.item()] = 0\nreturn x", _WRITTEN),
        ("k = n.item()\nx = x.clone()\nx[k:] += 1\nreturn x", _WRITTEN),
        ("k = n.item()\nx = x.clone()\nx[:, :k].mul_(2)\nreturn x", _WRITTEN),
    ],
)
def test_an_index_that_the_compiler_refuses_is_left_alone(lines: str, because: str) -> None:
    """Compiled code would end with an error where it broke the graph."""
    declined(_model(lines), because, **_CODE)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "lines",
    [
        "k = n.item()\nreturn x[k] * 2 + x.select(1, k).sum()",
        "k = n.item()\nreturn x[:, k : k + 2].sum() + x[:, -k:].sum()",
        "k = n.item()\nx = x.clone()\nx[k] = 0\nreturn x",
    ],
)
def test_an_index_that_the_compiler_takes_is_one(lines: str) -> None:
    after, result = fixed(_model(lines), **_CODE)
    assert result.fixes
    _inductor_agrees(after)
