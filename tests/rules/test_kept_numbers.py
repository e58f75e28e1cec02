"""Numbers that are computed with and tested stay 0-dim tensors when compiled (GM401)."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, bins=4, momentum=0.5):
        super().__init__()
        self.bins, self.momentum = bins, momentum
        self.register_buffer("sums", torch.zeros(bins))

    def forward(self, {signature}):
        {body}
"""
_KEPT = "# Numbers in 0-dim tensors"
_SCENARIOS = [Scenario(), Scenario(True, "leaves"), Scenario(True, "inner")]


def model(body: str, signature: str = "x: torch.Tensor, t: torch.Tensor") -> str:
    return _MODEL.format(signature=signature, body="\n        ".join(body.strip("\n").split("\n")))


def same_as_eager(source: str, inputs: list[str], *, strict: bool = True, runs: list[Scenario] | None = None) -> str:
    after, _ = fixed(source, select=("GM401",))
    assert _KEPT in after
    behaves(source, after, inputs, scenarios=FEW_SCENARIOS)
    compiles(after, inputs, strict=strict, scenarios=runs or _SCENARIOS)
    return after


_INPUTS = [
    "(torch.tensor([1.0, 4.0, -2.0]), torch.tensor([1.0, 0.0, 3.0]))",
    "(torch.tensor([1.0, 4.0, -2.0]), torch.zeros(3))",
    "(torch.tensor(3.0), torch.tensor(float('nan')))",
]


@pytest.mark.parametrize(
    "body",
    [
        "n = max(t.float().sum().item(), 1.0)\nreturn (x * t).sum() / n",
        "n = max((t > 0).float().sum().item(), 1.0)\nreturn F.mse_loss(x, t, reduction='sum') / n",
        "n = float((t > 0).sum())\nreturn x.sum() / max(n, 1.0)",
        "n = (t > 0).sum().item()\nreturn x.sum() / max(n, 1) + x / (n + 1e-6)",
        "n = min(torch.mean(x).item(), torch.mean(t).item())\nx = x / (1 + n)\nreturn x - t",
        "n = max(1.0, t.max().item())\nreturn x * n",
        "n = max((t > 0).sum().item(), 1.5)\nreturn x * n, x.sum() + n",
        "n = max((t > 0).sum().item(), 1)\nreturn x * n, x.sum() * n",
        "n = min(2.0, t.min().item())\nreturn x * n",
        "low, high = x.min().item(), x.max().item()\nreturn (x - low) / (high - low + 1e-8)",
        "n = (t > 0).sum().item()\nif n > 0:\n    x = x / n\nreturn x * 2",
        "n = (t > 0).sum().item()\ny = x * 1\nif n != 0:\n    y /= n\nreturn y",
        "n = t.sum().item()\nx = x / n\nn = x.sum().item()\nreturn x / n",
    ],
)
def test_numbers_that_are_computed_with_give_what_eager_mode_gives(body: str) -> None:
    same_as_eager(model(body), _INPUTS)


_COUNTS = """
n = 0
w = torch.zeros_like(x)
for i in range(self.bins):
    inside = (x >= i) & (x < i + 1) & (t > 0)
    k = inside.sum().item()
    if k > 0:
        if self.momentum > 0:
            self.sums[i] = self.momentum * self.sums[i] + (1 - self.momentum) * k
            w[inside] = 8.0 / self.sums[i]
        else:
            w[inside] = 8.0 / k
        n += 1
if n > 0:
    w = w / n
return w * x
"""
_BINNED = ["(torch.tensor([0.5, 1.5, 1.75, 3.0, 9.0]), torch.ones(5))", "(torch.tensor([0.5, 9.0]), torch.zeros(2))"]


@pytest.mark.parametrize("default", ["bins=4, momentum=0.5", "bins=4, momentum=0", "bins=0, momentum=0"])
def test_weights_of_bins_and_how_many_bins_there_are(default: str) -> None:
    source = model(_COUNTS).replace("bins=4, momentum=0.5", default)
    after = same_as_eager(source, _BINNED, runs=[Scenario(False, "off"), Scenario(True, "off")])
    compiles(after, _BINNED, scenarios=_SCENARIOS, strict=False)
    assert "n = n + taken" in after
    assert "w[inside] = " in after


_MADE_UNDER = """if momentum > 0:
            self.register_buffer("sums", torch.zeros(bins))
"""


def made_under_a_test(body: str) -> str:
    return model(body).replace('self.register_buffer("sums", torch.zeros(bins))\n', _MADE_UNDER)


