"""GM301: compiled code checks what eager mode checks, or the guard is left alone and a reason given."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiled_differences, compiles
from tests.tools.fixes import declined, fixed, transformed
from tests.tools.observe import Scenario

_MODEL = """
import contextlib
import torch
from torch import nn

LIMIT = "too small"
NAMED = dict(a="b")


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class Catching(Quiet):
    def __exit__(self, *error):
        return True


@contextlib.contextmanager
def quiet():
    yield


@contextlib.contextmanager
def catching():
    try:
        yield
    except ValueError:
        pass


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.check = False
        self.asked = 0

    def ask(self):
        self.asked += 1
        return True

    def forward(self, x: torch.Tensor, flag: bool = True, given="{message}"):
{body}
        return x * 2
"""
_COMPILED = (Scenario(gradients="off"),)


def model(body: str) -> str:
    lines = body.strip("\n").splitlines()
    return _MODEL.replace("{body}", "\n".join(f"        {line}" for line in lines))


@pytest.mark.parametrize(
    ("test", "header", "inner"),
    [
        ("self.check and (x < 0).any()", "torch.compiler.is_compiling() and self.check and isinstance(", ""),
        ("(x < 0).any() and self.check", "torch.compiler.is_compiling() and isinstance(", "if self.check:"),
        ("flag and (x < 0).any() and self.check", "torch.compiler.is_compiling() and flag and isinstance(", "if self."),
    ],
)
def test_a_static_part_never_brings_the_tensor_back(test: str, header: str, inner: str) -> None:
    source = model(f"if {test}:\n    raise ValueError('negative')")
    after, _ = fixed(source)
    folded = " ".join(after.split()).replace("( ", "(")
    assert f"if {header}" in folded or f"if ({header}" in folded
    assert inner in folded
    behaves(source, after, ["torch.ones(3)", "-torch.ones(3)"], scenarios=_COMPILED)
    compiles(after, ["torch.ones(3)", "-torch.ones(3)"], scenarios=_COMPILED)


def test_a_static_part_with_effects_is_asked_once() -> None:
    source = model("if self.ask() and (x < 0).any():\n    raise ValueError('negative')")
    after, _ = fixed(source)
    assert "if self.ask():" in after
    behaves(source, after, ["torch.ones(3)"], scenarios=_COMPILED)
    assert not list(compiled_differences(after, ["torch.ones(3)"], scenarios=_COMPILED, strict=True))


def test_an_annotation_is_no_proof_of_a_tensor() -> None:
    source = model("if x[-1] == 3:\n    raise ValueError('three')").replace("return x * 2", "return torch.ones(x[0])")
    after, _ = fixed(source)
    assert "isinstance(x, torch.Tensor)" in after
    behaves(source, after, ["(torch.Size([2, 4]),)"], scenarios=_COMPILED)
    compiles(after, ["(torch.Size([2, 4]),)"], scenarios=_COMPILED)


def test_each_side_of_or_is_asked_for() -> None:
    after, _ = fixed(model("if (x < 0).any() or (x > 5).any():\n    raise ValueError('a')"))
    assert after.count("isinstance(x, torch.Tensor)") == 1


def test_what_was_given_to_torch_is_a_tensor() -> None:
    after, _ = fixed(model("y = torch.relu(x)\nif (y > 3).any():\n    raise ValueError('large')"))
    assert "isinstance" not in after
    assert "torch._assert_async(" in after


def test_a_comparison_is_bool_whatever_is_compared() -> None:
    after, _ = fixed(model("assert torch.all(given >= 0).item(), 'negative'"))
    assert "uint8" not in after
    assert 'torch._assert_async(torch.all(given >= 0), "negative")' in after


@pytest.mark.parametrize("test", ["x.any()", "not x.all()", "torch.any(x)", "bool(x.any())"])
def test_any_of_bytes_is_made_bool_or_left_alone(test: str) -> None:
    source = model(f"if {test}:\n    raise ValueError('some')")
    after, _ = fixed(source)
    assert after != source
    inputs = ["torch.tensor([1, 0], dtype=torch.uint8)", "torch.tensor([1, 1], dtype=torch.uint8)"]
    assert '!= 0, "some"' in after or '== 0, "some"' in after
    for given in [*inputs, "torch.tensor([True, False])", "torch.tensor([0.0])"]:
        assert not list(compiled_differences(after, [given], scenarios=_COMPILED))


@pytest.mark.parametrize(
    "manager", ["contextlib.suppress(ValueError)", "Catching()", "catching()", "self.managers[0]", "given"]
)
def test_a_context_manager_may_catch_what_a_guard_raises(manager: str) -> None:
    body = f"with {manager}:\n    if (x < 0).any():\n        raise ValueError('negative')\n    x = x + 1"
    declined(model(body), because=f"`with {manager}`, which may catch")


@pytest.mark.parametrize("manager", ["torch.no_grad()", "Quiet()", "quiet()", "contextlib.nullcontext()"])
def test_other_context_managers_do_not_matter(manager: str) -> None:
    source = model(f"with {manager}:\n    if (x < 0).any():\n        raise ValueError('negative')")
    assert "torch._assert_async" in fixed(source)[0]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError(LIMIT)", "LIMIT"),
        ("message = 'low'\nif (x < 0).any():\n    raise ValueError(message)", "message"),
        ("message = f'low: {x.min()}'\nif (x < 0).any():\n    raise ValueError(message)", '"low: ..."'),
        ("raise ValueError(3, 'low')", '"low"'),
        ("raise ValueError('low ' + given)", '"low ..."'),
        ("raise ValueError('%s is low' % given)", '"... is low"'),
        ("raise NotImplementedError", '"NotImplementedError"'),
        ("raise ValueError()", '"ValueError"'),
    ],
)
def test_a_message_is_what_the_exception_says(body: str, said: str) -> None:
    source = model(body if "if" in body else f"if (x < 0).any():\n    {body}")
    after, _ = fixed(source)
    assert f"torch._assert_async(~(x < 0).any(), {said})" in after
    found = list(compiled_differences(after, ["-torch.ones(3)", "torch.ones(3)"], scenarios=_COMPILED))
    assert not found


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError(given)",
        "raise ValueError(self.text)",
        "raise ValueError(NAMED['a'])",
        "raise given",
        "message = 'low'\nmessage += 'er'\nif (x < 0).any():\n    raise ValueError(message)",
        "if flag:\n    message = 'low'\nif (x < 0).any():\n    raise ValueError(message)",
    ],
)
def test_a_message_of_elsewhere_is_not_made_up(body: str) -> None:
    source = model(body if "if" in body else f"if (x < 0).any():\n    {body}")
    declined(source, because="computed elsewhere")


def test_what_was_raised_before_is_not_raised_by_a_check() -> None:
    declined(model("if (x < 0).any():\n    raise"), because="re-raises an exception")


def test_an_assertion_says_what_it_said() -> None:
    source = model("assert (x > 0).all(), given")
    declined(source, because="`given` is computed elsewhere")
    assert '"at least ..."' in fixed(model("assert (x > 0).all(), f'at least {given}'"))[0]


def test_a_long_check_below_another_if_is_broken_where_it_is_too_long() -> None:
    source = model("if (x < 0).any() and self.check:\n    raise ValueError('" + "too small " * 12 + "')")
    after, _ = fixed(source)
    assert max(map(len, after.splitlines())) <= max(map(len, source.splitlines()))
    transformed(source, after)


@pytest.mark.parametrize(
    ("test", "written"),
    [
        ("(x < 0).any()", "and (x < 0).any():"),
        ("self.check and (x < 0).any()", "and self.check and (x < 0).any():"),
        ("(self.check and (x < 0).any())", "and (self.check and (x < 0).any()):"),
        ("(x < 0).any() or (x > 9).any()", "and ((x < 0).any() or (x > 9).any()):"),
    ],
)
def test_a_guard_may_be_skipped_in_compiled_code(test: str, written: str) -> None:
    after, _ = fixed(model(f"if {test}:\n    raise ValueError('negative')"), guards="skip")
    assert f"        if not torch.compiler.is_compiling() {written}\n" in after


@pytest.mark.parametrize(
    ("test", "because"),
    [
        ("(x < 0).any() and given.item() > 3", "`given.item()` cannot be asked while tracing"),
        ("given.tolist()[0] > 3 and (x < 0).any()", "`given.tolist()` in its test breaks the graph too"),
    ],
)
def test_a_guard_with_another_break_in_its_test_is_left_alone(test: str, because: str) -> None:
    source = model(f"if {test}:\n    raise ValueError('negative')")
    declined(source, because=because)


@pytest.mark.parametrize("test", ["int(x.max()) > 100", "int(x.max()) == 0", "100 < int(x.max())"])
def test_an_integer_of_a_float_is_not_the_float(test: str) -> None:
    source = model(f"if {test}:\n    raise ValueError('a')")
    after, _ = fixed(source)
    assert "not x.is_floating_point()" in after
    for given in ["torch.tensor([100.5])", "torch.tensor([0.5])", "torch.tensor([101])", "torch.tensor([0])"]:
        assert not list(compiled_differences(after, [given], scenarios=_COMPILED))


def test_an_integer_of_something_unknown_is_left_alone() -> None:
    declined(model("if int((x * 2).max()) > 100:\n    raise ValueError('a')"), because="truncates to an integer")


def test_a_parameter_without_a_value_is_none_whatever_its_annotation_says() -> None:
    source = model("if flag is None:\n    if (x < 0).any():\n        raise ValueError('negative')")
    after, _ = fixed(source.replace("flag: bool = True", "flag: torch.Tensor = None"))
    assert "torch._assert_async(" in after


def test_a_number_that_is_a_tensor_on_one_path_alone_is_asked_for() -> None:
    body = "count = (x == 3).sum().item()\nif count != 2:\n    raise ValueError('two')"
    source = model(body).replace("return x * 2", "return torch.ones(2)")
    after, _ = fixed(source)
    assert "isinstance(count, torch.Tensor)" in after
    behaves(source, after, ["torch.tensor([3, 3, 4])", "torch.ones(2)"], scenarios=_COMPILED)
    compiles(after, ["torch.tensor([3, 3, 4])"], scenarios=_COMPILED)


_DOMAIN = """
import torch
from torch import nn


