"""A small project on disk and findings in it, made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.core.findings import Edit, Finding, Problem, Replacement, Safety, Span
from graphmend_codemod.reporting.report import Report

MODEL = """\
class Net(nn.Module):
    def forward(self, x):
        größe = "\N{GRINNING FACE}"; y = x if x.sum() > 0 else -x
        if (y > 0).all():
            y = y + 1
            y = y + 2
            y = y + 3
            y = y + 4
            y = y + 5
            y = y + 6
\t# a tab before this
        return y
"""


def finding(line: int, start: int, end_line: int, end: int, **changes: object) -> Finding:
    """A finding in `model.py`; a safe fix unless `changes` say otherwise."""
    span = Span(line, start, end_line, end)
    values: dict[str, object] = {
        "code": "GM101",
        "slug": "tensor-if-assign",
        "path": "package/model.py",
        "span": span,
        "message": "`if` on the tensor `x`",
        "safety": Safety.SAFE,
        "function": "Net.forward",
        "edit": Edit((Replacement(span, ("y",)),)),
        **changes,
    }
    return Finding(**values)  # type: ignore[arg-type]


def findings() -> tuple[Finding, ...]:
    """One of each kind."""
    column = len('        größe = "\N{GRINNING FACE}"; y = '.encode())
    return (
        finding(3, column, 3, column + len("x if x.sum() > 0 else -x")),
        finding(4, 8, 10, 21, edit=None, declined="`y` has another shape in each branch, `a | b`"),
        finding(4, 8, 10, 21, code="GM301", slug="tensor-guard", safety=Safety.UNSAFE),
        finding(12, 8, 12, 16, code="GM107", slug="tensor-while", safety=Safety.ADVICE, edit=None, function=""),
    )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `package/model.py`; the current folder."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "model.py").write_bytes(MODEL.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def report(project: Path) -> Report:
    """A report with every kind of finding and a problem."""
    problem = Problem("package/broken, old.py", "cannot be parsed: invalid syntax", 7)
    return Report(findings(), (problem,), 5, project)
