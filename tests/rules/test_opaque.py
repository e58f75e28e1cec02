"""Opaque operators: what they run, what their gradients are, and what is told apart while tracing."""

from __future__ import annotations

import itertools
import linecache
import sys
import types
from collections.abc import Iterator
from textwrap import dedent
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.outlining import outlined_statements, unbacked
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import checked, declined, embedded, fixed, noop

_RECURRENT = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 5)

    def forward(self, x: torch.Tensor, *more):
        ...
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("opaque_subject", None)
    torch._dynamo.reset()


def loaded(source: str) -> types.ModuleType:
    module = sys.modules["opaque_subject"] = types.ModuleType("opaque_subject")
    exec(compile(fixed(source, opaque=True)[0], "subject.py", "exec"), vars(module))
    return module


def made(source: str) -> Any:
    torch.manual_seed(0)
    return vars(loaded(source))["Model"]()


def recurrent(layer: str, body: str) -> str:
    return embedded(body, _RECURRENT.replace("nn.LSTM(4, 5)", layer))


def outputs_and_gradients(model: Any, call: Any, *given: Any) -> list[torch.Tensor | None]:
    model.zero_grad()
    copies = [each.detach().clone().requires_grad_(each.is_floating_point()) for each in given]
    torch.manual_seed(1)
    returned = call(*copies)
    found = returned if isinstance(returned, tuple) else (returned,)
    sum(each.float().square().sum() for each in found if each.requires_grad).backward()
    grads = [each.grad for each in (*copies, *model.parameters())]
    return [*(each.detach() for each in found), *grads]


def compiled_like_eager(model: Any, *given: Any, backend: str = "aot_eager", within: float = 1e-6) -> None:
    whole: Any = torch.compile(model, backend=backend, fullgraph=True)
    expected = outputs_and_gradients(model, model, *given)
    for old, new in zip(expected, outputs_and_gradients(model, whole, *given), strict=True):
        if old is None:
            assert new is None or not new.any()
        else:
            torch.testing.assert_close(new, old, rtol=within, atol=within)
    with torch.no_grad():
        torch.testing.assert_close(whole(*given), model(*given), rtol=within, atol=within)


X = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))


def test_opaque_operators_are_offered_and_written_only_when_asked_for() -> None:
    source = recurrent("nn.LSTM(4, 5)", "return self.rnn(x)[0]")
    finding = checked(source).findings[0]
    assert (finding.code, finding.safety) == ("GM801", Safety.OPAQUE)
    assert fixed(source)[0] == source
    assert fixed(source, unsafe_fixes=True)[0] == source
    assert "_rnn_operator" in fixed(source, opaque=True)[0]


