"""Queues whose position is tested for the end of the queue (GM401)."""

import re

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

SELECT = ("GM401",)
MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.size = size
        self.register_buffer("queue", torch.arange(3.0 * size).reshape({shape}))
        self.register_buffer("labels", torch.zeros(size, dtype=torch.long))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def push(self, keys):
        n = keys.shape[0]
        at = int(self.at)
{body}

    @torch.no_grad()  # a gradient of what is read would need it as it was
    def forward(self, *xs):
        found = []
        for x in xs:
            self.push(x)
            found += [self.queue.clone(), self.labels.clone(), self.at.clone()]
        return found
"""
CUT_OFF = """
if at + n >= self.size:
    self.queue[at:] = keys[: self.size - at].detach()
    self.at.zero_()
else:
    self.queue[at : at + n] = keys.detach()
    self.at[0] = at + n
"""
SHORTER = """
if at + n > self.size:
    n = self.size - at
    keys = keys[:n]
self.queue[at : at + n, :] = keys
at = (at + n) % self.size
self.at[0] = at
"""
WRAPPED = """
if at + n > self.size:
    over = (at + n) - self.size
    self.queue[at : self.size, :] = keys[: self.size - at, :]
    self.queue[0:over, :] = keys[self.size - at :, :]
else:
    self.queue[at : at + n, :] = keys
at = (at + n) % self.size
self.at[0] = at
"""
TURNED = """
if at + n > self.size:
    first = self.size - at
    self.queue[:, at:] = keys[:first].T
    self.queue[:, : n - first] = keys.transpose(0, 1)[:, first:]
    at = n - first
else:
    self.queue[:, at : at + n] = keys.T
    at = (at + n) % self.size
self.at.fill_(at)
"""
INPUTS = [
    ", ".join(f"torch.randn({rows}, 3)" for rows in (3, 3, 3, 5, 8, 1, 0, 8)),
    ", ".join(f"torch.randn({rows}, 3)" for rows in (8, 8, 2, 6, 4, 4)),
]


NOT_AT_ONCE = """
if at + n > self.queue.shape[0]:
    over = at + n - self.size
    self.queue[at:] = keys[: n - over]
    self.queue[:over] = keys[n - over :]
    self.at[0] = over
else:
    self.queue[at : at + n] = keys
    self.at[0] = at + n
