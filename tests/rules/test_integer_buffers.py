"""Integers that are kept in buffers: the sizes that are made of them, and what may stand in the way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed, fixed_among

_MODEL = """
import math

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size: int = 7, stride: int = 3, causal: bool = True):
        super().__init__()
        self.causal = causal
        self.conv = nn.Conv1d(1, 1, size, stride, dilation=2)
        size = self.conv.kernel_size[0]
        stride = torch.tensor(self.conv.stride[0], dtype=torch.int64)
        size = torch.tensor((size - 1) * self.conv.dilation[0] + 1, dtype=torch.int64)
        self.register_buffer("stride", stride, persistent=False)
        self.register_buffer("size", size, persistent=False)
        self.register_buffer("total", size - stride, persistent=False)

    def _missing(self, x):
        length = x.shape[-1]
        steps = (length - self.size + self.total) / self.stride + 1
        steps = torch.ceil(steps).to(torch.int64) - 1
        ideal = steps * self.stride + self.size - self.total
        return ideal - length

    @staticmethod
    def _pad(x, paddings, mode="reflect"):
        length = x.shape[-1]
        left, right = paddings
        most = max(left, right)
        extra = 0
        if length <= most:
            extra = most - length + 1
            x = nn.functional.pad(x, (0, extra))
        padded = nn.functional.pad(x, paddings, mode)
        end = padded.shape[-1] - extra
        return padded[..., :end]

    def forward(self, x: torch.Tensor):
        missing = self._missing(x)
        if self.causal:
            x = self._pad(x, (self.total, missing))
        else:
            right = self.total // 2
            left = self.total - right
            x = self._pad(x, (left, right + missing))
        return self.conv(x)
"""
_INPUTS = ["torch.ones(1, 1, 4)", "torch.ones(1, 1, 17)", "torch.ones(2, 1, 30)", "torch.ones(2, 1, 31)"]


def codes(source: str) -> set[str]:
    return {finding.code for finding in checked(source).findings}


@pytest.mark.parametrize("causal", ["True", "False"])
def test_sizes_are_computed_with_integers_through_methods(causal: str) -> None:
    before = _MODEL.replace("causal: bool = True", f"causal: bool = {causal}")
    after, _ = fixed(before, select=("GM402",))
    assert after != before
    behaves(before, after, _INPUTS)
    for each in _INPUTS:
        compiles(after, [each])


def _assigned(model: str) -> str:
    """The model with `self.stride = nn.Buffer(stride, ...)` in the place of `self.register_buffer("stride", ...)`."""
    return re.sub(r'self\.register_buffer\("(\w+)", (.*)\)', r"self.\1 = nn.Buffer(\2)", model)


@pytest.mark.parametrize("causal", ["True", "False"])
def test_buffers_that_are_assigned_are_numbers_as_well(causal: str) -> None:
    before = _assigned(_MODEL).replace("causal: bool = True", f"causal: bool = {causal}")
    assert before.count("nn.Buffer(") == 3
    after, _ = fixed(before, select=("GM402",))
    assert after != before
    behaves(before, after, _INPUTS)
    for each in _INPUTS:
        compiles(after, [each])


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("nn.Buffer(size - stride, persistent=False)", "nn.Buffer(size - stride)", "may be loaded"),
        ("nn.Buffer(size - stride, persistent=False)", "nn.Buffer(size - stride, True)", "may be loaded"),
        ("    def _missing", "    def grow(self):\n        self.size.add_(1)\n\n    def _missing", "in place"),
        ("    def _missing", "    def new(self):\n        self.total = nn.Buffer(3)\n\n    def _missing", "again"),
    ],
)
def test_buffers_that_may_be_given_another_number_keep_their_tensors(old: str, new: str, because: str) -> None:
    assert old in _assigned(_MODEL)
    declined(_assigned(_MODEL).replace(old, new), because=because, select=("GM402",))


def test_a_fixed_module_has_no_more_to_fix() -> None:
    after, _ = fixed(_MODEL, select=("GM402",))
    assert "GM402" not in codes(after)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_compile_path_is_taken_where_the_quotient_rounds_exactly(dtype: torch.dtype) -> None:
    after, _ = fixed(_MODEL, select=("GM402",))
    start = after.index("def _rounds_exactly")
    names: dict[str, Any] = {"torch": torch}
    exec(after[start : after.index("class Model")], names)
    largest = int(0.5 / torch.finfo(dtype).eps)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        for divisor in (1, 3, 7, 49):
            assert not names["_rounds_exactly"](largest - divisor, divisor)
            assert names["_rounds_exactly"](largest - divisor - 1, divisor)
            first = max(largest - divisor - 5000, -largest + divisor + 1)
            dividends = torch.arange(first, largest - divisor)
            for summand in (-2, 0, 1, 2):
                quotients = dividends / torch.tensor(divisor) + summand
                assert torch.equal(torch.ceil(quotients).long(), -(-dividends // divisor) + summand)
                assert torch.equal(torch.floor(quotients).long(), dividends // divisor + summand)
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ('"total", size - stride, persistent=False', '"total", size - stride', "may be loaded"),
        (
            "    def _missing",
            "    def grow(self):\n        self.size.add_(1)\n\n    def _missing",
            "changes it in place",
        ),
        ("    def _missing", "    def new(self):\n        self.conv = None\n\n    def _missing", "is assigned again"),
        (
            "    def _missing",
            "    def all(self):\n        return self.buffers()\n\n    def _missing",
            "exposes all buffers",
        ),
        ("return ideal - length", "return x.sum()", "contains a value that may not be an integer"),
        ("self.conv.stride[0], dtype", "len(self.conv.bias), dtype", "is a Python integer"),
        ("(length - self.size + self.total) / self", "length / self", "may not be an integer"),
        ("/ self.stride + 1", "/ self.stride + 5", "may not be an integer"),
        (
            "        steps = torch.ceil",
            "        print(x.shape)\n        steps = torch.ceil",
            "contains a value that may not be an integer",
        ),
    ],
)
def test_a_way_that_is_not_known_to_the_end_keeps_its_tensors(old: str, new: str, because: str) -> None:
    assert old in _MODEL
    declined(_MODEL.replace(old, new), because, select=("GM402",))


@pytest.mark.parametrize("returned", ["missing", "self._missing(x)"])
def test_a_number_that_is_needed_as_a_tensor_elsewhere_is_one_there(returned: str) -> None:
    before = _MODEL.replace("return self.conv(x)", f"return self.conv(x) * {returned}")
    after, _ = fixed(before, select=("GM402",))
    assert "number_in_missing" in after
    behaves(before, after, _INPUTS)
    compiles(after, _INPUTS[:2])


def test_a_method_that_another_class_replaces_keeps_its_tensors() -> None:
    heir = "\n\nclass Other(Model):\n    def _missing(self, x):\n        return x.sum()\n"
    declined(_MODEL + heir, "contains a value that may not be an integer", select=("GM402",))


def test_attributes_of_the_same_name_in_another_class_do_not_matter() -> None:
    other = "\n\nclass Other(nn.Module):\n    def forward(self, x):\n        self.stride = 2\n        return x\n"
    after, _ = fixed(_MODEL + other, select=("GM402",))
    assert "_stride_as_int" in after


def test_an_integer_that_only_the_constructor_knows_stays_in_its_tensor() -> None:
    source = _MODEL.replace("torch.tensor(self.conv.stride[0], dtype", "torch.tensor(stride, dtype")
    declined(source, "known to be a Python integer only in the constructor", select=("GM402",))


_WIDTH = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, span: int = 3):
        super().__init__()
        self.span = span
        self.register_buffer("width", torch.tensor(span, dtype=torch.int64), persistent=False)

    def forward(self, x: torch.Tensor):
        self.change(x)
        return F.pad(x, (self.width, 0))

    def change(self, x):
        width = self.width
        ...
"""


