"""GM402: a Python integer that goes through a floating tensor of one element, as losses count their boxes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed, fixed_among
from tests.tools.observe import Scenario

_MODEL = """
import torch
import torch.distributed as dist
from torch import nn


def is_distributed():
    if not dist.is_available():
        return False
    if not dist.is_initialized():
        return False
    return True


def get_world_size():
    return dist.get_world_size() if is_distributed() else 1


def world_size():
    if not is_distributed():
        return 1
    return dist.get_world_size()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.losses = ["one", "two"]

    def one(self, x, n):
        return x.sum() / n

    def two(self, x, n):
        return x * n if n > 1.5 and n != 16777217 else x

    def forward(self, x: torch.Tensor, boxes: list, n=None):
        n = sum(len(each) for each in boxes) if n is None else n
        {body}
        losses = {{"one": self.one, "two": self.two}}
        return {{name: losses[name](x, n) for name in self.losses}}
"""
_TENSOR = "n = torch.as_tensor([n], dtype=torch.float, device=x.device)\n        "
_ADDED = "if is_distributed():\n            dist.all_reduce(n)\n        "
_LOSS = _TENSOR + _ADDED + "n = torch.clamp(n / world_size(), min=1).item()"
_ROUNDS = "t = torch.tensor([n], dtype=torch.float)\n        for _ in (1, 2):\n            n = t.item()\n            "
_ROUNDS += "t.add_(1)"
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))
_INPUTS = [f"torch.randn(2, 3), [torch.zeros({n}), torch.zeros(1)]" for n in (0, 1, 5)]


def model(body: str) -> str:
    return _MODEL.format(body=body)


def is_written(body: str) -> bool:
    return "float(" in fixed(model(body), select=("GM402",))[0].replace(body, "")


@pytest.mark.parametrize(
    ("body", "asks"),
    [
        (_LOSS, True),
        (_TENSOR + "n = n.clamp(min=1).item()", False),
        (_TENSOR + "n = float(torch.clip(n / 1, 2, 4))", False),
        (_TENSOR + "n = float(n.clamp_min(2.0).clamp_max(3).clamp(None, 4))", False),
        ("count = torch.tensor(n, dtype=torch.float64)\n        n = count.clamp(max=3).item() + 0.5", False),
        ("t = torch.tensor([n], dtype=torch.float32)\n        n = [t.item(), t][0]", False),
    ],
)
def test_the_integer_is_the_number(body: str, asks: bool) -> None:
    source = model(body)
    after, _ = fixed(source, select=("GM402",))
    assert after.count("float(") == source.count("float(") + 1
    assert ("not (torch.distributed.is_available() and torch.distributed.is_initialized())" in after) == asks
    behaves(source, after, _INPUTS, scenarios=_MODES)
    compiles(after, _INPUTS, scenarios=_MODES)


def test_sizes_may_change() -> None:
    names: dict[str, type[torch.nn.Module]] = {}
    exec(compile(fixed(model(_LOSS.replace("sum(", "")), select=("GM402",))[0], "model.py", "exec"), names)
    made = names["Model"]()
    torch._dynamo.reset()
    compiled = torch.compile(made, backend="eager", dynamic=True, fullgraph=True)
    for size in (3, 4, 5, 6):
        given = torch.randn(2, 3), [torch.zeros(size), torch.zeros(2)]
        for name, found in compiled(*given).items():
            torch.testing.assert_close(found, made(*given)[name])


@pytest.mark.parametrize("number", ["True", "1.5 + 1e-9", "2**24 + 1", "-(2**24) - 1", "10**12", "2**24", "-3"])
def test_what_the_header_asks_for_decides(number: str) -> None:
    source = model(_LOSS)
    after, _ = fixed(source, select=("GM402",))
    inputs = [f"torch.randn(2, 3), [], {number}"]
    behaves(source, after, inputs, scenarios=_MODES)
    compiles(after, inputs, scenarios=_MODES, strict=False)


_MORE = """
seen = 3


def more():
    global seen
    seen += 1


