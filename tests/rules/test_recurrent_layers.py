"""Recurrent layers as operators: classes that the constructor chooses, states that are held, sequences packed early."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from tests.tools.fixes import fixed

X = torch.linspace(-1, 1, 3 * 5 * 4).reshape(3, 5, 4)
LENGTHS = torch.tensor([2, 5, 3])

_SOURCE = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Model(nn.Module):
    kinds = {"lstm": nn.LSTM, "gru": nn.GRU}

    def __init__(self, kind="lstm"):
        super().__init__()
        %s
        self.hidden = None

    def forward(self, x, lengths=None, state=None):
        %s
"""
_MADE = (
    "self.rnn = getattr(nn, kind.upper())(4, 6, batch_first=True)",
    "self.rnn = nn.LSTM(4, 6, batch_first=True) if kind == 'lstm' else nn.GRU(4, 6, batch_first=True)",
    "self.rnn = self.kinds[kind](4, 6, batch_first=True)",
)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("recurrent_subject", None)
    torch._dynamo.reset()


def compiled_like_eager(subject: Any, *given: Any, within: float) -> None:
    whole: Any = torch.compile(subject, backend="aot_eager", fullgraph=True)
    gradients = []
    for call in (subject, whole):
        subject.zero_grad()
        found = [each for each in tree_leaves(call(*given)) if isinstance(each, torch.Tensor)]
        loss: Any = torch.stack([each.square().sum() for each in found]).sum()
        loss.backward()
        gradients.append([*found, *(each.grad for each in subject.parameters())])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=within, atol=within)


def model(made: str, body: str, kind: str = "lstm") -> Any:
    text = fixed(_SOURCE % (made, body), opaque=True)[0]
    again, found = fixed(text, opaque=True)
    assert again == text
    assert not found.remaining, "operators of graphmend's own are no findings"
    module: Any = types.ModuleType("recurrent_subject")
    sys.modules["recurrent_subject"] = module
    exec(compile(text, "recurrent_subject.py", "exec"), vars(module))
    torch.manual_seed(0)
    return module.Model(kind)


