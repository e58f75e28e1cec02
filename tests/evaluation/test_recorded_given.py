"""Operators by recorded calls: functions out of tables, keyword arguments that were empty, layers that run later."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphmend_codemod.reporting.recorded import holds_for
from tests.evaluation.recorded_fixes import Recorded, calls_of, model_with, one_graph, recorded

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]
_OUTSIDE = "\ndef outside(x, scale=1.0):\n    return x * scale\n"
_BYTES = (
    "torch.frombuffer(bytearray(x.numpy().tobytes()), dtype=x.dtype).reshape(x.shape)"  # which Dynamo does not trace
)
_SHAPES = [(3, 4), (5, 6)]


def _same(found: Recorded, *call: object, **words: object) -> bool:
    """Whether the compiled model gives what eager mode gives, in however many graphs."""
    torch.compiler.reset()
    with torch.no_grad():
        made = torch.compile(found.model(), backend="aot_eager")(*call, **words)
        return torch.equal(made, found.model()(*call, **words))


def test_a_function_out_of_a_table_goes_in(tmp_path: Path) -> None:
    before = f"{_OUTSIDE}\nTABLE = {{'plain': outside}}\n"
    found = recorded(
        tmp_path, f"run = TABLE['plain']\nx = x + 1\ny = run({_BYTES}, 2.0)\nreturn y + 1", _SHAPES, before=before
    )
    assert "_operator(run, x)" in found.after, found.reasons
    x = torch.randn(4, 4)
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), x), found.model()(x))


def test_a_function_that_each_call_makes_is_taken_in_with_what_makes_it(tmp_path: Path) -> None:
    body = f"run = lambda y: outside(y, 2.0)\nx = x + 1\ny = run({_BYTES})\nreturn y + 1"
    found = recorded(tmp_path, body, _SHAPES, before=_OUTSIDE)
    assert "_operator(run" not in found.after
    assert "_operator(x)" in found.after, found.reasons


def test_a_function_of_one_call_is_not_taken_for_one_that_stays(tmp_path: Path) -> None:
    """Both rounds of the loop have it, and the next call makes another."""
    body = f"run = lambda y: outside(y, 2.0)\nfor _ in range(2):\n    x = run({_BYTES})\nreturn x + 1"
    source = model_with(body, _OUTSIDE)
    found = Recorded(tmp_path, source, calls_of((3, 4)), gradients=False)
    assert found.after == found.before, found.after


_WORDS = _OUTSIDE + "\ndef changed(x, words):\n    words.clear()\n    return x\n"


def test_keyword_arguments_that_were_empty_are_asked_to_be(tmp_path: Path) -> None:
    source = model_with(f"y = outside({_BYTES}, **words)\nreturn y + 1", _WORDS).replace("*rest)", "**words)")
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    assert "and not words" in found.after, found.reasons
    assert any("not words" in holds_for(each) for each in found.findings)
    x = torch.randn(4, 4)
    assert torch.equal(one_graph(found.model(), x), found.model()(x))
    assert _same(found, x, scale=3.0)  # by the author's own path


@pytest.mark.parametrize(
    "body",
    [
        f"y = outside({_BYTES}, **words) * len(words)",
        f"y = outside(changed({_BYTES}, words), **words)",
        "words = {**words}\ny = outside(" + _BYTES + ", **words)",
    ],
)
def test_other_uses_of_empty_keyword_arguments_are_left_alone(tmp_path: Path, body: str) -> None:
    source = model_with(f"{body}\nreturn y + 1", _WORDS).replace("*rest)", "**words)")
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    assert "not words" not in found.after, found.after


def test_keyword_arguments_of_a_recorded_call_are_left_alone(tmp_path: Path) -> None:
    source = model_with(f"y = outside({_BYTES}, **words)\nreturn y + 1", _WORDS).replace("*rest)", "**words)")
    source = source.replace(
        "def forward(self, x, **words)",
        "def forward(self, x):\n        return self.run(x, scale=2.0)\n\n    def run(self, x, **words)",
    )
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    assert "not words" not in found.after, found.after


_LAYERS = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Buffer(torch.ones(4))
    def forward(self, x):
        return outside(x, self.scale)
class Block(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.run, self.inner = kind, Part()
    def forward(self, x):
        return self.run(self, x) + 1
def plain(layer, x):
    return x * 2
"""
_LATER = (
    "rows = x.numpy().tobytes()\ny = self.first(x * len(rows))\nfor layer in self.later:\n    y = layer(y)\nreturn y"
)
_FIRST = "self.first = Part()\n        self.later = nn.ModuleList([Block(plain)])"


