"""What Dynamo cannot trace is named once, where nothing else is said of it."""

from __future__ import annotations

import pytest

from tests.tools.fixes import checked, embedded, fixed

_SETUP = """
import math
import random
import time
from random import choice

import numpy
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from tqdm import tqdm


class Inner(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight


class Part(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inner = Inner(config)

    def forward(self, x):
        return self.inner(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.LSTM(3, 3)
        self.ctc = nn.CTCLoss()
        self.part = None

    def choose(self):
        self.part = Part(None)

    def forward(self, x: torch.Tensor, ids: torch.LongTensor, other=None):
        ...
        return x
"""


def written(statements: str) -> str:
    return embedded(statements, _SETUP)


def found(source: str) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in checked(source).findings]


@pytest.mark.parametrize(
    ("statements", "does"),
    [
        ("self.choose()", "constructs a module with parameters"),
        ("mask = ~(x > 0)\nx = x[mask]", "boolean-mask indexing"),
        (
            "longest = min(ids.max(), 9)\nleft = [longest - n for n in other]\n"
            "for i, (n, p) in enumerate(zip(other, left)):\n    if p <= 0:\n        x = x * n",
            "may be a data-dependent branch: `p <= 0`",
        ),
        ("x = x[ids == 1]", "boolean-mask indexing"),
        ("x = x + torch.from_numpy(numpy.asanyarray(other))", "a function of NumPy without a counterpart"),
        ("x = x + len(numpy.delete([1, 2], 0))", "a function of NumPy without a counterpart"),
        ("x = torch.repeat_interleave(ids)", "output has a data-dependent shape"),
        ("first = torch.max(other, other - 4)\nx[:, : first[0]] = 0.0", "uses a tensor as a size"),
        ("x = x + torch.randint(0, max(1, 9 - (ids - 1).max()), (3,))", "as a number (device sync)"),
        ("x = x.as_subclass(torch.Tensor)", "makes a tensor one of another class"),
        ("first = other > 0\nboth = first & (other < 1)\nx = other[both]", "boolean-mask indexing"),
        ("rows = [torch.arange(n) for n in ids]\nx = x + ids.argwhere()", "uses a tensor as a size (device sync)"),
        (
            "for i, n in enumerate(zip(ids, x)):\n    x = x[: n[0]] + ids.bincount()",
            "uses a tensor as a size (device sync)",
        ),
        (
            "rows, columns = zip(*torch.stack([ids, ids], 1))\nx[rows, columns] = 0.0\nx = x + ids.nonzero()",
            "unpacks a tensor",
        ),
        ("counts = other.tolist()\nx = x * counts[0]", "converts a tensor to a Python list"),
        ("x = math.sqrt(ids.max()) * torch.arange(ids.max())", "converts a tensor to a Python scalar"),
        ("x[x > 0] += x.new_ones(1)", "boolean-mask indexing"),
        ("x = pack_padded_sequence(x, ids)", "packs or unpacks sequences"),
        ("x = self.ctc(x, ids, ids, ids)", "computes a CTC loss"),
        ("x = x.to_sparse()", "makes a sparse tensor"),
        ("torch.manual_seed(3)", "random number generator"),
        ("if torch.is_inference_mode_enabled():\n    x = x + 1", "asks for a setting or a mode of torch"),
        ("if x.is_inference():\n    x = x + 1", "asks what kind of tensor it is"),
        ("x = x.new_empty(3).random_(0, 2) + x", "a method that Dynamo does not trace"),
        ("x = x * random.gauss(0, 1)", "draws a random number with Python"),
        ("x = choice([1, 2]) * x", "draws a random number with Python"),
        ("time.sleep(0)", "reads the clock"),
        ("mask = other.long()\nmask = other == 1\nx = x[:, mask]", "boolean-mask indexing"),
        ("x = nn.functional.one_hot(ids, max(ids.max(), 3))", "uses a tensor as a size"),
        ("x = torch.topk(x, k=ids[0])[0]", "uses a tensor as a size"),
        ("fg_mask, other = other\nx = x[fg_mask]\nfg_mask = fg_mask.cuda()", "boolean-mask indexing"),
        ("masks = other == 1\nfor i in range(3):\n    x = x[i][masks[i]]", "boolean-mask indexing"),
        ("chosen = torch.zeros(3, dtype=torch.bool)\nx = x[:, chosen[0]]", "boolean-mask indexing"),
        ("rows = torch.empty(3, dtype=torch.bool)\nx = x[rows]\nx = x + ids.nonzero()", "boolean-mask indexing"),
        ("x = x.repeat_interleave(ids, output_size=other)", "data-dependent shape where `other` is None"),
        ("x = x.to_sparse_coo()", "makes a sparse tensor"),
        ("x = x.detach().requires_grad_()", "require gradients"),
        ("x = x * numpy.random.normal(0, 1)", "draws a random number with NumPy"),
        ("source = numpy.random.default_rng(3)\nx = x * source.random(3)", "draws a random number with NumPy"),
        ("source = torch.Generator()\nx = x * torch.randn(3, generator=source)", "draws random numbers with a `torch"),
        ("x = x + numpy.interp(0.5, [0, 1], [2, 3])", "function of NumPy without a counterpart"),
        ("x = x + numpy.polynomial.legendre.legval(3, other)", "function of NumPy without a counterpart"),
        ("for i in range(numpy.prod(x.shape)):\n    x = x + i", "converts a tensor to a Python scalar"),
        ("if numpy.isnan(other):\n    x = x + 1", "branch on a result of NumPy"),
        ("x = x * all(a < b for a, b in zip(ids[:-1], ids[1:]))", "branch on the elements of a tensor"),
        ("x = nn.functional.one_hot(ids)", "`num_classes` is not given"),
        ("x = nn.functional.one_hot(ids, num_classes=-1) + ids.nonzero()", "`num_classes` is not given"),
    ],
)
def test_what_cannot_be_traced_is_named(statements: str, does: str) -> None:
    named = {"GM703", "GM801", "GM802"}  # what an opaque operator can take is named by the rule that writes it
    assert any(code in named and does in message for code, message in found(written(statements)))