@pytest.mark.parametrize("made", _MADE, ids=["looked up", "chosen", "in a table"])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_layer_of_either_class_is_one_operator(made: str, kind: str) -> None:
    body = (
        "self.rnn.flatten_parameters()\n        out, last = self.rnn(x)\n        return out * self.rnn.num_layers, last"
    )
    compiled_like_eager(model(made, body, kind), X, within=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_packed_sequences_of_which_only_the_last_state_is_used(kind: str) -> None:
    body = (
        "start = None\n        packed = pack_padded_sequence(x, lengths, True, enforce_sorted=False)\n"
        "        _, last = self.rnn(packed, start)\n        return last"
    )
    compiled_like_eager(model(_MADE[1], body, kind), X, LENGTHS, within=1e-5)


_PACK = "packed = pack_padded_sequence(x, lengths, True, enforce_sorted=False)"


def lines(*statements: str) -> str:
    return "\n        ".join(statements)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_statements_may_stand_between_packing_the_layer_and_padding(kind: str) -> None:
    body = lines(
        "many = x.size(1)", _PACK, "rate = 2", "out, last = self.rnn(packed)", "y = x * rate",
        "out = pad_packed_sequence(out, True, total_length=many)[0]", "return out, y, last",
    )  # fmt: skip
    compiled_like_eager(model(_MADE[1], body, kind), X, LENGTHS, within=1e-5)


@pytest.mark.parametrize(
    "rest",
    [
        ("out, last = self.rnn(packed)", "both = pad_packed_sequence(out, True)", "rows, counts = both",
         "return rows * 2, counts, last"),
        ("out = self.rnn(packed)[0]", "both = pad_packed_sequence(out, True)", "return both[0] * 2, both[1]"),
        ("out, _ = self.rnn(packed)", "out = pad_packed_sequence(out, True)", "return out[0] * 2, len(out)"),
    ],
    ids=["with states", "the first result", "one name"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_one_name_for_all_that_padding_gives_is_the_pair_that_it_is(kind: str, rest: tuple[str, ...]) -> None:
    compiled_like_eager(model(_MADE[1], lines(_PACK, *rest), kind), X[:2], LENGTHS[:2], within=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_one_name_for_all_that_the_layer_gives_is_padded_by_its_first_result(kind: str) -> None:
    body = lines(_PACK, "packed = self.rnn(packed)", "x = pad_packed_sequence(packed[0], True)[0]", "return x * 2")
    compiled_like_eager(model(_MADE[1], body, kind), X, LENGTHS, within=1e-5)


@pytest.mark.parametrize(
    "rest",
    [
        ("x = pad_packed_sequence(out, True)[0]", "return x"),
        ("x = pad_packed_sequence(out[1], True)[0]", "return x"),
        ("x = pad_packed_sequence(out[0], True)[0]", "return x, out[1]"),
        ("y = out[1][0] * 2", "x = pad_packed_sequence(out[0], True)[0]", "return x, y"),
    ],
    ids=["all of it", "the states", "states that are read later", "states that are read before"],
)
def test_one_name_for_all_that_the_layer_gives_is_used_for_nothing_else(rest: tuple[str, ...]) -> None:
    body = lines(_PACK, "out = self.rnn(packed)", *rest)
    assert "_packed_rnn_operator" not in fixed(_SOURCE % (_MADE[1], body), opaque=True)[0]


def test_the_data_of_a_packed_sequence_is_no_packed_sequence() -> None:
    body = lines(_PACK + "[0]", "out, last = self.rnn(packed)", "return last")
    assert "_last_rnn_operator" not in fixed(_SOURCE % (_MADE[1], body), opaque=True)[0]


_RUN = "out, _ = self.rnn(packed)"


@pytest.mark.parametrize(
    "body",
    [
        lines(_PACK, "x = x.mul_(2)", _RUN, "return pad_packed_sequence(out, True)[0], x"),
        lines(_PACK, "y = self.change(x)", _RUN, "y = pad_packed_sequence(out, True)[0]", "return y"),
        lines(_PACK, _RUN, "y = x * 2", "x = pad_packed_sequence(out, True)[0]", "return x, y"),
        lines(_PACK, _RUN, "n = 7", "x = pad_packed_sequence(out, True, total_length=n)[0]", "return x"),
        lines(_PACK, "lengths = lengths - 1", _RUN, "x = pad_packed_sequence(out, True)[0]", "return x"),
        lines(
            _PACK.replace("(x,", "(self.drop(x),"), "y = torch.rand(2)", _RUN,
            "x = pad_packed_sequence(out, True)[0]", "return x, y",
        ),
    ],
    ids=["in place", "a method", "reads what is bound", "total length", "lengths", "random numbers"],
)  # fmt: skip
def test_statements_that_cannot_be_moved_are_a_reason(body: str) -> None:
    assert "_packed_rnn_operator" not in fixed(_SOURCE % (_MADE[1], body), opaque=True)[0]


def test_a_state_that_the_module_holds_or_a_dict_gives() -> None:
    body = (
        "self.hidden = (x.new_zeros(1, 3, 6), x.new_ones(1, 3, 6))\n"
        "        out, self.hidden = self.rnn(x, self.hidden)\n"
        "        more, _ = self.rnn(input=out[..., :4], hx=(state['h'].transpose(0, 1).contiguous(), self.hidden[1]))\n"
        "        return out, more"
    )
    subject = model("self.rnn = nn.LSTM(4, 6, batch_first=True)", body)
    compiled_like_eager(subject, X, None, {"h": torch.ones(3, 1, 6)}, within=1e-5)


class _Doubled(nn.GRU):
    def forward(self, input: Any, hx: Any = None) -> Any:
        out, last = super().forward(input, hx)
        return out * 2, last


class _Plain(nn.Module):
    num_layers = 3

    def __init__(self) -> None:
        super().__init__()
        self.called = 0

    def flatten_parameters(self) -> None:
        self.called += 1

    def forward(self, x: torch.Tensor) -> Any:
        return x * self.called, None


_NEW = pytest.mark.skipif(
    torch.__version__ >= "2.15", reason="Dynamo of torch 2.15 fails, without a compile path as well"
)


@pytest.mark.parametrize(
    "other",
    [pytest.param(_Doubled(4, 6, batch_first=True), marks=_NEW), _Plain()],
    ids=["subclass", "no recurrent layer"],
)
def test_a_layer_of_another_class_runs_as_the_author_wrote(other: nn.Module) -> None:
    body = "self.rnn.flatten_parameters()\n        out, _ = self.rnn(x)\n        return out * self.rnn.num_layers"
    subject = model(_MADE[0], body)
    subject.rnn = other
    whole: Any = torch.compile(subject, backend="aot_eager")
    first = whole(X)
    if isinstance(other, _Plain):
        assert other.called == 1
        other.called = 0
    torch.testing.assert_close(first, subject(X))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_sequence_that_may_be_packed_is_one_graph_either_way(kind: str) -> None:
    body = (
        "if lengths is not None:\n            x = pack_padded_sequence(x, lengths, True, enforce_sorted=False)\n"
        "        out, _ = self.rnn(x)\n        if lengths is not None:\n"
        "            out, _ = pad_packed_sequence(out, True)\n        return out"
    )
    subject = model(_MADE[1], body, kind)
    compiled_like_eager(subject, X, within=1e-5)
    compiled_like_eager(subject, X, LENGTHS, within=1e-5)
    compiled_like_eager(subject, X, LENGTHS.tolist(), within=1e-5)


def test_a_sequence_that_is_packed_in_another_case_than_it_is_padded_is_left_alone() -> None:
    body = (
        "if lengths is not None:\n            x = pack_padded_sequence(x, lengths, True, enforce_sorted=False)\n"
        "        out, _ = self.rnn(x)\n        if state is not None:\n"
        "            out, _ = pad_packed_sequence(out, True)\n        return out"
    )
    assert "_packed_rnn_operator" not in fixed(_SOURCE % (_MADE[1], body), opaque=True)[0]


_PADS = "out = pad_packed_sequence(out, True)[0]"


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize(
    "read",
    ["lengths.tolist()", "lengths.view(-1).data.tolist()", "lengths.cpu().numpy()", "x[..., 0].ne(9).sum(1).tolist()"],
)
@pytest.mark.parametrize("before", [False, True], ids=["in the call", "before it"])
def test_lengths_that_are_read_back_for_packing_stay_a_tensor(kind: str, read: str, before: bool) -> None:
    pack = "packed = pack_padded_sequence(x, %s, True, enforce_sorted=False)"
    packed = (f"counts = {read}", pack % "counts") if before else (pack % read,)
    body = lines(*packed, "self.rnn.flatten_parameters()", "out, last = self.rnn(packed)", _PADS, "return out, last")
    compiled_like_eager(model(_MADE[1], body, kind), X, LENGTHS, within=1e-5)


def test_lengths_that_are_read_back_in_half_precision_and_of_one_row() -> None:
    body = lines(
        "lengths = lengths.cpu().numpy()", _PACK, "out, last = self.rnn(packed)", _PADS, "return out * 2, last"
    )
    subject = model(_MADE[1], body).to(torch.bfloat16)
    compiled_like_eager(subject, X.to(torch.bfloat16), LENGTHS, within=1e-2)
    torch._dynamo.reset()
    compiled_like_eager(subject, X[:1].to(torch.bfloat16), LENGTHS[:1], within=1e-2)


@pytest.mark.parametrize("test", ["lengths is not None and not self.whole", "not self.whole and lengths is not None"])
def test_lengths_that_are_read_back_under_two_conditions(test: str) -> None:
    body = lines(
        "packed = x", f"if {test}:", "    numbers = lengths.view(-1).tolist()",
        "    packed = pack_padded_sequence(x, numbers, True, enforce_sorted=False)", "out, last = self.rnn(packed)",
        f"if {test}:", f"    {_PADS}", "return out, last, lengths",
    )  # fmt: skip
    for whole in (False, True):
        subject = model(f"{_MADE[1]}; self.whole = {whole}", body)
        compiled_like_eager(subject, X, LENGTHS, within=1e-5)
        compiled_like_eager(subject, X, within=1e-5)


def test_a_list_of_lengths_that_is_used_again_reaches_the_operator() -> None:
    body = lines(
        "counts = lengths.tolist()", _PACK.replace("lengths", "counts"), "out, _ = self.rnn(packed)", _PADS,
        "return out, torch.zeros(len(counts))",
    )  # fmt: skip
    compiled_like_eager(model(_MADE[1], body), X, LENGTHS, within=1e-5)


def test_a_list_of_tensors_that_has_fewer_lengths_than_there_are_rows() -> None:
    body = lines(_PACK.replace("lengths", "list(lengths)"), "out, last = self.rnn(packed)", _PADS, "return out, last")
    compiled_like_eager(model(_MADE[1], body), X, LENGTHS[:2], within=1e-5)


@pytest.mark.parametrize("read", ["lengths.cpu().numpy().astype(int)", "self.lengths_of(lengths)"])
def test_no_operator_takes_lengths_that_may_be_an_array(read: str) -> None:
    body = lines(_PACK.replace("lengths", read), "out, _ = self.rnn(packed)", _PADS, "return out")
    source = _SOURCE % (_MADE[1], body)
    assert fixed(source, opaque=True)[0] == source


def test_a_list_that_is_read_like_a_tensor_raises_as_the_author_wrote() -> None:
    body = lines("lengths = lengths.tolist()", _PACK, "out, _ = self.rnn(packed)", _PADS, "return out")
    subject = model(_MADE[1], body)
    for call in (subject, torch.compile(subject, backend="eager")):
        with pytest.raises(AttributeError, match="tolist"):
            call(X, [2, 5, 3])


@pytest.mark.parametrize(
    "body",
    [
        lines(
            "if lengths is not None:", "    counts = lengths.tolist()",
            "    x = pack_padded_sequence(x, counts, True, enforce_sorted=False)", "out, _ = self.rnn(x)",
            "if lengths is not None:", f"    {_PADS}", "return out, counts",
        ),
        lines(
            "if lengths is not None:", "    x = pack_padded_sequence(x, lengths, True, enforce_sorted=False)",
            "out, _ = self.rnn(x)", "if lengths is not None:", "    lengths = state.tolist()", f"    {_PADS}",
            "return out",
        ),
        lines(
            "if lengths is not None:", "    y = x * 2",
            "    z = pack_padded_sequence(x, lengths, True, enforce_sorted=False)", "out, _ = self.rnn(z)",
            "if lengths is not None:", f"    {_PADS}", "return out",
        ),
        lines(
            "if lengths is not None:", "    z = pack_padded_sequence(x, lengths, True, enforce_sorted=False)",
            "out, _ = self.rnn(z)", "if lengths is not None:", f"    {_PADS}", "return out",
        ),
    ],
    ids=["used again", "another statement before padding", "another before packing", "bound under the test alone"],
)  # fmt: skip
def test_statements_under_a_test_that_do_more_than_pack_are_left_alone(body: str) -> None:
    assert "_packed_rnn_operator" not in fixed(_SOURCE % (_MADE[1], body), opaque=True)[0]
