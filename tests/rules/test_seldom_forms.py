"""Proofs that no counted project and no other test asks for: each form is fixed, declined, or asked about."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn

HALF = 0.5
HUGE = 1e300


def bent(rows, scale, flip):
    if flip:
        shift = 1.0
        rows = rows * 2
    else:
        shift = 2.0
        rows = rows + 1
    return rows * shift + scale


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: torch.Tensor, y: torch.Tensor, flip: bool = True, n: int = 2):
        {body}
"""
_SAME = Scenario(False, "off")


def model(body: str) -> str:
    return _MODEL.format(body=body.replace("\n", "\n        "))


def fixed_and_alike(body: str, code: str, calls: list[str]) -> str:
    """The fixed text, which `code` alone wrote, does in eager mode and compiled what the body does."""
    after, result = fixed(model(body))
    assert {finding.code for fix in result.fixes for finding in fix.applied} == {code}
    behaves(model(body), after, calls, scenarios=FEW_SCENARIOS[:3])
    compiles(after, calls, scenarios=[_SAME])
    return after


@pytest.mark.parametrize("other", ["9007199254740993", "x.shape[0]", "True", "n"])
def test_an_integer_of_a_tensor_compares_with_integers_as_it_is(other: str) -> None:
    body = f"if x.argmax().item() >= {other}:\n    x = x * 2\nreturn x"
    after = fixed_and_alike(body, "GM101", ["(torch.tensor([1.0, 3.0]), 0)"])
    assert ".double()" not in after
    assert ("isinstance(n, int)" in after) is (other == "n")


def test_an_integer_that_no_tensor_holds_is_compared_by_python() -> None:
    body = f"if x.argmax().item() >= {2**63}:\n    x = x * 2\nreturn x"
    declined(model(body), "is larger than all of `int64`")


@pytest.mark.parametrize(("factor", "inside"), [("HALF", False), ("HUGE", True)])
def test_a_constant_of_the_module_tells_whether_a_gradient_stays_finite(factor: str, inside: bool) -> None:
    after = fixed_and_alike(f"if x.sum() > 0:\n    x = x * {factor}\nreturn x", "GM101", ["(torch.ones(2), 0)"])
    assert ("torch.where(condition, x, 1.0)" in after) is inside


@pytest.mark.parametrize("write", ["x = x.masked_fill(m, y.sum())", "x[m] = y.sum()"])
def test_a_masked_write_of_a_tensor_asks_for_its_dtype(write: str) -> None:
    body = f"m = x > 0\nx = x * 1\nif m.any():\n    {write}\nreturn x"
    after = fixed_and_alike(body, "GM104", ["(torch.tensor([1.0, -1.0]), torch.ones(2))"])
    assert "y.sum().dtype == x.dtype" in after


def test_rows_go_both_ways_of_a_flag() -> None:
    body = "m = x > 0\nout = torch.zeros_like(x)\nout[m] = bent(x[m], 2.0, flip)\nreturn out"
    x = "torch.tensor([1.0, -1.0, 2.0])"
    fixed_and_alike(body, "GM510", [f"({x}, 0, True)", f"({x}, 0, False)"])


@pytest.mark.parametrize("count", ["x.numel()", "x.size(0)", "len(x)"])
def test_one_element_of_each_row_is_as_many_as_the_indices(count: str) -> None:
    body = f"m = x > 0\nreturn -y[torch.arange({count}), x][m].mean()"
    fixed_and_alike(body, "GM510", ["(torch.tensor([1, 0, 2]), torch.arange(9.0).reshape(3, 3))"])


@pytest.mark.parametrize("alias", ["other = sizes or []\nother.append(3)", "other = flip and sizes\nother[0] = 1"])
def test_a_list_that_another_name_may_change_is_copied(alias: str) -> None:
    body = "sizes = [x.shape[0], x.shape[1]]\nt = torch.tensor(sizes)\n{}return x.reshape(t.tolist())"
    assert "x.reshape(sizes)" in fixed(model(body.format("")))[0]
    after, _ = fixed(model(body.format(f"{alias}\n")))
    assert "[*sizes]" in after
    compiles(after, ["(torch.ones(2, 3), 0)"], scenarios=[_SAME])


@pytest.mark.parametrize("slope", ["0.1", "HUGE"])
def test_a_slope_may_raise_for_integers(slope: str) -> None:
    findings = checked(model(f"if x.sum() > 0:\n    x = F.leaky_relu(x, {slope})\nreturn x")).findings
    assert [each.code for each in findings] == ["GM101"]
    assert "may raise for some arguments" in (findings[0].declined or "")


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("if 0 < torch.rand(()) < 0.5:\n    x = x * 2", "`torch.rand(())` would be computed twice"),
        ("if torch.equal(x * 2, y):\n    x = x * 2", "`x * 2` would be computed twice"),
        ("if x.sum().item() > y:\n    x = x * 2", "reads a tensor to compare it with another; compare the tensors"),
        ("z = x + y\nif x.sum() > 0:\n    z = x * 2\n    x = z + 1", "`z` is bound before the branch"),
        ("with torch.no_grad():\n    if x.sum() > 0:\n        self.seen = x", "a tensor without a gradient"),
        ("x[y.argmax()] += y.sum()", "`y.sum()` may have another shape"),
        ("m = x > 0\nk = x[m]\nx = (k * k.shape[0]).sum()", "`k.shape[0]` may be the number of selected rows"),
        (
            "torch._check_value((x > 0).all().item(), lambda: self.said(x))",
            "is computed elsewhere; write it as a literal in the `raise`",
        ),
        (
            "global seen\nif (x < 0).any():\n    seen = f'{x}'\n    raise ValueError(seen)",
            "the check assigns `seen`, which others read as well",
        ),
    ],
)
def test_what_could_do_something_else_is_left_alone(body: str, because: str) -> None:
    declined(model(f"{body}\nreturn x"), because)
