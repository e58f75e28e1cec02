"""Notebooks as Python text, and edits of that text put back into the cells."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphmend_codemod.core.notebook import Notebook
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError
from graphmend_codemod.engine import api

_CLASS = """class Model(nn.Module):
    def forward(self, x):
        print("größe", x.shape)
        print("rows", len(x))
        return x"""
_FIXED = _CLASS.replace("        print", "            print").replace(
    "            print", "        if not torch.compiler.is_compiling():\n            print", 1
)
_IMPORTS = "%matplotlib inline\nimport torch\nfrom torch import nn\nif True:\n    !pip install x"


def notebook(*sources: str | list[str], indent: int | None = 1, ascii_only: bool = False, **metadata: object) -> bytes:
    cells = [
        {"cell_type": "code", "metadata": {"a": ["b"]}, "outputs": [{"text": ["\u00e9"]}], "source": source}
        for source in sources
    ]
    first = {"cell_type": "markdown", "source": ["# torch"]}
    document: dict[str, object] = {"cells": [first, *cells], "metadata": metadata}
    document |= {"nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(document, indent=indent, ensure_ascii=ascii_only) + "\n").encode()


def lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


@pytest.mark.parametrize("indent", [1, None, 4])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("as_lines", [True, False])
def test_nothing_but_the_fixed_cell_changes(
    tmp_path: Path, indent: int | None, ascii_only: bool, as_lines: bool
) -> None:
    def made(source: str) -> bytes:
        sources = [lines(each) if as_lines else each for each in (_IMPORTS, source, "%%bash\nls torch", "x = 1")]
        return notebook(*sources, indent=indent, ascii_only=ascii_only)

    path = tmp_path / "nb.ipynb"
    path.write_bytes(made(_CLASS))
    result = api.fix([path], Settings(tmp_path), write=True, cache=False)
    assert [(each.code, each.cell, each.span.start_line) for each in result.fixes[0].applied] == [
        ("GM201", 3, 3),
        ("GM201", 3, 4),
    ]
    assert path.read_bytes() == made(_FIXED)
    assert api.fix([tmp_path], Settings(tmp_path), write=True, cache=False).fixes == ()


def test_an_edit_that_needs_an_import_puts_it_into_a_cell_with_magics(tmp_path: Path) -> None:
    path = tmp_path / "nb.ipynb"
    first = "%load_ext x\nfrom torch import nn\n!ls"
    path.write_bytes(notebook(first, _CLASS))
    api.fix([path], Settings(tmp_path), write=True, cache=False)
    cells = [cell["source"] for cell in json.loads(path.read_bytes())["cells"]]
    assert cells[1] == "%load_ext x\nimport torch\nfrom torch import nn\n!ls"
    assert cells[2] == _FIXED


def test_classes_of_the_project_are_known_in_a_cell(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text("from torch import nn\n\n\nclass Base(nn.Module):\n    pass\n")
    cell = "import torch\nfrom base import Base\n" + _CLASS.replace("nn.Module", "Base")
    (tmp_path / "nb.ipynb").write_bytes(notebook(cell))
    found, place = api.check([tmp_path], Settings(tmp_path), cache=False), "nb.ipynb:cell 2"
    assert [(each.place, each.span.start_line) for each in found.findings] == [(place, 5), (place, 6)]
    assert found.texts["nb.ipynb:cell 2"].decode() == cell


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "is not a valid notebook"),
        (b"[]", "a `{` is missing"),
        (b'{"worksheets": []}', "it has no cells; convert it to format 4"),
        (b'{"cells": [1]}', "a `{` is missing"),
        (b"\xff", "is not a valid notebook"),
        (b'{"cells": [{"cell_type": "code", "source": ["x", 1]}]}', "the source of cell 1 is no text"),
        (b'{"cells": [{"cell_type": "code", "source": null}]}', "the source of cell 1 is no text"),
    ],
)
def test_what_is_no_notebook_is_told_in_one_line(raw: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)) as caught:
        Notebook(raw)
    assert "\n" not in str(caught.value)


def test_a_notebook_in_another_language_has_no_code() -> None:
    assert Notebook(notebook("print(torch)", language_info={"name": "julia"})).text == ""


@pytest.mark.parametrize("told", [None, 3, [], {"language": []}])
def test_odd_metadata_say_nothing_of_the_language(told: object) -> None:
    assert "x = 1" in Notebook(notebook("x = 1", language_info=told, kernelspec=told)).text


@pytest.mark.parametrize("source", ["%%bash\nls", "x = !ls", "f?", "def broken(:", "a\rb"])
def test_a_cell_that_is_no_python_is_left_out(source: str) -> None:
    read = Notebook(notebook(source, "x = 1"))
    assert [cell.shown for cell in read.cells] == [None, "x = 1"]
    assert read.with_text(read.text.replace("x = 1", "x = 2")) == notebook(source, "x = 2")


def test_text_in_which_a_cell_is_missing_is_refused() -> None:
    read = Notebook(notebook("x = 1", "y = 2"))
    with pytest.raises(SourceError, match="cannot be separated"):
        read.with_text(read.text.partition("\n")[2])
