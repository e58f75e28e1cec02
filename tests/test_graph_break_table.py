"""The table of graph breaks: every kind of the installed torch has an answer, and every answer exists."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "document_graph_breaks.py"


@pytest.fixture(scope="module")
def table() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("document_graph_breaks", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kind_of_the_installed_torch_has_an_answer(table: ModuleType) -> None:
    answered = {kind.identifier for kind in table.kinds()}
    without = {identifier: name for identifier, name in table.registry().items() if identifier not in answered}
    assert without == {}


def test_every_answer_exists(table: ModuleType) -> None:
    assert table.mistakes(table.kinds()) == []


def test_an_answer_that_does_not_exist_is_named(table: ModuleType) -> None:
    wrong = [table.Kind("GB1", "rule", "GM999", "x"), table.Kind("GB1", "shrug", "", "y")]
    assert table.mistakes(wrong) == [
        "GB1 stands there twice",
        "GB1 names a rule that does not exist: GM999",
        "GB1 has the unknown answer 'shrug'",
    ]


def test_what_another_torch_adds_renames_and_drops_is_told(
    table: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "torch/_dynamo"
    folder.mkdir(parents=True)
    other = dict(table.registry(), GB0170="Branching", GB99999="Something new")
    del other["GB0000"]
    entries = {identifier: [{"Gb_type": name}] for identifier, name in other.items()}
    (folder / "graph_break_registry.json").write_text(json.dumps(entries))
    assert table.main(["--compare", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "GB99999 is new: Something new" in lines
    assert "GB0170 is now called 'Branching', was 'Data-dependent branching'" in lines
    assert any(line.startswith("GB0000 is gone") for line in lines)


def test_the_page_is_up_to_date(table: ModuleType) -> None:
    assert table.main(["--check"]) == 0


def test_every_advice_page_exists(table: ModuleType) -> None:
    for name in table.ADVICE_PAGES.values():
        assert (SCRIPT.parent.parent / "docs" / name).is_file()
