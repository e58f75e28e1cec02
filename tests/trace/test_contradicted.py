"""A fix whose header the run denies is no fix for it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.trace import contradicted, document
from graphmend_codemod.trace.document import Fact, Site, SourceLine
from tests.trace.samples import MODEL, project, traced

SIZES = (2, 4)


def site(folder: Path, *facts: Fact) -> Site:
    """The site of the tensor `if`, at which this was known."""
    return dataclasses.replace(traced(project(folder)).sites[0], facts=facts)


def tensor(dtype: str = "float32", *, same: bool = True) -> Fact:
    """What a run knew of `x`."""
    return Fact("x", "torch.Tensor", dtype, SIZES, "cpu", False, None, same)


def after(header: str, body: str = "return x") -> str:
    """The model with a compile path."""
    path = f"    if torch.compiler.is_compiling() and {header}:\n        {body}\n    elif x.sum() > 0:\n"
    return MODEL.replace("    if x.sum() > 0:\n", path)


@pytest.mark.parametrize(
    ("header", "fact"),
    [
        ("not x.is_floating_point()", tensor()),
        ("x.is_complex()", tensor()),
        ("x.dtype == torch.int64", tensor()),
        ("x.dtype != torch.float32", tensor()),
        ("x.requires_grad", tensor()),
        ("x.dim() == 3", tensor()),
        ("x.ndim == 1", tensor()),
        ("x is None", tensor()),
        ("x is not None", Fact("x", "NoneType")),
        ("isinstance(x, torch.Tensor)", Fact("x", "int")),
        ("self.x is None", Fact("self.x", "torch.Tensor", "float32", SIZES)),
        ("(x.is_complex() or not x.is_floating_point())", tensor()),
        ("torch.is_grad_enabled() and x.is_complex()", tensor()),
        ("x.dtype == y.dtype", tensor()),
    ],
)
def test_condition_that_was_false_is_named(tmp_path: Path, header: str, fact: Fact) -> None:
    y = Fact("y", "torch.Tensor", "float64", SIZES)
    assert "was false" in (contradicted.condition(MODEL, after(header), site(tmp_path, fact, y)) or "")


@pytest.mark.parametrize(
    ("header", "fact"),
    [
        ("x.is_floating_point()", tensor()),  # true
        ("x.is_complex()", tensor("float32 or complex64")),  # either
        ("x.is_complex()", Fact("y", "torch.Tensor", "float32", SIZES)),  # another name
        ("isinstance(x, torch.Tensor)", Fact("x", "torch.Tensor or int")),
        ("isinstance(x, torch.Tensor)", Fact("x", "cell")),
        ("x is None", Fact("x", "torch.Tensor or NoneType", "float32")),
        ("x.requires_grad", tensor(same=False)),
        ("x.dim() == 3", tensor(same=False)),
        ("x.numel() == 1", tensor()),  # nothing is known of it
        ("isinstance(x, (int, float))", tensor()),
        ("(x.is_complex() or torch.is_grad_enabled())", tensor()),
    ],
)
def test_what_the_run_does_not_deny_stands(tmp_path: Path, header: str, fact: Fact) -> None:
    assert contradicted.condition(MODEL, after(header), site(tmp_path, fact)) is None


def test_name_that_the_statement_binds_again_may_have_been_another(tmp_path: Path) -> None:
    changed = after("x.is_complex()", "x = x + 1")
    assert contradicted.condition(MODEL, changed, site(tmp_path, tensor())) is None


def test_header_of_the_author_is_not_judged(tmp_path: Path) -> None:
    theirs = after("x.is_complex()")
    assert contradicted.condition(theirs, theirs + "# more\n", site(tmp_path, tensor())) is None


def test_break_in_a_library_knows_nothing_of_the_caller_s_line(tmp_path: Path) -> None:
    there = dataclasses.replace(site(tmp_path, tensor()), place=SourceLine("torch/x.py", 3, "f", document.TORCH))
    assert contradicted.condition(MODEL, after("x.is_complex()"), there) is None


def test_fix_that_the_run_would_not_take_is_neither_shown_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The operator for numbers is for whole numbers; the run had floats."""
    trace = traced(project(tmp_path))
    source = MODEL.replace("helper(x: torch.Tensor)", "helper(x, s)").replace("helper(x + 1)", "helper(x, x.sum())")
    (tmp_path / "model.py").write_text(source.replace("if x.sum() > 0:\n        return x * 2\n", "n = s.item()\n"))
    (tmp_path / "model.py").write_text((tmp_path / "model.py").read_text().replace("return x\n", "return x * n\n"))
    sites = tuple(
        dataclasses.replace(each, facts=(dataclasses.replace(tensor(), name="s"),), own_source="n = s.item()")
        for each in trace.sites[:1]
    )
    monkeypatch.chdir(tmp_path)
    for dtype, written in (("float32", False), ("int64", True)):
        text = document.as_json(dataclasses.replace(trace, sites=sites, known=())).replace("float32", dtype)
        (tmp_path / "trace.json").write_text(text)
        main(["trace", "--no-cache", "--opaque", "--show", "trace.json"])
        said = capsys.readouterr().out
        main(["fix", "--no-cache", "--opaque", "--diff", "--trace", "trace.json"])
        assert ("the run would not take the compile path that GM802 writes" in said) is not written
        assert ("n = _number_in_graph(s)" in capsys.readouterr().out) is written