def test_any_of_python_over_a_tensor_is_a_test_of_it() -> None:
    assert "GM101" in {code for code, _ in found(written("if any(x > 0):\n    x = x[ids.unique()]"))}


def test_a_number_that_its_annotation_allows_to_be_a_tensor_may_break() -> None:
    source = written("if other > 1:\n    x = x * 2\nx = x * float(other)").replace("other=None", "other: Scalar = 0.0")
    assert "GM703" not in {code for code, _ in found(source)}
    messages = {message for code, message in found(f"{_ALIAS}{source}") if code in {"GM703", "GM802"}}
    assert messages == {
        "may be a data-dependent branch: `other > 1`",
        "converts a tensor to a Python scalar (device sync): `float(other)`",
    }


_ALIAS = "from typing import Union\nfrom torch import Tensor\nScalar = Union[float, Tensor]\n"


def test_the_reason_of_a_rule_comes_before_advice() -> None:
    source = written("for row in ids:\n    if row.sum() > 3:\n        x = x + row.nonzero()[0]")
    codes = {finding.span.start_line: finding.code for finding in checked(source).findings}
    assert codes == {43: "GM101", 44: "GM802"}


@pytest.mark.parametrize(
    "statements",
    [
        "mask = x > 0\nx[mask] = x[mask] * 2",
        "mask = x > 0\nx = x[mask].sum()",
    ],
)
def test_what_a_rule_mends_gets_no_advice_before_or_after(statements: str) -> None:
    source = written(statements)
    assert "GM703" not in {code for code, _ in found(source)}
    after, _ = fixed(source)
    assert found(after) == []


@pytest.mark.parametrize(
    "statements",
    [
        "if not torch.compiler.is_compiling():\n    x = x[x > 0]",
        "x = x if torch.compiler.is_compiling() else x[x > 0]",
        "if torch.compiler.is_compiling():\n    x = x + 1\nelse:\n    x = x[ids.nonzero()]",
        "x = nn.Softmax(-1)(x)\nx[x > 0] = ids.sum()",
        "sizes = list(x.shape)\nx = x.view(sizes[0], -1)[: sizes[0]]",
        "flags = [True]\nx = x[0 if flags[0] == 1 else 1]",
        "x = x * random.uniform(0, 1) + nn.functional.one_hot(ids, 3)",
        "numpy.random.seed(3)\nx = x / math.sqrt(x.shape[-1])",
        "left = [x.shape[0] - n for n in other]\nfor p in left:\n    if p <= 0:\n        x = x + 1",
    ],
)
def test_what_is_traced_is_not_named(statements: str) -> None:
    assert found(written(statements)) == []


def test_a_module_without_parameters_may_be_made_anywhere() -> None:
    without = _SETUP.replace("nn.Parameter(torch.ones(3))", "2.0")
    assert found(embedded("self.choose()", without)) == []


def test_a_spectrogram_of_torchaudio_is_named() -> None:
    source = """
import torchaudio
from torch import nn
from torchaudio.transforms import InverseSpectrogram


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.spectrum = InverseSpectrogram(64)
        self.mel = torchaudio.transforms.MFCC()
        self.other = torchaudio.transforms.AmplitudeToDB()

    def forward(self, x):
        x = self.spectrum(x)
        x = x + self.mel(x)
        return self.other(x)
"""
    assert [does for _, does in found(source)] == [
        "computes a spectrogram with torchaudio: `self.spectrum(x)`",
        "computes a spectrogram with torchaudio: `self.mel(x)`",
    ]