@pytest.mark.parametrize(
    ("statement", "because"),
    [
        ("width += 2", "`width += 2` changes it in place"),
        ("width.add_(2)", "`width.add_` changes it in place"),
        ("width[...] = 2", "changes it in place"),
        ("torch.add(width, 1, out=width)", "`out=width` changes it in place"),
        ("torch.add(x, 1, out=self.width)", "`out=self.width` changes it in place"),
        ("setattr(self, x.name, 5)", "assigns it again"),
    ],
)
def test_a_tensor_that_is_changed_by_another_name_is_left_alone(statement: str, because: str) -> None:
    declined(_WIDTH.replace("...", statement), because=because, select=("GM402",))


def test_a_tensor_that_is_read_by_another_name_is_still_a_number() -> None:
    assert "self._width_as_int()" in fixed(_WIDTH.replace("...", "return width + 1"), select=("GM402",))[0]


_INITIALISED = """

class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("stride", torch.ones(2))


def initialise(module):
    if isinstance(module, nn.LayerNorm):
        nn.init.ones_(module.weight)
    elif isinstance(module, Model):
        size = module.conv.kernel_size[0]
        stride = torch.tensor(module.conv.stride[0], dtype=torch.int64)
        size = torch.tensor((size - 1) * module.conv.dilation[0] + 1, dtype=torch.int64)
        nn.init.constant_(module.stride, module.conv.stride[0])
        module.size.data.copy_(size) if False else init.copy_(module.size, size)
        init.copy_(module.total, size - stride)
    elif isinstance(module, Other):
        nn.init.zeros_(module.stride)
""".replace("module.size.data.copy_(size) if False else ", "")


