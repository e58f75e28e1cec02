"""The compiled check: one graph passes, a break, a difference and a lost exception are seen."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiled_differences, compiles
from tests.tools.observe import Scenario
from tests.tools.test_behaviour import INPUTS, model


def test_one_graph_with_the_results_of_eager_mode_passes() -> None:
    compiles(
        model("self.count += 1\nreturn torch.where(x.sum() > 0, self.linear(x), x)"),
        INPUTS,
        scenarios=[Scenario(), Scenario(True, "leaves")],
    )


def test_a_graph_break_is_seen() -> None:
    with pytest.raises(AssertionError, match="graph break"):
        compiles(model("if x.sum() > 0:\n    x = x + 1\nreturn x + 1"), INPUTS)


def test_a_graph_break_may_be_allowed() -> None:
    assert not list(compiled_differences(model("if x.sum() > 0:\n    x = x + 1\nreturn x + 1"), INPUTS))


def test_another_result_is_seen() -> None:
    body = "if torch.compiler.is_compiling():\n    return x + 1\nreturn x + 2"
    assert any("outcome" in line for line in compiled_differences(model(body), INPUTS, strict=True))


def test_a_lost_exception_is_seen() -> None:
    body = "if not torch.compiler.is_compiling() and x.sum() > 0:\n    raise ValueError('positive')\nreturn x + 1"
    assert any("only in eager" in line for line in compiled_differences(model(body), INPUTS, strict=True))


def test_an_exception_of_another_type_passes() -> None:
    body = (
        "if torch.compiler.is_compiling():\n    torch._assert_async(~(x.sum() > 0), 'positive')\n"
        "elif x.sum() > 0:\n    raise ValueError('positive')\nreturn x + 1"
    )
    assert not list(compiled_differences(model(body), INPUTS, strict=True))


_WRITES = "    x[0] = 0\n    x[1] = 0\nelse:\n    x[:2] = 0\ny = x * x\nx.mul_({factor})\nreturn y"


def test_backward_passes_that_raise_with_another_message_are_alike() -> None:
    body = "x = x * 1\nif torch.compiler.is_compiling():\n" + _WRITES.format(factor=2)
    assert not list(compiled_differences(model(body), INPUTS, scenarios=[Scenario(True, "leaves")]))


def test_a_backward_pass_that_only_compiled_code_raises_is_seen() -> None:
    body = "y = x * x\nif torch.compiler.is_compiling():\n    x.mul_(2)\nelse:\n    x = x * 2\nreturn y + x"
    scenario = Scenario(True, "inner")
    assert any("gradients" in line for line in compiled_differences(model(body), INPUTS, scenarios=[scenario]))


def test_other_state_is_seen() -> None:
    body = "if not torch.compiler.is_compiling():\n    self.count += 1\nreturn x + 1"
    assert any("state" in line for line in compiled_differences(model(body), INPUTS, strict=True))
