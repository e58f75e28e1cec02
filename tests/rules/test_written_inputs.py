"""Fixes that make one graph of two: torch 2.13 computes gradients from inputs that the graph has written by then."""

from __future__ import annotations

import copy
import types
from functools import partial

import pytest
import torch

from tests.rules.stateful_models import forgotten, loaded, run  # noqa: F401
from tests.rules.written_models import MODEL, SELECT
from tests.tools.compiled import compiled_differences
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario

X = torch.ones(2, 3)
TRAINING = (Scenario(training=True, gradients="inner"),)

JOINED = {
    "a buffer": ("y = x * self.scale.exp()", "self.scale.mul_(0.5)"),
    "an argument": ("y = x * scale.exp()", "scale.mul_(0.5)"),
    "a view of an argument": ("y = x * scale.exp()", "rows = scale.view(-1)\n        rows[1:] = 0.0"),
    "out=": ("y = x * scale.exp()", "torch.add(scale, 1.0, out=scale)"),
    "an element": ("y = x * scale.exp()", "scale[0:1] *= 2.0"),
    "a function writes it that calls itself": ("y = x * scale.exp()", "halve_often(scale, 2)"),
    "read by a method": ("y = self.read(x)", "self.scale.mul_(0.5)"),
    "written by a method": ("y = x * self.scale.exp()", "self.update()"),
    "a method writes it that calls itself": ("y = self.inner.read(x)", "self.inner.halve_often(2)"),
    "a method of a tree writes it": ("y = self.tree.read(x)", "self.tree.halve()"),
    "under another name": ("held = self.scale\n        y = x * held.exp()", "self.scale.add_(1.0)"),
    "written without gradients": (
        "y = x * self.scale.exp()",
        "with torch.no_grad():\n            self.scale.mul_(0.5)",
    ),
    "times a constant": ("y = x * self.scale.exp()", "self.scale *= 0.5"),
    "at a constant": ("y = x * self.scale.exp()", "self.scale[0] = 0.5"),
    "in a list": ("y = x * self.scale.exp()", "held = [self.scale]\n        held[0].mul_(0.5)"),
    "in a dict": ("y = x * self.scale.exp()", "for _, each in {0: self.scale}.items():\n            each.mul_(0.5)"),
    "of a tuple": ("y = x * self.scale.exp()", "held, one = self.scale, 1\n        held.mul_(0.5)"),
    "in a list of the instance": ("y = x * self.scale.exp()", "self.listed[0].mul_(0.5)"),
    "among all buffers": ("y = x * self.scale.exp()", "for each in self.buffers():\n            each.mul_(0.5)"),
    "by its name": ("y = x * self.scale.exp()", 'getattr(self, "scale").mul_(0.5)'),
    "by a function": ("y = x * self.scale.exp()", "halve(self.scale)"),
    "several at once": ("y = x * self.scale.exp()", "torch._foreach_mul_([self.scale], 0.5)"),
    "by an initialiser": ("y = x * self.scale.exp()", "nn.init.zeros_(self.scale)"),
    "inplace by position": ("y = x * scale.exp()", "y = y + nn.functional.threshold(scale, 1.5, 0.0, True)"),
    "an inplace layer": ("y = x * scale.exp()", "y = y + self.clip(scale)"),
    "written above": ("self.scale.mul_(0.5)", "y = x * self.scale.exp()"),
    "written above by a method": ("self.update()", "y = self.read(x)"),
    "a mask of what is written": ("scale[scale < scale.mean()] = 9.0", "y = x * scale.exp()"),
    "read before the same is written": ("y = x * scale.exp()\n        scale[x > 2.0] = 0.0", "y = y + scale"),
    "the same is written again": ("scale[x > 2.0] = 0.0", "y = x * (scale + 1.0).exp()"),
    "a slice is written again": ("self.scale[:1] = 0.5", "y = x * (self.scale + 1.0).exp()"),
    "new data": ("y = x * self.scale.exp()", "self.scale.data = self.scale.data * 2.0"),
    "new data above": ("self.scale.data = x.detach() * 2.0", "y = x * self.scale.exp()"),
    "the data of an argument": ("y = x * scale.exp()", "scale.data.add_(1.0)"),
    "an argument transposed": ("y = x * scale.exp()", "scale.T.add_(1.0)"),
    "an element below that is read below": (
        "y = x * 2.0",
        "self.scale[0] = y.detach().mean()\n        y = y * self.scale.clone()",
    ),
    "a slice below that is read below": ("y = x * 2.0", "self.scale[1:].add_(1.0)\n        y = y * self.scale.clone()"),
    "chosen elements below": ("y = x * 2.0", "scale.index_fill_(0, x.long(), 1.0)\n        y = y * scale.exp()"),
    "both above": ("y = self.scale[[2, 0, 1]].detach()\n        self.scale.mul_(0.5)", "y = x * y"),
    "both in one call": ("y = self.halved()", "y = x * y"),
    "an attribute that is made of what is written": (
        "self.made = self.scale\n        y = x * self.made.exp()",
        "self.made.mul_(0.5)",
    ),
    "an attribute that a method makes anew": (
        "self.scale = torch.zeros(3)\n        self.remake(scale)\n        y = x * self.scale.exp()",
        "self.scale.mul_(0.5)",
    ),
    "an argument that a loop of no rounds leaves": (
        "made = scale\n        y = x * scale.exp()\n        for _ in self.counts[1:]:\n            made = made * 2.0",
        "made.mul_(0.5)\n        y = y + made",
    ),
    "an argument that a loop ends with": (
        "made = x * 1.0\n        y = x * scale.exp()\n        for each in self.counts:\n            made = scale",
        "made.mul_(0.5)\n        y = y + made",
    ),
    "an argument where a loop is left": (
        "made = scale\n        y = x * scale.exp()\n        for each in self.counts:\n"
        "            if each == 0:\n                break\n            made = made * 2.0",
        "made.mul_(0.5)\n        y = y + made",
    ),
    "a test that binds a name": (
        "y = x\n        if (big := self.scale.exp()).sum() > 99.0:\n            forget(x)\n        y = y * big",
        "self.scale.mul_(0.5)",
    ),
    "a test below what is written": ("self.scale.mul_(0.5)", "y = x * self.asked()"),
    "each of a list": (
        "y = x\n        for each in self.listed:\n            y = y * each.exp()",
        "self.listed[0].mul_(0.5)",
    ),
    "less something": ("y = x * self.scale.exp()", "self.scale -= 1.0 + x.shape[0]"),
    "more than a size": ("y = x * self.given.exp()", "self.given += x.shape[0] + x.sum()"),
    "at a place": ("y = x * self.given.exp()", "self.given[x.shape[0] - 1 :] = 0.5"),
    "at a mask": ("y = x * self.given.exp()", "self.given[x - 1.0 > 0.0] = 0.5"),
    "at a computed place": ("y = x * self.given.exp()", "self.given[self.given.last + 1] = 0.5"),
    "running statistics": (
        "y = x * self.scale.exp()",
        "nn.functional.batch_norm(x.expand(2, 3), self.scale, self.scale + 1, None, None, True)",
    ),
}


