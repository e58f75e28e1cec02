"""Operators by recorded calls: words, fractions, modes, names that are bound again, and draws outside of torch."""

from __future__ import annotations

import ast
import dataclasses
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphmend_codemod.engine import api
from graphmend_codemod.rules.proofs.outlining.recorded import moments
from graphmend_codemod.trace.hints import with_hints
from graphmend_evaluation.tracing import calls
from tests.evaluation.recorded_fixes import BACKENDS, OUTSIDE, Recorded, grad_of, model_with, one_graph

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]
Shapes = tuple[tuple[int, ...], ...]


def given(*shapes: tuple[int, ...], more: tuple[Any, ...] = (), gradient: bool = False) -> Any:
    return lambda: [(torch.randn(shape, requires_grad=gradient), *more) for shape in shapes]


def as_eager(model: torch.nn.Module, *call: Any) -> None:
    """The compiled model gives what it gives without torch.compile."""
    torch.compiler.reset()
    made = torch.compile(model, backend="aot_eager", dynamic=False)(*call)
    assert torch.equal(made, model(*call))


def breaks(model: torch.nn.Module, *call: Any) -> None:
    """The call takes the author's path, which breaks the graph, and gives what it gives without torch.compile."""
    with pytest.raises(Exception, match=r"(?i)skip calling|graph break|torch.compiler.disable|Dynamo"):
        one_graph(model, *call)
    as_eager(model, *call)


CROP = "\n@torch.compiler.disable\ndef outside(x, how):\n    return x[:1] * 2 if how in ('first', 0.25) else x * 2\n"


@pytest.mark.parametrize(("was", "other"), [("first", "all"), (0.25, 0.5), ("first", "two words"), (0.25, 1)])
def test_a_word_or_fraction_of_all_calls_is_asked_for(tmp_path: Path, was: Any, other: Any) -> None:
    forward = "how = rest[0]\ny = outside(x, how)\nreturn y + 1"
    found = Recorded(tmp_path, model_with(forward, CROP), given((3, 4), (5, 6), more=(was,)), gradients=False)
    assert "_recorded_operator" in found.after, found.reasons
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), torch.ones(7, 8), was), torch.full((1, 8), 3.0))
        breaks(found.model(), torch.ones(7, 8), other)


@pytest.mark.parametrize(("was", "other"), [("'first'", "'all'"), ("0.25", "0.5"), ("True", "False")])
def test_a_second_instance_with_another_setting_takes_the_author_s_path(tmp_path: Path, was: str, other: str) -> None:
    before = CROP.replace("('first', 0.25)", "('first', 0.25, True)")
    forward = "y = outside(x, self.how)\nreturn y + 1"
    source = model_with(forward, before, init=f"self.how = {was}")
    found = Recorded(tmp_path, source, given((3, 4), (5, 6)), gradients=False)
    assert "_recorded_operator" in found.after, found.reasons
    model = found.model()
    with torch.no_grad():
        one_graph(model, torch.ones(7, 8))
        model.how = ast.literal_eval(other)
        breaks(model, torch.ones(7, 8))


def test_a_text_that_is_no_option_is_not_kept(tmp_path: Path) -> None:
    forward = "how = rest[0]\ny = outside(x, how)\nreturn y + 1"
    secret = "a text, of several words"
    found = Recorded(tmp_path, model_with(forward, CROP), given((3, 4), (5, 6), more=(secret,)), gradients=False)
    assert found.after == found.before
    assert "of which the trace keeps nothing" in found.reasons
    assert secret not in str(found.trace)


NETWORK = """
class Twice:
    def __init__(self, net):
        self.net = net

    def __call__(self, x):
        return self.net(x) * 2


@torch.compiler.disable
def wrapped(net):
    HIDDEN
    return Twice(net)


def solve(net, x):
    net = wrapped(net)
    x = net(x)
    return x.exp()
"""
SOLVE = "return solve(self.net, x) + 1"


