"""GM112: a layer that a random number would skip runs when compiled, and its result is selected by that number."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario
from tests.tools.subject import forget, load, register

_MODEL = """
import random

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.0)

    def forward(self, x, flag=False):
        return self.drop(torch.tanh(self.inner(x))), x.sum()


class Model(nn.Module):
    def __init__(self, layerdrop=0.5):
        super().__init__()
        torch.manual_seed(5)
        self.layerdrop = layerdrop
        self.layers = nn.ModuleList([Layer() for _ in range(6)])

    def forward(self, x: torch.Tensor, flag=False):
        seen = ()
        one, other, count = x.sum(), x, 0
{body}
        return x, seen
"""
_FORMS = {
    "continue": """
        for layer in self.layers:
            if self.training:
                drawn = torch.rand([])
                if drawn < self.layerdrop:
                    continue
            x = layer(x)[0]
    """,
    "flag": """
        for layer in self.layers:
            to_drop = False
            if self.training:
                drawn = torch.rand([])
                if drawn < self.layerdrop:
                    to_drop = True
            if to_drop:
                outputs = (None, None)
            else:
                outputs = layer(x, flag=flag)
                x = outputs[0]
            if flag:
                seen = seen + (outputs[1],)
    """,
    "name": """
        for layer in self.layers:
            drawn = torch.rand([])
            skip = self.training and drawn < self.layerdrop
            if not skip or count:
                outputs = layer(x)
                x = outputs[0]
            if skip:
                outputs = (None, None)
            if flag:
                seen = seen + (outputs[1],)
    """,
    "else": """
        for layer in self.layers:
            if self.training and torch.rand([]) < self.layerdrop:
                outputs = None
            else:
                outputs = layer(x)
                x = outputs[0]
    """,
    "two results": """
        for layer in self.layers:
            if not (self.training and torch.rand(1) < self.layerdrop):
                x, one = layer(x)
        x = x + one
    """,
    "kept and run": """
        for layer in self.layers:
            drawn = torch.rand([])
            if not self.training or not drawn < self.layerdrop:
                x = layer(x)[0]
            x = x * 2
    """,
}
_TRAINING = (Scenario(True, "leaves"), Scenario(False, "off"))


def model(form: str) -> str:
    return _MODEL.format(body=indent(dedent(form).strip("\n"), "        "))


@pytest.mark.parametrize("form", _FORMS)
def test_one_graph_that_selects_by_the_numbers_of_eager_mode(form: str) -> None:
    before = model(_FORMS[form])
    after, _ = fixed(before, unsafe_fixes=True)
    assert "torch.where(" in after
    behaves(before, after, ["torch.ones(2, 4)"], scenarios=_TRAINING)
    # Gradients of skipped layers are zeros in place of none, so results alone are compared here.
    compiles(after, ["torch.ones(2, 4)"], scenarios=(Scenario(True, "off"), Scenario(False, "off")))


def test_a_skipped_layer_gets_zeros_and_the_others_their_gradients() -> None:
    after, _ = fixed(model(_FORMS["continue"]), unsafe_fixes=True)
    source = register(after)
    namespace: Any = load(source)
    try:
        eager, compiled = namespace.Model(), namespace.Model()
        run: Any = torch.compile(compiled, backend="aot_eager", fullgraph=True)
        skipped = 0
        for seed in range(4):
            for each, call in ((eager, eager), (compiled, run)):
                each.zero_grad()
                torch.manual_seed(seed)
                call(torch.ones(2, 4, requires_grad=True))[0].sum().backward()
            pairs = list(zip(eager.parameters(), compiled.parameters(), strict=True))
            skipped += sum(one.grad is None for one, _ in pairs)
            for one, other in pairs:
                wanted = torch.zeros_like(one) if one.grad is None else one.grad
                torch.testing.assert_close(other.grad, wanted)
        assert skipped
    finally:
        forget(source)


def test_safe_fixes_alone_leave_it_and_say_so() -> None:
    after, _ = fixed(model(_FORMS["continue"]))
    assert "torch.where(" not in after
    findings = checked(after).findings
    assert [each.code for each in findings] == ["GM112"]
    assert not findings[0].is_applied(unsafe_fixes=False, opaque=True)


def test_other_flags_and_bounds_run_what_the_author_wrote() -> None:
    after, _ = fixed(model(_FORMS["flag"]), unsafe_fixes=True)
    compiles(after, ["torch.ones(2, 4), True"], scenarios=(Scenario(True, "off"),), strict=False)
    without, _ = fixed(model(_FORMS["flag"]).replace("layerdrop=0.5", "layerdrop=0.0"), unsafe_fixes=True)
    compiles(without, ["torch.ones(2, 4)"], scenarios=_TRAINING)


def test_a_layer_that_changes_the_shape_stops_the_compilation() -> None:
    source = model(_FORMS["continue"]).replace("torch.tanh(self.inner(x)))", "torch.tanh(self.inner(x)))[:1]")
    after, _ = fixed(source, unsafe_fixes=True)
    written = register(after)
    namespace: Any = load(written)
    try:
        run: Any = torch.compile(namespace.Model(), backend="eager", fullgraph=True)
        with pytest.raises(Exception, match="shape"):
            run(torch.ones(2, 4))
    finally:
        forget(written)


@pytest.mark.parametrize(
    ("form", "because"),
    [
        (
            """
        for layer in self.layers:
            if torch.rand([]) < self.layerdrop:
                count += 1
                continue
            x = layer(x)[0]
            """,
            "would run in place of the layer",
        ),
        *(
            (
                f"""
        kept = []
        for layer in self.layers:
            if torch.rand([]) < self.layerdrop:
                continue
            {statement}
            x = x * 2
            """,
                "would change the same where the layer is skipped",
            )
            for statement in (
                "kept.append(layer(x)[0])",
                "self.ran = layer(x)[0]",
                "x += layer(x)[0]",
                "x = x.add_(layer(x)[0])",
            )
        ),
        (
            """
        for layer in self.layers:
            if torch.rand([]) < self.layerdrop:
                other = None
            else:
                x, other = layer(x)
        x = x if other is None else x + 1
            """,
            "`other` is read later",
        ),
        (
            """
        for layer in self.layers:
            if random.uniform(0, 1) < self.layerdrop:
                continue
            x = layer(x)[0]
            """,
            "drawn outside of torch",
        ),
        (
            """
        for layer in self.layers:
            if torch.rand([]) < self.layerdrop:
                continue
            x = layer(x)[0]
            break
            """,
            "leaves the loop",
        ),
        (
            """
        for layer in self.layers:
            if torch.rand([]) < self.layerdrop:
                continue
            count = count + 1
        x = x * count
            """,
            "`count` is a Python value",
        ),
        (
            """
        for layer in self.layers:
            if flag.any() and torch.rand([]) < self.layerdrop:
                continue
            x = layer(x)[0]
            """,
            "may be a tensor",
        ),
        (
            """
        for layer in self.layers:
            if torch.rand([]) < self.layerdrop:
                continue
            unused = layer(x)[0]
            """,
            "no tensor that the layer gives is read later",
        ),
    ],
)
def test_what_would_be_other_than_a_select_is_declined(form: str, because: str) -> None:
    before, _ = fixed(model(form), select=("GM111",))
    declined(before, because, select=("GM112",), unsafe_fixes=True)
