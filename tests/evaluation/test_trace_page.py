"""The page of a trace: what it says, that nothing foreign is markup, and how it looks in a browser, if there is one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.trace import document
from graphmend_codemod.trace.document import Trace
from graphmend_codemod.trace.join import Joined, join
from graphmend_evaluation.reporting.schema import TRACE_FILE, trace_schema, trace_text
from graphmend_evaluation.tracing.page import html, timeline
from tests.evaluation.browser import Browser, chromium, find_chromium
from tests.trace.samples import project, traced

PROGRAM = find_chromium()
in_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
EVIL = "</pre><script>alert(1)</script>\u202e" + "wide_" * 80
TOO_WIDE = """
[...document.querySelectorAll('body *')].filter(each => each.getBoundingClientRect().right > innerWidth + 1
  && !each.closest('pre, .scroll, svg, .unseen')).map(each => each.outerHTML.slice(0, 120))
"""


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Joined:
    folder = project(tmp_path_factory.mktemp("project"))
    return join(traced(folder), load_settings(folder), cache=False)


def hostile(joined: Joined) -> Joined:
    """The same with names, lines and messages that mean harm."""
    sites = tuple(
        replace(
            site,
            place=replace(site.place, path=EVIL, function=EVIL),
            source=EVIL,
            kind=EVIL,
            reason=EVIL,
            hints=(EVIL,),
            own_source=EVIL,
        )
        for site in joined.trace.sites
    )
    answers = tuple(
        replace(answer, message=EVIL, reason=EVIL, steps=(EVIL,), diff=f"+{EVIL}") for answer in joined.answers
    )
    return Joined(replace(joined.trace, command=EVIL, sites=sites), answers)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with chromium(PROGRAM, tmp_path_factory.mktemp("browser") / "profile") as started:
        yield started


def written(joined: Joined, folder: Path) -> Path:
    (folder / "trace.html").write_text(html(joined), encoding="utf-8")
    return folder / "trace.html"


def test_page_has_each_site_with_its_cost_its_fix_and_its_locals(joined: Joined) -> None:
    page = html(joined)
    assert re.findall(r'<details class="site" id="(s\d)"', page) == ["s1", "s2"]
    assert "broke 2 frames, 3 more compilations (2 graphs), 3.2 s of compiling" in page
    assert "<mark>x.sum() &gt; 0</mark>" in page
    assert "torch.Tensor float32 (2, 4) on cpu" in page
    assert page.count('<div class="hunk">') == 2


def test_nothing_foreign_is_markup(joined: Joined) -> None:
    page = html(hostile(joined))
    assert page.count("<script>") == 1
    assert "\u202e" not in page


def test_timeline_has_a_piece_for_each_graph_and_each_break(joined: Joined) -> None:
    (row,) = timeline(joined.trace.compilations, joined.trace.sites)
    kinds = ["graph", "cut", "gap", "graph", "cut", "gap", "graph", "cut", "gap", "graph"]
    assert [piece.kind for piece in row.pieces] == kinds
    assert (row.name, row.place) == ("Model.forward", "model.py:12")
    assert [piece.site for piece in row.pieces if piece.kind == "cut"] == [1, 1, 2]
    assert row.pieces[-1].start + row.pieces[-1].width == pytest.approx(1000, abs=1)


def test_timeline_shows_the_time_in_eager_mode_between_graphs(joined: Joined) -> None:
    (row,) = timeline(joined.trace.compilations, joined.trace.sites)
    gaps = [piece for piece in row.pieces if piece.kind == "gap"]
    assert [piece.words for piece in gaps] == [
        "250 ms in eager mode before 10 runs of graph 1/0 of helper",
        "125 ms in eager mode before 4 runs of graph 2/0 of helper",
        "500 ms in eager mode before 10 runs of graph 4/0 of Model.forward",
    ]
    assert [piece.site for piece in gaps] == [1, 1, 2]
    assert gaps[0].width == pytest.approx(2 * gaps[1].width, abs=0.1)
    assert row.words.endswith("5.0 s of compiling, 875 ms in eager mode between graphs")


def test_timeline_of_several_processes_says_whose_it_is(joined: Joined) -> None:
    (process,) = joined.trace.processes
    again = [replace(each, process=number) for number in (0, 1) for each in joined.trace.compilations]
    for ranks, told in ((("0", "1"), ["rank 0", "rank 1"]), ((None, None), ["process 1", "process 2"])):
        processes = [replace(process, rank=rank) for rank in ranks]
        rows = timeline(again, joined.trace.sites, processes)
        assert [row.words.partition(",")[0] for row in rows] == told


def test_trace_conforms_to_its_schema(joined: Joined) -> None:
    assert TRACE_FILE.read_text(encoding="utf-8") == trace_text()
    jsonschema.validate(json.loads(document.as_json(joined.trace)), trace_schema())


def test_page_of_a_run_without_breaks_says_so(joined: Joined) -> None:
    empty: Trace = replace(joined.trace, sites=(), compilations=())
    assert "<p>No graph breaks.</p>" in html(Joined(empty, ()))


@in_browser
@pytest.mark.parametrize(("width", "evil"), [(360, False), (1280, False), (360, True)])
def test_page_fits_loads_nothing_and_complains_of_nothing(
    browser: Browser, joined: Joined, tmp_path: Path, width: int, evil: bool
) -> None:
    page = written(hostile(joined) if evil else joined, tmp_path)
    browser.screen(width, 800, mobile=width < 500)
    browser.open(page)
    browser.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert [address for address in browser.requests if not address.startswith("data:")] == [page.as_uri()]
    assert browser.complaints == []
    assert browser.ask(TOO_WIDE) == []
    assert browser.ask("document.documentElement.scrollWidth") <= width


@in_browser
def test_break_in_the_timeline_leads_to_its_site(browser: Browser, joined: Joined, tmp_path: Path) -> None:
    browser.open(written(joined, tmp_path))
    browser.ask("document.querySelectorAll('details').forEach(each => { each.open = false })")
    browser.ask("location.hash = '#s2'")
    browser.ask("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert browser.ask("document.getElementById('s2').open") is True
    assert browser.ask("document.querySelectorAll('.timeline a[href=\"#s2\"]').length") > 0


@in_browser
def test_dark_is_dark_and_a_fix_can_be_copied(browser: Browser, joined: Joined, tmp_path: Path) -> None:
    page = written(joined, tmp_path)
    back = (
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"
    )
    found = []
    for scheme in ("light", "dark"):
        browser.colour_scheme(scheme)
        browser.open(page)
        found.append(browser.ask(back))
    browser.colour_scheme("light")
    assert found[0] > 600
    assert found[1] < 200
    assert browser.ask("[...document.querySelectorAll('button')].every(each => !each.hidden)") is True
    assert browser.ask("document.getElementById('d1').textContent.startsWith('--- a/model.py')") is True