def network(tmp_path: Path, hidden: str = "pass", gradients: bool = True) -> Recorded:
    source = model_with(SOLVE, NETWORK.replace("HIDDEN", hidden), init="self.net = nn.Linear(4, 3)")
    return Recorded(tmp_path, source, given((3, 4), (5, 4)), gradients=gradients)


def test_an_argument_that_is_bound_again_goes_in_as_it_was(tmp_path: Path) -> None:
    """Without this, the wrapped network is an object that the function makes, with nothing before it to take in."""
    found = network(tmp_path)
    assert "_recorded_function" in found.after, found.reasons
    for backend in BACKENDS:
        grads = []
        for compiled in (False, True):
            model, x = found.model(), torch.randn(7, 4, generator=torch.Generator().manual_seed(1))
            made = one_graph(model, x, backend=backend) if compiled else model(x)
            made.sum().backward()
            grads.append([grad_of(each) for each in model.parameters()])
        assert all(map(torch.allclose, *grads)), backend


def test_a_change_of_an_argument_that_is_bound_again_is_seen(tmp_path: Path) -> None:
    found = network(tmp_path, "net.count = getattr(net, 'count', 0) + 1")
    assert found.after == found.before
    assert "changed" in found.reasons


def test_hostile_calls_of_a_network_take_the_author_s_path_or_give_the_same(tmp_path: Path) -> None:
    found = network(tmp_path)
    assert "_recorded_function" in found.after, found.reasons
    model = found.model()
    with torch.no_grad():
        as_eager(model, torch.randn(2, 4))
    with torch.autocast("cpu", torch.bfloat16):
        as_eager(model, torch.randn(2, 4))
    as_eager(model.double(), torch.randn(2, 4, dtype=torch.float64))
    as_eager(model.float(), torch.randn(2, 3, 4))
    model.net = torch.nn.Linear(4, 9)  # results of other sizes, where the run would pin 3
    as_eager(model, torch.randn(2, 4))
    model.net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).eval()
    as_eager(model, torch.randn(2, 4))
    with pytest.raises(RuntimeError, match=r"shapes|must have same"):
        torch.compile(model, backend="aot_eager")(torch.randn(2, 5))


def test_another_mode_of_a_network_takes_the_author_s_path(tmp_path: Path) -> None:
    """A gradient runs the statements again, and running statistics would be written twice."""
    source = model_with(
        SOLVE, NETWORK.replace("HIDDEN", "pass"), init="self.net = nn.BatchNorm1d(4)\n        self.eval()"
    )
    found = Recorded(tmp_path, source, given((3, 4), (5, 4)), gradients=True)
    assert "_recorded_function" in found.after, found.reasons
    states = []
    for compiled in (False, True):
        model = found.model().train()
        run: Any = torch.compile(model, backend="aot_eager", dynamic=False) if compiled else model
        run(torch.randn(6, 4, generator=torch.Generator().manual_seed(1))).sum().backward()
        states.append(model.net.state_dict())  # type: ignore[union-attr]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


