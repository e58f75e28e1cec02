"""Blocks in which warnings are left out (GM603): what is fixed with them, and what a filter may be needed for."""

from __future__ import annotations

import pytest

from tests.tools.fixes import checked, fixed

_MODULE = """
import warnings

import torch
from torch import nn

from elsewhere import helper


class Model(nn.Module):
    def quiet(self, x):
        warnings.simplefilter("ignore")
        return x

    def forward(self, x: torch.Tensor):
        {block}
            {sets}
            x = {value}
        return x
"""
_BLOCK, _SETS, _VALUE = "with warnings.catch_warnings():", 'warnings.simplefilter("ignore")', "x * 2"


def _written(block: str = _BLOCK, sets: str = _SETS, value: str = _VALUE) -> str:
    return _MODULE.format(block=block, sets=sets, value=value)


@pytest.mark.parametrize(
    "sets", [_SETS, 'warnings.filterwarnings("ignore", category=UserWarning)', 'warnings.simplefilter("once")']
)
def test_the_block_and_what_it_sets_are_left_out_together(sets: str) -> None:
    after, _ = fixed(_written(sets=sets))
    assert "_catch_warnings_while_tracing\n" in after
    assert f"if not torch.compiler.is_compiling():\n                {sets}" in after


@pytest.mark.parametrize(
    ("changed", "because"),
    [
        ({"sets": 'warnings.simplefilter("error")'}, "exceptions of warnings"),
        ({"sets": "warnings.simplefilter(self.action)"}, "exceptions of warnings"),
        ({"sets": "pass", "block": "with warnings.catch_warnings(record=True) as seen:"}, "what is caught is used"),
        ({"value": "helper(x)"}, "may set a filter"),
        ({"value": "self.quiet(x)"}, "may set a filter"),
        ({"sets": "y = warnings.filters"}, "reads the filters"),
        ({"block": "if x.dim() == 2:"}, "no `with warnings.catch_warnings()` around it"),
    ],
)
def test_a_filter_that_may_do_more_stays(changed: dict[str, str], because: str) -> None:
    source = _written(**changed)
    assert "_catch_warnings_while_tracing" not in fixed(source)[0]
    assert any(because in (finding.declined or "") for finding in checked(source).findings)