@pytest.mark.parametrize("test", ["self.started", "not self.started", "x.dim() > 2 and self.started"])
def test_a_buffer_that_is_tested_alone_is_a_tensor(test: str) -> None:
    source = f"""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("started", torch.zeros(()))

    def forward(self, x: torch.Tensor):
        if {test}:
            x = x + 1.0
        return x
"""
    (finding,) = checked(source).findings
    assert finding.code == "GM101"
    assert finding.edit is not None
    assert not checked(source.replace(f"if {test}", "if self.started is not None")).findings


_BUFFERS = """
import torch
from torch import nn


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))
        self.register_buffer("none", None)
        self.weight = nn.Parameter(torch.ones(1))
        self.count = 0

    def forward(self, x, mode: torch.Tensor, valid=None, chosen: torch.BoolTensor = None):
        ...
        return x
"""


@pytest.mark.parametrize(
    ("statements", "code", "does"),
    [
        ("x = x[int(self.place)]", "GM703", "converts a tensor to a Python scalar"),
        ("self.place += 1\nif self.place % 9 == 0:\n    self.count = x", "GM703", "data-dependent branch"),
        ("if not mode:\n    self.count = x", "GM703", "data-dependent branch"),
        ("x = torch.relu(x)[valid].cumsum(0)", "GM703", "boolean-mask indexing"),
        ("x = x.view(int(self.weight), -1)", "GM802", "converts a tensor to a Python scalar"),
        ("x = x[chosen].cumsum(0)", "GM802", "boolean-mask indexing"),
    ],
)
def test_what_a_buffer_or_an_annotation_says_is_named(statements: str, code: str, does: str) -> None:
    named = [(each, message) for each, message in found(embedded(statements, _BUFFERS)) if each in {code, "GM802"}]
    assert any(does in message for _, message in named)


_PLAIN = ["self.count % 9 == 0", "int(self.count) == 3", "self.none is None", "self.place.shape[0] > 2", "len(x) > 2"]


@pytest.mark.parametrize("test", _PLAIN)
def test_what_is_no_tensor_decides_without_a_finding(test: str) -> None:
    assert found(embedded(f"if {test}:\n    self.count += 3", _BUFFERS)) == []


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ("self.cell = nn.GRU if kind == 'gru' else nn.LSTM\n        self.rnn = self.cell(3, 3)", True),
        ("self.rnn = {'gru': nn.GRU, 'lstm': nn.LSTM}[kind](3, 3)", True),
        ("cell = nn.LSTM if kind else nn.GRU\n        self.rnn = cell(3, 3)", True),
        ("cell = nn.Linear if kind else nn.Bilinear\n        self.rnn = cell(3, 3)", False),
    ],
)
def test_a_recurrent_layer_whose_class_is_chosen_is_named(chosen: str, named: bool) -> None:
    source = f"""
from torch import nn


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        {chosen}

    def forward(self, x):
        return self.rnn(x)
"""
    assert any("recurrent layer" in message for _, message in found(source)) is named


@pytest.mark.parametrize(
    "statements",
    [
        "n = other.abs().max()\nx = x[: int(n) + 1]",
        "x = x * math.sqrt(x.var())",
        "n = other.max() + 1\nx = x.new_zeros(n, 8)",
        "h, w = other.max(0)[0]\nx = x.expand(h // 2, w)",
        "x = x.mean() or x.sum()",
        "x = nn.GRU(3, 3)(x)[0]",
    ],
)
def test_a_tensor_in_the_place_of_a_number_is_looked_for_alone(statements: str) -> None:
    assert found(written(statements)), "nothing else in the function is worth a look"


def test_a_layer_that_is_called_as_a_method_of_tensors_takes_no_sizes() -> None:
    source = """
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.expand = nn.Linear(3, 3)

    def forward(self, x):
        n = x.sum().item()
        return self.expand(x) + n
"""
    assert not [message for _, message in found(source) if "size" in message]


@pytest.mark.parametrize(
    ("statements", "does"),
    [
        ("i = x[0].argmax()\nx[:, i] = 0", "reads a number out of a tensor"),
        ("index = (x > 0).byte()\nx[index] = x[index] * 2", "indexes with a mask of type uint8"),
        ("self.layers.flatten_parameters()", "recurrent layer"),
    ],
)
def test_what_breaks_by_the_type_of_an_index_or_a_layer_is_named(statements: str, does: str) -> None:
    assert any(does in message for _, message in found(written(statements)))


def test_an_index_of_several_dimensions_is_not_named() -> None:
    assert not found(written("x = x + x[x.argmax(0)]\nx = x[:, torch.tensor([0])]"))
