"""GM603: functions of numbers alone, which torch.compile calls as a whole while it traces."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.operators import forgotten, made  # noqa: F401
from tests.tools.fixes import fixed

_ENVELOPE = """
import numpy as np
import torch
from torch import nn


def envelope(n_frames, hop_length=2, win_length=None, dtype=np.float32, norm=None):
    if win_length is None:
        win_length = 4
    total = np.zeros(win_length + hop_length * (n_frames - 1), dtype=dtype)
    one = np.unwrap(np.hanning(win_length)) ** 2
    one = np.pad(one, (0, 0), mode="reflect")
    for i in range(n_frames):
        total[i * hop_length : i * hop_length + win_length] += one
    return total


def filters(name: str, flip: bool, device: torch.device, dtype: torch.dtype = torch.float32):
    table = np.unwrap(np.linspace(0, 1, 4))
    table = np.pad(table, (1, 1), mode="reflect")
    if flip:
        return torch.as_tensor(table[::-1].copy(), device=device), torch.as_tensor(table, device=device)
    return torch.as_tensor(table, dtype=dtype, device=device).unsqueeze(0), torch.from_numpy(table.copy())


def length(name: str) -> int:
    table = np.unwrap(np.linspace(0, 1, 4))
    return len(np.pad(table, (1, 1), mode="reflect"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.hop = 2

    def forward(self, x: torch.Tensor):
        BODY
"""


@pytest.mark.parametrize(
    "body",
    [
        "return x.sum() * torch.from_numpy(envelope(x.shape[-1], self.hop))",
        "table = envelope(x.shape[-1], hop_length=self.hop)\n        table += 1\n"
        "        return x.sum() * torch.from_numpy(table)",
        "low, high = filters('haar', False, x.device)\n        low.mul_(2)\n        return x.sum() * low, high + 1",
        "return x.new_zeros(length('haar'))",
    ],
)
def test_a_function_of_numbers_is_called_as_a_whole(body: str) -> None:
    source = _ENVELOPE.replace("BODY", body)
    assert "_as_constant(" in fixed(source)[0]
    model = made(source)
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=False)
    for hop in (2, 1, 2, 2):
        model.hop = hop
        for size in (3, 5):
            torch.testing.assert_close(compiled(torch.ones(2, size)), model(torch.ones(2, size)), rtol=0, atol=0)
    loose: Any = torch.compile(model, backend="aot_eager", dynamic=True)
    for size in (3, 5, 7):
        torch.testing.assert_close(loose(torch.ones(2, size)), model(torch.ones(2, size)), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return total\n", "    print(total)\n    return total\n"),
        ("    return total\n", "    total[0] = np.random.rand()\n    return total\n"),
        ("    return total\n", "    return total * SCALE\n\n\nSCALE = 2.0\n"),
        ("    return total\n", "    return total.sum()\n"),  # a number of NumPy
        ("    return total\n", "    global TOTAL\n    TOTAL = total\n    return total\n"),
        ("    return total\n", "    return lambda: total\n"),
        ("def envelope(n_frames,", "@torch.no_grad()\ndef envelope(window, n_frames,"),
    ],
)
def test_a_function_that_does_more_is_not(old: str, new: str) -> None:
    body = "return x.sum() * envelope(x.shape[-1], self.hop)"
    source = _ENVELOPE.replace("BODY", body).replace(old, new)
    assert "_envelope_as_constant" not in fixed(source)[0]


def test_a_tensor_takes_the_author_s_way() -> None:
    model = made(
        _ENVELOPE.replace("BODY", "return filters(x, False, x.device)[0] + filters('haar', x.sum() > 3, 'cpu')[1]")
    )
    compiled: Any = torch.compile(model, backend="aot_eager")
    for x in (torch.ones(2), torch.zeros(2)):
        torch.testing.assert_close(compiled(x), model(x))


def test_a_function_that_asks_for_the_default_device_is_not() -> None:
    """The helper runs outside of `with torch.device("cuda"):`, so its tensor would be on another device."""
    source = _ENVELOPE.replace("BODY", "return filters('haar', False, x.device)[0] + x.sum()")
    assert "_filters_as_constant" in fixed(source)[0]
    assert "_filters_as_constant" not in fixed(source.replace("dtype=dtype, device=device", "dtype=dtype"))[0]


def test_another_default_dtype() -> None:
    source = _ENVELOPE.replace("BODY", "return filters('haar', False, x.device)[0] + x.sum()")
    source = source.replace("(table, dtype=dtype, device=device)", "((1.5, 2.5), device=device)")
    assert "_filters_as_constant" in fixed(source)[0]
    model = made(source)
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            x = torch.ones(2, dtype=torch.float32)
            torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
    finally:
        torch.set_default_dtype(torch.float32)


def test_tensors_of_a_function_after_inference_mode() -> None:
    model = made(_ENVELOPE.replace("BODY", "return filters('haar', False, x.device)[0].mul(x).sum()"))
    compiled: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    x = torch.ones(1, requires_grad=True)
    with torch.inference_mode():
        compiled(x)
    compiled(x).backward()
    assert x.grad is not None
