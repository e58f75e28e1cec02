"""A region as one operator: what it runs, what its gradient is, and what keeps a region from being one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.rules.expert_loops import LOOP, X, forgotten, loaded, made, one_graph, results, same, with_expert, written  # noqa: F401
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import checked, declined, fixed


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


def test_masks_that_can_be_gone_through_once_are_left_alone() -> None:
    source = written("""
masks = (chosen == each for each in range(3))
for mask, expert in zip(masks, self.experts):
    row, slot = torch.where(mask)
    result[row] += weights[row, slot, None] * expert(x[row])
""")
    declined(source, "`masks` can be gone through only once", select=("GM502",))


@pytest.mark.parametrize("kind", ["[x, x * 2]", "(x, x * 2)", "x.chunk(2, dim=1)"])
def test_lists_and_tuples_from_outside_stay_what_they_are(kind: str) -> None:
    loop = f"both = {kind}\n" + LOOP.replace("* factor", "* torch.cat(both, 1)[row, :4] * (2 + len(both))")
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


@pytest.mark.parametrize("factor", [2.5, None, True])
def test_what_the_operator_cannot_take_runs_the_loop(factor: Any) -> None:
    model = made(written(LOOP.replace("* factor", "* (factor or 1)")))
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
        (LOOP + "    self.last = row", "the loop changes `self.last`"),
        (LOOP + "    print(row)", "may have side effects"),
        (LOOP + "    self.helped(row)", "cannot infer which layers"),
        (LOOP + "    if len(row) > 5:\n        return result", "leaves the loop"),
        (LOOP + "    x += 1", "not one tensor"),
        ("view = result[0]\n" + LOOP + "x = view", "`result` may share memory with another tensor"),
        ("result = x\n" + LOOP, "`result` may share memory with another tensor"),
        (LOOP + "    result = result.to(row.dtype)", "may change the dtype or shape"),
        (LOOP + "result = result + row.shape[0]", "may change the dtype or shape"),
        (LOOP + "    weights = weights.add_(1)", "not one tensor"),
        (LOOP.replace("expert(x[row])", "expert(x[row], out=x)"), "may have side effects"),
        (LOOP + "    F.relu_(x)", "not one tensor"),
        (LOOP + "    torch.manual_seed(1)", "may have side effects"),
        (LOOP + "    count = row.numpy()", "write `.tolist()`"),
        (LOOP + "    try:\n        row.item()\n    except RuntimeError:\n        pass", "cannot be moved"),
        (LOOP + "weights = locals()", "may read local variables"),
        ("if factor:\n    bias = 1\n" + LOOP.replace("* factor", "* bias"), "may be unbound"),
        ("act = self.gate\n" + LOOP.replace("expert(x[row])", "act(expert(x[row]))"), "may have side effects"),
        ("self.top = 3\n" + LOOP.replace("* factor", "* self.top"), "is set outside of `__init__`"),
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
