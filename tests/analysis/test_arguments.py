"""The binder of arguments to parameters against Python's own."""

from __future__ import annotations

import ast
import inspect
from itertools import product

import pytest

from graphmend_codemod.analysis.arguments import Arguments, bound
from graphmend_codemod.analysis.callgraph import ModuleCalls

SIGNATURES = (
    "",
    "a",
    "a, b",
    "a, /, b",
    "a, *rest",
    "a, b=0, *rest",
    "a, *, b",
    "a, *, b=0, **words",
    "*rest, **words",
)
ARGUMENTS = ("", "1", "1, 2", "1, 2, 3", "a=1", "1, b=2", "b=1, a=2", "1, c=2", "1, b=2, c=3")
STARS = (
    "*(1,)",
    "*(1, 2)",
    "1, *(2, 3)",
    "**{'a': 1}",
    "1, **{'b': 2}",
    "*(1,), b=2",
    "1, *(2,), c=3",
    "*(), **{'c': 4}",
)


def function_of(text: str) -> ast.FunctionDef:
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def call_of(text: str) -> ast.Call:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    return call


def by_python(signature: str, given: str) -> dict[str, object] | None:
    """What Python gives each parameter; None where the call raises."""
    names: dict[str, object] = {}
    exec(f"def f({signature}): pass", names)
    try:
        return dict(eval(f"bind({given})", {"bind": inspect.signature(names["f"]).bind}).arguments)  # type: ignore[arg-type]
    except TypeError:
        return None


def parts(value: object) -> set[object]:
    values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
    return set(values)


@pytest.mark.parametrize(("signature", "given"), list(product(SIGNATURES, ARGUMENTS)))
def test_plain_arguments_are_bound_as_python_binds_them(signature: str, given: str) -> None:
    said = by_python(signature, given)
    found = bound(function_of(f"def f({signature}): pass"), call_of(f"f({given})"))
    if said is not None:
        plain = {name: value for name, value in said.items() if name not in ("rest", "words")}
        assert {name: ast.literal_eval(each) for name, each in found.plain.items()} == plain
        held = {(name, ast.literal_eval(each)) for name, each in found.pairs()}
        assert held == {(name, part) for name, value in said.items() for part in parts(value)}


@pytest.mark.parametrize(("signature", "given"), list(product(SIGNATURES, STARS)))
def test_no_parameter_is_missed_that_a_star_may_fill(signature: str, given: str) -> None:
    said = by_python(signature, given)
    found = bound(function_of(f"def f({signature}): pass"), call_of(f"f({given})"))
    for name, value in (said or {}).items():
        held = [ast.literal_eval(each) for parameter, each in found.pairs() if parameter == name]
        assert parts(value) <= {part for each in held for part in parts(each)}
        assert name not in found.plain or ast.literal_eval(found.plain[name]) == value


def test_argument_that_no_parameter_takes_may_be_in_any() -> None:
    """The call raises, or a decorator made another function of it."""
    found = bound(function_of("def f(a): pass"), call_of("f(x, y, z=w)"))
    assert {ast.unparse(each): names for each, names in found.others} == {"y": {"a"}, "w": {"a"}}


MODULE = """
class Model:
    def plain(self, x, y): ...
    @staticmethod
    def static(x, y): ...
    @classmethod
    def of_class(cls, x, y): ...
"""


@pytest.mark.parametrize(
    ("method", "call", "names"),
    [
        ("plain", "self.plain(1, 2)", {"x": 1, "y": 2}),
        ("plain", "Model.plain(0, 1, 2)", {"self": 0, "x": 1, "y": 2}),
        ("static", "self.static(1, 2)", {"x": 1, "y": 2}),
        ("static", "Model.static(1, 2)", {"x": 1, "y": 2}),
        ("of_class", "Model.of_class(1, y=2)", {"x": 1, "y": 2}),
    ],
)
def test_instance_is_given_only_where_the_class_is_spelled(method: str, call: str, names: dict[str, int]) -> None:
    calls = ModuleCalls(ast.parse(MODULE))
    key = calls.method("Model", method)
    assert key is not None
    found: Arguments = calls.definitions[key].arguments(call_of(call))
    assert {name: ast.literal_eval(each) for name, each in found.plain.items()} == names