class Model"""


def test_the_integer_is_that_of_the_time_when_the_tensor_was_made() -> None:
    source = model("t = torch.tensor([seen], dtype=torch.float)\n        more()\n        n = t.item()")
    source = source.replace("class Model", _MORE)
    after, _ = fixed(source, select=("GM402",))
    assert "number_in_t = seen if" in after
    behaves(source, after, _INPUTS[:1], scenarios=_MODES)


def test_several_processes_add_their_numbers_up(tmp_path: Path) -> None:
    names: dict[str, type[torch.nn.Module]] = {}
    after, _ = fixed(
        model(_LOSS.replace("dist.all_reduce(n)", "dist.all_reduce(n)\n            n.add_(1)")), select=("GM402",)
    )
    exec(compile(after, "model.py", "exec"), names)
    made, given = names["Model"](), (torch.ones(2, 3), [torch.zeros(3)])
    torch._dynamo.reset()
    with torch.no_grad():
        assert torch.compile(made, backend="eager")(*given)["one"] == 2
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        torch._dynamo.reset()
        with torch.no_grad():
            assert torch.compile(made, backend="eager")(*given)["one"] == made(*given)["one"] == 1.5
    finally:
        torch.distributed.destroy_process_group()
        torch._dynamo.reset()


@pytest.mark.parametrize(
    "body",
    [
        _TENSOR + "n += 1\n        n = n.item()",
        _TENSOR + "other = n.mul_(2)\n        n = n.item()",
        _TENSOR + "if is_distributed():\n            n = n * 2\n        n = n.item()",
        _TENSOR + "if x.dim():\n            n = n * 2\n        n = n.item()",
        _TENSOR + "if x.dim():\n            n.mul_(2)\n        n = n.item()",
        _TENSOR + "dist.all_reduce(n)\n        n = n.item()",
        _TENSOR + "if is_distributed() or x.dim():\n            n.mul_(2)\n        n = n.item()",
        _TENSOR + "later = lambda: n.mul_(2)\n        later()\n        n = n.item()",
        "later = lambda: n.mul_(2)\n        " + _TENSOR + "later()\n        n = n.item()",
        _TENSOR + "n = torch.clamp(n, min=1, max=x.dim()).item()",
        _TENSOR + "n = torch.clamp(n / 2, min=1).item()",
        _TENSOR + "n = torch.clamp(n / len(boxes), min=1).item()",
        _TENSOR + "n = torch.clamp(n, min=0.5).item()",
        _TENSOR + "n = torch.clamp(n, min=x.dim()).item()",
        _TENSOR + "n = torch.clamp(n, min=2**25).item()",
        _TENSOR + "n = n.sqrt().item()",
        _TENSOR.replace("[n]", "[n, n]") + "n = n.sum().item()",
        _TENSOR.replace("[n]", "[n + 1]") + "n = n.item()",
        _TENSOR.replace("float", "half") + "n = n.item()",
        _TENSOR.replace("dtype=torch.float, ", "") + "n = n.clamp(min=1).item()",
        _TENSOR.replace("device=x.device", "requires_grad=True") + "n = n.item()",
        _ROUNDS,
        "float = int\n        " + _TENSOR + "n = n.item()",
        "max = min\n        " + _LOSS,
    ],
)
def test_nothing_is_written_where_the_tensor_may_hold_another_number(body: str) -> None:
    assert not is_written(body)


def test_a_world_size_of_its_own_is_no_divisor_that_is_known() -> None:
    assert not is_written(_LOSS.replace("world_size()", "self.world_size()"))
    assert "float(" not in fixed(model(_LOSS).replace("        return 1\n", "        return 2\n"), select=("GM402",))[0]


def test_a_function_of_many_branches_is_not_looked_at_in_all_ways() -> None:
    branches = "".join(f"    if _{number}:\n        ...\n" for number in range(60))
    source = model(_LOSS).replace("def world_size():\n", f"def world_size():\n{branches}")
    assert "float(" not in fixed(source, select=("GM402",))[0]


def test_functions_of_another_file_say_so_too(tmp_path: Path) -> None:
    source = model(_LOSS)
    start, end = source.index("def is_distributed"), source.index("class Model")
    helpers = "import torch.distributed as dist\n\n\n" + source[start:end]
    source = source[:start] + "from helpers import is_distributed, world_size\n\n\n" + source[end:]
    after, _ = fixed_among(tmp_path, source, {"helpers.py": helpers}, select=("GM402",))
    assert "float(max(number_in_n, 1))" in after
