"""An edit that keeps the author's statements for eager mode is proven to do so, whatever the rule believes."""

from __future__ import annotations

import pytest

from graphmend_codemod.core.findings import Edit, EditForm, Helper
from graphmend_codemod.rewriting import apply
from tests.rewriting.tools import block, edit, from_text, made, refused, statement

TEXT = block("""
    import torch

    class Model:
        def forward(self, x):
            if x.sum() > 0:
                x = x * 2
            return x
""")
COMPILING = "torch.compiler.is_compiling()"


def beside(text: str, target: str, new: str, *helpers: Helper) -> Edit:
    """The edit that writes `new` in the place of the statement that begins with `target`, for safe fixes."""
    return edit(statement(from_text(text), target), new, form=EditForm.BESIDE, helpers=helpers)


@pytest.mark.parametrize(
    "new",
    [
        f"if {COMPILING}:\n    x = fast(x)\nelif x.sum() > 0:\n    x = x * 2",
        f"if {COMPILING} and x.dim() == 2:\n    x = fast(x)\nelse:\n    if x.sum() > 0:\n        x = x * 2",
        f"if {COMPILING} or x.sum() > 0:\n    x = x * 2",
        f"if not {COMPILING}:\n    if x.sum() > 0:\n        x = x * 2",
        f"if x.sum() > 0:\n    x = fast(x) if {COMPILING} else x * 2",
        f"if x.sum() > (0 if not {COMPILING} else fast):\n    x = x * 2",
        "twice = x.shape[0] * 2\nif x.sum() > 0:\n    x = x * 2",
    ],
)  # fmt: skip
def test_a_compile_path_beside_the_statement_is_made(new: str) -> None:
    assert made(from_text(TEXT), beside(TEXT, "if x.sum()", new))


@pytest.mark.parametrize(
    "new",
    [
        "x = torch.where(x.sum() > 0, x * 2, x)",
        f"if {COMPILING} or x.dim() == 2:\n    x = fast(x)\nelif x.sum() > 0:\n    x = x * 2",
        f"if not {COMPILING}:\n    x = fast(x)\nelif x.sum() > 0:\n    x = x * 2",
        f"if {COMPILING}:\n    x = fast(x)\nelif x.sum() > 0:\n    x = x * 3",
        f"if {COMPILING}:\n    x = fast(x)",
        f"if {COMPILING}:\n    pass\nelif x.sum() > 0:\n    x = x * 2\nx = x + 1",
        "if x.sum() > 0 and x.dim() == 2:\n    x = x * 2",
        "x = x\nif x.sum() > 0:\n    x = x * 2",
        "twice = self.twice\nif x.sum() > 0:\n    x = x * 2",
        f"if x.sum() > 0:\n    x = x * 2 if {COMPILING} else fast(x)",
    ],
)  # fmt: skip
def test_what_eager_mode_would_notice_is_refused(new: str) -> None:
    reason = refused(from_text(TEXT), beside(TEXT, "if x.sum()", new))
    assert reason == "eager mode would run different code"


def test_a_helper_may_be_added_but_not_take_a_name() -> None:
    new = f"if {COMPILING}:\n    x = helper(x)\nelif x.sum() > 0:\n    x = x * 2"
    helper = Helper("helper", "def helper(x):\n    return x")
    assert "def helper(x):" in made(from_text(TEXT), beside(TEXT, "if x.sum()", new, helper))


def test_a_parameter_with_a_default_may_be_added_where_its_name_is_new() -> None:
    method = "def forward(self, x, {}=None):\n    if x.sum() > 0:\n        x = x * 2\n    return x"
    assert made(from_text(TEXT), beside(TEXT, "def forward", method.format("end")))
    reason = refused(from_text(TEXT), beside(TEXT, "def forward", method.format("torch")))
    assert "eager mode" in reason


def test_an_edit_that_may_change_eager_mode_costs_another_one_nothing() -> None:
    text = TEXT + block("""
        def other(x):
            return bool(x)
    """)
    source = from_text(text)
    changing = edit(statement(source, "return bool"), "return x")
    wrong = beside(text, "if x.sum()", "x = torch.where(x.sum() > 0, x * 2, x)")
    applied = apply(source, [changing, wrong])
    assert applied.applied == (0,)
    assert "return x\n" in applied.text
    assert "torch.where" not in applied.text


MOVED = block("""
    import torch

    class Model:
        def forward(self, x, rows):
            found = x.clone()
            for row in rows:
                found[row] += 1
            return found
""")
LOOP = "def fill({parameters}):\n{path}    for row in rows:\n        found[row] += {number}{rest}"
PATH = "    if torch.compiler.is_dynamo_compiling():\n        return operator(found, rows)\n"


@pytest.mark.parametrize("path", ["", PATH, f'    """Fill."""\n{PATH}'])
def test_statements_may_move_into_a_function_that_is_called_in_their_place(path: str) -> None:
    helper = Helper("fill", LOOP.format(parameters="found, rows", path=path, number=1, rest="\n    return found"))
    assert made(from_text(MOVED), beside(MOVED, "for row", "found = fill(found, rows)", helper))


@pytest.mark.parametrize(
    ("call", "parameters", "number", "rest"),
    [
        ("found = fill(found, rows)", "found, rows", 2, "\n    return found"),
        ("found = fill(rows, found)", "found, rows", 1, "\n    return found"),
        ("found = fill(found, rows)", "found, rows", 1, "\n    return rows"),
        ("found = fill(found)", "found", 1, "\n    return found"),
        ("found = fill(found, self.rows)", "found, rows", 1, "\n    return found"),
        ("fill(found, rows)", "found, rows", 1, "\n    return found"),
        ("x = fill(found, rows)", "found, rows", 1, "\n    return found"),
        ("found = fill(found, rows)", "found, rows, more=1", 1, "\n    return found"),
    ],
)
def test_a_function_that_does_something_else_is_refused(call: str, parameters: str, number: int, rest: str) -> None:
    helper = Helper("fill", LOOP.format(parameters=parameters, path="", number=number, rest=rest))
    assert "eager mode" in refused(from_text(MOVED), beside(MOVED, "for row", call, helper))
