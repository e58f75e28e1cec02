"""The counter against a hand count: small modules, each with what a careful reader of Dynamo's trace would note."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from graphmend_evaluation.counting import Call, count_breaks
from graphmend_evaluation.results import Counts

logger = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parent
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


@pytest.fixture(autouse=True)
def one_thread_without_gradients() -> Iterator[None]:
    torch.set_num_threads(1)
    with torch.no_grad():
        yield


def counted(cls: type[nn.Module]) -> Counts:
    inputs = getattr(cls, "inputs", (torch.ones(3),))
    return count_breaks(lambda: cls().eval(), [Call((x,)) for x in inputs], root=ROOT)


@pytest.mark.filterwarnings("ignore:constant", "ignore:careful")
@pytest.mark.parametrize(("cls", "expected"), CASES, ids=[cls.__name__ for cls, _ in CASES])
def test_counter_agrees_with_hand_count(cls: type[nn.Module], expected: Expected) -> None:
    counts = counted(cls)
    found = Expected(
        graphs=counts.graphs,
        events=counts.break_events,
        sites=tuple(site.source for site in counts.sites),
        skipped=len(counts.skipped_frames),
        recompiles=counts.recompiles,
        whole=counts.whole,
    )
    assert found == expected, counts


def test_site_names_file_line_function_and_the_registry_s_kind() -> None:
    (site,) = counted(TensorIfInHelper).sites
    line = double_if_positive.__code__.co_firstlineno + 1
    assert (site.path, site.line, site.function) == (Path(__file__).name, line, "double_if_positive")
    assert (site.gb_id, site.kind, site.events) == ("GB0170", "Data-dependent branching", 2)
    assert site.reason.startswith("Detected data-dependent branching")


def test_break_in_loop_is_named_by_its_cause_and_not_by_the_loop() -> None:
    (site,) = counted(BreakInLoop).sites
    assert (site.gb_id, site.kind) == ("GB0059", PRINT)


def test_skipped_frame_is_named() -> None:
    (frame,) = counted(ItemInTry).skipped_frames
    assert (frame.path, frame.function) == (Path(__file__).name, "forward")
    assert frame.line == ItemInTry.forward.__code__.co_firstlineno
    assert frame.reason.startswith("Unsupported Tensor.item()")


def test_operations_of_each_graph_are_counted() -> None:
    assert counted(TensorIfInRootFrame).ops_per_graph == (3, 2)
    assert counted(InlinedModules).ops == 3


def test_each_graph_tells_which_break_ends_it() -> None:
    assert counted(TensorIfInRootFrame).ended_by == (0, None)
    assert counted(PrintOneDeep).ended_by == (0, 0, None, None)
    assert counted(InlinedModules).ended_by == (None,)


def test_break_outside_the_root_is_told_with_its_absolute_path(tmp_path: Path) -> None:
    counts = count_breaks(PrintDirect, [Call((torch.ones(3),))], root=tmp_path)
    assert [site.path for site in counts.sites] == [str(Path(__file__))]


def test_break_in_a_library_is_charged_to_the_line_that_calls_it() -> None:
    counts = count_breaks(lambda: Calls(nn.Sequential(PrintDirect())), [Call((torch.ones(3),))], root=ROOT)
    assert [site.source for site in counts.sites] == ['print("between")']


class Calls(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.inner(x)
        return result


def test_exception_of_the_model_is_let_through() -> None:
    with pytest.raises(ValueError, match="refused"):
        count_breaks(lambda: refuse, [Call((torch.ones(3),))], root=ROOT)


def test_capture_flags_of_the_caller_do_not_help() -> None:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert counted(ItemDirect).break_events == 1
        assert torch._dynamo.config.capture_scalar_outputs
