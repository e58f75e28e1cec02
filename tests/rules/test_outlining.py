"""A region as one operator: what it runs, what its gradient is, and what keeps a region from being one."""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import checked, declined, embedded, fixed

_SETUP = """
import torch
from torch import nn
from torch.nn import functional as F


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(8, track_running_stats=False)
        self.leave = nn.Linear(8, 4, bias=False)

    def forward(self, x):
        return self.leave(self.changed(torch.tanh(self.enter(x))))

    def changed(self, x):
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList([Expert() for _ in range(3)])
        self.scale = nn.Parameter(torch.ones(3, 4))
        self.top = 2

    def forward(self, x: torch.Tensor, factor=2):
        weights, chosen = torch.topk(torch.softmax(self.gate(x), dim=-1, dtype=torch.float32), 2, dim=-1)
        weights = weights.to(x.dtype)
        result = torch.zeros_like(x)
        ...
        return result * 2
"""
_LOOP = """
for i, expert in enumerate(self.experts):
    row, slot = torch.where(chosen == i)
    result.index_add_(0, row, (expert(x[row]) * weights[row, slot, None] * self.scale[i] * factor).to(x.dtype))
"""


def written(loop: str = _LOOP) -> str:
    return embedded(loop, _SETUP)


def with_expert(changed: str) -> str:
    return embedded(_LOOP, _SETUP.replace("        return x\n\n\nclass", f"        return {changed}\n\n\nclass"))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("outlined_subject", None)
    torch._dynamo.reset()


def loaded(source: str) -> types.ModuleType:
    module = sys.modules["outlined_subject"] = types.ModuleType("outlined_subject")
    exec(compile(fixed(source, select=("GM502",))[0], "subject.py", "exec"), vars(module))
    return module


def made(source: str) -> Any:
    torch.manual_seed(0)
    return vars(loaded(source))["Model"]()


def results(model: Any, call: Callable[..., Any], *given: Any) -> list[torch.Tensor | None]:
    """The output and all gradients, the random state put back before."""
    model.zero_grad()
    torch.manual_seed(1)
    copies = [each.detach().clone().requires_grad_() if isinstance(each, torch.Tensor) else each for each in given]
    output = call(*copies)
    output.float().square().sum().backward()
    return [output.detach(), copies[0].grad, *(each.grad for each in model.parameters())]


def same(old: list[torch.Tensor | None], new: list[torch.Tensor | None], within: float = 0.0) -> None:
    for first, second in zip(old, new, strict=True):
        expected = torch.zeros_like(second) if first is None and second is not None else first
        if expected is not None:
            assert second is not None
            torch.testing.assert_close(second, expected, rtol=within, atol=within)


def one_graph(model: Any, backend: str = "aot_eager") -> Callable[..., Any]:
    torch._dynamo.reset()
    compiled: Any = torch.compile(model, backend=backend)

    def strict(*given: Any) -> Any:
        with torch._dynamo.error_on_graph_break(True):  # `fullgraph` would capture shapes that depend on data
            return compiled(*given)

    return strict


X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def test_experts_that_mix_rows_are_one_graph_with_the_results_of_eager_mode() -> None:
    source = with_expert("(x - x.mean(0)) * torch.softmax(x, 0) / max(x.shape[0], 1)")
    behaves(source, fixed(source)[0], ["torch.randn(6, 4)"], scenarios=FEW_SCENARIOS[:2])
    model = made(source)
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)


@pytest.mark.parametrize("around", ["zip(masks, self.experts)", "enumerate(zip(masks, self.experts))"])
def test_loops_over_experts_and_their_masks_in_step(around: str) -> None:
    names = "i, (mask, expert)" if "enumerate" in around else "mask, expert"
    source = written(f"""
masks = (chosen.unsqueeze(-1) == torch.arange(3)).permute(2, 0, 1)
for {names} in {around}:
    row, slot = torch.where(mask)
    result[row] += weights[row, slot, None] * expert(x[row])
""")
    assert "_one_operator" in fixed(source)[0]
    model = made(source)
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)


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


