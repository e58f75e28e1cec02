"""Recurrent layers, packed sequences and the rest of what surrounds them as opaque operators (GM801)."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch

from graphmend_codemod.core.findings import Safety
from tests.rules.expert_loops import one_graph, results, same
from tests.rules.operators import compiled_like_eager, forgotten, loaded, made  # noqa: F401
from tests.tools.fixes import checked, declined, embedded, fixed

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


def recurrent(layer: str, body: str) -> str:
    return embedded(body, _RECURRENT.replace("nn.LSTM(4, 5)", layer))


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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_recurrent_layer_under_inductor() -> None:
    body = "self.rnn.flatten_parameters()\nx = torch.tanh(x)\nx, (h, c) = self.rnn(x)\nreturn x.relu() + h"
    compiled_like_eager(made(recurrent("nn.LSTM(4, 5)", body)), X.transpose(0, 1), backend="inductor", within=1e-5)


def test_a_checkpoint_lets_a_recurrent_layer_read_what_was_saved() -> None:
    model = made(recurrent("nn.LSTM(4, 5)", "return self.rnn(x)[0]"))

    def checkpointed(x: torch.Tensor) -> Any:
        return torch.utils.checkpoint.checkpoint(model, x * 2.0, use_reentrant=False).sin()

    same(results(model, checkpointed, X), results(model, one_graph(checkpointed, "eager"), X), 1e-5)


@pytest.mark.parametrize("kind", ["GRU", "RNN"])
@pytest.mark.parametrize("write", ["y.mul_(2.0)", "y[0] = 0.0", "state.add_(1.0)"])
def test_a_result_may_be_written_where_no_backend_compiles_the_graph(kind: str, write: str) -> None:
    body = f"y, state = self.rnn(x)\n{write}\nreturn y + state"
    compiled_like_eager(made(recurrent(f"nn.{kind}(4, 5)", body)), X.transpose(0, 1), backend="eager")


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


@pytest.mark.parametrize("layer", ["nn.GRU(4, 5)", "nn.LSTM(4, 5)"])
def test_a_padded_sequence_may_be_kept_with_its_lengths(layer: str) -> None:
    body = """
lengths, = more
packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
out, last = self.rnn(packed)
both = nn.utils.rnn.pad_packed_sequence(out)
return both[0] * 2, both[1], *last
"""
    model = made(recurrent(layer, body))
    compiled_like_eager(model, X, torch.tensor([2, 3]))
