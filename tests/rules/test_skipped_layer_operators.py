"""GM801: a layer that a random number skips, as one operator that runs it or does not."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest
import torch

from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.outlining.statements import skipped_layers
from tests.rules.test_skipped_layers import _FORMS
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed, fixed_among
from tests.tools.observe import Scenario
from tests.tools.subject import forget, load, register

_MODEL = """
import torch
from torch import nn
import base


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.count = 0

    def forward(self, x, mask):
        return torch.tanh(self.linear(x)) if mask is None else torch.tanh(self.linear(x)) * mask


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.4)

    def forward(self, x, mask=None, flag=False):
        y = self.inner(x, mask)
        return self.norm(x + self.drop(y)), y.sum()


class Model(nn.Module):
    def __init__(self, layerdrop=0.5):
        super().__init__()
        torch.manual_seed(5)
        self.layerdrop = layerdrop
        self.layers = nn.ModuleList([Layer() for _ in range(6)])

    def forward(self, x: torch.Tensor, mask=None, flag=False):
        seen, count, other = (), 0, x.sum()
{body}
        return x, seen, other
"""
_LOOP = """
for layer in self.layers:
    drawn = torch.rand([])
    skip = self.training and drawn < self.layerdrop
    if not skip:
        outputs = layer(x, mask=mask, flag=flag)
        x = outputs[0]
    if skip:
        outputs = (None, None)
    if flag:
        seen = seen + (outputs[1],)
