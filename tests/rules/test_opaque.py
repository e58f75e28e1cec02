"""Opaque operators: what they run, what their gradients are, and what is told apart while tracing."""

from __future__ import annotations

import itertools
import sys
import types
from textwrap import dedent
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.outlining.statements import outlined_statements
from graphmend_codemod.rules.proofs.outlining.symbols import unbacked
from tests.rules.operators import compiled_like_eager, forgotten, loaded, made  # noqa: F401
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import checked, embedded, fixed, noop

X = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))
_FUNCTION = """
import torch
from torch import nn


def helper(x, factor=2.0, kind="sum"):
    ...


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        return helper(torch.tanh(x)) * 2
"""
_RANKS = """
_, places, counts = torch.unique(x.round(), return_inverse=True, return_counts=True)
sizes = torch.zeros_like(counts, dtype=torch.float32)
sizes.scatter_add_(0, places.flatten(), x.flatten())
return (sizes / counts)[places] if factor is None else (sizes * factor)[places]
"""
_MASKED = """
inside = (x > 0) & (x < 1)
result = torch.zeros_like(x)
if kind == "sum":
    result = x * ~inside
result[inside] = change(x[inside], factor)
return result, result.detach()
"""
_CHANGE = """
CALLS = 0
BIAS = torch.ones(1)
TABLE = [1.0]


def counted():
    global CALLS
    CALLS += 1
    TABLE[0] = CALLS


def change(x, factor):
    table = torch.cumsum(torch.softmax(x, 0), 0)
    table[0] = 0
    if torch.min(x) < 0:
        raise ValueError("negative")
    return x * factor + table


class Model"""


def function(body: str) -> str:
    source = embedded(body, _FUNCTION).replace("\nclass Model", _CHANGE, 1)
    return source.replace("helper(torch.tanh(x)) * 2", "sum(helper(torch.tanh(x)))") if "detach" in body else source


def test_a_function_of_tensors_of_known_shapes_is_one_operator() -> None:
    body = _RANKS.replace("(sizes / counts)[places] if factor is None else ", "")
    source = function(body)
    text = fixed(source, opaque=True)[0]
    assert body.strip().replace("\n", "\n    ") in text
    behaves(source, text, ["torch.randn(3, 4)"], scenarios=FEW_SCENARIOS[:2])
    compiled_like_eager(made(source), X.transpose(0, 2))


def test_reductions_of_chosen_elements_have_known_shapes() -> None:
    body = "mask = x > 0\nchosen = x[mask]\nreturn -chosen.exp().sum() * factor"
    compiled_like_eager(made(function(body)), X)


def test_numbers_and_words_are_other_operators_or_other_calls() -> None:
    module = loaded(function(_MASKED))
    whole: Any = torch.compile(module.helper, backend="aot_eager", fullgraph=True)
    for factor, kind in ((2.0, "sum"), (3.0, "sum"), (4, "mean")):
        for old, new in zip(module.helper(X, factor, kind), whole(X, factor, kind), strict=True):
            torch.testing.assert_close(new, old)


def test_a_function_that_something_wraps_later_is_not_wrapped_inside_of_the_operator_as_well() -> None:
    module: Any = loaded(function(_RANKS))
    own = module.helper
    module.helper = lambda x: own(x + 1) + 1
    compiled_like_eager(module.Model(), X)