"""
BODIES = [NOT_AT_ONCE, CUT_OFF, SHORTER, WRAPPED, TURNED]


def model(body: str) -> str:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    return MODEL.format(body=lines, shape="3, size" if "[:, at" in body else "size, 3")


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_position_stays_in_its_tensor(body: str, dynamic: bool) -> None:
    before = model(body)
    after, _ = fixed(before, select=SELECT)
    assert "places = rows % self.size" in after
    assert fixed(after, select=SELECT)[0] == after
    behaves(before, after, INPUTS, scenarios=[Scenario()])
    compiles(after, INPUTS, scenarios=[Scenario()], dynamic=dynamic)


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.randn(3, 3).half(), torch.randn(7, 3).double()",
        "torch.randn(9, 3)",
        "torch.randn(3, 1), torch.randn(7, 1)",
        "torch.randn(3, 2)",
    ],
)
@pytest.mark.parametrize("body", BODIES)
def test_other_rows_are_written_as_before(body: str, inputs: str) -> None:
    after, _ = fixed(model(body), select=SELECT)
    behaves(model(body), after, [inputs], scenarios=[Scenario()])
    compiles(after, [inputs], scenarios=[Scenario()], strict=False)


@pytest.mark.parametrize("at", [-1, 9])
def test_a_position_that_is_not_in_the_queue_raises(at: int) -> None:
    after, _ = fixed(model(CUT_OFF).replace("torch.zeros(1, ", f"torch.full((1,), {at}, "), select=SELECT)
    space: dict[str, type[torch.nn.Module]] = {}
    exec(after, space)
    compiled = torch.compile(space["Model"](), backend="aot_eager")
    with pytest.raises(RuntimeError, match="is not a position in the queue"):
        compiled(torch.randn(3, 3))


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("keys[: self.size - at]", "keys[at - self.size :]", "one after the other"),
        ("self.at[0] = at + n", "self.at[0] = at + n - 1", "one after the other"),
        ("self.at[0] = at + n", "self.at[0] = at + n\n    self.labels[at] = 1", "slice along one axis"),
        ("self.at[0] = at + n", "self.at[0] = at + n\n    print(at)", "stands between the position"),
        ("self.at.zero_()", "self.labels.zero_()", "stands between the position"),
        ("self.at.zero_()", "pass", "move on"),
        ("if at + n >= self.size:", "if at % 2 >= self.size:", "is no sum of"),
        ("if at + n >= self.size:", "if at + n >= self.size and n > 1:", "does not compare the position"),
        ("if at + n >= self.size:", "if at + n >= 8:", "is no sum of"),
        ("keys.detach()", "keys.flip(0)", "which rows"),
        ("keys.detach()", "keys[at:]", "one after the other"),
    ],
)
def test_other_branches_are_left_alone(old: str, new: str, because: str) -> None:
    body = CUT_OFF.replace(old, new)
    assert body != CUT_OFF
    declined(model(body), because=because, select=SELECT)


def test_a_name_that_is_used_later_is_left_alone() -> None:
    body = SHORTER + "self.labels[:n] = 1\n"
    declined(model(body), because="`n` is used in other places", select=SELECT)


@pytest.mark.parametrize("rows", ["self.queue[:3]", "self.queue", "self.queue.view(-1, 3)[1:4]"])
@pytest.mark.parametrize("body", [NOT_AT_ONCE, "self.queue[at : at + n] = keys\nself.at[0] = at + n"])
def test_rows_of_the_queue_itself_are_written_as_before(rows: str, body: str) -> None:
    source = model(body).replace("        n = keys", f"        keys = {rows}\n        n = keys")
    declined(source, because="may share memory with `self.queue`", select=SELECT)


def test_a_part_of_each_row_is_written_as_before() -> None:
    body = NOT_AT_ONCE.replace("    over =", "    keys = keys[:, : self.size - at]\n    over =")
    declined(model(body), because="cuts the rows themselves", select=SELECT)


def test_a_position_that_goes_round_in_the_number_of_rows_is_read() -> None:
    body = NOT_AT_ONCE.replace("self.at[0] = at + n", "self.at[0] = (at + n) % n")
    declined(model(body), because="one after the other", select=SELECT)


def test_a_position_without_dimensions_raises_where_an_element_is_written() -> None:
    source = model(NOT_AT_ONCE).replace("torch.zeros(1, dtype", "torch.zeros((), dtype")
    after, _ = fixed(source, select=SELECT)
    behaves(source, after, ["torch.randn(3, 3)"], scenarios=[Scenario()])
    compiles(after, ["torch.randn(3, 3)"], scenarios=[Scenario()], strict=False)


def test_nothing_is_asked_that_is_known() -> None:
    body = NOT_AT_ONCE.replace("self.size", "self.queue.shape[0]")
    source = model(re.sub(r"\bn\b", "keys.shape[0]", body)).replace("        n = keys.shape[0]\n", "")
    after, _ = fixed(source, select=SELECT)
    header = after[after.index("is_compiling()") : after.index("# The position")]
    assert "0 <= keys.shape[0] <= self.queue.shape[0]" in header
    assert "int)" not in header
    assert "shape[0] ==" not in header
    compiles(after, INPUTS[1:], scenarios=[Scenario()])


def test_a_queue_with_one_row_in_memory_raises() -> None:
    source = model(NOT_AT_ONCE).replace("torch.arange(3.0 * size).reshape(size, 3)", "torch.zeros(3).expand(size, 3)")
    assert source != model(NOT_AT_ONCE)
    after, _ = fixed(source, select=SELECT)
    behaves(source, after, ["torch.randn(3, 3)"], scenarios=[Scenario()])
    compiles(after, ["torch.randn(3, 3)"], scenarios=[Scenario()], strict=False)
