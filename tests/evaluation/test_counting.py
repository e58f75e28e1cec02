"""The counter against a hand count, which stands beside each of the models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from graphmend_evaluation.counting import Call, count_breaks
from graphmend_evaluation.results import Counts
from tests.evaluation import counted_models, traced_models


@pytest.fixture(autouse=True)
def one_thread_without_gradients() -> Iterator[None]:
    torch.set_num_threads(1)
    with torch.no_grad():
        yield


def counted(cls: type[nn.Module]) -> Counts:
    inputs = getattr(cls, "inputs", (torch.ones(3),))
    return count_breaks(lambda: cls().eval(), [Call((x,)) for x in inputs], root=counted_models.ROOT)


@pytest.mark.filterwarnings("ignore:constant", "ignore:careful")
@pytest.mark.parametrize(
    ("cls", "expected"), counted_models.CASES, ids=[cls.__name__ for cls, _ in counted_models.CASES]
)
def test_counter_agrees_with_hand_count(cls: type[nn.Module], expected: counted_models.Expected) -> None:
    counts = counted(cls)
    found = counted_models.Expected(
        graphs=counts.graphs,
        events=counts.break_events,
        sites=tuple(site.source for site in counts.sites),
        skipped=len(counts.skipped_frames),
        recompiles=counts.recompiles,
        whole=counts.whole,
    )
    assert found == expected, counts


def test_site_names_file_line_function_and_the_registry_s_kind() -> None:
    (site,) = counted(counted_models.TensorIfInHelper).sites
    line = counted_models.double_if_positive.__code__.co_firstlineno + 1
    assert (site.path, site.line, site.function) == (counted_models.FILE.name, line, "double_if_positive")
    assert (site.gb_id, site.kind, site.events) == ("GB0170", "Data-dependent branching", 2)
    assert site.reason.startswith("Detected data-dependent branching")


def test_break_in_loop_is_named_by_its_cause_and_not_by_the_loop() -> None:
    (site,) = counted(counted_models.BreakInLoop).sites
    assert (site.gb_id, site.kind) == ("GB0059", counted_models.PRINT)


def test_skipped_frame_is_named() -> None:
    (frame,) = counted(counted_models.ItemInTry).skipped_frames
    assert (frame.path, frame.function) == (counted_models.FILE.name, "forward")
    assert frame.line == counted_models.ItemInTry.forward.__code__.co_firstlineno
    assert frame.reason.startswith("Unsupported Tensor.item()")


def test_operations_of_each_graph_are_counted() -> None:
    assert counted(counted_models.TensorIfInRootFrame).ops_per_graph == (3, 2)
    assert counted(counted_models.InlinedModules).ops == 3


def test_each_graph_tells_which_break_ends_it() -> None:
    assert counted(counted_models.TensorIfInRootFrame).ended_by == (0, None)
    assert counted(counted_models.PrintOneDeep).ended_by == (0, 0, None, None)
    assert counted(counted_models.InlinedModules).ended_by == (None,)


def test_break_outside_the_root_is_told_with_its_absolute_path(tmp_path: Path) -> None:
    counts = count_breaks(counted_models.PrintDirect, [Call((torch.ones(3),))], root=tmp_path)
    assert [site.path for site in counts.sites] == [str(counted_models.FILE)]


def test_break_in_a_library_is_charged_to_the_line_that_calls_it() -> None:
    counts = count_breaks(
        lambda: traced_models.Calls(nn.Sequential(counted_models.PrintDirect())),
        [Call((torch.ones(3),))],
        root=counted_models.ROOT,
    )
    assert [site.source for site in counts.sites] == ['print("between")']


def test_exception_of_the_model_is_let_through() -> None:
    with pytest.raises(ValueError, match="refused"):
        count_breaks(lambda: counted_models.refuse, [Call((torch.ones(3),))], root=counted_models.ROOT)


def test_capture_flags_of_the_caller_do_not_help() -> None:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert counted(counted_models.ItemDirect).break_events == 1
        assert torch._dynamo.config.capture_scalar_outputs


def test_operators_that_are_not_of_torch_are_counted_apart() -> None:
    counts = counted(traced_models.OpaqueOperator)
    assert (counts.whole, counts.opaque_operators) == (True, 2)
    assert counts.whole_words == "one graph, 2 opaque operators"
    assert counted(counted_models.TensorIfInRootFrame).opaque_operators == 0
