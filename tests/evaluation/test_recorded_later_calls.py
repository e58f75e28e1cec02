"""`fix --trace --opaque`: calls that do what no recorded one did raise, or take the author's own path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.evaluation.recorded_fixes import OUTSIDE, Recorded, calls_of, grad_of, model_with, one_graph, recorded

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]
_SHAPES = [(3, 4), (5, 4)]
_LARGE = torch.full((3, 4), 20.0)
_METHODS = """

    @torch.compiler.disable
    def solve(self, x):
        return x * self.scale + self.count

    def step(self):
        self.count += 1

    def reset(self):
        self.count = 0
"""
_INIT = "self.count = 1; self.register_buffer('scale', torch.ones(4))"


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ("(x * 2, None) if x[0, 0] < 10 else (None, x + 1)", r"\[None, tensor\], and \[tensor, None\]"),
        (
            "([x * 2, x + 2], [x * 4]) if x[0, 0] < 10 else ([x * 2], [x + 1, x - 1])",
            r"\[\[tensor\], \[tensor, tensor\]\], and \[\[tensor, tensor\], \[tensor\]\]",
        ),
        (
            "([x * 2], 1 * x) if x[0, 0] < 10 else ((x * 2,), 1 * x)",
            r"\[\(tensor\), tensor\], and \[\[tensor\], tensor\]",
        ),
        (
            "(x * 2, x.numpy() * 1) if x[0, 0] < 10 else (x.numpy() * 2, x * 1)",
            r"\[array, tensor\], and \[tensor, array\]",
        ),
    ],
)
def test_results_put_together_in_another_way_raise(tmp_path: Path, given: str, other: str) -> None:
    body = "a, b = outside(x)\nreturn x + (0 if a is None else 1) + (0 if b is None else 2)"
    found = recorded(tmp_path, body, _SHAPES, before=OUTSIDE.format("x", given))
    small = torch.ones(4, 4)
    assert torch.equal(one_graph(found.model(), small), found.model()(small))
    with pytest.raises(RuntimeError, match=other):
        one_graph(found.model(), _LARGE)


def test_a_gradient_that_no_recorded_call_had_raises(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x * 2 if x[0, 0] > 10 else (x * 2).detach()")
    body = "x = x + 0\ny = outside(x)\nreturn y * x"
    found = Recorded(
        tmp_path,
        model_with(body, before),
        lambda: [(torch.ones(3, 4, requires_grad=True),), (torch.ones(5, 4, requires_grad=True),)],
        gradients=True,
    )
    assert "2 recorded calls" in found.reasons, found.reasons
    x = torch.ones(4, 4, requires_grad=True)
    one_graph(found.model(), x).sum().backward()
    assert torch.equal(grad_of(x), torch.full((4, 4), 2.0))
    assert torch.equal(one_graph(found.model(), _LARGE), found.model()(_LARGE))
    with pytest.raises(RuntimeError, match="needs a gradient, and not in the recorded run"):
        one_graph(found.model(), _LARGE.clone().requires_grad_())


@pytest.mark.parametrize(
    "change",
    [
        "self.count += 1",
        "self.step()",
        "self.reset()",
        "setattr(self, 'count', 3)",
        "self.scale = x.mean(0)",
        "self.scale.mul_(0.5)",
        "scale = self.scale\n    scale.add_(1)",
        "self.scale[0] = 3",
    ],
)
def test_an_instance_that_no_recorded_call_changed_first_is_left_alone(tmp_path: Path, change: str) -> None:
    """The operator would read what it was before: torch.compile changes it when the graph has run."""
    source = model_with(f"if rest:\n    {change}\ny = self.solve(x)\nreturn y + 1", init=_INIT).rstrip() + _METHODS
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    assert found.after == found.before, found.after
    assert "in the same graph" in found.reasons, found.reasons


def test_an_instance_that_a_method_changes_which_nothing_runs_is_no_reason(tmp_path: Path) -> None:
    source = model_with("y = self.solve(x)\nreturn y + 1", init=_INIT).rstrip() + _METHODS
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    x = torch.randn(4, 4)
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), x), found.model()(x)), found.reasons


_KEPT = """
class Kept:
    def __init__(self, value):
        self.value = value
        self.seen = []
    def put(self, value):
        self.value = value
