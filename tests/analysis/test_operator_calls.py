"""The calls that the tables are compared with get the same inputs, whoever ran before."""

from __future__ import annotations

import torch

from tests.analysis.operator_calls import SUBJECTS, seen


def test_inputs_do_not_depend_on_what_was_written_before() -> None:
    (first,) = seen("x.view(-1)", SUBJECTS[0])
    numbers = first.subject.clone()
    first.result.zero_()
    list(seen("x.add_(y).view(5)", SUBJECTS[0]))  # writes, then raises
    torch.manual_seed(1)
    (second,) = seen("x.view(-1)", SUBJECTS[0])
    assert torch.equal(second.subject, numbers)
