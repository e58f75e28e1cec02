"""Small modules, each with what a careful reader of Dynamo's trace would note: a count by hand."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

logger = logging.getLogger(__name__)
FILE = Path(__file__).resolve()
ROOT = FILE.parent
PRINT = "Failed to trace builtin operator"


@dataclass(frozen=True)
class Expected:
    """`sites` are the source lines of the break sites, in their order in this file."""

    graphs: int
    events: int = 0
    sites: tuple[str, ...] = ()
    skipped: int = 0
    recompiles: int = 0
    whole: bool = False


CASES: list[tuple[type[nn.Module], Expected]] = []


def case(expected: Expected):  # type: ignore[no-untyped-def]
    """Register a module with its hand count. `inputs` of the class are the calls, one vector of three by default."""

    def register(cls: type[nn.Module]) -> type[nn.Module]:
        CASES.append((cls, expected))
        return cls

    return register


def add_print_double(x: Tensor) -> Tensor:
    y = x + 1
    print("in a helper")
    return y * 2


def one_deeper(x: Tensor) -> Tensor:
    return add_print_double(x + 2) * 3


def two_deeper(x: Tensor) -> Tensor:
    return one_deeper(x + 3) * 4


def double_if_positive(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x * 2
    return x - 1


def shifted(x: Tensor) -> Iterator[Tensor]:
    yield x
    yield x + 1


def shifted_and_told(x: Tensor) -> Iterator[Tensor]:
    yield x + 1
    print("in a generator")
    yield x + 2


def refuse(x: Tensor) -> Tensor:
    raise ValueError("refused")


@torch.compiler.disable  # type: ignore[untyped-decorator]
def outside(x: Tensor) -> Tensor:
    return x * 3


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def warn_once_a_compilation() -> None:
    warnings.warn("constant", stacklevel=2)


@torch.compiler.assume_constant_result
def tell(function, text):  # type: ignore[no-untyped-def]
    function(text)


class Recorded:
    """A context manager that Dynamo can enter and not leave across a break."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


@case(Expected(graphs=1, whole=True))
class NoBreak(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


@case(Expected(graphs=0))
class NothingToCapture(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


@case(Expected(graphs=1, whole=True))
class InlinedModules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), NoBreak())

    def forward(self, x: Tensor) -> Tensor:
        return torch.mul(self.layers(x), 2)


