"""Statements that follow each other share one compile path where one header will do."""

from __future__ import annotations

import pytest

from graphmend_codemod.core.findings import CompilePath, Edit, EditForm, Helper, Original, Replacement
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.rewriting import apply
from graphmend_codemod.rewriting.concrete import verify_concrete
from tests.rewriting.tools import from_text, span_of, statement
from tests.tools.fixes import fixed

_COMPILING = ("torch.compiler.is_compiling()",)
_BOTH = "def f(x, y, m):\n    x = x[m]\n    y = y[m]\n    return x, y\n"


def path_for(
    source: SourceFile, text: str, conditions: tuple[str, ...] = _COMPILING, *, form: EditForm = EditForm.BESIDE
) -> Edit:
    node = statement(source, text)
    header = CompilePath(f"if {' and '.join(conditions)}:", conditions)
    helper = Helper(f"_of_{text[0]}", f"def _of_{text[0]}():\n    pass")
    parts = (header + f"\n    _of_{text[0]}()", "\nelse:\n    ", Original(span_of(node), 1))
    return Edit((Replacement(span_of(node), parts),), ("torch",), (helper,), form)


def after(text: str, *wanted: tuple[str, tuple[str, ...]]) -> str:
    source = from_text(f"import torch\n\n\n{text}")
    edits = [path_for(source, name, conditions) for name, conditions in wanted]
    made = apply(source, edits)
    assert made.skipped == ()
    assert made.applied == tuple(range(len(edits)))
    verify_concrete(source, source.with_text(made.text), made.made)
    return made.text


def headers(text: str, *wanted: tuple[str, tuple[str, ...]]) -> int:
    return after(text, *wanted).count("torch.compiler.is_compiling()")


def test_two_statements_get_one_header_and_all_that_both_need() -> None:
    text = after(_BOTH, ("x =", _COMPILING), ("y =", _COMPILING))
    assert text.endswith(
        "def f(x, y, m):\n    if torch.compiler.is_compiling():\n        _of_x()\n        _of_y()\n    else:\n"
        "        x = x[m]\n        y = y[m]\n    return x, y\n"
    )
    assert "def _of_x()" in text
    assert "def _of_y()" in text


def test_a_comment_behind_the_last_one_stays_with_it() -> None:
    text = after(_BOTH.replace("y = y[m]", "y = y[m]  # rows"), ("x =", _COMPILING), ("y =", _COMPILING))
    assert "    else:\n        x = x[m]\n        y = y[m]  # rows\n    return" in text


@pytest.mark.parametrize(
    "text",
    [
        "def f(x, y, m):\n    x = x[m]\n\n    y = y[m]\n",
        "def f(x, y, m):\n    x = x[m]\n    # rows\n    y = y[m]\n",
        "def f(x, y, m):\n    x = x[m]  # rows\n    y = y[m]\n",
        "def f(x, y, m):\n    x = x[m]\n    m = ~m\n    y = y[m]\n",
        "def f(x, y, m):\n    if m is not None:\n        x = x[m]\n    y = y[m]\n",
        "def f(x, y, m):\n    x = x[m]; m = ~m\n    y = y[m]\n",
    ],
)
def test_statements_that_do_not_follow_each_other_keep_their_own(text: str) -> None:
    assert headers(text, ("x =", _COMPILING), ("y =", _COMPILING)) == 2


@pytest.mark.parametrize(
    ("first", "conditions", "count"),
    [
        ("x = x[m]", "m.dim() == 1", 1),
        ("x = x[m]", "x.dim() == 1", 2),
        ("x = m = y", "m.dim() == 1", 2),
        ("x = g(m)", "m.dim() == 1", 2),
        ("x = torch.exp(m[0].float()) * int(y)", "m.dim() == 1", 1),
        ("x = self.norm(x)", "m.dim() == 1", 1),
        ("x = self.norm(x)", "self.m is None", 2),
        ("x = self.norm(x)", "not m.requires_grad", 2),
        ("x = torch.norm(x)", "not m.requires_grad", 1),
        ("x = m.unsqueeze_(0)", "m.dim() == 1", 2),
        ("x = torch.exp(y, out=m)", "m.dim() == 1", 2),
        ("x = m.float(g())", "m.dim() == 1", 2),
        ("x = g(m)", "not torch.is_grad_enabled()", 2),
        ("x = x[m]", "not torch.is_grad_enabled()", 1),
        ("x[m] = y", "not x.requires_grad", 2),
        ("x[m] = y", "x.dim() == 1", 1),
        ("x = self.m = m", "self.m.dim() == 1", 2),
        ("x = (yield m)", "m.dim() == 1", 2),
    ],
)
def test_what_a_header_asks_must_not_change(first: str, conditions: str, count: int) -> None:
    asked = (*_COMPILING, conditions)
    text = f"def f(self, x, y, m):\n    {first}\n    y = y[m]\n"
    assert headers(text, (first, asked), ("y =", asked)) == count


def test_two_helpers_of_one_name_stay_apart() -> None:
    source = from_text(f"import torch\n{_BOTH}")
    edits = [path_for(source, name) for name in ("x =", "y =")]
    same = [each._replace(helpers=(Helper("_made", "def _made():\n    pass"),)) for each in edits]
    assert apply(source, same).text.count("if torch.compiler.is_compiling()") == 1
    other = [same[0], same[1]._replace(helpers=(Helper("_made", "def _made():\n    return 1"),))]
    text = apply(source, other).text
    assert text.count("if torch.compiler.is_compiling()") == 2
    assert "def _made_2():\n    return 1" in text


