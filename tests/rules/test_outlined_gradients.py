"""Gradients, random numbers and modes of loops over experts that are one operator (GM502)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.rules.expert_loops import X, forgotten, made, one_graph, results, same, with_expert, written  # noqa: F401


def test_gradients_keep_no_graph_of_the_operator() -> None:
    model = made(written())
    x = X.clone().requires_grad_()
    found = torch.autograd.grad(one_graph(model)(x).sum(), [x, *model.experts.parameters()], allow_unused=True)
    assert not any(each.requires_grad for each in found if each is not None)


def test_a_gradient_of_a_gradient_is_an_error() -> None:
    """Without one, torch would leave parts of it out."""
    model = made(written())
    whole: Any = torch.compile(model, backend="eager")
    x = X.clone().requires_grad_()
    (first,) = torch.autograd.grad(whole(x).sum(), [x], create_graph=True)
    with pytest.raises(RuntimeError, match="no gradient of a gradient"):
        torch.autograd.grad(first.sum(), [x])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_gradients_under_inductor_are_those_of_eager_mode() -> None:
    model = made(written())
    same(results(model, model, X), results(model, one_graph(model, "inductor"), X), 1e-5)


@pytest.mark.parametrize("given", ["x", "x.t().contiguous().t()"])
def test_dropout_draws_the_same_numbers_forward_and_for_the_gradient(given: str) -> None:
    """`torch.func.vjp` would draw others for a transposed tensor."""
    model = made(with_expert(f"self.drop({given})")).train()
    compiled = one_graph(model)
    same(results(model, model, X), results(model, compiled, X), 1e-6)
    after = torch.rand(1)
    results(model, model, X)
    assert torch.equal(torch.rand(1), after)
    model.eval()
    same(results(model, model, X), results(model, compiled, X), 1e-6)


def test_a_checkpoint_lets_an_operator_that_no_backend_compiles_read_what_was_saved() -> None:
    model = made(written())

    def checkpointed(x: torch.Tensor) -> Any:
        return torch.utils.checkpoint.checkpoint(model, x * 2.0, use_reentrant=False).sin()

    same(results(model, checkpointed, X), results(model, one_graph(checkpointed, "eager"), X), 1e-5)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_checkpoint_in_compiled_code_runs_the_operator_again_on_the_same_numbers(backend: str) -> None:
    model = made(with_expert("self.drop(x)")).train()

    def checkpointed(x: torch.Tensor) -> Any:
        return torch.utils.checkpoint.checkpoint(model, x * 2.0, use_reentrant=False).sin()

    same(results(model, checkpointed, X), results(model, one_graph(checkpointed, backend), X), 1e-5)


def test_running_statistics_are_updated_once() -> None:
    source = with_expert("self.norm(x)").replace(", track_running_stats=False", "")
    model = made(source).train()
    other = copy.deepcopy(model)
    same(results(model, model, X), results(other, one_graph(other), X), 1e-6)
    for (name, old), new in zip(model.named_buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(new, old, msg=name)


def test_autocast_holds_inside_the_operator() -> None:
    model = made(written())
    compiled = one_graph(model)

    def run(call: Callable[..., Any]) -> list[torch.Tensor | None]:
        def inside(*given: Any) -> Any:
            with torch.autocast("cpu", torch.bfloat16):
                return call(*given)

        return results(model, inside, X)

    plain = results(model, model, X)
    same(run(model), run(compiled), 1e-2)
    same(plain, results(model, compiled, X), 1e-6)
    assert not torch.equal(run(compiled)[0], plain[0])  # type: ignore[arg-type]


def test_what_needs_no_gradient_gets_none() -> None:
    model = made(written())
    for each in [*model.experts[0].parameters(), model.scale]:
        each.requires_grad_(False)
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)
    assert model.scale.grad is None
    assert model.experts[0].enter.weight.grad is None
    for each in model.parameters():
        each.requires_grad_(False)
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_the_operator_has_none(mode: Callable[[], Any]) -> None:
    model = made(written())
    with mode():
        assert torch.equal(model(X), one_graph(model)(X))


def test_without_gradients_the_operator_finds_the_experts_itself() -> None:
    model = made(written())
    taken: list[int] = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        taken.append(len(graph.graph.find_nodes(op="placeholder")))
        return graph

    compiled: Any = torch.compile(model, backend=backend)
    with torch.no_grad():
        compiled(X)
        model.experts[1] = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
        torch.testing.assert_close(compiled(X), model(X))
    assert taken == [4]  # the rows, the gate's parameters, and what the module holds itself


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
@pytest.mark.parametrize("part", ["experts.", "scale"])
def test_given_parameters_are_used_in_the_place_of_the_modules_own(mode: Callable[[], Any], part: str) -> None:
    model = made(written())
    given = [(name, each) for name, each in model.named_parameters() if name.startswith(part)]
    parameters = {name: torch.nn.Parameter(each.detach() * 1.5) for name, each in given}

    def functional(x: torch.Tensor, others: Any) -> Any:
        return torch.func.functional_call(model, others, (x,))

    with mode():
        for others in (parameters, {name: each.detach() * 2 for name, each in parameters.items()}):
            expected = functional(X, others)
            torch.testing.assert_close(one_graph(functional)(X, others), expected)
            assert not torch.equal(expected, model(X))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_what_a_gradient_cannot_run_again_runs_the_loop() -> None:
    model = made(written())
    called: list[int] = []
    handle = model.experts[0].register_full_backward_hook(lambda *given: called.append(1))
    torch._dynamo.reset()
    compiled: Any = torch.compile(model, backend="aot_eager")
    expected = results(model, model, X)
    count = len(called)
    same(expected, results(model, compiled, X), 1e-6)
    assert len(called) == 2 * count > 0
    handle.remove()
    foreign = type("Foreign", (torch.nn.Linear,), {"__module__": "elsewhere.layers"})
    model.experts[2] = foreign(4, 4)
    same(results(model, model, X), results(model, compiled, X), 1e-6)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        one_graph(model)(X)


def _counted(monkeypatch: pytest.MonkeyPatch, model: Any) -> list[int]:
    """A number for each run of an expert."""
    calls: list[int] = []
    own = type(model.experts[0]).changed

    def changed(self: Any, x: torch.Tensor) -> Any:
        calls.append(1)
        return own(self, x)

    monkeypatch.setattr(type(model.experts[0]), "changed", changed)
    return calls


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_gradient_runs_the_loop_again_the_second_time_alone(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    model = made(written())
    x, calls = X.clone().requires_grad_(), _counted(monkeypatch, model)
    (expected,) = torch.autograd.grad(model(x).square().sum(), [x])
    calls.clear()
    loss = one_graph(model, backend)(x).square().sum()
    for number in range(1, 3):
        (found,) = torch.autograd.grad(loss, [x], retain_graph=backend == "eager")
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        assert len(calls) == 3 * number
        if backend != "eager":  # a graph that was compiled frees what it needs for a second one
            break


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_hooks_of_parameters_run_once(backend: str) -> None:
    model: Any = made(written())
    model.scale.register_hook(lambda gradient: gradient * 2)
    same(results(model, model, X), results(model, one_graph(model, backend), X), 1e-5)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_parameter_that_an_operator_gets_twice_has_its_gradient_once(backend: str) -> None:
    model: Any = made(written())
    model.experts[0].register_parameter("scale", model.scale)
    same(results(model, model, X), results(model, one_graph(model, backend), X), 1e-5)
