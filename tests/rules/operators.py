"""Opaque operators: their fixes loaded, and compared with eager mode, gradients included."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.tools.fixes import fixed


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("opaque_subject", None)
    torch._dynamo.reset()


def loaded(source: str) -> types.ModuleType:
    module = sys.modules["opaque_subject"] = types.ModuleType("opaque_subject")
    exec(compile(fixed(source, opaque=True)[0], "subject.py", "exec"), vars(module))
    return module


def made(source: str) -> Any:
    torch.manual_seed(0)
    return vars(loaded(source))["Model"]()


def outputs_and_gradients(model: Any, call: Any, *given: Any) -> list[torch.Tensor | None]:
    model.zero_grad()
    copies = [each.detach().clone().requires_grad_(each.is_floating_point()) for each in given]
    torch.manual_seed(1)
    returned = call(*copies)
    found = returned if isinstance(returned, tuple) else (returned,)
    sum(each.float().square().sum() for each in found if each.requires_grad).backward()
    grads = [each.grad for each in (*copies, *model.parameters())]
    return [*(each.detach() for each in found), *grads]


def compiled_like_eager(model: Any, *given: Any, backend: str = "aot_eager", within: float = 1e-6) -> None:
    whole: Any = torch.compile(model, backend=backend, fullgraph=True)
    expected = outputs_and_gradients(model, model, *given)
    for old, new in zip(expected, outputs_and_gradients(model, whole, *given), strict=True):
        if old is None:
            assert new is None or not new.any()
        else:
            torch.testing.assert_close(new, old, rtol=within, atol=within)
    with torch.no_grad():
        torch.testing.assert_close(whole(*given), model(*given), rtol=within, atol=within)
