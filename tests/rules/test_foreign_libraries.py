"""Calls into libraries that Dynamo does not trace, by whatever name a file has them."""

from __future__ import annotations

import pytest

from tests.tools.fixes import checked

_MODULE = """
import torch
from torch import nn
{imports}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.made = {made}

    def forward(self, x, given: {annotation} = None):
        y = {call}
        return x
"""


def _breaks(imports: str, call: str, *, made: str = "3", annotation: str = "int") -> bool:
    source = _MODULE.format(imports=imports, call=call, made=made, annotation=annotation)
    return bool(checked(source).findings)


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from librosa.filters import mel as mel_fn", "mel_fn(sr=16000, n_fft=512)"),
        ("from scipy.signal import get_window", "get_window('hann', 4)"),
        ("import librosa.util as helpers", "helpers.pad_center(x, size=4)"),
        ("from PIL import Image", "Image.open('a')"),
        ("import skimage", "skimage.filters.gaussian(x)"),
    ],
)
def test_functions_of_such_a_library(imports: str, call: str) -> None:
    assert _breaks(imports, call)


def test_functions_that_are_imported_where_they_are_called() -> None:
    assert _breaks("", "1\n        from scipy.special import gamma\n        y = gamma(3)")


@pytest.mark.parametrize(
    ("call", "made", "annotation"),
    [
        ("self.made.wavefun(3)", "pywt.Wavelet('haar')", "int"),
        ("len(self.made)", "Wavelet('haar')", "int"),
        ("given.wavefun(3)", "3", "Wavelet"),
        ("len(given)", "3", "pywt.Wavelet | None"),
    ],
)
def test_objects_of_such_a_library(call: str, made: str, annotation: str) -> None:
    assert _breaks("import pywt\nfrom pywt import Wavelet", call, made=made, annotation=annotation)


def test_objects_that_a_module_makes() -> None:
    setting = "from contextvars import ContextVar\nsetting: ContextVar[bool] = ContextVar('setting', default=False)"
    assert _breaks(setting, "setting.get()")
    assert _breaks(setting, "3 if setting.get() else 4")
    assert not _breaks(setting, "dict().get(3)")


@pytest.mark.parametrize(
    "call", ["len(x)", "self.made.bit_length()", "given.bit_length()", "torch.relu(x)", "max(1, 2)"]
)
def test_what_has_nothing_to_do_with_it(call: str) -> None:
    assert not _breaks("import pywt\nfrom pywt import Wavelet", call)