def _with_layers(tmp_path: Path, body: str = _LATER, init: str = _FIRST) -> Recorded:
    return recorded(tmp_path, body, _SHAPES_OF_FOUR, before=_OUTSIDE + _LAYERS, init=init)


_SHAPES_OF_FOUR = [(3, 4), (5, 4)]


def test_layers_that_run_later_are_asked_to_have_no_part_in_what_is_read(tmp_path: Path) -> None:
    found = _with_layers(tmp_path)
    assert '_is_apart(self, "first", "later")' in found.after, found.reasons
    assert any("layers in later of self share nothing with first" in holds_for(each) for each in found.findings)
    x = torch.randn(4, 4)
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), x), found.model()(x))


@pytest.mark.parametrize(
    "init",
    [
        "self.later[0].inner = self.first",
        "self.later[0].inner.scale = self.first.scale",
        "self.later[0].held = [self.first]",
        "self.later[0].above = {'model': self}",
        "self.later[0].register_forward_hook(lambda *_: None)",
        "self.later[0].inner.register_forward_pre_hook(lambda *_: None)",
    ],
)
def test_layers_that_share_something_with_what_is_read_take_the_author_s_path(tmp_path: Path, init: str) -> None:
    found = _with_layers(tmp_path)
    source = found.path.read_text()
    found.path.write_text(source.replace("Block(plain)])", f"Block(plain)])\n        {init}"))
    with torch.no_grad(), pytest.raises(torch._dynamo.exc.Unsupported):
        one_graph(found.model(), torch.randn(4, 4))


_SCALED = "\n\n    def scaled(self, y):\n        return self.first(y)\n"


def _by_method(tmp_path: Path) -> Recorded:
    source = model_with(_LATER.replace("self.first(", "self.scaled("), _OUTSIDE + _LAYERS, _FIRST).rstrip() + _SCALED
    return Recorded(tmp_path, source, calls_of(*_SHAPES_OF_FOUR), gradients=False)


def test_what_a_method_reads_is_apart_from_later_layers_too(tmp_path: Path) -> None:
    found, x = _by_method(tmp_path), torch.randn(4, 4)
    assert '_is_apart(self, "first", "later", "scaled", __name__)' in found.after, found.reasons
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), x), found.model()(x))


def test_layers_that_lead_to_the_instance_may_change_its_numbers(tmp_path: Path) -> None:
    method = _SCALED.replace("self.first(y)", "y * self.count")
    init = f"{_FIRST}; self.count = 2"
    source = model_with(_LATER.replace("self.first(", "self.scaled("), _OUTSIDE + _LAYERS, init).rstrip() + method
    found, x = Recorded(tmp_path, source, calls_of(*_SHAPES_OF_FOUR), gradients=False), torch.randn(4, 4)
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), x), found.model()(x)), found.reasons
        found.path.write_text(found.after.replace("self.count = 2", "self.count = 2; self.later[0].above = [self]"))
        with pytest.raises(torch._dynamo.exc.Unsupported):
            one_graph(found.model(), x)


