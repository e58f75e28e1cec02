"""Selects stand beside the author's branch, under conditions for whatever the source does not prove."""

from __future__ import annotations

from textwrap import dedent

import pytest

from graphmend_codemod.core.findings import Safety
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiled_differences, compiles
from tests.tools.fixes import checked, declined, fixed, transformed
from tests.tools.observe import Scenario

pytest.importorskip("torch")

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.scale = 2.0

    def forward(self, {arguments}):
        {statements}
        return x
"""
TRAINING = (Scenario(training=True, gradients="inner"),)


def model(statements: str, arguments: str = "x: torch.Tensor") -> str:
    return MODEL.format(arguments=arguments, statements=dedent(statements).strip().replace("\n", "\n        "))


def header(statements: str, arguments: str = "x: torch.Tensor") -> str:
    """The conditions of the compile path that is written, on one line."""
    after, _ = fixed(model(statements, arguments))
    lines = after.partition("torch.compiler.is_compiling()")[2].partition(":\n")[0]
    assert lines or "is_compiling():" in after, f"nothing was fixed:\n{after}"
    return " ".join(lines.split())


def test_eager_mode_keeps_the_branch_word_for_word() -> None:
    transformed(
        model("if torch.isnan(x).any():  # a comment\n    x = x.clone()"),
        model(
            """
            if torch.compiler.is_compiling() and isinstance(x, torch.Tensor):
                x = torch.where(torch.isnan(x).any(), x.clone(), x)
            elif torch.isnan(x).any():  # a comment
                x = x.clone()
            """
        ).replace(" and isinstance(x, torch.Tensor)", ""),
    )


@pytest.mark.parametrize(
    ("statements", "asked"),
    [
        ("if x.sum() > 0:\n    x = x * 2.0", "isinstance(x, torch.Tensor)"),
        ("x = self.norm(x)\nif x.sum() > 0:\n    x = x * 2.0", "isinstance(x, torch.Tensor)"),
        ("x = self.norm(x)\nif x.sum() > 0:\n    x = x * 2.0", "x.is_floating_point()"),
        ("y = self.norm(x)\nif (x > 1).any():\n    x = y", "y.shape == x.shape"),
        ("y = self.norm(x)\nif (x > 1).any():\n    x = y", "y.dtype == x.dtype"),
        ("if (x > 1).any():\n    x = x * self.scale", "isinstance(self.scale, (int, float))"),
        ("if torch.equal(x, y):\n    x = x * 2.0", "x.shape == y.shape"),
    ],
)
def test_what_the_source_only_hints_at_is_asked_for(statements: str, asked: str) -> None:
    assert asked in header(statements, "x: torch.Tensor, y: torch.Tensor = None")


@pytest.mark.parametrize(
    ("statements", "left_out"),
    [
        ("x = torch.relu(x)\nif x.sum() > 0:\n    x = x.clamp(max=2.0)", "isinstance"),
        ("if x.dtype == torch.float16 and x.sum() > 0:\n    x = x * 2.0", "isinstance"),
        ("if x.dtype == torch.float16 and x.sum() > 0:\n    x = x * 2.0", "is_floating_point"),
        ("if torch.isnan(x).any():\n    x = x.clone()", "isinstance"),
        ("if x.sum() > 0:\n    x = x.sqrt()", "is_grad_enabled"),
    ],
)
def test_what_is_proven_is_not_asked_for(statements: str, left_out: str) -> None:
    assert left_out not in header(statements)


@pytest.mark.parametrize(
    "value",
    ["torch.ones(2, 4)", "-torch.ones(2, 4)", "torch.ones(2, 4, dtype=torch.int64)", "torch.ones(2, 4).numpy()", "3.0"],
)
def test_another_type_than_the_annotation_says_is_what_it_was(value: str) -> None:
    before = model("if abs(x) > 0.5:\n    x = x * 2.0" if value == "3.0" else "if (x > 0.5).all():\n    x = x * 2.0")
    after, result = fixed(before)
    assert result.fixes
    behaves(before, after, [value], scenarios=(Scenario(False, "off"),))
    assert list(compiled_differences(after, [value])) == []


@pytest.mark.parametrize(
    "statements",
    [
        "if x.sum() > 0:\n    x = x.sqrt()\nelse:\n    x = x * 1.0",
        "if (x > 0).all():\n    x = x.sqrt()\nelif x.sum() > -100:\n    x = x.abs().sqrt()\nelse:\n    x = x * 2.0",
        "return x.sqrt() if x.min() > 0 else x * 3.0",
        "if x.sum() > 0:\n    return x.sqrt()",
    ],
)
@pytest.mark.parametrize(
    "value", ["torch.tensor([0.0, -1.0, 2.0])", "torch.tensor([0.0, -1.0, -2.0])", "torch.ones(3)"]
)
def test_the_gradient_of_the_skipped_branch_stays_finite(statements: str, value: str) -> None:
    after, result = fixed(model(statements))
    assert result.fixes
    assert list(compiled_differences(after, [value], scenarios=TRAINING, strict=True)) == []


@pytest.mark.parametrize(
    "write",
    [
        "x.add_(1)",
        "x += 1",
        "x[0] = 5.0",
        "y = x.t()\ny.mul_(2)",
        "torch.add(x, 1, out=x)",
        "nn.functional.relu(x, inplace=True)",
    ],
)
def test_a_tensor_that_is_written_later_is_not_copied(write: str) -> None:
    declined(model(f"if x.sum() > 0:\n    x = x * 2.0\n{write}"), "is written in place later")


def test_what_was_made_here_alone_may_be_written_later() -> None:
    after, _ = fixed(model("x = torch.relu(x)\nif x.sum() > 3:\n    x = x.clamp(max=2.0)\nx += 1"))
    compiles(after, ["torch.ones(2, 4)"])


@pytest.mark.parametrize(
    ("arm", "reason"),
    [
        ("x = x[len(x)].sum() * x", "may be out of range where eager mode skips it"),
        ("x = x * y", "may have a different shape in each branch"),
    ],
)
def test_a_value_that_may_raise_or_write_is_not_computed_where_eager_mode_skips_it(arm: str, reason: str) -> None:
    declined(model(f"if x.sum() > 0:\n    {arm}", "x: torch.Tensor, y: torch.Tensor = None"), reason)


@pytest.mark.parametrize("value", ["torch.ones(1)", "torch.ones(1, 1)", "-torch.ones(1)", "torch.tensor(0.0)"])
def test_a_test_of_one_element_of_any_shape_is_selected_by(value: str) -> None:
    after, _ = fixed(model("if x > 0:\n    x = x * 2.0\nelse:\n    x = x - 1.0"))
    assert ".reshape(())" in after
    compiles(after, [value])


def test_a_test_of_several_elements_still_raises() -> None:
    after, _ = fixed(model("if x > 0:\n    x = x * 2.0\nelse:\n    x = x - 1.0"))
    # Compared are results and exceptions: both modes raise before anything is captured.
    assert all("nothing was captured" in each for each in compiled_differences(after, ["torch.ones(2)"]))


def test_a_negated_comparison_keeps_its_meaning_beside_another() -> None:
    source = model("if not (x.sum() == 3.0) and x.mean() > 0.5:\n    x = x * 2.0")
    after, _ = fixed(source)
    compiles(after, ["torch.ones(3)", "torch.ones(4)", "-torch.ones(4)"])


@pytest.mark.parametrize("test", ["torch.equal(x, y)", "x.equal(y)", "torch.allclose(x, y)", "x.allclose(y, rtol=0.1)"])
def test_comparisons_of_whole_tensors_are_tests_on_tensors(test: str) -> None:
    source = model(f"if {test}:\n    x = x * 2.0", "x: torch.Tensor, y: torch.Tensor")
    after, _ = fixed(source)
    compiles(after, ["(torch.ones(3), torch.ones(3))", "(torch.ones(3), torch.zeros(3))"])


@pytest.mark.parametrize("test", ["torch.is_nonzero(y)", "y.is_nonzero()", "not y.is_nonzero()"])
def test_is_nonzero_is_a_test_on_a_tensor(test: str) -> None:
    after, _ = fixed(model(f"if {test}:\n    x = x * 2.0", "x: torch.Tensor, y: torch.Tensor"))
    compiles(after, ["(torch.ones(3), torch.tensor(2))", "(torch.ones(3), torch.tensor([0.0]))"])


@pytest.mark.parametrize(
    ("write", "values"),
    [
        ("x = x.masked_fill(m, 0.0)", ["(torch.ones(4), torch.zeros(4, dtype=torch.uint8))"]),
        ("x = x.masked_fill(m, 0.0)", ["(torch.ones(4), torch.zeros(2, 4, dtype=torch.bool))"]),
        ("x.masked_fill_(m, 0.5)", ["(torch.ones(4, dtype=torch.int64), torch.zeros(4, dtype=torch.bool))"]),
        ("x[m] = 0.0", ["(torch.ones(4, 3), torch.zeros(4, dtype=torch.bool))"]),
        ("x[m] = 0.0", ["(torch.ones(4), torch.zeros(3, dtype=torch.bool))"]),
    ],
)
def test_a_write_under_a_mask_that_does_not_fit_stays_behind_its_test(write: str, values: list[str]) -> None:
    source = model(f"if m.any():\n    {write}", "x: torch.Tensor, m: torch.Tensor")
    after, result = fixed(source)
    assert result.fixes
    behaves(source, after, values, scenarios=(Scenario(False, "off"),))
    assert list(compiled_differences(after, values)) == []


def test_one_path_is_an_unsafe_fix_that_a_setting_asks_for() -> None:
    source = model("x = torch.relu(x)\nif x.dtype == torch.float32 and x.sum() > 3:\n    x = x.clamp(max=2.0)")
    after, _ = fixed(source, one_path=True)
    assert "is_compiling" not in after
    assert "torch.where(x.sum() > 3, x.clamp(max=2.0), x)" in after
    (finding,) = checked(source, one_path=True).findings
    assert finding.safety is Safety.UNSAFE
    behaves(source, after, ["torch.ones(2, 4)", "-torch.ones(2, 4)"])


def test_one_path_keeps_the_comments_of_the_branch() -> None:
    branch = "if x.sum() > 3:  # too much\n    # of it\n    x = x.clamp(max=2.0)  # now"
    after, _ = fixed(model(f"x = torch.relu(x.float())\n{branch}"), one_path=True)
    lines = after[after.index("# too much") :].splitlines()
    assert [each.strip() for each in lines[:3]] == [
        "# too much",
        "# of it",
        "x = torch.where(x.sum() > 3, x.clamp(max=2.0), x)  # now",
    ]


LONGEST = f"# {'-' * 110}"  # so the file has lines as long as this one


@pytest.mark.parametrize("around", ["1 + ({})", "torch.sin({})"])
def test_a_choice_inside_of_an_expression_has_both_paths_on_its_line(around: str) -> None:
    kept = around.format("x if x.sum() > 0 else -x")
    source = model(f"x = torch.relu(x.float())\n{LONGEST}\nx = {kept}", "x")
    after, _ = fixed(source)
    assert "torch.where(x.sum() > 0, x, -x) if torch.compiler.is_compiling() else (x if x.sum() > 0 else -x)" in after
    behaves(source, after, ["torch.ones(2, 4)", "-torch.ones(2, 4)"])
    compiles(after, ["torch.ones(2, 4)", "-torch.ones(2, 4)"])


def test_one_path_is_not_taken_where_eager_mode_could_tell() -> None:
    after, _ = fixed(model("if x.sum() > 3:\n    x = x.clamp(max=2.0)"), one_path=True)
    assert "is_compiling" in after
