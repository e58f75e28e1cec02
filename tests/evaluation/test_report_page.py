"""The page without a browser: one file, nothing loaded, foreign text escaped, readable colours."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from graphmend_evaluation.evaluation import Evaluation
from graphmend_evaluation.reporting import drawing, html
from graphmend_evaluation.reporting.markup import diff_markup
from graphmend_evaluation.results import Counts
from tests.evaluation.report_samples import hostile, large, measured, recorded, timed, troubled

VOID = set("meta link input br wbr".split())
FULL = recorded(troubled(timed(measured())))


class Page(HTMLParser):
    """Elements with their attributes; raises for one that is not closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, tag
        assert self._open.pop() == tag


@pytest.mark.parametrize("evaluation", [measured(), FULL, hostile(FULL)], ids=["measured", "troubled", "hostile"])
def test_page_is_well_formed_and_loads_nothing(evaluation: Evaluation) -> None:
    page = Page(html(evaluation))
    names = [tag for tag, _ in page.elements]
    assert names.count("script") == names.count("style") == 1
    assert not {"img", "iframe", "object", "base", "video"} & set(names)
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), tag


def test_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else() -> None:
    text = html(measured())
    policy = next(str(each["content"]) for tag, each in Page(text).elements if each.get("http-equiv"))
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_control_characters_and_overrides_are_visible() -> None:
    text = html(hostile(FULL))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert "\\u202e" in text
    assert "x" * 3000 not in text
    assert "{{ 7*7 }}" in text


def test_links_lead_to_elements_of_the_page() -> None:
    elements = Page(html(FULL)).elements
    ids = [each["id"] for _, each in elements if "id" in each]
    targets = {str(each["href"])[1:] for _, each in elements if str(each.get("href")).startswith("#")}
    assert targets
    assert targets <= set(ids)
    assert len(ids) == len(set(ids))


def test_page_of_300_models_is_small_enough_to_send() -> None:
    many = tuple(replace(change, id=f"{change.id}-{number}") for number in range(75) for change in measured().changes)
    evaluation = replace(large(timed(measured()), 300), changes=many)
    assert len(html(evaluation).encode()) < 3_000_000


def test_hunk_has_its_lines_less_what_all_are_indented_by() -> None:
    diff = "@@ -1,2 +1,2 @@\n         a <b>\n-        c\n+            d\n"
    assert diff_markup(diff) == "<i>@@ -1,2 +1,2 @@</i><span> a &lt;b&gt;</span><del>-c</del><ins>+    d</ins>"


def counts(*ops: int, ended_by: tuple[int | None, ...] = (), events: int = 0) -> Counts:
    sites = next(model for model in measured().models if model.row.before.counts).row.before.counts
    assert sites is not None
    return Counts(len(ops), ops, 0, events, sites.sites[:1], 0, (), None, ended_by)


def test_strip_is_as_wide_as_its_operations_with_the_cause_on_each_cut() -> None:
    before, after = drawing.strips(counts(60, 30, 10, ended_by=(0, None, None), events=1), counts(100))
    assert [piece.kind for piece in before.pieces] == ["graph", "cut", "graph", "return", "graph"]
    widths = [piece.width for piece in before.pieces if piece.kind == "graph"]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)
    assert "logger.warning_once(" in before.pieces[1].words
    assert "after an earlier break" in before.pieces[3].words
    assert before.pieces[-1].start + before.pieces[-1].width <= drawing.WIDTH + 0.5
    assert before.words == "before: 3 graphs with 60, 30, 10 operations, 1 break"
    assert (after.whole, len(after.pieces)) == (True, 1)


def test_strip_of_very_many_graphs_stays_inside_the_drawing() -> None:
    for strip in drawing.strips(counts(*[1] * 5000, events=4999), counts()):
        assert all(piece.start + piece.width <= drawing.WIDTH + 0.5 for piece in strip.pieces)


def test_bars_are_grey_inside_the_noise() -> None:
    directions = [next(iter(drawing.speed_bars(model.speed))).direction for model in FULL.models if model.speed]
    assert directions[:3] == ["less", "more", "same"]


# -- colours ---------------------------------------------------------------------------------------------------------

PAIRS = [
    ("text", "back"), ("text", "card"), ("text", "quiet-back"), ("soft", "back"), ("soft", "card"), ("link", "card"),
    ("good", "card"), ("bad", "card"), ("good", "good-back"), ("bad", "bad-back"), ("warn", "warn-back"),
    ("ins-text", "ins"), ("del-text", "del"),
]  # fmt: skip


@pytest.mark.parametrize(("scheme", "number"), [("light", 0), ("dark", 1)])
def test_text_has_the_contrast_that_wcag_asks_for(scheme: str, number: int) -> None:
    blocks = re.findall(r":root \{(.*?)\}", html(measured()), re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w+)", blocks[0]))
    if number:
        colours |= dict(re.findall(r"--([\w-]+): (#\w+)", blocks[1]))
    assert [pair for pair in PAIRS if _contrast(colours[pair[0]], colours[pair[1]]) < 4.5] == []


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