"""
_OFF = (Scenario(True, "off"),)
_TRAINING = (Scenario(True, "leaves"), Scenario(False, "off"))


def model(form: str, source: str = _MODEL) -> str:
    return source.replace("import base\n", "").format(body=indent(dedent(form).strip("\n"), "        "))


def after_fix(before: str) -> str:
    after, _ = fixed(before, opaque=True)
    assert "_layer_operator(" in after
    return after


def compared(after: str, *, backend: str, given: tuple[Any, ...] = (), seeds: int = 6) -> int:
    """How often a parameter has no gradient in eager mode. All else is the same: results, state, random numbers."""
    source = register(after)
    namespace: Any = load(source)
    without = 0
    try:
        eager, compiled = namespace.Model(), namespace.Model()
        run: Any = torch.compile(compiled, backend=backend, fullgraph=True)
        for seed in range(seeds):
            found = []
            for each, call in ((eager, eager), (compiled, run)):
                each.zero_grad()
                torch.manual_seed(seed)
                np.random.seed(seed)
                x = torch.randn(3, 4, requires_grad=True)
                result = call(x, *given)
                (result[0] ** 2).sum().backward()
                state = {name: value.clone() for name, value in each.state_dict().items()}
                found.append((result, x.grad, torch.get_rng_state(), state))
            torch.testing.assert_close(found[1], found[0])
            for one, other in zip(eager.parameters(), compiled.parameters(), strict=True):
                without += one.grad is None
                torch.testing.assert_close(other.grad, torch.zeros_like(one) if one.grad is None else one.grad)
    finally:
        forget(source)
    return without


@pytest.mark.parametrize("form", [each for each in _FORMS if each != "two results"])
def test_every_form_is_one_graph(form: str) -> None:
    before = model(_FORMS[form])
    after = after_fix(before)
    behaves(before, after, ["torch.ones(2, 4)"], scenarios=_TRAINING)
    compiles(after, ["torch.ones(2, 4)"], scenarios=(Scenario(True, "off"), Scenario(False, "off")), state=False)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("given", [(), (torch.full((3, 4), 0.5),)])
def test_dropout_statistics_and_random_numbers_are_those_of_eager_mode(backend: str, given: tuple[Any, ...]) -> None:
    """`torch.cond` would draw the numbers for dropout anew for the gradient."""
    assert compared(after_fix(model(_LOOP)), backend=backend, given=given)


def test_dropout_of_a_transposed_tensor_has_the_mask_of_the_first_run() -> None:
    """`torch.func.vjp` draws another one."""
    turned = "y = self.drop(self.inner(x, mask).t().contiguous().t())"
    assert compared(after_fix(model(_LOOP).replace("y = self.inner(x, mask)", turned)), backend="aot_eager")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_has_the_gradient_of_the_numbers_that_were_drawn() -> None:
    source = register(after_fix(model(_LOOP)))
    namespace: Any = load(source)
    try:
        run: Any = torch.compile(namespace.Model().double(), fullgraph=True)
        direction = torch.randn(3, 4, dtype=torch.double)

        def value(shift: float, seed: int, x: torch.Tensor) -> Any:
            torch.manual_seed(seed)
            return (run(x + shift * direction if shift else x)[0] ** 3).sum()

        for seed in range(3):
            x = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
            value(0.0, seed, x).backward()
            assert x.grad is not None
            given = x.detach()
            slope = (value(1e-5, seed, given) - value(-1e-5, seed, given)) / 2e-5
            torch.testing.assert_close((x.grad * direction).sum(), slope.detach(), rtol=1e-4, atol=1e-6)
    finally:
        forget(source)


def test_two_tensors_that_the_layer_may_leave_alone() -> None:
    loop = """
    for layer in self.layers:
        drawn = torch.rand([])
        skip = self.training and drawn < self.layerdrop
        if not skip:
            x, other = layer(x, mask)
    """
    after = after_fix(model(loop))
    assert "other, x = _layer_operator(" in after
    assert compared(after, backend="aot_eager")


@pytest.mark.parametrize("draw", ["np.random.uniform(0, 1)", "np.random.random()"])
def test_a_number_that_numpy_draws(draw: str) -> None:
    before = model(_LOOP.replace("torch.rand([])", draw)).replace(
        "import torch\n", "import numpy as np\nimport torch\n"
    )
    after = after_fix(before)
    assert "torch.as_tensor(drawn)" in after
    behaves(before, after, ["torch.ones(2, 4)"], scenarios=_TRAINING)
    assert compared(after, backend="aot_eager", seeds=3)


def test_flags_that_ask_for_more_run_what_the_author_wrote() -> None:
    after = after_fix(model(_LOOP))
    compiles(after, ["torch.ones(2, 4), None, True"], scenarios=_OFF, strict=False, state=False)
    compiles(after.replace("layerdrop=0.5", "layerdrop=0.0"), ["torch.ones(2, 4)"], scenarios=_TRAINING, state=False)


def test_a_flag_around_the_draw_and_words_that_are_handed_on() -> None:
    loop = """
    for layer in self.layers:
        skip = False
        if self.training and self.layerdrop > 0.0:
            drawn = torch.rand([])
            skip = drawn < self.layerdrop
        if not skip:
            x = layer(x, mask=mask, **words)[0]
    """
    before = model(loop).replace("mask=None, flag=False):\n        seen", "mask=None, **words):\n        seen")
    after = after_fix(before)
    assert "and not words" in after
    assert compared(after, backend="aot_eager")


def test_unsafe_fixes_beside_opaque_ones_leave_the_operator() -> None:
    after, _ = fixed(model(_LOOP), opaque=True, unsafe_fixes=True)
    assert "_layer_operator(" in after
    assert "torch.where(" not in after


@pytest.mark.parametrize(
    "change",
    [
        "model.layers[1].register_forward_hook(lambda *given: None)",
        "model.layers[1] = type('Other', (nn.Module,), {'forward': lambda self, x, **words: (x * 2, x.sum())})()",
        "model.layers[1].forward = lambda x, **words: (x * 2, x.sum())",
    ],
)
def test_other_layers_and_hooks_break_the_graph_as_before(change: str) -> None:
    after = after_fix(model(_LOOP)).replace("class Model(nn.Module):", "class Whole(nn.Module):")
    after += f"""

def Model():
    model = Whole()
    {change}
    return model
