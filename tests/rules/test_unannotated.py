"""Names without an annotation are tensors where they are used as only tensors are, if the header says so, too."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.fixes import checked, fixed

MODEL = """
import numpy as np
import torch
from torch import nn


class Part(nn.Module):
    def forward(self, x):
        return x + 1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.register_buffer("started", torch.tensor(0.0))

    def forward(self, x, mask=None, sizes=(1, 2)):
{body}
        return x
"""


def model(body: str) -> str:
    return MODEL.format(body="\n".join(f"        {line}" for line in body.splitlines()))


INPUTS = ["(torch.randn(2, 4),)", "(torch.randn(2, 4) + 9,)", "(np.ones((2, 4)),)"]


@pytest.mark.parametrize(
    "body",
    [
        "if x.max() > 3:\n    x = x * 2",
        "h = self.part(x)\nif h.isnan().any() or h.max() > 3:\n    x = x * 2",
    ],
)
def test_a_name_that_is_used_as_a_tensor_gets_a_compile_path(body: str) -> None:
    source = model(body)
    after, _ = fixed(source)
    assert "isinstance(x, torch.Tensor)" in after
    behaves(source, after, INPUTS)


@pytest.mark.parametrize(
    "body",
    [
        "if sizes.count(1) > 3:\n    x = x * 2",
        "if x.count(1) > 3:\n    x = x * 2",
        "if np.max(x) > 3:\n    x = x * 2",
    ],
)
def test_what_python_or_numpy_may_answer_is_no_tensor(body: str) -> None:
    assert not [each for each in checked(model(body)).findings if each.code != "GM703"]


def test_a_name_that_is_asked_for_none_may_be_none() -> None:
    source = model("if mask is None:\n    mask = x > 0\nif mask.any():\n    x = x * 2")
    after, _ = fixed(source)
    behaves(source, after, ["(torch.randn(2, 4),)", "(torch.randn(2, 4), torch.ones(2, 4))"])


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("if 3 in x.long():\n    x = x + 1", "searches a tensor"),
        ("y = [int(each) for each in x.sum(-1)]", "Python scalar"),
        ("same = torch.equal(x, x)", "Python bool"),
        ("w = nn.Parameter(torch.ones(4))", "makes a parameter"),
        ("x.sum().backward()", "computes gradients"),
        ("if not self.started > 0.0:\n    self.started = torch.tensor(1.0)", "data-dependent"),
        ("kept = [each > 1 for each in sizes]\nx = x.abs()[..., kept]", "list of bools"),
        ("ends = np.array([0, 2])\nx = x.abs()[ends[0] : ends[1]]", "reads numbers"),
        ("x.sum() > 3 and print('large')", "data-dependent"),
    ],
)
def test_nothing_is_silent(body: str, found: str) -> None:
    assert any(found in each.message for each in checked(model(body)).findings)


def test_functions_of_torch_are_known_by_what_is_imported() -> None:
    source = model("y = fn.relu(mask)\nif mask.sum() > 3:\n    x = x * 2")
    imported = source.replace("import torch\n", "import torch\nimport torch.nn.functional as fn\n", 1)
    assert "torch.where(mask.sum() > 3" in fixed(imported)[0]
    assert "torch.where" not in fixed(imported.replace("torch.nn.functional", "math"))[0]


def test_a_layer_s_result_is_named_and_self_is_not_annotated() -> None:
    reasons = [each.declined or "" for each in checked(model("n = self.part(x).max().item()\nx = x * n")).findings]
    assert any("assign it to an annotated variable" in each for each in reasons), reasons
    assert not any("annotate `self" in each for each in reasons)


@pytest.mark.parametrize(
    "body",
    [
        "first, second = x\nif first != 3:\n    raise ValueError('size')",
        "for first in x:\n    if first != 3:\n        raise ValueError('size')",
        "for _, first in enumerate(x):\n    if first != 3:\n        raise ValueError('size')",
        "first = x[0]\nfor _ in range(2):\n    first = first + 0\nif first != 3:\n    raise ValueError('size')",
    ],
)
def test_what_is_taken_out_of_a_guess_is_a_guess(body: str) -> None:
    source = model(f"{body}\nif mask is not None:\n    x = x.argmax()")
    after, _ = fixed(source)
    assert after == source or "isinstance(first, torch.Tensor)" in after
    assert "torch._assert_async" in after
    behaves(source, after, ["((3, 3),)", "(torch.tensor([3.0, 3.0]),)"])


@pytest.mark.parametrize(
    "test",
    [
        "isinstance(x, dict)",
        "isinstance(x, (list, tuple))",
        "not torch.is_tensor(x)",
        "not isinstance(x, torch.Tensor)",
    ],
)
def test_what_is_asked_for_another_class_is_no_tensor(test: str) -> None:
    body = f"if {test}:\n    first = x[0]\n    if first != 3:\n        raise ValueError('size')\nelse:\n    x.argmax()"
    assert fixed(model(body))[0] == model(body)