def test_masks_that_can_be_gone_through_once_are_left_alone() -> None:
    source = written("""
masks = (chosen == each for each in range(3))
for mask, expert in zip(masks, self.experts):
    row, slot = torch.where(mask)
    result[row] += weights[row, slot, None] * expert(x[row])
""")
    declined(source, "`masks` can be gone through only once", select=("GM502",))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_gradients_under_inductor_are_those_of_eager_mode() -> None:
    model = made(written())
    same(results(model, model, X), results(model, one_graph(model, "inductor"), X), 1e-5)


def test_dropout_draws_the_same_numbers_forward_and_for_the_gradient() -> None:
    model = made(with_expert("self.drop(x)")).train()
    compiled = one_graph(model)
    same(results(model, model, X), results(model, compiled, X), 1e-6)
    after = torch.rand(1)
    results(model, model, X)
    assert torch.equal(torch.rand(1), after)
    model.eval()
    same(results(model, model, X), results(model, compiled, X), 1e-6)


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


@pytest.mark.parametrize("kind", ["[x, x * 2]", "(x, x * 2)", "x.chunk(2, dim=1)"])
def test_lists_and_tuples_from_outside_stay_what_they_are(kind: str) -> None:
    loop = f"both = {kind}\n" + _LOOP.replace("* factor", "* torch.cat(both, 1)[row, :4] * (2 + len(both))")
    model = made(written(loop))
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)


def test_inputs_that_are_not_contiguous_or_hold_no_rows() -> None:
    compiled = one_graph(model := made(written()))
    for given in (torch.randn(12, 8)[::2, ::2], X[:0]):
        same(results(model, model, given), results(model, compiled, given), 1e-6)


def test_layers_of_one_model_and_models_of_one_class_keep_their_own_experts() -> None:
    source = written() + "\n\nclass Two(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.first, self.second = Model(), Model()\n\n    def forward(self, x):\n"
    source += "        return self.second(self.first(x))\n"
    torch.manual_seed(0)
    module = loaded(source)
    model = module.Two()
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)
    other = copy.deepcopy(model.first)
    with torch.no_grad():
        other.scale.mul_(2)
    for each in (model.first, other):
        compiled: Any = torch.compile(each, backend="eager")
        with torch.no_grad():
            torch.testing.assert_close(compiled(X), each(X))


def test_experts_that_are_replaced_after_compiling_are_used() -> None:
    model = made(written())
    compiled = one_graph(model)
    results(model, compiled, X)
    model.experts[1] = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    same(results(model, model, X), results(model, compiled, X), 1e-6)
    model.scale = torch.nn.Parameter(torch.full((3, 4), 3.0))
    same(results(model, model, X), results(model, compiled, X), 1e-6)


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


@pytest.mark.parametrize("factor", [2.5, None, True])
def test_what_the_operator_cannot_take_runs_the_loop(factor: Any) -> None:
    model = made(written(_LOOP.replace("* factor", "* (factor or 1)")))
    torch._dynamo.reset()
    compiled: Any = torch.compile(model, backend="eager")
    with torch.no_grad():
        assert torch.equal(model(X, factor), compiled(X, factor))


def test_integers_may_be_any_without_a_new_graph() -> None:
    model = made(written())
    compiled = one_graph(model)
    for factor in (2, 3, 4):
        torch.testing.assert_close(compiled(X, factor), model(X, factor))