@pytest.mark.parametrize(
    ("layer", "body"),
    [
        ("nn.LSTM(4, 5, num_layers=2, bidirectional=True)", "out, (h, c) = self.rnn(x)\nreturn out, h, c"),
        (
            "nn.GRU(4, 5, batch_first=True)",
            "h = x.new_zeros(self.rnn.num_layers, x.shape[0], 5)\nout, h = self.rnn(x, h)\nreturn out, h",
        ),
        ("nn.RNN(4, 5)", "for _ in range(2):\n    last = self.rnn(x[:, 0], None)[1]\nreturn last"),
    ],
)
def test_recurrent_layers_are_one_graph_with_the_gradients_of_eager_mode(layer: str, body: str) -> None:
    compiled_like_eager(made(recurrent(layer, body)), X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_recurrent_layer_under_inductor() -> None:
    body = "self.rnn.flatten_parameters()\nx = torch.tanh(x)\nx, (h, c) = self.rnn(x)\nreturn x.relu() + h"
    compiled_like_eager(made(recurrent("nn.LSTM(4, 5)", body)), X.transpose(0, 1), backend="inductor", within=1e-5)


def test_parameters_that_change_in_place_are_used() -> None:
    model = made(recurrent("nn.LSTM(4, 5)", "return self.rnn(x)[0]"))
    whole: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    whole(X)
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(2)
    model.load_state_dict({name: each + 1 for name, each in model.state_dict().items()})
    torch.testing.assert_close(whole(X), model(X))


def has_autocast() -> bool:
    """False on CPUs for which oneDNN has no LSTM in bfloat16: the layer itself raises there."""
    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.nn.LSTM(4, 5)(X)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("given", ["packed", "autocast", "other layer", "own forward"])
def test_what_the_operator_cannot_take_breaks_the_graph_as_before(given: str) -> None:
    if given == "autocast" and not has_autocast():
        pytest.skip("no LSTM in bfloat16 on this CPU")
    model = made(recurrent("nn.LSTM(4, 5)", "return self.rnn(x)[0]"))
    whole: Any = torch.compile(model, backend="eager")
    x: Any = X
    if given == "packed":
        x = torch.nn.utils.rnn.pack_padded_sequence(X, torch.tensor([3, 2]))
    if given == "other layer":
        model.rnn = torch.nn.RNN(4, 5)
    if given == "own forward":
        model.rnn.forward = lambda each: (each * 2, None)
    with torch.autocast("cpu", torch.bfloat16, enabled=given == "autocast"):
        old, new = model(x), whole(x)
    torch.testing.assert_close(new.data if given == "packed" else new, old.data if given == "packed" else old)


def test_an_input_of_a_recurrent_layer_that_changes_in_place_later_is_left_alone() -> None:
    source = recurrent("nn.LSTM(4, 5)", "x = x * 2\ny = self.rnn(x)[0]\nx.zero_()\nreturn y, x")
    declined(source, "`x.zero_()` changes in place", opaque=True)
    for other in ("x = x + 1", "self.steps += 1"):
        assert "_rnn_operator" in fixed(source.replace("x.zero_()", other), opaque=True)[0]


@pytest.mark.parametrize("context", ["@torch.no_grad()", "@torch.inference_mode()", "@torch.inference_mode"])
def test_a_graph_does_not_enter_inference_mode(context: str) -> None:
    source = recurrent("nn.LSTM(4, 5)", "if x.sum() > 0:\n    x = x + 1\nreturn x")
    decorated = source.replace("    def forward", f"    {context}\n    def forward")
    inside = recurrent("nn.LSTM(4, 5)", f"with {context[1:]}:\n    if x.sum() > 0:\n        x = x + 1\nreturn x")
    for each in (decorated, *([inside] if context.endswith(")") else [])):
        if "inference" in context:
            declined(each, "use `torch.no_grad()` there")
        else:
            assert "is_compiling()" in fixed(each)[0]


def test_a_layer_that_is_looked_into_is_left_alone() -> None:
    source = recurrent("nn.LSTM(4, 5)", "return self.rnn.weight_hh_l0.sum() + x.sum()")
    assert fixed(source, opaque=True)[0] == source


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


_PACKED = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 5, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 5)
        self.fill = 2.0

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        x = torch.tanh(x)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        self.rnn.flatten_parameters()
        out, (h, c) = self.rnn(packed)
        out, sizes = pad_packed_sequence(
            out, batch_first=True, padding_value=self.fill, total_length=x.shape[1]
        )
        start, out = h[:1] * 1, out.relu()
        x = nn.utils.rnn.pack_padded_sequence(out, lengths, True, False)
        x = self.gru(x, start)[0]
        x = pad_packed_sequence(x)[0]
        return x * 2, out, h, c, sizes
"""


def test_a_number_of_steps_that_may_be_none_is_asked_for() -> None:
    source = _PACKED.replace("total_length=x.shape[1]", "total_length=steps").replace("lengths: t", "steps, lengths: t")
    assert "_longest_in_graph(lengths.cpu()) if steps is None else steps," in fixed(source, opaque=True)[0]


def test_packed_sequences_are_one_graph_with_the_gradients_of_eager_mode() -> None:
    text = fixed(_PACKED, opaque=True)[0]
    assert fixed(text, opaque=True)[0] == text
    model = made(_PACKED)
    for lengths in ([2, 1, 1], [1, 2, 2]):
        compiled_like_eager(model, X, torch.tensor(lengths), within=1e-5)
    whole: Any = torch.compile(model, backend="aot_eager")
    with pytest.raises(RuntimeError, match="greater than 0"):
        whole(X, torch.tensor([2, 1, 0]))


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("x * 2, out, h", "x * 2, packed.data, h", "is a packed sequence that is used again"),
        (
            "        out, sizes = pad",
            "        h = h + out.data.sum()\n        out, sizes = pad",
            "the next statements do not pad the packed sequence",
        ),
        ("(out, lengths, True, False)", "(out, lengths, len(x) > 2, False)", "is no constant"),
        ("self.gru(x, start)[0]", "self.gru(x, None, x)[0]", "arguments other than"),
    ],
)
def test_packed_sequences_that_are_used_otherwise_are_left_alone(old: str, new: str, because: str) -> None:
    source = _PACKED.replace(old, new)
    assert source != _PACKED
    reasons = [each.declined or "" for each in checked(source, opaque=True).findings]
    assert any(because in reason for reason in reasons), reasons


_SCRIPTED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 5)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        y, _ = self.rnn(x)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        out, _ = self.rnn(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out)
        return out * 2, y


if torch.jit.is_scripting():
    pass
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attribute")
def test_code_for_torchscript_asks_in_a_function_whether_an_operator_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    text = fixed(_SCRIPTED, opaque=True)[0]
    monkeypatch.setitem(linecache.cache, "subject.py", (len(text), None, text.splitlines(True), "subject.py"))
    model, lengths = made(_SCRIPTED), torch.tensor([3, 1])
    compiled_like_eager(model, X, lengths)
    scripted: Any = torch.jit.script(model)
    for old, new in zip(model(X, lengths), scripted(X, lengths), strict=True):
        torch.testing.assert_close(new, old)
    if has_autocast():
        whole: Any = torch.compile(model, backend="eager")
        with torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(whole(X, lengths), model(X, lengths))


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
