"""The reports for programs, pull requests and terminals: what they say, and that foreign text stays text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt

from graphmend_codemod.core.colour import Paint
from graphmend_evaluation.evaluation import Evaluation
from graphmend_evaluation.reporting import as_json, markdown, quantities, terminal_lines, view, write_reports
from graphmend_evaluation.reporting.schema import SCHEMA_FILE, report_schema
from graphmend_evaluation.reporting.words import fenced, plain
from graphmend_evaluation.results import from_json
from tests.evaluation.report_samples import HOSTILE, hostile, large, measured, recorded, timed, troubled

ALL = {
    "measured": measured(),
    "timed": timed(measured()),
    "troubled": troubled(timed(measured())),
    "recorded": recorded(measured()),
    "hostile": hostile(recorded(troubled(timed(measured())))),
    "empty": replace(measured(), models=(), changes=(), declined=()),
}


@pytest.fixture(params=list(ALL))
def evaluation(request: pytest.FixtureRequest) -> Evaluation:
    return ALL[request.param]


# -- JSON ------------------------------------------------------------------------------------------------------------


def test_json_conforms_to_its_schema_and_comes_back(evaluation: Evaluation) -> None:
    data = json.loads(as_json(evaluation))
    jsonschema.Draft202012Validator(report_schema()).validate(data)
    assert from_json(Evaluation, data) == evaluation


def test_schema_file_agrees_with_the_classes() -> None:
    written = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(written)
    hint = "run: python -m graphmend_evaluation.reporting.schema"
    assert _without_descriptions(written) == _without_descriptions(report_schema()), hint


def _without_descriptions(schema: Any) -> Any:
    """Words may lag behind the classes until the next `make docs`; what is valid may not."""
    if isinstance(schema, dict):
        return {
            name: _without_descriptions(value)
            for name, value in schema.items()
            if name != "description" or not isinstance(value, str)
        }
    return [_without_descriptions(value) for value in schema] if isinstance(schema, list) else schema


def test_schema_refuses_another_version_and_a_missing_field() -> None:
    data = json.loads(as_json(measured()))
    validator = jsonschema.Draft202012Validator(report_schema())
    assert not validator.is_valid({**data, "schema": 2})
    assert not validator.is_valid({name: value for name, value in data.items() if name != "models"})


def test_every_class_of_the_report_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    assert [name for name in report_schema()["$defs"] if f"`{name}`" not in page] == []


# -- files -----------------------------------------------------------------------------------------------------------


def test_files_replace_those_of_an_earlier_run_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "report"
    write_reports(ALL["hostile"], folder)
    write_reports(measured(), folder)
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json", "report.md"]
    assert from_json(Evaluation, json.loads((folder / "report.json").read_text(encoding="utf-8"))) == measured()
    assert (folder / "report.html").stat().st_mode & 0o444 == 0o444


# -- Markdown --------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The tags of a page, and its text outside of code."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self._code = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self._code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.texts.append(data)


def rendered(text: str) -> Tags:
    return Tags(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))


def test_markdown_begins_with_the_answer() -> None:
    assert markdown(measured()).startswith("## graphmend: graph breaks 23 -> 5 over 6 models\n")


def test_markdown_shows_hostile_text_as_text() -> None:
    page = rendered(markdown(ALL["hostile"]))
    allowed = set("h2 h3 p ul li strong em code pre details summary table thead tbody tr th td".split())
    assert page.tags <= allowed
    assert page.attributes <= {"class", "style"}
    assert not [text for text in page.texts if re.search(r"[@#]\w|\w://|www\.", text)]
    assert "\x00" not in markdown(ALL["hostile"])
    assert "\u202e" not in markdown(ALL["hostile"])


@pytest.mark.parametrize(
    "text",
    [
        "```<img>`",
        "`<img>`` x`",
        "``` `<img>` ```",
        "`a``<img>`",
        "\\`<img>\\`",
        "- # > <img>",
        "1. x",
        "a | b",
        HOSTILE,
    ],
)
def test_plain_text_never_becomes_a_tag(text: str) -> None:
    for page in (rendered(f"- {plain(text)}"), rendered(plain(text)), rendered(f"| a |\n|---|\n| {plain(text)} |")):
        assert not page.tags & {"img", "script", "a", "b", "h1", "ol"}


def test_diff_cannot_end_its_block() -> None:
    assert fenced(["+```", "+````x"], "diff").startswith("`````diff\n")


def test_tables_have_the_same_number_of_cells_in_every_row() -> None:
    for table in re.findall(r"(?:^\|.*\n)+", markdown(ALL["hostile"]), re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}
        assert len(cells) == 1


def test_cut_markdown_keeps_the_answer_and_what_was_reverted_and_says_what_is_missing() -> None:
    full = markdown(ALL["troubled"])
    for limit in (len(full), len(full) - 1, 12_000, 9_000, 300):
        text = markdown(ALL["troubled"], limit=limit)
        assert len(text) <= limit
        assert text.startswith("## graphmend: graph breaks")
        assert ("left out for length" in text) == (limit < len(full) and limit > 300)
        if limit > 5_000:
            assert "reverted</summary>" in text
            assert text.count("<details>") == text.count("</details>")


def test_markdown_of_300_models_fits_into_a_pull_request() -> None:
    text = markdown(large(measured(), 300), limit=65_536)
    assert 50_000 < len(text) <= 65_536
    assert text.count("```") % 2 == 0


# -- terminal --------------------------------------------------------------------------------------------------------


def test_terminal_names_answer_models_reverted_and_problems() -> None:
    lines = list(terminal_lines(ALL["troubled"], Paint(False)))
    assert lines[0].startswith("Graph breaks ")
    assert any("Reverted: transformers/" in line for line in lines)
    assert any("Kept all the same: transformers/" in line for line in lines)
    assert any("eager result changed: output 0" in line for line in lines)
    assert lines[-1] == "Note: one source gave no model"


def test_terminal_gets_no_control_characters_and_no_long_lines() -> None:
    lines = list(terminal_lines(ALL["hostile"], Paint(False)))
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines[2:])) < 250


def test_terminal_shows_the_worst_of_many_models() -> None:
    lines = list(terminal_lines(large(troubled(measured()), 100), Paint(False)))
    assert len(lines) < 100
    assert any("60 models more" in line for line in lines)


# -- what they say ---------------------------------------------------------------------------------------------------


def test_states_of_models() -> None:
    states = [view.state(model) for model in ALL["troubled"].models]
    assert states[:2] == [view.State.PROBLEM, view.State.PROBLEM]
    assert {view.State.FIXED, view.State.FEWER, view.State.SAME} <= {view.state(each) for each in measured().models}


def test_speed_inside_the_noise_is_no_difference() -> None:
    quantities = {each.quantity: each for each in view.answer(timed(measured())).speed}
    steady = quantities["steady latency"]
    assert (steady.models, steady.less, steady.more) == (6, 1, 1)
    quiet = replace(timed(measured()), models=timed(measured()).models[2:])
    assert view.answer(quiet).speed[0].words == "cold start, CPU time: no difference in 4 models"


def test_change_stands_with_the_break_that_it_removes() -> None:
    first, *others = view.evidence(measured())
    assert {removed.site.path for removed in first.removed} == {first.change.path}
    events = [sum(removed.events for removed in each.removed) for each in (first, *others)]
    assert events == sorted(events, reverse=True)


def test_recorded_runs_say_what_each_did_what_operators_hold_for_and_what_still_breaks() -> None:
    evaluation = recorded(measured())
    text, path = markdown(evaluation), evaluation.changes[0].path
    assert f"| 1 | {len(evaluation.models)} | 9 → 4 | 1 | 1 | 20.5 |" in text
    assert f"- run 1: GM801 `{path}:12`, an operator for `x: torch.float32, 2 dimensions, cpu`" in text
    assert f"- run 1: GM801 `{path}:31`: **reverted**, its break is still there" in text
    assert "no result after 600 s" in text
    assert f"- `{path}:52`: Unsupported function call, in `{evaluation.models[0].name}`" in text


def test_a_change_is_verified_without_effect_or_not_exercised() -> None:
    evaluation = measured()
    found = view.evidence(evaluation)
    verified = next(each for each in found if each.removed)
    assert verified.effect is view.Effect.VERIFIED
    assert replace(verified, removed=()).effect is view.Effect.NONE
    assert replace(verified, removed=(), broke=False).effect is view.Effect.UNREACHED
    counted = dict(view.answer(evaluation).effects)
    assert sum(counted.values()) == sum(not each.change.is_support for each in found)
    assert f"changes verified: {counted[view.Effect.VERIFIED]}" in "\n".join(view.answer(evaluation).details)


def test_command_to_reproduce_names_commits_and_models() -> None:
    command = view.reproduce(measured())
    assert command.startswith("graphmend evaluate --base v4.52.4 --head graphmend/2026-11-21 --model ")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(12.345, "12.3 s"), (0.0123, "12.3 ms"), (1.5e-6, "1.50 µs"), (250.0, "250 s"), (0.0, "0.00 µs")],
)
def test_durations_have_three_digits(seconds: float, words: str) -> None:
    assert quantities.duration(seconds) == words