@case(Expected(graphs=1, whole=True))
class Generator(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(list(shifted(x)))


@case(Expected(graphs=1, whole=True))
class ExceptionCaughtWhileTracing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        try:
            return refuse(x + 1)
        except ValueError:
            return x * 2


@case(Expected(graphs=2, events=1, sites=('print("between")',)))
class PrintDirect(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        print("between")
        return x * 2


@case(Expected(graphs=4, events=2, sites=('print("in a helper")',)))
class PrintOneDeep(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return add_print_double(x + 1) - 1


@case(Expected(graphs=6, events=3, sites=('print("in a helper")',)))
class PrintTwoDeep(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return one_deeper(x + 1) - 1


@case(Expected(graphs=8, events=4, sites=('print("in a helper")',)))
class PrintThreeDeep(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return two_deeper(x + 1) - 1


@case(Expected(graphs=1, events=1, sites=('print("first")',)))
class LeadingPrint(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        print("first")
        return x + 1


@case(Expected(graphs=1, events=1, sites=('print("last")',)))
class TrailingPrint(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        print("last")
        return x


@case(Expected(graphs=2, events=2, sites=('print("one")', 'print("two")')))
class AdjacentPrints(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        print("one")
        print("two")
        return x * 2


@case(Expected(graphs=2, events=1, sites=("if x.sum() > 0:  # in the root frame",)))
class TensorIfInRootFrame(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        if x.sum() > 0:  # in the root frame
            x = x * 2
        return x - 1


@case(Expected(graphs=4, events=2, sites=("if x.sum() > 0:",)))
class TensorIfInHelper(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return double_if_positive(x + 1) + 1


@case(Expected(graphs=0, events=1, sites=("print(step)",), skipped=1))
class BreakInLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for step in range(3):
            x = x + 1
            print(step)
        return x * 2


@case(Expected(graphs=2, events=2, sites=('print("between")',), skipped=1))
class LayersThatBreak(nn.Module):
    """The loop is skipped; the layer's own frame is compiled once and serves all three."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(PrintDirect() for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x - 1


@case(Expected(graphs=0, events=1, sites=("factor = x.sum().item()",), skipped=1))
class ItemInTry(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        try:
            factor = x.sum().item()
        except RuntimeError:
            factor = 0
        return x * factor


@case(Expected(graphs=2, events=1, sites=("return x * x.max().item()",)))
class ItemDirect(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * x.max().item()


@case(Expected(graphs=0, events=1, sites=('print("within")',), skipped=1))
class WithThatSkips(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        with Recorded():
            x = x * 2
            print("within")
        return x - 1


@case(Expected(graphs=2, events=1, sites=('print("in grad mode")',)))
class WithThatResumes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x * 2
            print("in grad mode")
            x = x * 3
        return x


@case(Expected(graphs=1, recompiles=2, whole=True))
class Recompiles(nn.Module):
    inputs = (torch.ones(3), torch.ones(4), torch.ones(5))

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


@case(Expected(graphs=2, events=1, sites=('print("every shape")',), recompiles=4))
class RecompilesAcrossBreak(nn.Module):
    """Both the frame and its resumption are compiled anew for two shapes; the break is the same one."""

    inputs = (torch.ones(3), torch.ones(4), torch.ones(5))

    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        print("every shape")
        return x * 2


@case(Expected(graphs=2, events=1, sites=('print("long")',), recompiles=1))
class BreaksOnSecondShapeOnly(nn.Module):
    """The one graph of the short call, and that of the resumption, which only the long call has."""

    inputs = (torch.ones(3), torch.ones(30))

    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        if x.shape[0] > 10:
            print("long")
        return x * 2


@case(Expected(graphs=1, recompiles=11, whole=True))
class MoreShapesThanTheRecompileLimit(nn.Module):
    inputs = tuple(torch.ones(size) for size in range(3, 15))

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


@case(Expected(graphs=2, events=1, sites=('logger.warning("told")',)))
class LoggerCall(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        logger.warning("told")
        return x * 2


@case(Expected(graphs=2, events=1, sites=('warnings.warn("careful", stacklevel=1)',)))
class Warning_(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        warnings.warn("careful", stacklevel=1)
        return x * 2


@case(Expected(graphs=1, whole=True))
class WarningAsConstant(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        warn_once_a_compilation()
        return x * 2


@case(Expected(graphs=0, events=1, sites=('tell(logger.warning, "told")  # not a constant',), skipped=1))
class ConstantHelperGivenNoConstant(nn.Module):
    """A bound method cannot become a constant, and in a loop that silently costs the whole frame."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            x = x + 1
            tell(logger.warning, "told")  # not a constant
        return x * 2


@case(Expected(graphs=0, events=1, sites=('print("in a generator")',), skipped=1))
class GeneratorThatBreaks(nn.Module):
    """Dynamo reports the break in two attempts at one frame."""

    def forward(self, x: Tensor) -> Tensor:
        return sum(shifted_and_told(x + 1))  # type: ignore[return-value]


@case(Expected(graphs=2, events=1, sites=("if (x < 0).any():",)))
class ValidationGuard(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        if (x < 0).any():
            raise ValueError("negative")
        return x * 2


@case(Expected(graphs=2, events=1, sites=("return x[x > 0] + 1",)))
class BooleanMask(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 0] + 1


@case(Expected(graphs=2, events=1, sites=("return torch.mul(outside(x + 1), 2)",)))
class DisabledHelper(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.mul(outside(x + 1), 2)