def check(values, low, high, inner):
    if torch.min(values) < low or torch.max(values) > high:
        raise ValueError("outside of the domain")
    assert low <= values.max() <= high, f"not below {high}"
    assert low <= values[0] and values[0] <= high, f"not below {high}"
    if inner is not None and (inner[:, 1:] < inner[:, :1]).any():
        raise ValueError(f"not in order: {inner}")


class Model(nn.Module):
    def forward(self, x: torch.Tensor, high=2.0, inner=None):
        check(x, -1.0, high, inner)
        return x * 2
"""


def test_what_a_failed_check_skips_may_have_any_shape_and_type() -> None:
    after, _ = fixed(_DOMAIN)
    assert after.count("torch._assert_async(") == 4
    several = "torch.tensor([2.0, 3.0])"
    compiles(after, ["torch.ones(3)", "torch.full((3,), 3.0)", "torch.tensor([0.0, 1.0, 5.0])"])
    compiles(after, [f"torch.ones(3), {several}", f"torch.full((3,), -2.0), {several}"])
    compiles(after, ["torch.ones(3), torch.tensor([2.0]), torch.tensor([[0.0, 1.0]])"])
    compiles(after, ["torch.ones(3), torch.tensor(2.0), torch.tensor([[1.0, 0.0]])"])


def test_a_check_of_whole_numbers_is_moved_as_one_of_floats() -> None:
    test = "5 <= y.max() or y.min() < 0"
    source = _MODEL.replace("{body}", f'        y = flag\n        if {test}:\n            raise ValueError("bad")')
    after, _ = fixed(source.replace("flag: bool", "flag"))
    assert "numel()" not in after
    compiles(after, ["torch.ones(3), torch.tensor([2, 3])", "torch.ones(3), torch.tensor([2, 3], dtype=torch.uint8)"])


@pytest.mark.parametrize(
    "test", ["x.sum() > 0 and x > low", "not (x.sum() > 0 or x > low)", "x.sum() > 0 or x.mean() > 0 and x > low"]
)
def test_what_passes_where_it_is_skipped_must_hold_one_element(test: str) -> None:
    source = _MODEL.replace("{body}", f'        low = flag\n        if {test}:\n            raise ValueError("bad")')
    declined(source.replace("flag: bool", "flag"), because="may have more than one element")


def test_several_values_as_a_message_are_shown_as_far_as_they_are_constant() -> None:
    source = model('assert (x < 3).all(), (x.shape, "is large", x.max())')
    after, _ = fixed(source)
    assert "\"(..., 'is large', ...)\"" in after
    other, _ = fixed(model("assert (x < 3).all(), (x.shape, x.max())"))
    assert '"assertion failed"' in other
    behaves(source, after, ["torch.ones(3)", "torch.full((3,), 4.0)"])