@pytest.mark.parametrize("way", ["instance", "class"])
def test_another_method_of_the_name_takes_the_author_s_path(tmp_path: Path, way: str) -> None:
    """It may read what the later layers change."""
    model = _by_method(tmp_path).model()
    if way == "class":
        model.__class__ = type("Heir", (model.__class__,), {"scaled": lambda self, y: self.later[0](y)})
    else:
        model.scaled = model.later[0].forward  # type: ignore[index, union-attr]
    with torch.no_grad(), pytest.raises(torch._dynamo.exc.Unsupported):
        one_graph(model, torch.randn(4, 4))


@pytest.mark.parametrize("call", ["y = self.step(y)", "y = layer(self, y)", "y = layer(y, above=self)"])
def test_calls_that_may_change_what_is_read_are_left_alone(tmp_path: Path, call: str) -> None:
    body = _LATER.replace("y = layer(y)", f"if rest:\n        {call}\n    y = layer(y)")
    source = model_with(body, _OUTSIDE + _LAYERS, _FIRST).rstrip()
    source += "\n\n    def step(self, y):\n        self.first = Part()\n        return y\n"
    found = Recorded(tmp_path, source, calls_of(*_SHAPES_OF_FOUR), gradients=False)
    assert "_is_apart" not in found.after, found.after
    assert "in the same graph" in found.reasons, found.reasons


def test_a_layer_that_is_read_and_runs_later_is_left_alone(tmp_path: Path) -> None:
    found = _with_layers(
        tmp_path,
        _LATER.replace("    y = layer(y)", "    y = self.first(y)"),
        "self.first = Block(plain); self.later = [1]",
    )
    assert "_is_apart" not in found.after, found.after
    assert "in the same graph" in found.reasons, found.reasons


_CHOSEN = """
class Table:
    def get(self, kind):
        return FUNCTIONS[kind]
def plain(layer, x):
    return x * 2
FUNCTIONS, TABLE = {"plain": plain}, Table()
"""
_PARTS = """run = TABLE.get(self.config.kind)
if "other" in self.kind:
    y = run(self, x)
else:
    y = torch.cat([run(self, x), BYTES])
y = y.reshape(-1, 4)
return y + 1"""
_KIND = "self.kind = 'plain'; self.config = Config()"
_CONFIG = "class Config:\n    def __init__(self):\n        self.kind = 'plain'\n"


def _chosen(tmp_path: Path, body: str = _PARTS) -> Recorded:
    source = model_with(body.replace("BYTES", _BYTES), _CONFIG + _CHOSEN, _KIND)
    return Recorded(tmp_path, source, calls_of(*_SHAPES_OF_FOUR), gradients=False)


def test_a_function_of_a_table_runs_with_the_instance_in_an_operator(tmp_path: Path) -> None:
    found = _chosen(tmp_path)
    assert "type(self.config.kind) in (bool, int, float, str)" in found.after, found.reasons
    x = torch.randn(6, 4)
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), x), found.model()(x))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("TABLE.get(self.config.kind)", "TABLE.get(self.config.kind) if x is not None else TABLE.get([self])"),
        ("TABLE.get(self.config.kind)", "TABLE.get(self.config.kind) if x is not None else TABLE.get(self)"),
        ("y = y.reshape(-1, 4)", "y = y.reshape(-1, 4) if x is not None else y.reshape(self, 4)"),
        ("y = y.reshape(-1, 4)", "y = y if x is not None else self.config\ny = y.reshape(-1, 4)"),
    ],
)
def test_what_else_may_get_at_the_instance_is_left_alone(tmp_path: Path, old: str, new: str) -> None:
    found = _chosen(tmp_path, _PARTS.replace(old, new))
    assert found.after == found.before, found.after
    assert "in the same graph" in found.reasons, found.reasons


def test_an_arm_that_another_call_may_take_is_no_reason_where_it_is_taken_in(tmp_path: Path) -> None:
    found = _chosen(tmp_path, _PARTS.replace('"other" in self.kind', "len(x) > 9"))
    assert found.after.count("if len(x) > 9:") == 2, found.after
    with torch.no_grad():
        assert _same(found, torch.randn(6, 4))
