"""The tables of operators say what real torch does: memory, writes, random numbers, dtypes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from graphmend_codemod.analysis import aliasing, torch_api
from tests.analysis.operator_calls import Seen, calls, seen

_NO_DEVICE = {"cuda"}
_DTYPES = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.cfloat)


@cache
def _seen(name: str) -> list[Seen]:
    state = torch.get_rng_state()
    torch.manual_seed(0)  # whether a call raises may depend on what it is given
    try:
        return list(calls(name))
    finally:
        torch.set_rng_state(state)


def _effect(text: str) -> aliasing.Effect:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    owner = ast.unparse(call.func.value)
    function = owner.startswith(("torch", "F")) and not isinstance(call.func.value, ast.Call)
    part = owner.removeprefix("torch.") + "."
    name = (part if part in torch_api.PARTS else "") + call.func.attr
    return aliasing.of_operator(name, call, None if function else call.func.value)


def _named(nodes: Iterable[ast.expr]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


@pytest.mark.parametrize("name", sorted(aliasing.FRESH | aliasing.PYTHON_RESULTS | aliasing.VIEWS | aliasing.RANDOM))
def test_no_call_does_more_than_is_known_of_it(name: str) -> None:
    found = _seen(name)
    assert found or name in _NO_DEVICE, "no call of it works: say how to call it"
    effects = [(each, _effect(each.text)) for each in found]
    assert [each.text for each, known in effects if not each.shares - {"kept"} <= _named(known.shares)] == []
    assert [each.text for each, known in effects if not each.writes <= _named(known.writes)] == []
    assert [each.text for each, known in effects if each.random and not known.random] == []


@pytest.mark.parametrize("name", sorted(aliasing.VIEWS - _NO_DEVICE))
def test_an_operator_is_called_a_view_only_where_some_call_shares_memory(name: str) -> None:
    assert any(each.shares for each in _seen(name))


@pytest.mark.parametrize("name", sorted(aliasing.RANDOM - {"rrelu"}))
def test_an_operator_is_called_random_only_where_some_call_draws(name: str) -> None:
    assert any(each.random for each in _seen(name))


def test_what_torch_says_of_views_writes_and_seeds_agrees() -> None:
    fresh = aliasing.FRESH | aliasing.PYTHON_RESULTS
    wrong = set()
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        of_list = schema.arguments and str(schema.arguments[0].type).startswith("List[")
        if not schema.name.startswith("aten::") or name not in fresh or of_list:
            continue
        written = {each.name for each in schema.arguments if each.alias_info and each.alias_info.is_write}
        returned = [each.alias_info for each in schema.returns if each.alias_info and not each.alias_info.is_write]
        if returned or (written and not any(each.is_out for each in schema.arguments)):
            wrong.add(f"{name}.{schema.overload_name}")
        packet = getattr(torch.ops.aten, name)
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is not None and torch.Tag.nondeterministic_seeded in overload.tags:
            wrong.add(f"{name}.{schema.overload_name} is random")
    assert wrong == set()


def test_operators_that_are_not_listed_share_and_write() -> None:
    """Each of these is common in models and costs an edit where it stands: list it once its calls have been tried."""
    frequent = "numpy record_stream apply_ map_ lstm gru lobpcg embedding_renorm resize_as".split()
    call = ast.parse("f(x, y)", mode="eval").body
    assert isinstance(call, ast.Call)
    for name in frequent:
        effect = aliasing.of_operator(name, call)
        assert not effect.pure
        assert call.args[0] in effect.shares
        assert call.args[0] in effect.writes


# in place


def test_every_function_that_takes_inplace_is_listed_with_its_place() -> None:
    found = {}
    for name, function in vars(F).items():
        if callable(function) and not name.startswith("_"):
            try:
                given = list(inspect.signature(function).parameters)
            except (TypeError, ValueError):
                continue
            if "inplace" in given:
                found[name] = given.index("inplace")
    assert found == aliasing.IN_PLACE_ARGUMENT


_BEFORE_INPLACE = {"alpha_dropout": "0.5, True", "feature_alpha_dropout": "0.5, True"} | {
    "celu": "1.0", "elu": "1.0", "hardtanh": "0.0, 1.0", "leaky_relu": "0.01", "rrelu": "0.1, 0.3, False",
    "threshold": "0.0, 1.0", "dropout": "0.5, True", "dropout1d": "0.5, True", "dropout2d": "0.5, True",
    "dropout3d": "0.5, True",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(aliasing.IN_PLACE_ARGUMENT))
def test_inplace_by_keyword_and_by_position_writes_and_is_known_to(name: str) -> None:
    before = _BEFORE_INPLACE.get(name)
    front = f"F.{name}(b" + (f", {before}" if before else "")
    for text in (f"{front}, inplace=True)", f"{front}, True)"):
        (call,) = seen(text, "torch.rand(4, 4)")
        assert call.writes
        assert call.shares
        assert [ast.unparse(each) for each in _effect(text).writes] == ["b"]
    assert _effect(f"{front}, inplace=INPLACE)").writes, "a constant of the module may be true"
    for text in (f"{front}, inplace=False)", f"{front}, False)"):
        (call,) = seen(text, "torch.rand(4, 4)")
        assert not call.writes
        assert not _effect(text).writes


@pytest.mark.parametrize(
    "text",
    """torch.abs(x, out=y);torch.add(x, x, out=y);torch.clamp(x, 0.0, out=y);torch.sum(x, 0, out=y);F.relu_(x)
    torch.relu_(x);x.add_(1);x.copy_(y);torch.where(x > 0, x, x, out=y);torch.cat([x], out=y);x.masked_fill_(x > 0, 0)
    F.elu_(x);F.leaky_relu_(x);F.selu_(x);F.celu_(x);F.hardtanh_(x);F.threshold_(x, 0.0, 1.0);x.t_();x.fill_(1)
    torch.maximum(x, x, out=y);x.clamp_(0);x.requires_grad_();F.embedding(i, y, max_norm=0.1);x.normal_()
    F.embedding(i, y, None, 0.1);F.instance_norm(b, y[0], z[0])
    F.embedding_bag(i[None], y, max_norm=0.1);x.zero_();x.mul_(2);x.index_add_(0, i, y);x.bernoulli_()""".replace(
        "\n", ";"
    ).split(";"),
)
def test_what_writes_is_known_to(text: str) -> None:
    (call,) = seen(text.strip(), "torch.rand(4, 4)")
    assert call.writes or "requires_grad_" in text
    effect = _effect(text.strip())
    assert effect.writes
    assert not effect.pure
    assert call.random == effect.random


def test_running_statistics_are_known_to_be_written() -> None:
    mean, variance = torch.zeros(4), torch.ones(4)
    F.batch_norm(torch.rand(4, 4), mean, variance, training=True)
    assert mean.any()
    effect = _effect("F.batch_norm(x, mean, variance, training=True)")
    assert [ast.unparse(each) for each in effect.writes[:2]] == ["mean", "variance"]


# layers

_MADE = {
    "Linear": "4, 2", "Bilinear": "4, 4, 2", "LayerNorm": "4", "RMSNorm": "4", "GroupNorm": "2, 4",
    "Embedding": "4, 2", "EmbeddingBag": "4, 2", "Unflatten": "1, (2, 2)", "Threshold": "0.0, 1.0",
    "LocalResponseNorm": "2", "Softmax": "-1", "LogSoftmax": "-1", "Upsample": "(4, 4)",
} | {f"Conv{n}d": "4, 2, 1" for n in (1, 2, 3)} | {f"ConvTranspose{n}d": "4, 2, 1" for n in (1, 2, 3)} | {
    f"{kind}Norm{n}d": "4" for kind in ("Batch", "Instance") for n in (1, 2, 3)
} | {f"{kind}Pool{n}d": "1" for kind in ("Avg", "Max") for n in (1, 2, 3)} | {
    f"Adaptive{kind}Pool{n}d": "4" for kind in ("Avg", "Max") for n in (1, 2, 3)
} | {f"LPPool{n}d": "2, 1" for n in (1, 2, 3)} | {
    f"{kind}Pad{n}d": "0" for kind in ("Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)
} | {f"ConstantPad{n}d": "0, 0.0" for n in (1, 2, 3)} | {
    "KLDivLoss": "reduction='sum'", "Softmin": "-1", "PixelShuffle": "1", "PixelUnshuffle": "1", "ChannelShuffle": "1",
    "Unfold": "1",
    "Fold": "(4, 4), (2, 2), stride=2", "UpsamplingNearest2d": "(4, 4)", "UpsamplingBilinear2d": "(4, 4)",
}  # fmt: skip
_OF_CLASSES = frozenset({"NLLLoss", "MultiMarginLoss"})
_OF_SIGNS = frozenset({"MarginRankingLoss", "CosineEmbeddingLoss", "TripletMarginLoss", "GaussianNLLLoss"})


def _input(layer: str) -> tuple[torch.Tensor, ...]:
    if layer.startswith("Embedding"):
        return (torch.zeros(2, 2, dtype=torch.long),)
    if layer == "Bilinear":
        return torch.rand(4, 4), torch.rand(4, 4)
    if layer in _OF_CLASSES:
        return torch.rand(4, 4), torch.zeros(4, dtype=torch.long)
    if layer == "MultiLabelMarginLoss":
        return torch.rand(4, 4), torch.zeros(4, 4, dtype=torch.long)
    if layer in _OF_SIGNS:
        third = torch.ones(4) if layer == "CosineEmbeddingLoss" else torch.ones(4, 4)
        return torch.rand(4, 4), torch.rand(4, 4), third
    if layer == "CTCLoss":
        return torch.rand(4, 1, 4), torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])
    if layer.endswith("Loss") or layer in {"CosineSimilarity", "PairwiseDistance"}:
        return torch.rand(4, 4), torch.rand(4, 4)
    if layer in {"Fold", "Unfold", "PixelShuffle", "PixelUnshuffle", "ChannelShuffle"}:
        return (torch.rand(1, 4, 4) if layer == "Fold" else torch.rand(1, 4, 4, 4),)
    dimensions = int(layer[-2]) if layer.endswith("d") and layer[-2].isdigit() else 2
    return (torch.rand(2, 4, *[4] * (dimensions if layer[-2:] in {"1d", "2d", "3d"} or "Up" in layer else 1)),)


def _called(layer: str, words: str = "") -> tuple[torch.Tensor, torch.Tensor, int]:
    given = ", ".join(each for each in (_MADE.get(layer, ""), words) if each)
    module = eval(f"nn.{layer}({given})", {"nn": nn}).eval()
    arguments = _input(layer)
    return module(*arguments), arguments[0], arguments[0]._version


@pytest.mark.parametrize("layer", sorted(aliasing.FRESH_LAYERS - {"SyncBatchNorm"}))
def test_a_layer_that_is_called_fresh_returns_memory_of_its_own(layer: str) -> None:
    result, given, version = _called(layer)
    assert result.untyped_storage().data_ptr() != given.untyped_storage().data_ptr()
    assert version == 0
    if layer in torch_api.FLOATING_MODULES:
        assert result.is_floating_point()


@pytest.mark.parametrize("layer", sorted(aliasing.ALIASING_LAYERS))
def test_a_layer_that_is_called_aliasing_shares_memory_in_eval_mode(layer: str) -> None:
    result, given, _ = _called(layer)
    assert result.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()


def test_every_layer_that_takes_inplace_is_listed_with_its_place() -> None:
    found = {}
    for name, layer in vars(nn).items():
        if inspect.isclass(layer) and issubclass(layer, nn.Module):
            given = list(inspect.signature(layer.__init__).parameters)
            if "inplace" in given:
                found[name] = given.index("inplace") - 1
    assert found == aliasing.IN_PLACE_LAYER_ARGUMENT


@pytest.mark.parametrize("layer", sorted(aliasing.IN_PLACE_LAYER_ARGUMENT))
def test_a_layer_made_to_work_in_place_is_known_to_write(layer: str) -> None:
    call = ast.parse("self.act(x)", mode="eval").body
    assert isinstance(call, ast.Call)

    def writes(text: str) -> bool:
        made = ast.parse(text, mode="eval").body
        assert isinstance(made, ast.Call)
        return bool(aliasing.of_layer(layer, made, call).writes)

    given = _MADE.get(layer, "")
    front = f"{given}, " if given else ""
    assert writes(f"nn.{layer}({front}inplace=True)")
    assert writes(f"nn.{layer}({front}inplace=quick)")
    assert not writes(f"nn.{layer}({front}inplace=False)") or layer not in aliasing.FRESH_LAYERS
    assert aliasing.of_layer(layer, None, call).writes
    place = aliasing.IN_PLACE_LAYER_ARGUMENT[layer]
    assert writes(f"nn.{layer}({', '.join(['0.1'] * place + ['True'])})")
    if "Dropout" not in layer:
        assert _called(layer, "inplace=True")[2] > 0


# dtypes and shapes


def _results(name: str, dtype: torch.dtype) -> list[tuple[torch.Tensor, torch.Tensor]]:
    subject = f"torch.ones(4, 4, dtype={dtype})"
    found = [each for text in (f"x.{name}()", f"torch.{name}(x)", f"F.{name}(x)", f"x.{name}(0)", f"F.{name}(x, 0)",
             f"x.{name}(y)", f"torch.{name}(x, y)", f"x.{name}(x > 0, 0)", f"x.{name}((0,))", f"x.{name}(0, 1)",
             f"x.{name}(0, 0, 1)", f"x.{name}(x.shape)", f"x.{name}(1, (2, 2))", f"x.{name}(0, torch.tensor([0]))",
             f"x.{name}((0, 1), (1, 0))",
             f"x.{name}(2)", f"x.{name}([1, 3])") for each in seen(text, subject)]  # fmt: skip
    pairs = [(result, each.subject) for each in found for result in _tensors(each.result)]
    return pairs


def _tensors(result: object) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [each for each in result if isinstance(each, torch.Tensor)] if isinstance(result, (tuple, list)) else []


@pytest.mark.parametrize("name", sorted(torch_api.SAME_ANY_DTYPE))
def test_what_keeps_any_dtype_and_shape_does(name: str) -> None:
    found = [pair for dtype in _DTYPES for pair in _results(name, dtype)]
    assert found
    assert all(result.dtype == given.dtype and result.shape == given.shape for result, given in found)


@pytest.mark.parametrize("name", sorted(torch_api.SAME_IF_FLOATING))
def test_what_keeps_a_floating_dtype_and_shape_does(name: str) -> None:
    found = [pair for dtype in (torch.float16, torch.bfloat16, torch.float64) for pair in _results(name, dtype)]
    assert found
    assert all(result.dtype == given.dtype and result.shape == given.shape for result, given in found)


@pytest.mark.parametrize("name", sorted(torch_api.LAYOUT))
def test_what_changes_the_layout_alone_keeps_any_dtype(name: str) -> None:
    found = [pair for dtype in _DTYPES for pair in _results(name, dtype)]
    assert found
    assert all(result.dtype == given.dtype for result, given in found)


@pytest.mark.parametrize("name", sorted(torch_api.TO_BOOL))
def test_what_compares_returns_bool(name: str) -> None:
    found = [result for dtype in _DTYPES for result, _ in _results(name, dtype)]
    assert found
    assert {result.dtype for result in found} == {torch.bool}