def test_numbers_that_are_written_once_more_are_the_same_ones() -> None:
    after, result = fixed(_MODEL + _INITIALISED)
    assert not result.remaining
    assert "_stride_as_int" in after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nn.init.constant_(module.stride, module.conv.stride[0])", "nn.init.constant_(module.stride, 2)"),
        ("nn.init.constant_(module.stride, module.conv.stride[0])", "nn.init.ones_(module.stride)"),
        ("nn.init.constant_(module.stride, module.conv.stride[0])", "nn.init.constant_(module.conv.inner.stride, 3)"),
        ("init.copy_(module.total, size - stride)", "init.copy_(module.total, size + stride)"),
        ("init.copy_(module.total, size - stride)", "if size:\n            init.copy_(module.total, size - stride)"),
        ("isinstance(module, Other)", "isinstance(module, nn.Module)"),
        ("elif isinstance(module, Other):\n", "else:\n"),
        (
            "        nn.init.zeros_(module.stride)",
            "        module = module.inner\n        nn.init.zeros_(module.stride)",
        ),
    ],
)
def test_another_number_that_is_written_once_more_keeps_the_tensors(old: str, new: str) -> None:
    assert old in _INITIALISED
    declined(_MODEL + _INITIALISED.replace(old, new), because="may write another number")


_ELSEWHERE = """
from torch import nn

from module import Model


class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.stride = nn.Parameter(torch.ones(2))


def initialise(module):
    if isinstance(module, Mine):
        nn.init.zeros_(module.stride)
"""


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("", "", False),
        ("isinstance(module, Mine)", "isinstance(module, Model)", True),
        ("isinstance(module, Mine)", "isinstance(module, nn.Module)", True),
        ("isinstance(module, Mine)", "True", True),
        ("        nn.init", "        module = Model()\n        nn.init", True),
        ("Mine(nn.Module)", "Mine(Model)", False),
    ],
)
def test_what_another_file_writes_counts_for_the_classes_that_it_asks_for(
    tmp_path: Path, old: str, new: str, left: bool
) -> None:
    after, told = fixed_among(tmp_path, _MODEL, {"other.py": _ELSEWHERE.replace(old, new) if old else _ELSEWHERE})
    assert ("_stride_as_int" not in after) is left, told


def test_what_another_file_writes_counts_for_a_base_that_it_asks_for(tmp_path: Path) -> None:
    model = _MODEL.replace("class Model(nn.Module)", "class Base(nn.Module):\n    pass\n\n\nclass Model(Base)")
    other = _ELSEWHERE.replace("Model", "Base").replace("isinstance(module, Mine)", "isinstance(module, Base)")
    after, told = fixed_among(tmp_path, model, {"other.py": other})
    assert "_stride_as_int" not in after, told


_BASES = {
    "a base counts": ("self.width += 1", "`self.width` is assigned again"),
    "a base fills": ("self.width.fill_(9)", "`self.width.fill_` changes it in place"),
    "a base sets the number": ("self.span = 9", "`self.span` is assigned again"),
}
_BASE = """
class Base(nn.Module):
    def widen(self):
        ...


"""
_INHERITS = _WIDTH.replace("...", "return width").replace("(nn.Module)", "(Base)")


@pytest.mark.parametrize(("statement", "because"), _BASES.values(), ids=_BASES.keys())
def test_what_a_base_writes_is_no_longer_what_the_constructor_made(statement: str, because: str) -> None:
    base = _BASE.replace("...", statement)
    declined(_INHERITS.replace("\nclass Model", f"{base}class Model"), because=because, select=("GM402",))


@pytest.mark.parametrize("statement", ["pass", *(each for each, _ in _BASES.values())])
def test_what_a_base_in_another_file_writes_counts_as_well(statement: str, tmp_path: Path) -> None:
    here = _INHERITS.replace("import torch\n", "import torch\nfrom base import Base\n", 1)
    there = f"import torch\nfrom torch import nn\n{_BASE.replace('...', statement)}"
    after, _ = fixed_among(tmp_path, here, {"base.py": there})
    assert ("_width_as_int" in after) is (statement == "pass")


@pytest.mark.parametrize(
    ("base", "because"),
    [
        (
            "class Base(nn.Module):\n    @property\n    def span(self):\n        return 7\n\n"
            "    @span.setter\n    def span(self, span):\n        pass\n",
            "`span` is a property of the class",
        ),
        (
            "class Base(nn.Module):\n    def __setattr__(self, name, value):\n"
            "        self.__dict__[name] = 7 if name == 'span' else value\n",
            "`__setattr__` is a method of the class",
        ),
        ("class Base(nn.Module):\n    span = Seven()\n", "may be a descriptor"),
    ],
)
def test_a_class_that_keeps_another_number_than_it_is_given_is_left_alone(base: str, because: str) -> None:
    declined(_INHERITS.replace("\nclass Model", f"\n{base}\n\nclass Model"), because=because, select=("GM402",))


@pytest.mark.parametrize("receiver", ["self.conv", "each"])
def test_a_convolution_that_is_given_another_stride_is_left_alone(receiver: str) -> None:
    again = f"        for each in [self.conv]:\n            {receiver}.stride = (4,)\n"
    made = '        self.register_buffer("total", size - stride, persistent=False)\n'
    declined(_MODEL.replace(made, made + again), because=f"`{receiver}.stride` is assigned again", select=("GM402",))
