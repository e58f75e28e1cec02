"""One module's summary: what it keeps, what it leaves out, and that JSON loses nothing of it."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from graphmend_codemod.project.summary import records as summary_module
from graphmend_codemod.project.summary.records import Value, from_json
from graphmend_codemod.project.summary.scan import summarise
from tests.project.tools import function_in, summary_of


def bindings(source: str) -> list[tuple[str, str, str, bool]]:
    return [(each.name, each.kind, each.target, each.conditional) for each in summary_of(source).bindings]


def attribute(source: str, name: str) -> list[Value]:
    return [each.value for item in summary_of(source).classes for each in item.attributes if each.name == name]


def test_imports_are_kept_as_they_are_spelled() -> None:
    found = bindings("""
        import torch.nn.functional
        import numpy as np
        from ..utils import logging as log
        from . import sibling
        """)
    assert found == [
        ("torch", "import", "torch", False),
        ("np", "import", "numpy", False),
        ("log", "import", "..utils:logging", False),
        ("sibling", "import", ".:sibling", False),
    ]


def test_imports_under_conditions_and_in_functions_are_told_apart() -> None:
    source = """
        try:
            import a
        except ImportError:
            a = None
        if TYPE_CHECKING:
            from b import B
        def f():
            from .c import C
        """
    assert bindings(source) == [
        ("a", "import", "a", True),
        ("a", "value", "", True),
        ("B", "import", "b:B", True),
        ("f", "function", "f", False),
    ]
    assert function_in(source, "f").imports == (("C", ".c:C"),)


def test_exports_are_known_when_they_are_a_plain_list() -> None:
    assert summary_of('__all__ = ["a", "b"]').exports == ("a", "b")
    assert summary_of("__all__ = names()").exports is None
    assert summary_of('__all__ = ["a"]\n__all__ += other').exports is None


def test_a_function_keeps_what_leads_somewhere_and_nothing_else() -> None:
    source = """
        import torch
        from .ops import mix
        class A:
            def forward(self, x):
                y = torch.relu(x)
                print(len(y))
                self.helper(mix(y))
                return super().forward(self.scale)
        """
    assert function_in(source, "A.forward").refs == ("mix()", "self.helper()", "self.scale", "super().forward()")


def test_the_first_parameter_counts_as_self_whatever_its_name() -> None:
    source = """
        class A:
            def forward(this, x):
                return this.helper(x)
            @staticmethod
            def free(x):
                return x.helper()
        """
    assert function_in(source, "A.forward").refs == ("self.helper()",)
    assert "self.helper()" not in function_in(source, "A.free").refs


def test_functions_passed_by_name_are_kept() -> None:
    source = """
        class A:
            def forward(self, x):
                return checkpoint(self._inner, x)
        def checkpoint(f, x): ...
        """
    assert set(function_in(source, "A.forward").refs) == {"checkpoint()", "self._inner"}


def test_local_names_come_with_what_is_known_of_them() -> None:
    source = """
        def f(cache: Optional[Cache], other, flag: bool):
            made = Thing(1)
            alias = other
            cache.update(made.run(), alias.go())
            if isinstance(other, Box):
                other.open()
        """
    function = function_in(source, "f")
    assert set(function.types) == {
        ("cache", ":Optional[Cache]"), ("made", "Thing()"), ("alias", "other"), ("other", ":Box"),
    }  # fmt: skip


def test_nested_functions_know_where_they_stand() -> None:
    source = """
        def outer(f):
            def inner(self):
                return f(self)
            return inner
        """
    inner = function_in(source, "outer.inner")
    assert (inner.outer, inner.owner, inner.parameters) == ("outer", "", ("self",))
    assert function_in(source, "outer").returned == ("inner",)


def test_attributes_are_classified_by_how_they_are_assigned() -> None:
    source = """
        class A(nn.Module):
            scale = 2.0
            def __init__(self, config, size, mask: Tensor):
                self.size = size
                self.mask = mask
                self.hidden = config.text.hidden_size
                self.drop = getattr(config, "drop", 0.0)
                self.linear = nn.Linear(size, size)
                self.register_buffer("table", torch.zeros(3))
                self.step = partial(run, 1)
                self.total = size * 2
            def forward(self, x): ...
        """
    kinds = {each.name: each.value.kind for each in summary_of(source).classes[0].attributes}
    assert kinds == {
        "scale": "constant", "size": "argument", "mask": "argument", "hidden": "config", "drop": "config",
        "linear": "call", "table": "buffer", "step": "call", "total": "other",
    }  # fmt: skip
    assert attribute(source, "mask") == [Value("argument", "Tensor", "mask")]
    assert attribute(source, "linear") == [Value("call", "nn.Linear", "nn.Linear(size, size)")]
    assert attribute(source, "step")[0].wraps == "run"


def test_an_argument_that_is_changed_first_is_no_argument() -> None:
    source = """
        class A:
            def __init__(self, size):
                size = size or 3
                self.size = size
        """
    assert attribute(source, "size")[0].kind == "other"


def test_texts_that_are_not_ascii_are_cut_at_the_right_bytes() -> None:
    source = """
        class A:
            def __init__(self):
                self.name = "ä"; self.other = f("öö")
        """
    assert [each.text for name in ("name", "other") for each in attribute(source, name)] == ['"ä"', 'f("öö")']


@pytest.mark.parametrize(
    "body",
    [
        "if x is None: pass",
        "if 'key' in x: pass",
        "if isinstance(x, tuple): pass",
        "if x.shape[0] > 1 and x.dim() == 3: pass",
        "if self.training: pass",
        "if flag: pass",
        "if mode == 'sum': pass",
        "assert x.shape == y.shape",
        "if self.config.use_cache: pass",
        "if self.size > 3: pass",
        "if torch.is_grad_enabled(): pass",
        "n = x.shape[0]\n                if n > 3: pass",
        "for i in range(3):\n                    if i > 1: pass",
    ],
)
def test_tests_that_python_decides_are_no_candidates(body: str) -> None:
    source = f"""
        class A(nn.Module):
            def __init__(self, config):
                self.size = config.size // 2
            def forward(self, x, y, mode="sum", flag: bool = False):
                {body}
        """
    assert function_in(source, "A.forward").candidates == ()


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 0: pass",
        "if x: pass",
        "y = x > 0\n                if y: pass",
        "while x.any(): pass",
        "z = 1 if x.max() > 1 else 2",
        "assert x.all()",
        "z = [v for v in y if v > 0]",
        "if self.table: pass",
        "if (z := x.sum()) > 0: pass",
    ],
)
def test_tests_that_may_hold_a_tensor_are_candidates(body: str) -> None:
    source = f"""
        class A(nn.Module):
            def __init__(self):
                self.register_buffer("table", torch.zeros(1))
            def forward(self, x, y):
                {body}
        """
    assert function_in(source, "A.forward").candidates == ("test",)


@pytest.mark.parametrize(
    "call", ["logger.warning_once('a')", "warnings.warn('a')", "print(x)", "log.debug('a')", "self.logger.log(1, 'a')"]
)
def test_calls_that_log_are_candidates(call: str) -> None:
    assert function_in(f"def f(x):\n    {call}\n", "f").candidates == ("log",)


def test_mathematics_is_not_logging() -> None:
    assert function_in("def f(x):\n    return torch.log(x) + x.log()\n", "f").candidates == ()


def test_an_attribute_of_an_ancestor_in_the_same_module_is_known() -> None:
    source = """
        class A(nn.Module):
            def __init__(self, config):
                self.size = config.size
        class B(A):
            def forward(self, x):
                if self.size > 1: pass
                return x
        """
    assert function_in(source, "B.forward").candidates == ()


def test_deep_nesting_does_not_reach_pythons_recursion_limit() -> None:
    text = "def f(x):\n    return x" + ".a(1)" * 400 + "\n"
    assert summarise(ast.parse(text), text).functions


def test_names_that_a_function_changes_come_in_the_order_of_the_text() -> None:
    names = ["zeta", "alpha", "mu", "beta", "omega", "kappa"]
    found = summary_of(f"def f():\n    global {', '.join(names)}\n")
    assert [each.name for each in found.bindings if each.kind == "value"] == names


def test_json_loses_nothing() -> None:
    for module in (summary_module, ast):
        path = Path(str(module.__file__))
        text = path.read_text(encoding="utf-8")
        summary = summarise(ast.parse(text), text)
        assert from_json(json.loads(json.dumps(summary))) == summary


@pytest.mark.parametrize("data", [[], {}, None, 3, ["a"] * 9, [1, 2, 3, [[]], [], None, [], [], []]])
def test_data_of_another_shape_is_refused(data: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_json(data)  # type: ignore[arg-type]