"""
    compiles(after, ["torch.ones(2, 4)"], scenarios=_OFF, strict=False, state=False)


def test_a_layer_that_changes_the_shape_raises() -> None:
    source = register(after_fix(model(_LOOP).replace("return self.norm(x + self.drop(y))", "return self.norm(y)[:1]")))
    namespace: Any = load(source)
    try:
        run: Any = torch.compile(namespace.Model(layerdrop=0.01), backend="eager", fullgraph=True)
        with pytest.raises(RuntimeError, match="has to keep shape and dtype"):
            run(torch.ones(2, 4))
    finally:
        forget(source)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        (
            "y = self.inner(x, mask)",
            "x += 1\n        y = self.inner(x, mask)",
            "may write into what the layer is given",
        ),
        ("y = self.inner(x, mask)", "y = x\n        y[0] = 1", "may write into what the layer is given"),
        ("y = self.inner(x, mask)", "y = x.view(-1, 4).mul_(2)", "may write into what the layer is given"),
        ("y = self.inner(x, mask)", "y = nn.functional.relu(x, inplace=True)", "may write into"),
        ("self.drop = nn.Dropout(0.4)", "self.drop = nn.ReLU(inplace=True)", "writes into what it is given"),
        ("y = self.inner(x, mask)", "self.last = y = self.inner(x, mask)", "not supported inside a custom operator"),
        ("return torch.tanh(self.linear(x)) if", "self.count += 1\n        return x if", "not supported inside"),
        ("y = self.inner(x, mask)", "y = note(self, x)", "gets the layer itself"),
        ("y = self.inner(x, mask)", "y = own(x)", "`Own.apply(x)` in `own` is not supported"),
        ("class Inner(nn.Module)", "import base\n\n\nclass Inner(base.Layer)", "base class in another file"),
        ("outputs = layer(x, mask=mask, flag=flag)", "outputs = layer(layer(x)[0])", "does not call one layer"),
        ("outputs = layer(x, mask=mask, flag=flag)", "outputs = layer(x, self.extra)", "is read of `self`"),
        ("for layer in self.layers:", "for layer in list(self.layers):", "cannot infer what"),
    ],
)
def test_what_an_operator_would_not_do_as_eager_mode_is_declined(
    old: str, new: str, because: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The select of GM112 is what is told there."""
    reasons, make = [], skipped_layers.edit

    def edit(*given: Any) -> Edit:
        try:
            return make(*given)
        except NotProven as reason:
            reasons.append(str(reason))
            raise

    monkeypatch.setattr(skipped_layers, "edit", edit)
    written = "def note(layer, x):\n    layer.count = x\n    return x\n\n\n"
    written += "def own(x):\n    return Own.apply(x)\n\n\n"
    asked = "not (torch.compiler.is_compiling() and self.layerdrop <= 0) and drawn"
    before = model(_LOOP.replace("drawn <", f"{asked} <")).replace("class Layer", f"{written}class Layer", 1)
    assert old in before
    before = before.replace(old, new, 1)
    after, _ = fixed(before, opaque=True)
    assert "_layer_operator" not in after
    assert any(because in each for each in reasons), reasons


def test_what_the_layer_made_itself_may_be_written_into() -> None:
    written = "y = torch.sin(x)\n        y += 1\n        y = y.view(-1, 4)\n        y = self.inner(y.mul_(2), mask)"
    assert compared(after_fix(model(_LOOP).replace("y = self.inner(x, mask)", written)), backend="aot_eager", seeds=3)


_BASE = """
from torch import nn


class Layer(nn.Module):
    replaying = False

    def __call__(self, *given, **words):
        if self.replaying and self.training:
            print("replayed")
            return self.replay(super().__call__, *given)
        {statement}
        return super().__call__(*given, **words)
"""


_WRAPS = """
import functools

from torch import nn


class Layer(nn.Module):
    replaying = False

    def __init_subclass__(cls, **words):
        super().__init_subclass__(**words)
        forward = cls.forward

        @functools.wraps(forward)
        def wrapped(self, *given, **words):
            outermost = type(self).forward is wrapped
            if self.replaying and self.training and outermost:
                return self.replay(forward, self, *given)
            {statement}
            return forward(self, *given, **words)

        cls.forward = wrapped
"""


@pytest.mark.parametrize("written", [_BASE, _WRAPS])
def test_a_base_class_in_another_file_whose_flag_is_off(tmp_path: Path, written: str) -> None:
    before = model(_LOOP).replace("class Layer(nn.Module)", "class Layer(base.Layer)")
    before = before.replace("from torch import nn", "from torch import nn\nimport base", 1)
    after, _ = fixed_among(tmp_path, before, {"base.py": written.format(statement="given = given")}, opaque=True)
    assert "layer.replaying is False" in after
    other = tmp_path / "other"
    other.mkdir()
    after, _ = fixed_among(other, before, {"base.py": written.format(statement="self.calls = 1")}, opaque=True)
    assert "_layer_operator" not in after
