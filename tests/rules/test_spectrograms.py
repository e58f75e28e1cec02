"""GM603: what is written for a layer of torchaudio computes what the layer does, or calls it."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed, noop
from tests.tools.observe import Scenario

_LIBRARY = """
import torch
from torch import nn


def _get_spec_norms(normalized):
    frame_length_norm, window_norm = False, False
    if torch.jit.isinstance(normalized, str):
        if normalized not in ["frame_length", "window"]:
            raise ValueError("Invalid normalized parameter: {}".format(normalized))
        frame_length_norm, window_norm = normalized == "frame_length", normalized == "window"
    elif torch.jit.isinstance(normalized, bool):
        window_norm = normalized
    else:
        raise TypeError("Input type not supported")
    return frame_length_norm, window_norm


class Spectrogram(nn.Module):
    def __init__(self, n_fft, win_length=None, hop_length=None, pad=0, power=2.0, normalized=False, center=True,
                 pad_mode="reflect", onesided=True):
        super().__init__()
        self.n_fft, self.win_length = n_fft, win_length or n_fft
        self.hop_length = hop_length or self.win_length // 2
        self.register_buffer("window", torch.hann_window(self.win_length))
        self.pad, self.power, self.normalized = pad, power, normalized
        self.center, self.pad_mode, self.onesided = center, pad_mode, onesided

    def forward(self, x):
        if self.pad > 0:
            x = torch.nn.functional.pad(x, (self.pad, self.pad), "constant")
        frame_length_norm, window_norm = _get_spec_norms(self.normalized)
        shape = x.size()
        found = torch.stft(
            x.reshape(-1, shape[-1]), self.n_fft, self.hop_length, self.win_length, self.window, self.center,
            self.pad_mode, frame_length_norm, self.onesided, return_complex=True,
        )
        found = found.reshape(shape[:-1] + found.shape[-2:])
        if window_norm:
            found /= self.window.pow(2.0).sum().sqrt()
        if self.power is not None:
            return found.abs() if self.power == 1.0 else found.abs().pow(self.power)
        return found


class Scale(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.register_buffer("fb", torch.linspace(0, 1, 3 * count).view(count, 3))

    def forward(self, x):
        return torch.matmul(x.transpose(-1, -2), self.fb).transpose(-1, -2)


class MelSpectrogram(nn.Module):
    def __init__(self, n_fft):
        super().__init__()
        self.spectrogram, self.mel_scale = Spectrogram(n_fft, power=1), Scale(n_fft // 2 + 1)

    def forward(self, x):
        return self.mel_scale(self.spectrogram(x))
"""
_MODEL = """
import torch
import torchaudio
from torch import nn
from torchaudio import transforms


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.spec_fn = torchaudio.transforms.{made}
        {more}

    def forward(self, x):
        y = torch.log(self.spec_fn(x * 2).abs() + 1.0)
        return y.sum(-1)
"""
_MADE = (
    "Spectrogram(16, power=None)",
    "Spectrogram(16, 8, 4, power=2.0, pad=3)",
    "Spectrogram(16, normalized=True, power=1.0, center=False, pad_mode=None)",
    'Spectrogram(16, normalized="frame_length", onesided=False)',
    "MelSpectrogram(16)",
)
_MODES = (Scenario(True, "inner"), Scenario(False, "off"))


@pytest.fixture(autouse=True)
def torchaudio(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A library with the layers of torchaudio that are asked about."""
    library, layers = types.ModuleType("torchaudio"), types.ModuleType("torchaudio.transforms")
    monkeypatch.setitem(sys.modules, "torchaudio", library)
    monkeypatch.setitem(sys.modules, "torchaudio.transforms", layers)
    exec(_LIBRARY, vars(layers))
    library.transforms = layers  # type: ignore[attr-defined]
    yield
    torch._dynamo.reset()


def model(made: str = "Spectrogram(16)", more: str = "pass") -> str:
    return _MODEL.format(made=made, more=more)


@pytest.mark.parametrize("made", _MADE)
def test_a_spectrogram_is_computed_in_the_graph(made: str) -> None:
    before = model(made)
    after, _ = fixed(before)
    assert "_spectrogram_while_tracing(self.spec_fn, x * 2)" in after
    given = ["torch.randn(2, 40)", "torch.randn(2, 3, 40)", "torch.randn(40)"]
    behaves(before, after, given)
    compiles(after, given, scenarios=_MODES)
    assert fixed(after)[0] == after


@pytest.mark.parametrize(
    "more",
    [
        "self.spec_fn.register_forward_hook(lambda module, given, result: result * 3)",
        "self.spec_fn.register_forward_pre_hook(lambda module, given: (given[0] * 3,))",
        "self.spec_fn.forward = lambda x: x.abs() * 3",
        "self.spec_fn.normalized = 1",
        'self.spec_fn.normalized = "loudness"',
        "self.spec_fn = type('Louder', (transforms.Spectrogram,), {'forward': lambda self, x: x * 3})(16)",
        "self.spec_fn = nn.Linear(40, 4)",
        "del self.spec_fn.window",
    ],
)
def test_a_layer_that_may_compute_something_else_is_called(more: str) -> None:
    before = model("Spectrogram(16)", more)
    helper = fixed(model())[0].split("class Model")[0]
    after = helper + "class Model" + before.split("class Model")[1]
    after = after.replace("self.spec_fn(x * 2)", "_spectrogram_while_tracing(self.spec_fn, x * 2)")
    behaves(before, after, ["torch.randn(2, 40)"], scenarios=_MODES)
    compiles(after, ["torch.randn(2, 40)"], strict=False)


@pytest.mark.parametrize("given", ["torch.randn(0, 40)", "torch.randn(2, 3)", "torch.ones(2, 40, dtype=torch.int64)"])
def test_what_a_spectrogram_cannot_take_raises_as_before(given: str) -> None:
    after, _ = fixed(model("Spectrogram(16, center=False)"))
    behaves(model("Spectrogram(16, center=False)"), after, [given])
    compiles(after, [given], strict=False)


@pytest.mark.parametrize("call", ["self.spec_fn(x, 2)", "self.spec_fn(*x)", "self.spec_fn(waveform=x)"])
def test_a_call_of_another_form_is_left_alone(call: str) -> None:
    source = model().replace("self.spec_fn(x * 2)", call)
    assert [each.code for each in checked(source).findings if each.edit] == []


def test_a_layer_of_another_library_is_left_alone() -> None:
    noop(model().replace("torchaudio", "other"))
