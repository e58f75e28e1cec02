"""`fix --trace`: fixes of a statement for what breaks the graph in the functions that it calls."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluation.recorded_fixes import Recorded, one_graph

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


SOURCE = """
    import torch
    from torch import nn

    def halves(x, count):
        return x[:, :count] * x[:, count:]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.width = 2

        def forward(self, x):
            counts = torch.IntTensor([self.width])
            return halves(x, counts[0])
"""


def test_number_that_a_called_function_reads_is_handed_on_as_a_number(tmp_path: Path) -> None:
    found = Recorded(tmp_path, SOURCE, lambda: [(torch.ones(2, 4),), (torch.ones(3, 4),)], gradients=False)
    assert "halves(x, numbers_in_counts[0])" in found.after
    x = torch.randn(4, 4)
    assert torch.equal(one_graph(found.model(), x), found.model()(x))


CHECK = """
    import torch
    from torch import nn

    def check(ok, message):
        if isinstance(ok, torch.Tensor):
            torch._check_tensor_all_with(ValueError, ok, lambda: message)
        elif not ok:
            raise ValueError(message)

    class Model(nn.Module):
        def forward(self, x, flag: bool):
            y = x * 2
            if flag:
                check(y.sum() < 1e6, "too much")
                y = y + 1
            else:
                check(y.sum() < 1e5, f"too much: {flag}")
                y = y - 1
            return y
"""


def test_check_of_a_called_function_is_mended_at_the_calls_and_no_operator_runs_what_is_around(tmp_path: Path) -> None:
    calls = [(torch.ones(2, 4), True), (torch.ones(3, 4), True), (torch.ones(3, 4), False), (torch.ones(2, 4), False)]
    found = Recorded(tmp_path, CHECK, lambda: calls, gradients=False)
    assert "_recorded_operator" not in found.after
    assert found.after.count("torch._assert_async(") == 2
    x = torch.randn(4, 4)
    assert torch.equal(one_graph(found.model(), x, True), found.model()(x, True))