_SORTED = "y = torch.zeros_like(x)\ny[x > 0] = x[x > 0].sort().values\n"


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("return x[x > 0]", "depend"),
        ("return x[x > 0] * 2", "depend"),
        ("x[x > 0] = x[x > 0].cumsum(0)\nreturn x.clone()", "changes one of its arguments"),
        ("y = x.view(-1)\ny[y > 0] += change(y[y > 0], 1)\nreturn y.clone()", "changes one of its arguments"),
        ("helper.last = x[x > 0]\nreturn x * 2", "changes `helper.last`"),
        ("global LAST\nLAST = x[x > 0]\nreturn x * 2", "not supported"),
        ("if x.sum() > len(x[x > 0]):\n    return x @ x.T\nreturn x[:1]", "depends on data"),
        ("y = x[:1]\nfor each in x[x > 0]:\n    y = torch.cat([y, x])\nreturn y", "`y`"),
        ("return torch.zeros(int(x.max()))", "depend"),
        (
            "kept = []\nfor n in x[x > 0].tolist():\n    kept.append(x * n)\nreturn torch.stack(kept).sum(0)",
            "put into `kept`",
        ),
        (
            "kept = {}\nfor n in x[x > 0].tolist():\n    kept[n] = x * n\nreturn torch.cat(list(kept.values()))",
            "depend",
        ),
        ("return torch.ones(x.shape[1], requires_grad=True)", "requires gradients"),
        (f"{_SORTED}return y, y", "the results `y` and `y` share memory"),
        (f"{_SORTED}z = y\nreturn z[:1], y", "share memory"),
        (f"{_SORTED}return y * 2 if torch.is_grad_enabled() else y", "`torch.is_grad_enabled()` is not the same"),
        (f"{_SORTED}y = y * 2 if x.requires_grad else y\nreturn y", "`x.requires_grad` is not the same inside"),
        (f"{_SORTED}z = x\ny = y * 2 if x is z else y\nreturn y", "`x is z` is not the same inside"),
        (f"{_SORTED}y.requires_grad_()\nreturn y * x", "`y.requires_grad_` is not the same inside"),
        (f"{_SORTED}return y * CALLS", "a function of this file changes `CALLS`"),
        (f"{_SORTED}return y * TABLE[0]", "`TABLE` may change"),
        (f"{_SORTED}return y * BIAS", "cannot infer that `BIAS` holds no Tensor"),
        ("chosen = x[x > 0].cumsum(0)\nreturn chosen.max(), factor", "that the result `factor` is a Tensor"),
    ],
)
def test_what_lasts_or_has_sizes_that_data_decides_is_left_alone(
    body: str, because: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unbacked, "captured", lambda *_: None)  # which takes some statements of them
    monkeypatch.setattr(outlined_statements, "edit", Mock(side_effect=NotProven))  # and so does this
    source = function(body)
    assert fixed(source, opaque=True, select=("GM801",))[0] == source
    reasons = [each.declined or "" for each in checked(source, opaque=True, select=("GM801",)).findings]
    assert any(because in reason for reason in reasons), reasons


_ASSIGNED = """
import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        costs = x.detach()
        pairs = [linear_sum_assignment(c) for c in costs]
        best = torch.tensor(np.array([linear_sum_assignment(c, maximize=True)[1] for c in costs]))
        rows, columns = [torch.as_tensor(each, dtype=torch.int64) for each in pairs[0]]
        return x[0, rows, columns].sum() * x, best
"""


def _assign(cost: Any, maximize: bool = False) -> tuple[Any, Any]:
    cost = np.asarray(cost)  # raises for what requires gradients, as SciPy does
    sign, (n, m) = -1 if maximize else 1, cost.shape
    ways = itertools.permutations(range(m), n)
    best = min(ways, key=lambda way: float(sign * cost[range(n), list(way)].sum()))
    return np.arange(n), np.array(best)


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor", "ignore:The .grad attribute")
def test_assignment_problems_are_one_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    skipped: Any = torch._dynamo.disable
    scipy, optimize = types.ModuleType("scipy"), types.ModuleType("scipy.optimize")
    vars(optimize)["linear_sum_assignment"] = skipped(_assign)  # which Dynamo skips, as it skips SciPy
    vars(scipy)["optimize"] = optimize
    monkeypatch.setitem(sys.modules, "scipy", scipy)
    monkeypatch.setitem(sys.modules, "scipy.optimize", optimize)
    text = fixed(_ASSIGNED, opaque=True)[0]
    assert fixed(text, opaque=True)[0] == text
    compiled_like_eager(made(_ASSIGNED), X)
    asked: Any = torch.compile(made(_ASSIGNED.replace(".detach()", "")), backend="eager")
    with pytest.raises(RuntimeError, match="requires grad"):
        asked(X.clone().requires_grad_())


def test_an_assertion_that_dynamo_traces_is_no_place_for_an_operator() -> None:
    source = """
    import torch
    from torch import nn


    class Model(nn.Module):
        def forward(self, x: torch.Tensor):
            assert x.min() >= 0, "negative"
            assert (x < 9).all()
            return x + 1
    """
    noop(source, opaque=True)
    assert checked(dedent(source).replace('"negative"', "str(x)"), opaque=True).findings