def _source(above: str, below: str, between: str = SELECT, inner: str = "pass") -> str:
    lines = (above, between, below, "return x + y")
    return MODEL.format(body="\n        ".join(lines), inner=inner)


INPUTS = ("torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0])",)


@pytest.mark.parametrize(("above", "below"), JOINED.values(), ids=JOINED)
def test_what_joins_a_read_with_a_write_below_is_for_code_without_gradients(above: str, below: str) -> None:
    after, _ = fixed(_source(above, below))
    assert "not torch.is_grad_enabled()" in after


def test_what_the_select_itself_asks_is_read() -> None:
    after, _ = fixed(_source("y = x", "self.scale.mul_(0.5)", "if self.scale.sum() > 0:\n            x = x * 2.0"))
    assert "not torch.is_grad_enabled()" in after


APART = {
    "nothing is written": ("y = x * self.scale.exp()", "y = y + self.scale"),
    "written above, and read by that alone": ("self.scale.mul_(0.5)", "y = x * scale"),
    "both below": ("y = x", "self.scale.mul_(0.5)\n        y = x * self.scale.exp()"),
    "another one is written": ("y = x * self.scale.exp()", "scale.mul_(0.5)"),
    "a tensor made here is written": ("made = scale + 1.0\n        y = x * made", "made.mul_(0.5)"),
    "only its shape is read": ("y = x * scale.shape[0]", "scale.mul_(0.5)"),
    "a number is counted": ("self.calls = 1\n        y = x * self.calls", "self.calls += 1"),
    "none of its elements are written": ("y = x * self.scale.exp()", "self.scale.detach_().requires_grad_(False)"),
    "a number counts sizes": ("y = x * self.given", "self.given += x.shape[0] + len(x) * x.ndim"),
    "a key of sizes": ("y = x * self.given.exp()", "self.given[x.shape[0]] = 1.0"),
    "a key of text": ("y = x * self.given.exp()", 'self.given[f"{x.dim()}"] = 1.0'),
    "a key of two texts": ("y = x * self.given.exp()", 'self.given["a" + str(x.dim())] = 1.0'),
    "a test reads it": ("y = x\n        if self.scale.sum() > 99.0:\n            forget(x)", "self.scale.mul_(0.5)"),
    "a loop goes through them": (
        "y = x\n        for each in self.listed:\n            y = y * each.shape[0]",
        "self.listed[0].mul_(0.5)",
    ),
    "numbers of a list are counted": ("y = x * self.counts[0]", "self.counts[0] += 1"),
    "a number in a list": ("y = x * self.counts[0]", "self.counts[0] = 2"),
    "a layer of statistics": ("y = x * scale.exp()", "y = y + self.batch_norm(scale)"),
    "an attribute that is made here is written": (
        "self.made = torch.zeros(3)\n        self.made[0] = scale[0]\n        y = x * self.made",
        "self.made = self.made.exp()\n        y = y + self.made",
    ),
    "a function reads it that calls itself": ("y = x * scale.exp()", "y = y + last(scale, 2)"),
    "a method that calls itself writes nothing": ("y = self.inner.read(x)", "y = y + self.inner.last(scale, 2)"),
    "a tensor that a loop makes is written": (
        "made = scale\n        y = x * scale.exp()\n        made = y * 3.0\n"
        "        for each in self.counts:\n            made = made * 2.0",
        "made.mul_(0.5)\n        y = y + made",
    ),
    "a list grows": ("found = [x]\n        y = found[0]", "found += [x]"),
}


