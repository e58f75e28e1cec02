"""What short functions without an annotation give back, by their text."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from graphmend_codemod.project.summary.results import result


def _noted(source: str) -> str | None:
    node = ast.parse(dedent(source)).body[0]
    assert isinstance(node, ast.FunctionDef)
    return result(node)


@pytest.mark.parametrize(
    ("source", "note"),
    [
        ("def f(labels): return labels >= 0", "gives mask:labels"),
        ("def f(a, b): return (a > 0) & ~(b == 3)", "gives mask:a,b"),
        ("def f(a): return (a > 0).view(-1).to(a.device)", "gives mask:a"),
        ("def f(a): return (a > 0).to(torch.float32)", "gives tensor:a"),
        ("def f(lengths, n):\n    steps = torch.arange(n)\n    return steps[None] < lengths[:, None]", "gives mask:"),
        ("def f(x):\n    if x.dim() == 2:\n        return x.isnan()\n    return torch.isinf(x)", "gives mask:x"),
        ("def f(x): return (x > 0).any()", "gives tensor:x"),
        ("def f(x, n): return x * n", "gives tensor:x"),
        ("def f(x): return 1 / torch.sqrt(x)", "gives tensor:"),
        ("def f(x, y): return x.max(1)", None),
        ("def f(x): return torch.where(x > 0)", None),
        ("def f(x): return x.chunk(2)", None),
        ("def f(x): return x is None", None),
        ("def f(x): return not x", None),
        ("def f(x): return 0 < x < 2", None),
        ("def f(x): return len(x) > 2", None),
        ("def f(x): return x.size(0) > 2", None),
        ("def f(x): return x if x.training else 3", None),
        ("def f(x):\n    if x.any():\n        return 3\n    return x > 2", None),
        ("def f(x):\n    for y in x:\n        pass\n    return y > 2", None),
        ("def f(x):\n    x = 3\n    return x > 2", None),
        ("def f(x):\n    if x.any():\n        return x > 2", None),
        ("@cached\ndef f(x): return x > 2", None),
        ("def f(x): return g(x) > 2", None),
        ("def f(x): return torch.eq(x, 2, out=x)", None),
        ("def f(x):\n    def g(y):\n        return 3\n    return x > 2", "gives mask:x"),
    ],
)
def test_what_a_function_gives_back(source: str, note: str | None) -> None:
    assert _noted(source) == note
