"""The table of graph breaks: every kind of the installed torch has an answer, and every answer exists."""

from __future__ import annotations

import importlib.util
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


def test_the_page_is_up_to_date(table: ModuleType) -> None:
    assert table.main(["--check"]) == 0


def test_every_advice_page_exists(table: ModuleType) -> None:
    for name in table.ADVICE_PAGES.values():
        assert (SCRIPT.parent.parent / "docs" / name).is_file()