@pytest.mark.parametrize(("above", "below"), APART.values(), ids=APART)
def test_what_joins_no_such_read_and_write_is_for_all_code(above: str, below: str) -> None:
    after, _ = fixed(_source(above, below))
    assert "torch.where(" in after
    assert "is_grad_enabled" not in after


def test_read_and_write_may_be_in_the_function_that_calls() -> None:
    inner = SELECT
    above, below = JOINED["a buffer"]
    after, _ = fixed(_source(above, below, between="x = self.inner(x)", inner=inner))
    assert "not torch.is_grad_enabled()" in after


def test_an_argument_is_read_as_far_as_the_called_function_reads_it() -> None:
    lines = ("z = torch.ones(3)", "if z.sum() > 0:", "    z = z * 2.0", "{}", "x = x * z")
    inner = "\n        ".join(lines)
    for first, asked in (("x.mul_(0.5)", False), ("z = z * x.exp()\n        x.mul_(0.5)", False)):
        source = _source("y = self.inner(self.scale)", "y = x * y", between="pass", inner=inner.format(first))
        assert ("is_grad_enabled" in fixed(source)[0]) is asked
    inner = inner.replace("z = torch.ones(3)", "z = x.exp()").format("x.mul_(0.5)")
    assert (
        "is_grad_enabled" in fixed(_source("y = self.inner(self.scale)", "y = x * y", between="pass", inner=inner))[0]
    )


def test_a_loop_reads_in_the_next_round_what_it_writes_in_this_one() -> None:
    lines = ("self.scale.mul_(0.5)", "if x.sum() > 0:", "    x = x * 2.0", "x = x * self.scale.exp()")
    loop = "".join(f"\n            {line}" for line in lines)
    source = MODEL.format(body=f"y = x\n        for _ in range(2):{loop}\n        return x + y", inner="pass")
    assert "not torch.is_grad_enabled()" in fixed(source)[0]


def test_a_fix_without_a_header_is_declined() -> None:
    above, below = JOINED["a buffer"]
    source = _source(above, below, between='logger.warning("rows: %s", x.shape[0])')
    reasons = [each.declined or "" for each in checked(source).findings]
    assert any("`self.scale` is read and written in place around it" in each for each in reasons)
    assert fixed(source)[0] == source


def test_a_fix_that_asks_for_gradients_is_declined_for_what_is_written() -> None:
    above, below = JOINED["a buffer"]
    total = "total = torch.tensor(0.0, device=x.device, requires_grad=True)"
    source = _source(above, f"y = y + last(total, 2)\n        {below}", between=total)
    reasons = [each.declined or "" for each in checked(source).findings]
    assert any("`self.scale` is read and written in place around it" in each for each in reasons)


