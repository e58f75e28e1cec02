"""Modules that are traced without a count by hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Calls(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.inner(x)
        return result


@torch.library.custom_op("graphmend_tests::opaque", mutates_args=())
def opaque(x: Tensor) -> Tensor:
    """The elements, in a way that the compiler does not see."""
    return torch.tensor(x.tolist())


@opaque.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


class OpaqueOperator(nn.Module):
    """Two calls of an operator that is not torch's own."""

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = opaque(opaque(x.sin()) + 1)
        return result


class _Clamped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.mean() > 0.5:
            x = x.clamp(max=0.5)
        return x


class BranchInInnerForward(nn.Module):
    """Two functions named `forward` on one stack, of which torch names the inner one alone."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = _Clamped()

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        x = self.inner(x * scale)
        return x + 1


class BranchBeforeAnyGraph(BranchInInnerForward):
    """The outer function has nothing of a graph in front of the branch: the inner one's is the first of each call."""

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        x = self.inner(x)
        return x * scale


class _Doubled(nn.Module):
    def __init__(self) -> None:
        super(_Doubled, self).__init__()  # noqa: UP008 - the spelling that Dynamo cannot trace

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class MakesModulesInLoop(nn.Module):
    """The loop cannot go on behind a break, so Dynamo leaves `forward` and meets `__init__` by itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(1):
            if x.sum() > 0:
                x = x + 1
            x = _Doubled()(x)
        return x


def halved(x: torch.Tensor, times: int) -> torch.Tensor:
    if x.sum() > times:
        x = x / times
    return x + times


def shared_with_a_closure(x: torch.Tensor) -> torch.Tensor:
    doubled = x * 2
    if x.sum() > 0:
        return doubled

    def more() -> torch.Tensor:
        return doubled + 1

    return more()


class UnpackedIndices(torch.nn.Module):
    """Indices that are 0-dim tensors: Dynamo cannot run the write, and raises."""

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        rows, columns = zip(*places, strict=True)
        x[rows, columns] = 0.0
        return x * 2