DRAWS = [
    "float(np.random.rand())",
    "float(np.random.randn())",
    "random.random()",
    "random.gauss(0, 1)",
    "(random.random() + float(torch.rand(())))",
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_gradient_draws_what_the_statement_drew(tmp_path: Path, draw: str) -> None:
    before = "\nimport random\n" + OUTSIDE.format("x", f"(x * {draw}).exp()")
    forward = "y = outside(x * 2)\nz = outside(y.cos())\nreturn z + 1"
    found = Recorded(tmp_path, model_with(forward, before), given((3, 4), (5, 6), gradient=True), gradients=True)
    assert found.after.count("@_recorded_draws(") == 2, found.reasons
    for backend in ("aot_eager", "inductor"):
        seen = []
        for compiled in (False, True):
            x = torch.randn(7, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
            torch.manual_seed(5)
            np.random.seed(5)
            random.seed(5)
            model = found.model()
            made = one_graph(model, x, backend=backend) if compiled else model(x)
            made.sum().backward()
            rest = torch.tensor([random.random(), random.gauss(0, 1), *np.random.randn(3)])
            seen.append([made.detach(), grad_of(x), rest])
        assert all(map(torch.allclose, *seen)), backend


def test_an_own_generator_that_draws_is_a_change(tmp_path: Path) -> None:
    before = OUTSIDE.format("x, source", "x * float(source.normal())")
    init = "self.source = np.random.default_rng(0)"
    forward = "y = outside(x, self.source)\nreturn y + 1"
    found = Recorded(tmp_path, model_with(forward, before, init), given((3, 4), (5, 6)), gradients=False)
    assert found.after == found.before
    assert "changed" in found.reasons


def test_a_second_gradient_of_another_draw_raises(tmp_path: Path) -> None:
    """A generator that no recorded function names: the first gradient is of what the statement drew."""
    before = "\nclass Hidden:\n    source = np.random.default_rng(0)\n"
    before += OUTSIDE.format("x", "x * float(Hidden.source.normal())")
    found = Recorded(
        tmp_path,
        model_with("y = outside(x)\nreturn y + 1", before),
        given((3, 4), (5, 6), gradient=True),
        gradients=True,
    )
    assert "_recorded_function" in found.after, found.reasons
    x = torch.ones(2, 3, requires_grad=True)
    made = one_graph(found.model(), x)
    made.sum().backward(retain_graph=True)
    assert torch.allclose(grad_of(x), made.detach() - 1, atol=1e-6)
    with pytest.raises(RuntimeError, match="other results when a gradient ran it again"):
        made.sum().backward()


def test_a_name_that_some_calls_did_not_bind_is_taken_in(tmp_path: Path) -> None:
    before = (
        OUTSIDE.format("x", "x * 2")
        + """
def solve(x, event=None):
    if event is None:
        y = outside(x)
    else:
        at, y = event, outside(x)
    if event is None:
        return y
    else:
        return at, y
"""
    )
    found = Recorded(tmp_path, model_with("return solve(x) + 1", before), given((3, 4), (5, 6)), gradients=False)
    assert "_recorded_operator" in found.after, found.reasons
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), torch.ones(7, 8)), torch.full((7, 8), 3.0))


def test_a_dictionary_that_is_written_is_a_change(tmp_path: Path) -> None:
    before = "\n@torch.compiler.disable\ndef outside(x, seen):\n    seen['count'] = len(seen)\n    return x * 2\n"
    found = Recorded(
        tmp_path, model_with("seen = rest[0]\ny = outside(x, *rest)\nreturn y + 1", before),
        given((3, 4), (5, 6), more=({},)), gradients=False,
    )  # fmt: skip
    assert found.after == found.before


def test_a_function_that_changed_since_is_told_apart(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x * 2")
    found = Recorded(
        tmp_path, model_with("y = outside(x)\nreturn y + 1", before), given((3, 4), (5, 6)), gradients=False
    )
    (forward,) = found.trace.watched
    other = dataclasses.replace(
        forward, statements=tuple(dataclasses.replace(each, key="0") for each in forward.statements)
    )
    trace = dataclasses.replace(found.trace, watched=(other,))
    found.path.write_text(found.before)
    findings = api.check([found.path], with_hints(trace, found.settings), cache=False).findings
    assert any("another one than in the recorded run" in (each.declined or "") for each in findings)


@pytest.mark.parametrize("source", ["x = f'{y!r}' if z else 'u'", "def f(a, *b, c=1): return a", "class A: pass"])
def test_statements_are_known_by_the_same_keys_on_both_sides(source: str) -> None:
    (statement,) = ast.parse(source).body
    assert calls.key_of(statement) == moments.key_of(statement)
    for each in ast.walk(statement):  # as a Python would read it that has no such field
        for name in [name for name, value in ast.iter_fields(each) if value == []]:
            delattr(each, name)
    assert calls.key_of(statement) == moments.key_of(statement) == calls.key_of(ast.parse(source).body[0])