@pytest.mark.parametrize("default", ["bins=4, momentum=0", "bins=4, momentum=0.5"])
def test_a_buffer_that_is_made_and_used_under_one_test_is_asked_for_under_it(default: str) -> None:
    source = made_under_a_test(_COUNTS).replace("bins=4, momentum=0.5", default)
    after = same_as_eager(source, _BINNED, runs=[Scenario(False, "off"), Scenario(True, "off")])
    assert "and (not (self.momentum > 0) or isinstance(self.sums, torch.Tensor))" in after
    compiles(after, _BINNED, scenarios=_SCENARIOS, strict=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            w[inside] = 8.0 / k", "            w[inside] = self.sums[0] / k"),
        ("w = torch.zeros_like(x)", "w = torch.zeros_like(x)\nmany = len(t)"),
        ("    inside = ", "    self.momentum = 1\n    inside = "),
        ("    inside = ", "    many = i\n    inside = "),
    ],
    ids=["used elsewhere", "bound before", "test changes", "bound inside"],
)
def test_a_buffer_is_asked_for_in_any_case_where_the_test_does_not_say_whether_it_is_used(old: str, new: str) -> None:
    body = _COUNTS.replace(old, new)
    body = body.replace("if self.momentum > 0", "if many > 0") if "many" in new else body
    after, _ = fixed(made_under_a_test(body), select=("GM401",))
    under = "bound before" if "many = len" in new else ""
    assert ("(not (many > 0) or isinstance(self.sums" in after) == bool(under)
    assert "(not (self.momentum > 0)" not in after


@pytest.mark.parametrize("line", ["y = z = {}", "z = y\ny = {}", "z = y\nF.relu(y, inplace={} < 0 and '({} = )')"])
def test_a_long_line_that_is_no_plain_assignment_is_written_as_well(line: str) -> None:
    long = "F.smooth_l1_loss(x * 1.25, t * 0.75, reduction='sum', beta=1.0).abs() + 1000.0 * 0.001 - x.sum() * 0.25"
    read, line = "n = max(t.float().sum().item(), 1.0)", line.replace("{}", long, 1)
    body = f"y = x.clone()\n{read}\n{line}\nreturn x.sum() / n, y, z"
    same_as_eager(model(body.replace("({} = )", "no = yes")), _INPUTS[:2], strict="relu" not in line)


def test_a_mask_that_changes_after_it_was_counted_is_written_under_the_test() -> None:
    change = "k = inside.sum().item()\n    inside.logical_not_()"
    source = model(_COUNTS.replace("k = inside.sum().item()", change))
    after, _ = fixed(source, select=("GM401",))
    assert "w[inside & taken] = " in after
    compiles(after, _BINNED, scenarios=[Scenario(False, "off")])


def test_a_counter_that_the_loop_reads_stays_a_number() -> None:
    source = model(_COUNTS.replace("k = inside", "x = x * n\n    k = inside"))
    assert fixed(source, select=("GM401",))[0] == source


@pytest.mark.parametrize(
    "body",
    [
        "n = (t > 0).sum().item()\nreturn x[:n]",
        "n = (t > 0).sum().item() + 1\nreturn x / n, n",
        "n = (t > 0).sum().item() + 1\nprint(n)\nreturn x / n",
        "n = (t > 0).sum().item() + 1\nself.n = n\nreturn x / n",
        "n = (t > 0).sum().item() + 1\nreturn x // n",
        "n = (t > 0).sum().item() + 1\nreturn n ** x",
        "n = (t > 0).sum().item() + 1\nf = lambda: n\nreturn x / n + f()",
        "n = int(t.sum().item() * 2)\nreturn x / n",
        "n = (t > 0).sum().item()\nif n > 0:\n    x = x / n\nelse:\n    x = x * 2\nreturn x",
        "n = (t > 0).sum().item()\nif n > 0:\n    x = x.exp()\nreturn x / max(n, 1)",
        "n = (t > 0).sum().item() + 1\ny = torch.zeros(3)\nreturn x + y / n",
        "n = (t > 0).sum().item() + 1\nx = x.cpu()\nreturn x / n",
        "n = 1\nfor i in range(3):\n    x = x * n\n    n = max(t.sum().item(), 1) + 1\nreturn x",
        "global n\nn = (t > 0).sum().item() + 1\nreturn x / n",
        "try:\n    n = (t > 0).sum().item() + 1\n    y = x / n\nexcept ValueError:\n    y = x\nreturn y",
    ],
)
def test_other_uses_need_the_number(body: str) -> None:
    after, _ = fixed(model(body), select=("GM401",))
    assert _KEPT not in after


@pytest.mark.parametrize(
    "given",
    [
        "(torch.tensor([1.0, 4.0]).half(), torch.tensor([70000.0, 1.0]))",
        "(torch.tensor([1.0, 4.0]).double(), torch.tensor([1.0, 1.0]))",
        "(torch.tensor([1, 4]), torch.tensor([1.0, 1.0]))",
        "(torch.tensor([1.0, 4.0]), torch.tensor([1.0 + 2.0j, 1.0]))",
        "(torch.tensor([1.0 + 2.0j, 4.0]), torch.tensor([1.0, 1.0]))",
    ],
)
def test_other_dtypes_take_the_way_of_eager_mode(given: str) -> None:
    source = model("n = max(t.sum().item(), 1.0) * 2\nreturn x.sum() / n, x * n")
    same_as_eager(source, [given], strict=False, runs=[Scenario()])


