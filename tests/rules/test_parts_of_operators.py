"""What may stand in for the layers that an operator runs: known while tracing, by the helper that is written."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from graphmend_codemod.rules.proofs.outlining.texts.layers import PLAIN


class _Expert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(2, 2)
        self.act: nn.Module = nn.ReLU()


class _Elsewhere(_Expert):
    """A subclass in another file of the package, whose methods nobody looked at."""


class _Foreign(_Expert):
    """One of another package."""


_Expert.__module__ = "package.model"
_Elsewhere.__module__ = "package.patches"
_Foreign.__module__ = "other.model"


def _owner(*experts: nn.Module) -> Any:
    owner = nn.Module()
    owner.experts = nn.ModuleList(experts or [_Expert(), _Expert()])
    return owner


def _is_plain(owner: Any, name: str = "experts") -> bool:
    space: dict[str, Any] = {"torch": torch}
    exec(PLAIN, space)
    return bool(space["_holds_plain_parts"]("package.model", owner, (name,)))


def test_layers_of_the_file_and_of_torch_are_run_again() -> None:
    assert _is_plain(_owner())
    assert _is_plain(_owner(nn.Linear(2, 2), nn.Sequential(_Expert())))


@pytest.mark.parametrize("kind", [_Elsewhere, _Foreign])
def test_an_expert_that_another_file_put_in_is_left_to_eager_mode(kind: type[nn.Module]) -> None:
    owner = _owner()
    owner.experts[1] = kind()
    assert not _is_plain(owner)
    owner.experts = kind()
    assert not _is_plain(owner)
    assert not _is_plain(_owner(nn.Sequential(nn.Sequential(kind()))))


def test_a_layer_within_an_expert_may_be_of_the_package_and_of_no_other() -> None:
    inside: Any = _Expert()
    inside.act = _Elsewhere()
    assert _is_plain(_owner(inside))
    inside.act = _Foreign()
    assert not _is_plain(_owner(inside))


@pytest.mark.parametrize(
    "hook",
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_hooks_are_not_run_again(hook: str, deep: bool) -> None:
    owner = _owner()
    layer = owner.experts[0].up if deep else owner.experts[0]
    handle = getattr(layer, hook)(lambda *_: None)
    assert not _is_plain(owner)
    with torch.no_grad():
        assert _is_plain(owner) is ("backward" not in hook)
    handle.remove()
    assert _is_plain(owner)


def test_a_forward_that_was_replaced_is_not_run_again() -> None:
    owner = _owner()
    owner.experts[0].forward = lambda x: x
    assert not _is_plain(owner)


def test_parameters_of_other_classes_are_left_to_eager_mode() -> None:
    owner = _owner()
    owner.weight = nn.Buffer(torch.ones(2))
    owner.lazy = [1]
    assert not _is_plain(owner, "lazy")
    owner.experts[0].up.weight = type("Tagged", (nn.Parameter,), {})(torch.ones(2, 2))
    assert not _is_plain(owner)