def test_hooks_of_experts_run() -> None:
    model = made(written())
    seen: list[int] = []

    def doubled(_: Any, given: Any, output: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return output * 2

    model.experts[0].register_forward_hook(doubled)
    compiled = one_graph(model)
    with torch.no_grad():
        expected = model(X)
        seen.clear()
        torch.testing.assert_close(compiled(X), expected)
    assert seen == [1]


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


@pytest.mark.parametrize("put", ["self.experts.append(Expert())", "self.experts.extend([Expert()])"])
def test_experts_that_are_put_into_a_list_are_looked_at(put: str) -> None:
    source = with_expert("self.kept(x)").replace(
        "nn.ModuleList([Expert() for _ in range(3)])", f"nn.ModuleList()\n        {put}"
    )
    noting = "    def kept(self, x):\n        self.seen = x\n        return x\n"
    source = source.replace("\n\nclass Model", f"\n{noting}\n\nclass Model")
    assert fixed(source, select=("GM502",))[0] == source
    harmless = source.replace("self.seen = x", "pass")
    assert fixed(harmless, select=("GM502",))[0] != harmless
    inherited = source.replace("class Model", "class Other(Expert):\n    pass\n\n\nclass Model").replace(
        "Expert()", "Other()"
    )
    assert fixed(inherited, select=("GM502",))[0] == inherited
    unknown = harmless.replace(put, "kind = Expert\n        self.experts.append(kind())")
    assert fixed(unknown, select=("GM502",))[0] == unknown


def test_a_torch_that_cannot_tell_an_export_gets_no_operator() -> None:
    """Up to torch 2.11 the graph would break as before, and once more in the function that was made."""
    assert fixed(written(), select=("GM502",), target_torch=(2, 12))[0] != written()
    reason = checked(written(), select=("GM502",), target_torch=(2, 11)).findings[0].declined
    assert reason is not None
    assert "(torch 2.12)" in reason


def test_experts_in_a_python_list_are_left_alone() -> None:
    source = written().replace("nn.ModuleList([Expert() for _ in range(3)])", "[Expert() for _ in range(3)]")
    assert fixed(source, select=("GM502",))[0] == source
    assert "use `nn.ModuleList`" in (checked(source, select=("GM502",)).findings[0].declined or "")


def test_meta_tensors_have_no_rows_to_choose_in_either_mode() -> None:
    model = made(written()).to("meta")
    for call in (model, torch.compile(model, backend="eager")):
        with torch.no_grad(), pytest.raises((NotImplementedError, RuntimeError), match="meta"):
            call(X.to("meta"))


def test_an_export_has_no_operator_that_another_process_would_not_know() -> None:
    model = made(written())
    program = torch.export.export(model, (X,), strict=True)
    assert "run_experts" not in str(program.graph)


@pytest.mark.parametrize(
    ("loop", "because"),
    [
        (_LOOP + "    self.last = row", "the loop changes `self.last`"),
        (_LOOP + "    print(row)", "may have side effects"),
        (_LOOP + "    self.helped(row)", "cannot infer which layers"),
        (_LOOP + "    if len(row) > 5:\n        return result", "leaves the loop"),
        (_LOOP + "    x += 1", "not one tensor"),
        ("view = result[0]\n" + _LOOP + "x = view", "`result` may share memory with another tensor"),
        ("result = x\n" + _LOOP, "`result` may share memory with another tensor"),
        (_LOOP + "    result = result.to(row.dtype)", "may change the dtype or shape"),
        (_LOOP + "result = result + row.shape[0]", "may change the dtype or shape"),
        (_LOOP + "    weights = weights.add_(1)", "not one tensor"),
        (_LOOP.replace("expert(x[row])", "expert(x[row], out=x)"), "may have side effects"),
        (_LOOP + "    F.relu_(x)", "not one tensor"),
        (_LOOP + "    torch.manual_seed(1)", "may have side effects"),
        (_LOOP + "    count = row.numpy()", "write `.tolist()`"),
        (_LOOP + "    try:\n        row.item()\n    except RuntimeError:\n        pass", "cannot be moved"),
        (_LOOP + "weights = locals()", "may read local variables"),
        ("if factor:\n    bias = 1\n" + _LOOP.replace("* factor", "* bias"), "may be unbound"),
        ("act = self.gate\n" + _LOOP.replace("expert(x[row])", "act(expert(x[row]))"), "may have side effects"),
        ("self.top = 3\n" + _LOOP.replace("* factor", "* self.top"), "is set outside of `__init__`"),
    ],
)
def test_a_loop_that_does_more_than_change_one_tensor_is_left_alone(loop: str, because: str) -> None:
    source = written(loop)
    assert fixed(source, select=("GM502",))[0] == source
    (found,) = checked(source, select=("GM502",)).findings
    assert because in (found.declined or "")


@pytest.mark.parametrize(
    "changed",
    ["self.kept(x)", "print(x) or x", "Doubled.apply(x)"],
)
def test_experts_that_do_more_than_compute_are_left_alone(changed: str) -> None:
    source = with_expert(changed).replace(
        "\n\nclass Model", "\n    def kept(self, x):\n        self.seen = x\n        return x\n\n\nclass Model"
    )
    if "kept" not in changed:
        source = source.replace("        self.seen = x\n", "")
    assert fixed(source, select=("GM502",))[0] == source
    (found,) = checked(source, select=("GM502",)).findings
    assert "is not supported inside a custom operator" in (found.declined or "")