def test_a_number_is_what_it_was_when_its_tensor_of_float64_is_changed_before_it_is_used() -> None:
    body = "top = t.detach()\nn = top.item()\nt.add_(5)\ny = x / (n + 1)\nreturn y"
    source = model(body, "x: torch.Tensor, t: torch.Tensor").replace("top.item()", "top.max().item()")
    same_as_eager(source, ["(torch.ones(2), torch.tensor([3.0], dtype=torch.float64))"], strict=False)


def test_a_python_number_beside_it_has_to_be_one() -> None:
    after = same_as_eager(model("n = t.sum().item() * s\nreturn x / (n + 1)", "x, t, s=2"), _INPUTS)
    assert "isinstance(s, (int, float))" in after
    compiles(after, ["(torch.ones(2), torch.ones(2), torch.ones(2))"], strict=False)


def test_a_division_by_zero_is_an_error_in_compiled_code_too() -> None:
    body = "a = (t == 1).sum().item()\nb = (t == 0).sum().item()\nshare = a / (a + b)\nreturn x * share"
    after = same_as_eager(
        model(body), ["(torch.ones(2), torch.tensor([0.0, 1.0]))", "(torch.ones(1), torch.tensor([5.0]))"]
    )
    assert 'torch._assert_async((a + b) != 0, "division by zero")' in after
    after, _ = fixed(model(body), select=("GM401",), guards="skip")
    assert _KEPT in after
    assert "_assert_async" not in after
    after, _ = fixed(model(body), select=("GM401",), guards="advice")
    assert _KEPT not in after


def test_a_counter_that_each_step_begins_anew_stays_a_number() -> None:
    source = model(_COUNTS.replace("inside = ", "n = 0\n    inside = "))
    assert fixed(source, select=("GM401",))[0] == source


def test_a_dtype_that_the_next_step_of_a_loop_changes_is_not_taken_for_granted() -> None:
    body = (
        "n = max(t.sum().item(), 1.0)\nx = x * 1\nfor i in range(2):\n    x = x.sum() / n\n    x = x.half()\nreturn x"
    )
    assert fixed(model(body), select=("GM401",))[0] == model(body)


def test_a_tensor_that_a_branch_divides_and_later_code_changes_is_no_copy() -> None:
    source = model("n = (t > 0).sum().item()\nif n > 0:\n    x = x / n\nx.add_(1)\nreturn x")
    assert _KEPT not in fixed(source, select=("GM401",))[0]


def test_integers_that_float64_does_not_hold_are_compared_and_subtracted_as_eager_mode_does() -> None:
    source = model("n = t.sum().item()\nm = t.max().item()\nif n > m:\n    x = x * (n - m)\nreturn x")
    after = same_as_eager(source, ["(torch.ones(3), torch.tensor([1, 2**60]))"], strict=False)
    assert "t.is_floating_point()" in after
    body = "n = t.sum().item()\nm = t.max().item()\nif n > m:\n    x = x * (n - m)\nreturn x"
    assert _KEPT not in fixed(model(body, "x: torch.Tensor, t: torch.LongTensor"), select=("GM401",))[0]


_BINS = """
for i in range({stop}):
    inside = x > i
    k = inside.sum().item()
    if k > 0:
        self.sums[i] = 0.5 * self.sums[i] + k
return x * 2
"""


_HELD = """

def make():
    made = Model()
    made._buffers["sums"] = {held}
    return made
"""


@pytest.mark.parametrize("held", ["nn.Parameter(torch.zeros(2))", "[0.0, 0.0, 0.0, 0.0]", "torch.zeros(2)"])
def test_an_element_that_eager_mode_does_not_write_is_not_written_where_that_would_raise(held: str) -> None:
    source = model(_BINS.format(stop="self.bins")) + _HELD.format(held=held)
    after, _ = fixed(source, select=("GM401",))
    assert _KEPT in after
    compiles(after, ["(torch.full((3,), -1.0), torch.ones(3))"], name="make", strict=False, scenarios=_SCENARIOS)
    assert _KEPT not in fixed(model(_BINS.format(stop="len(x)")), select=("GM401",))[0]


def test_an_attribute_that_is_assigned_to_on_the_way_is_not_asked_for_in_front() -> None:
    source = model("n = t.max().item()\nself.bins = other\nreturn x / max(n, self.bins)", "x: torch.Tensor, t, other")
    assert _KEPT not in fixed(source, select=("GM401",))[0]
