"""The tables of what Dynamo cannot trace, against Dynamo itself."""

from __future__ import annotations

import bisect
import copy
import random
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy
import pytest
import torch
from torch import nn

from graphmend_codemod.project.summary import candidates
from graphmend_codemod.rules.proofs import untraceable_calls
from tests.tools.versions import TRACED_BY_NEWER_TORCH


def test_a_summary_notes_what_dynamo_refuses() -> None:
    noted = {*candidates.REFUSED, *candidates.REFUSED_WITH_OWNER}
    spelled = {name for name in untraceable_calls.BY_NAME if not noted.isdisjoint(_endings(name))}
    assert spelled == set(untraceable_calls.BY_NAME)
    assert {name.rpartition(".")[2] for name in noted} | {"one_hot"} == untraceable_calls.NAMES


def _under(context: AbstractContextManager[object], x: torch.Tensor) -> torch.Tensor:
    with context:
        return x + 1


def _endings(name: str) -> set[str]:
    parts = name.split(".")
    return {parts[-1], ".".join(parts[-2:])}


@pytest.mark.parametrize(
    "refuses",
    [
        lambda x: nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4]), batch_first=True).data,
        lambda x: nn.functional.ctc_loss(x, torch.ones(4, 2).long(), torch.ones(4).long(), torch.ones(4).long()),
        lambda x: x * random.choice([1.0, 2.0]),
        lambda x: nn.functional.one_hot(x.long()),
        lambda x: x * len(copy.copy({"a": 1})),
        lambda x: x * bisect.bisect_left([1, 2], 2),
        lambda x: x * uuid.uuid4().int,
        lambda x: x * torch.get_num_threads(),
        lambda x: x + torch.is_inference_mode_enabled(),
        lambda x: x + torch.is_inference(x),
        lambda x: x + torch.is_same_size(x, x),
        lambda x: x + x.is_signed(),
        pytest.param(lambda x: x + x.storage_offset(), marks=TRACED_BY_NEWER_TORCH),
        lambda x: x + len(torch.typename(x)),
        lambda x: x.clone().random_(),
        lambda x: x + torch.cuda.memory_allocated(),
        lambda x: x.to(torch.result_type(x, 2)),
        lambda x: torch.cov(x[0]),
        lambda x: _under(torch.backends.cudnn.flags(enabled=False), x),
        lambda x: _under(numpy.errstate(all="ignore"), x),
        lambda x: x + torch.from_numpy(numpy.asanyarray([1.0])),
        lambda x: x + len(numpy.delete([1, 2], 0)),
        lambda x: torch.repeat_interleave(x.long().flatten()),
    ],
)
@pytest.mark.filterwarnings("ignore:Dynamo does not know:UserWarning")
def test_dynamo_does_refuse_it(refuses: Callable[[torch.Tensor], object]) -> None:
    torch._dynamo.reset()
    with torch._dynamo.error_on_graph_break(True), pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(refuses, backend="eager")(torch.ones(1, 4, 4))


def test_numpy_in_torch_lacks_what_is_said_to_be_unknown_to_it() -> None:
    known = {id(getattr(numpy, name)) for name in dir(torch._numpy) if hasattr(numpy, name)}
    unknown = candidates.UNKNOWN_TO_TORCH | candidates.UNKNOWN_AS_NUMPY
    assert [name for name in sorted(unknown) if id(getattr(numpy, name, None)) in known] == ["isscalar"]


@pytest.mark.parametrize(
    "breaks", [lambda x: x[x[0].argmax()], lambda x: x[(x > 0).byte()], lambda x: x[:, x[0].argmin()]]
)
def test_dynamo_does_not_trace_such_an_index(breaks: Callable[[torch.Tensor], torch.Tensor]) -> None:
    torch._dynamo.reset()
    with pytest.raises(
        (RuntimeError, torch._dynamo.exc.Unsupported),
        match=r"getitem|_local_scalar|data-dependent|Data dependent|Pending unbacked symbols",
    ):
        torch.compile(breaks, backend="eager", fullgraph=True)(torch.rand(3, 3))