def test_other_headers_and_forms_are_not_joined() -> None:
    assert headers(_BOTH, ("x =", _COMPILING), ("y =", (*_COMPILING, "m.dim() == 1"))) == 2
    source = from_text(f"import torch\n{_BOTH}")
    edits = [path_for(source, name, form=EditForm.ONE_PATH) for name in ("x =", "y =")]
    assert apply(source, edits).text.count("if torch.compiler.is_compiling()") == 2


def test_nearly_the_same_headers_are_one_that_asks_for_all() -> None:
    asked = (*_COMPILING, "m.dim() == 1", "m.dtype == torch.bool")
    text = after(_BOTH, ("x =", (*asked, "y.dtype != m.dtype")), ("y =", (*asked, "y.dtype == m.dtype")))
    assert text.count("is_compiling()") == 1
    assert (
        "    if (\n        torch.compiler.is_compiling()\n        and m.dim() == 1\n        and m.dtype == torch.bool\n"
        "        and y.dtype != m.dtype\n        and y.dtype == m.dtype\n    ):\n        _of_x()\n        _of_y()\n"
    ) in text


def test_one_header_for_both_stands_on_one_line_where_it_fits() -> None:
    asked = (*_COMPILING, "m is y")
    text = after(_BOTH, ("x =", (*asked, "y.is_cpu")), ("y =", (*asked, "m.is_cpu")))
    assert "if torch.compiler.is_compiling() and m is y and y.is_cpu and m.is_cpu:\n        _of_x()\n" in text


_SHARED = (*_COMPILING, "m.dim() == 1")


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ((*_SHARED, "y.is_cuda"), (*_SHARED, "m.is_cuda"), 1),
        ((*_SHARED, "isinstance(y, list)"), (*_SHARED, "isinstance(m, list)"), 1),
        ((*_SHARED, "fits(y)"), (*_SHARED, "fits(m)"), 1),
        ((*_SHARED, "y.dim() == 1"), (*_SHARED, "y.dim() == 2"), 1),
        ((*_SHARED, "y.is_cuda"), (*_SHARED, "y.dim() == 1"), 2),
        ((*_SHARED, "y.is_cuda"), _SHARED, 2),
        (_SHARED, (*_SHARED, "y.is_cuda"), 2),
        ((*_SHARED, "y.is_cuda"), (*_SHARED, "m.is_cuda", "self.is_cuda", "n.is_cuda"), 2),
        ((*_SHARED, "m.is_cuda", "self.is_cuda", "n.is_cuda"), (*_SHARED, "y.is_cuda"), 2),
        ((*_SHARED, "not y.requires_grad"), (*_SHARED, "not m.requires_grad"), 2),
        ((*_SHARED, "y.is_cuda"), (*_SHARED, "x.is_cuda"), 2),
        ((*_COMPILING, "y.is_cuda"), (*_COMPILING, "m.is_cuda"), 2),
    ],
)
def test_headers_that_differ_in_little_are_joined(one: tuple[str, ...], other: tuple[str, ...], count: int) -> None:
    assert headers(_BOTH, ("x =", one), ("y =", other)) == count


def test_what_a_third_header_asks_must_stay_behind_both_statements() -> None:
    text = "def f(x, y, z, m):\n    x = x[m]\n    y = y[m]\n    z = z[m]\n    return x, y, z\n"
    asked = (*_SHARED, "m.is_cuda")
    alike = (("x =", asked), ("y =", asked))
    for name, count in (("z", 1), ("y", 2), ("x", 2)):
        assert headers(text, *alike, ("z =", (*_SHARED, f"{name}.is_cuda"))) == count


def test_a_header_that_scripting_passes_by_stays_as_it_is() -> None:
    source = from_text(f"import torch\n\n\n{_BOTH}")
    edits = [path_for(source, name, _SHARED) for name in ("x =", "y =")]
    (one,) = edits[0].replacements
    told = "torch.compiler.is_compiling() and (False if torch.jit.is_scripting() else m.dim() == 1)"
    apart = CompilePath(f"if {told}:\n    _of_x()", _SHARED)
    edits[0] = edits[0]._replace(replacements=(one._replace(parts=(apart, *one.parts[1:])),))
    assert apply(source, edits).text.count("is_compiling()") == 2


def test_what_overlaps_with_one_of_them_is_skipped() -> None:
    source = from_text(f"import torch\n{_BOTH}")
    edits = [path_for(source, "x ="), path_for(source, "y ="), path_for(source, "y =", (*_COMPILING, "m is None"))]
    made = apply(source, edits)
    assert made.applied == (0, 1)
    assert [index for index, _ in made.skipped] == [2]


def test_boxes_and_scores_of_one_mask_stand_under_one_header() -> None:
    source = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, boxes: torch.Tensor):\n"
        "        scores = boxes[:, 0]\n        keep = scores > 0.5\n        boxes = boxes[keep]\n"
        "        scores = scores[keep]\n        return boxes, scores\n"
    )
    text, _ = fixed(source, select=("GM802",), opaque=True)
    assert text.count("if torch.compiler.is_compiling():") == 1
    assert "boxes = boxes[_places_in_graph(keep)]\n            scores = scores[_places_in_graph(keep)]\n" in text