KEPT = Kept(torch.ones(4))
def fill(kept, x):
    kept.value = x.mean(0)
@torch.compiler.disable
def outside(x, kept):
    return x * kept.value
"""


@pytest.mark.parametrize(
    "change", ["kept.value = x.mean(0)", "kept.put(x.mean(0))", "fill(kept, x)", "kept.value.mul_(2)"]
)
def test_an_object_that_no_recorded_call_changed_first_is_left_alone(tmp_path: Path, change: str) -> None:
    source = _handed_on(_KEPT, f"if more:\n            {change}\n        ")
    path = Recorded(
        tmp_path, source, lambda: [(torch.ones(3, 4), _kept()), (torch.ones(5, 4), _kept())], gradients=False
    )
    assert path.after == path.before, path.after
    assert "in the same graph" in path.reasons, path.reasons


def _handed_on(before: str, first: str = "") -> str:
    """A model that passes its argument on to a method."""
    source = model_with("return self.run(x, *rest)", before).rstrip()
    return (
        f"{source}\n\n    def run(self, x, kept, *more):\n        {first}y = outside(x, kept)\n        return y + 1\n"
    )


@pytest.mark.parametrize("way", ["self.run", "self.middle"])
def test_an_instance_that_a_caller_changed_first_is_left_alone(tmp_path: Path, way: str) -> None:
    source = model_with(f"if rest:\n    self.step()\nreturn {way}(x)", init=_INIT).rstrip() + _METHODS
    source += "\n    def middle(self, x):\n        return self.run(x)\n"
    source += "\n    def run(self, x):\n        y = self.solve(x)\n        return y + 1\n"
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    assert found.after == found.before, found.after
    assert "in the same graph" in found.reasons, found.reasons


@pytest.mark.parametrize(
    "change", ["self.part.count += 1", "self.part.scale.mul_(2)", "part = self.part\n    part.count = 3"]
)
def test_an_instance_that_another_one_changed_first_is_left_alone(tmp_path: Path, change: str) -> None:
    source = model_with(f"if rest:\n    {change}\nreturn self.part(x)", init="self.part = Part()").rstrip()
    source += "\n\n\nclass Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += f"        {_INIT}\n{_METHODS}"
    source += "\n    def forward(self, x):\n        y = self.solve(x)\n        return y + 1\n"
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    assert found.after == found.before, found.after
    assert "may change the instance in the same graph" in found.reasons, found.reasons


@pytest.mark.parametrize(
    ("change", "methods"),
    [
        ("this.count += 1", ""),
        ("this.step()", ""),
        ("me = this\n    me.scale.mul_(2)", ""),
        ("this.part.count += 1", ""),
        ("bump(this)", "def bump(self):\n    self.count += 1\n"),
        ("change(this, 'count')", "def change(module, name):\n    setattr(module, name, 3)\n"),
        ("this.step_of(this)", "    def step_of(self, this):\n        this.count += 1\n"),
    ],
)
def test_an_instance_of_another_name_that_the_graph_changed_first_is_left_alone(
    tmp_path: Path, change: str, methods: str
) -> None:
    body = f"if rest:\n    {change}\ny = this.solve(x)\nreturn y + 1"
    inside = methods if methods.startswith(" ") else ""
    source = model_with(body, "" if inside else methods, init=_INIT).rstrip() + _METHODS + "\n" + inside
    source = source.replace("(self, x, *rest)", "(this, x, *rest)").replace("step(self)", "step(me)")
    source = source.replace("me):\n        self.", "me):\n        me.")
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    assert found.after == found.before, found.after
    assert "in the same graph" in found.reasons, found.reasons


@pytest.mark.parametrize(
    "solve",
    [
        "def inner(mod):\n            return x * mod.part_scale\n        return inner(self)",
        "return (lambda mod: x * mod.part_scale)(self)",
        "return scaled(self, x)",
        "me = self\n        return x * me.part_scale",
    ],
)
@pytest.mark.parametrize(
    "change", ["this.part.part_scale = x.mean(0)", "other = this.part\n    other.part_scale.mul_(2)"]
)
def test_what_others_read_of_an_instance_that_the_graph_changed_first_is_left_alone(
    tmp_path: Path, solve: str, change: str
) -> None:
    scaled = "def scaled(module, x):\n    return x * module.part_scale\n"
    source = model_with(f"if rest:\n    {change}\nreturn this.part(x)", scaled, init="self.part = Part()").rstrip()
    source = source.replace("(self, x, *rest)", "(this, x, *rest)")
    source += "\n\n\nclass Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.register_buffer('part_scale', torch.ones(4))\n\n    @torch.compiler.disable\n"
    source += f"    def solve(self, x):\n        {solve}\n"
    source += "\n    def forward(self, x):\n        y = self.solve(x)\n        return y + 1\n"
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    assert found.after == found.before, found.after
    assert "may change the instance in the same graph" in found.reasons, found.reasons


@pytest.mark.parametrize("called", ["x * STATE['n']", "inner(x)"])
def test_a_variable_of_the_file_that_no_recorded_call_changed_first_is_left_alone(tmp_path: Path, called: str) -> None:
    before = f"STATE = {{'n': 1}}\ndef inner(x):\n    return x * STATE['n']\n{OUTSIDE.format('x', called)}"
    found = recorded(tmp_path, "if rest:\n    STATE['n'] += 1\ny = outside(x)\nreturn y + 1", _SHAPES, before=before)
    assert found.after == found.before, found.after
    assert "`STATE` may change" in found.reasons, found.reasons


def test_an_object_that_changes_behind_the_statement_is_no_reason(tmp_path: Path) -> None:
    source = _handed_on(_KEPT).replace("return y + 1", "if more:\n            kept.value = y\n        return y + 1")
    found = Recorded(
        tmp_path, source, lambda: [(torch.ones(3, 4), _kept()), (torch.ones(5, 4), _kept())], gradients=False
    )
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), torch.ones(4, 4), _kept()), torch.full((4, 4), 2.0)), found.reasons


class _Kept:
    def __init__(self) -> None:
        self.value = torch.ones(4)


_ONE = _Kept()


def _kept() -> _Kept:
    return _ONE


def test_an_object_that_stays_goes_in(tmp_path: Path) -> None:
    source = _handed_on(_KEPT)
    found = Recorded(
        tmp_path, source, lambda: [(torch.ones(3, 4), _kept()), (torch.ones(5, 4), _kept())], gradients=False
    )
    with torch.no_grad():
        assert torch.equal(one_graph(found.model(), torch.ones(4, 4), _kept()), torch.full((4, 4), 2.0)), found.reasons


def test_an_object_that_is_another_one_at_each_call_is_left_alone(tmp_path: Path) -> None:
    """The graph holds the object: it would be compiled again for each."""
    source = _handed_on(_KEPT)
    found = Recorded(
        tmp_path, source, lambda: [(torch.ones(3, 4), _Kept()), (torch.ones(5, 4), _Kept())], gradients=False
    )
    assert found.after == found.before
    assert "another object at each call" in found.reasons, found.reasons


@pytest.mark.parametrize("given", ["{'scale': 2}", "{'scale': torch.ones(4)}", "{1, 2}"])
def test_a_container_that_dynamo_takes_no_constant_of_is_left_alone(tmp_path: Path, given: str) -> None:
    before = "\n@torch.compiler.disable\ndef outside(x, kept):\n    return x * len(kept)\n"
    source = _handed_on(before)
    kept = eval(given)
    found = Recorded(tmp_path, source, lambda: [(torch.ones(3, 4), kept), (torch.ones(5, 4), kept)], gradients=False)
    assert found.after == found.before, found.after
    assert "a container that an operator cannot take" in found.reasons, found.reasons


@pytest.mark.parametrize("write", ["self.count += 1", "self.scale.add_(1)", "self.seen.append(1)", "self.norm(x)"])
def test_a_change_of_the_instance_that_no_recorded_call_made_raises(tmp_path: Path, write: str) -> None:
    """A gradient would make it twice, and the graph may have read what it was before."""
    init = "self.count = 1; self.seen = []; self.register_buffer('scale', torch.ones(4)); self.norm = nn.BatchNorm1d(4)"
    method = (
        f"\n\n    @torch.compiler.disable\n    def solve(self, x):\n        if x[0, 0] > 10:\n            {write}\n"
    )
    source = model_with("y = self.solve(x)\nreturn y + 1", init=init).rstrip() + method + "        return x * 2\n"
    found = Recorded(tmp_path, source, calls_of(*_SHAPES), gradients=False)
    with torch.no_grad():
        one_graph(found.model(), torch.ones(4, 4))
        with pytest.raises(RuntimeError, match="wrote into an argument, which it did not in the recorded run"):
            one_graph(found.model(), _LARGE)


def test_a_write_into_a_tensor_of_an_object_that_no_recorded_call_made_raises(tmp_path: Path) -> None:
    before = (
        f"{_KEPT.partition('@torch')[0]}{OUTSIDE.format('x, kept', 'x + (kept.value.add_(1) if x[0, 0] > 10 else 1)')}"
    )
    found = Recorded(
        tmp_path,
        _handed_on(before),
        lambda: [(torch.ones(3, 4), _kept()), (torch.ones(5, 4), _kept())],
        gradients=False,
    )
    with torch.no_grad():
        one_graph(found.model(), torch.ones(4, 4), _kept())
        with pytest.raises(RuntimeError, match="wrote into an argument"):
            one_graph(found.model(), _LARGE, _Kept())


def test_a_write_into_a_given_list_that_no_recorded_call_made_raises(tmp_path: Path) -> None:
    """The operator has a list of its own."""
    source = _handed_on(OUTSIDE.format("x, seen", "x * 2 if x[0, 0] < 10 else seen.append(1) or x * 2"))
    found = Recorded(tmp_path, source, lambda: [(torch.ones(3, 4), []), (torch.ones(5, 4), [])], gradients=False)
    one_graph(found.model(), torch.ones(4, 4), [])
    with pytest.raises(RuntimeError, match="wrote into an argument"):
        one_graph(found.model(), _LARGE, [])


def test_a_call_on_the_author_s_path_has_no_graph_more(tmp_path: Path) -> None:
    """A header that puts an attribute of a tensor into the graph makes a graph of it where the author's path breaks."""
    found = recorded(tmp_path, "y = outside(x)\nreturn y + 1", _SHAPES, before=OUTSIDE.format("x", "x * 2"))
    graphs: list[Any] = []

    def counted(graph: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    x = torch.ones(3, 4, dtype=torch.float64)
    assert torch.equal(torch.compile(found.model(), backend=counted)(x), x * 2 + 1)
    assert len(graphs) == 1, [each.code for each in graphs]


def test_tensors_without_elements_are_left_alone(tmp_path: Path) -> None:
    calls: Any = lambda: [(torch.ones(each, device="meta"),) for each in _SHAPES]  # noqa: E731
    before = OUTSIDE.format("x", "x * 2")
    found = Recorded(tmp_path, model_with("y = outside(x)\nreturn y + 1", before), calls, gradients=False)
    assert found.after == found.before
