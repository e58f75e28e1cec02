"""Experts in an `nn.ModuleDict`, of a class that the constructor is given, and segments of rows in a plain function."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.rules.expert_loops import X, loaded, made, one_graph, results, same
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import declined, fixed, fixed_among

_DICT = """
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)
        self.leave = nn.Linear(8, 4, bias=False)

    def forward(self, x):
        return self.leave(self.drop(torch.tanh(self.enter(x - x.mean(0)))))


class Counting(Expert):
    def forward(self, x):
        return self.leave(x[:, :1].expand(-1, 8)) + x.shape[0]


class Model(nn.Module):
    def __init__(self, kind=Expert):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleDict()
        for i in range(3):
            self.experts[f"expert_{i}"] = kind()

    def forward(self, x: torch.Tensor):
        mask = nn.functional.one_hot(self.gate(x).argmax(-1), 3).bool()
        result = x.clone()
        for i, expert in enumerate(self.experts.values()):
            rows = mask[:, i]
            result[rows] = expert(x[rows])
        return result * 2
"""
_CHOSEN = """
        chosen = torch.nonzero(mask.sum(dim=0), as_tuple=True)[0].tolist()
        for i in chosen:
            result[mask[:, i]] = getattr(self.experts, "expert_{}".format(i))(x[mask[:, i]])
"""
_BY_NAME = f"{_DICT[: _DICT.index('        for i, expert')]}{_CHOSEN.lstrip(chr(10))}        return result * 2\n"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("outlined_subject", None)
    torch._dynamo.reset()


@pytest.mark.parametrize("source", [_DICT, _BY_NAME], ids=["values", "getattr"])
def test_experts_in_a_dict_are_one_operator_with_the_gradients_of_eager_mode(source: str) -> None:
    after, _ = fixed(source, select=("GM502",))
    assert '_holds_only(self, "experts", Expert)' in after
    behaves(source, after, ["torch.randn(6, 4)"], scenarios=FEW_SCENARIOS[:2])
    model = made(source)
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)


def test_another_class_of_experts_runs_the_loop() -> None:
    module = loaded(_DICT)
    model = vars(module)["Model"](vars(module)["Counting"])
    compiled: Any = torch.compile(model, backend="eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), model(X))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        one_graph(model)(X)
    module = loaded(_DICT)
    model = vars(module)["Model"]()
    model.experts = type("Dict", (torch.nn.ModuleDict,), {"__module__": module.__name__})(model.experts)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        one_graph(model)(X)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- x.mean(0)", "- self.drop.p.append(x)"),
        ("x - x.mean(0)", "self.note(x)"),
        ("kind=Expert", "kind=None"),
        ("kind=Expert", "kind=nn.Linear"),
        ("kind()\n", "(kind if i else Counting)()\n"),
        ("result[rows] = expert", "self.experts.values().add(1)\n            result[rows] = expert"),
        ("self.experts.values()", "self.experts.pop()"),
    ],
)
def test_experts_that_may_do_more_than_compute_are_left_alone(old: str, new: str) -> None:
    noting = "    def note(self, x):\n        self.seen = x\n        return x\n\n\nclass Counting"
    source = _DICT.replace("class Counting", noting).replace(old, new)
    assert source.count(new)
    assert fixed(source, select=("GM502",))[0] == source


@pytest.mark.parametrize("name", ['"{}".format(i)', '"add_{}".format(i)', 'f"{i}_expert"', "self.names[i]"])
def test_a_name_that_may_be_a_method_is_left_alone(name: str) -> None:
    declined(_BY_NAME.replace('"expert_{}".format(i)', name), because="may have side effects")


_SEGMENTS = """
from tools import is_available

if is_available():
    import torch
    from torch import nn


def grouped(x, weights, counts):
    result = torch.zeros(x.shape[0], weights.shape[-1], dtype=x.dtype, device=x.device)
    ends = torch.cat((torch.zeros(1, dtype=torch.long), torch.cumsum(counts, dim=0)))
    for i in range(weights.shape[0]):
        start = ends[i]
        end = ends[i + 1]
        result[start:end] = torch.matmul(x[start:end], weights[i])
    return result


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3, 4, 5))

    def forward(self, x):
        return grouped(x, self.weights, torch.tensor([1, 3, 2])) * 2
"""


def test_segments_in_a_function_are_one_operator_where_torch_is_imported_with_the_base_of_a_class() -> None:
    source = _SEGMENTS.replace("from tools import is_available\n", "").replace("is_available()", "True > False")
    after, _ = fixed(source, select=("GM502",))
    assert "result = _change_result(result, weights, ends, x)" in after
    assert after.count("import torch\n") == 1
    behaves(source, after, ["torch.randn(6, 4)"], scenarios=FEW_SCENARIOS[:2])
    model = made(source)
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)
    expected, compiled = model(X), one_graph(model)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled(X), model(X))
        assert not torch.equal(model(X), expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    from torch import nn\n", "    from torch import nn\nelse:\n    nn = Stub\n"),
        ("    from torch import nn\n", "\n\nfrom other import nn\n"),
        ("    import torch\n", "    try:\n        import torch\n    except ImportError:\n        pass\n"),
    ],
)
def test_a_torch_that_may_be_missing_where_the_module_is_imported_is_not_used_there(
    tmp_path: Path, old: str, new: str
) -> None:
    source = _SEGMENTS.replace(old, new)
    tools = {"tools.py": "def is_available():\n    return False\n"}
    assert fixed_among(tmp_path, source, tools, select=("GM502",))[0] == source


_OWN = """
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)
        self.leave = nn.Linear(8, 4, bias=False)

    def forward(self, x):
        return self.leave(self.drop(torch.tanh(self.enter(x - x.mean(0)))))


class Experts(nn.ModuleDict):
    def __init__(self):
        super().__init__()
        self.final = nn.Dropout(0.5)
        for i in range(3):
            self[f"expert_{i}"] = Expert()

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        result = torch.zeros_like(x)
        for i in mask.any(0).nonzero():
            rows = torch.where(mask[:, i[0]])[0]
            result.index_add_(0, rows, self.final(self[f"expert_{i[0]}"](x[rows])))
        return result * 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = Experts()

    def forward(self, x: torch.Tensor):
        return self.experts(x, nn.functional.one_hot(self.gate(x).argmax(-1), 3).bool())
"""


def test_a_dict_that_looks_up_its_own_experts_is_one_operator() -> None:
    after, _ = fixed(_OWN, select=("GM502",))
    behaves(_OWN, after, ["torch.randn(6, 4)"], scenarios=FEW_SCENARIOS[:2])
    model = made(_OWN)
    same(results(model, model, X), results(model, one_graph(model), X), 1e-6)
    module = loaded(_OWN)
    model = vars(module)["Model"]()
    model.experts["expert_1"] = type("Other", (torch.nn.Linear,), {"__module__": "elsewhere"})(4, 4)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        one_graph(model)(X)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- x.mean(0)", "- self.drop.p.append(x)"),
        ("class Experts(nn.ModuleDict):", "class Experts(nn.ModuleDict):\n    def __getitem__(self, key): pass\n"),
        ("= Expert()\n", "= made(i)\n"),
        ("nn.Dropout(0.5)\n        for", "made()\n        for"),
    ],
)
def test_an_own_dict_whose_layers_may_do_more_is_left_alone(old: str, new: str) -> None:
    source = _OWN.replace(old, new)
    assert new in source
    assert fixed(source, select=("GM502",))[0] == source