@pytest.mark.parametrize("case", ["a buffer", "an argument", "written by a method", "in a list", "by a function"])
def test_gradients_are_those_of_eager_mode_or_an_error(case: str) -> None:
    after, _ = fixed(_source(*JOINED[case]))
    wrong = list(compiled_differences(after, INPUTS, scenarios=TRAINING))
    assert all("modified by an inplace operation" in each for each in wrong), wrong


@pytest.mark.parametrize(
    "case",
    ["written above", "written above by a method", "both above", "both in one call", "the same is written again"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_gradients_are_those_of_eager_mode_where_the_backward_pass_is_traced(case: str) -> None:
    module = types.ModuleType("written_inputs_subject")
    exec(compile(fixed(_source(*(JOINED | APART)[case]))[0], "subject.py", "exec"), vars(module))
    eager = module.Model()
    model = copy.deepcopy(eager)
    gradients = []
    for call in (eager, torch.compile(model, backend="aot_eager")):
        torch._dynamo.reset()
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        gradients.append(torch.autograd.grad(call(x, torch.tensor([1.0, 2.0, 3.0])).square().sum(), x)[0])
    torch.testing.assert_close(gradients[1], gradients[0])


AROUND = {
    "above": (*JOINED["a slice is written again"], SELECT),
    "by the fix": ("y = x", JOINED["a slice is written again"][1], "self.scale[x.argmax()] = 0.5"),
}


@pytest.mark.parametrize(("above", "below", "between"), AROUND.values(), ids=AROUND)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_gradient_leaves_alone_what_a_statement_wrote(above: str, below: str, between: str) -> None:
    module = types.ModuleType("written_inputs_subject")
    source = fixed(_source(above, below, between=between))[0]
    assert "not torch.is_grad_enabled()" in source
    exec(compile(source, "subject.py", "exec"), vars(module))
    eager = module.Model()
    model = copy.deepcopy(eager)
    torch._dynamo.reset()
    for call in (eager, torch.compile(model, backend="inductor")):
        for _ in range(2):
            x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
            call(x, torch.tensor([1.0, 2.0, 3.0])).square().sum().backward()
    torch.testing.assert_close(model.scale, eager.scale)


QUEUE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("queue", torch.arange(12.0).view(3, 4))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def put(self, rows: torch.Tensor) -> None:
        place = int(self.place)
        self.queue[:, place : place + 2] = rows.T
        self.place[0] = (place + 2) % 4

    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        found = x @ {read}
        self.put(rows)
        return found.sum()
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_queue_that_is_filled_without_gradients_is_read_with_them() -> None:
    source = QUEUE.format(read="self.queue.clone().detach()")
    assert fixed(source)[0] == source
    setting = "\n\ndef freeze():\n    torch.set_grad_enabled(False)\n"
    assert fixed(source + setting)[0] == source + setting
    after, _ = fixed(source, opaque=True)
    assert "_copied(self.queue)" in after
    eager = loaded(source).Model()
    model, rows = copy.deepcopy(eager), torch.rand(2, 3)
    whole = torch.compile(model, backend="inductor", fullgraph=True)
    expected, found = run(eager, partial(eager, rows=rows), X), run(model, partial(whole, rows=rows), X)
    for old, new in zip(expected, found, strict=True):
        torch.testing.assert_close(new, old)


def test_a_copy_that_a_method_hands_out_is_read() -> None:
    source = QUEUE.format(read="self.read()").replace(
        "    def forward", "    def read(self):\n        return self.queue.clone()\n\n    def forward"
    )
    assert fixed(source)[0] == source


def test_what_is_read_without_gradients_too_may_be_written() -> None:
    source = QUEUE.format(read="self.queue.clone().detach()").replace(
        "place = int(self.place)",
        "if torch.isinf(rows).any():\n            rows = torch.clamp(rows, max=9.0)\n        place = 0",
    )
    assert fixed(source)[0] == source
    source = source.replace("    def forward", "    @torch.no_grad()\n    def forward")
    assert "is_compiling()" in fixed(source)[0]


def test_a_copy_of_a_parameter_is_no_operator() -> None:
    loss = "    def loss(self, x, queue):\n        return x @ queue.clone()\n\n    def forward"
    source = QUEUE.format(read="self.queue").replace("x @ self.queue", "self.loss(x, self.queue)")
    source = source.replace("    def forward", loss)
    assert fixed(source, opaque=True)[0] == source
