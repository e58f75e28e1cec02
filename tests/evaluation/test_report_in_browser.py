"""The page in a real browser, where one is installed: on a desk, on a phone, in the dark, without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmend_evaluation.evaluation import Evaluation
from graphmend_evaluation.reporting import write_reports
from tests.evaluation.browser import Browser, chromium, find_chromium
from tests.evaluation.report_samples import hostile, large, measured, timed, troubled

PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")

FULL = troubled(timed(measured()))
TOO_WIDE = """
[...document.querySelectorAll('body *')].filter(each => each.getBoundingClientRect().right > innerWidth + 1
  && !each.closest('pre, .scroll, svg, .unseen')).map(each => each.outerHTML.slice(0, 120))
"""
_SET = """
(name, event, value) => {
  const control = document.getElementById(name); control.value = value; control.dispatchEvent(new Event(event));
}
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with chromium(PROGRAM, tmp_path_factory.mktemp("browser") / "profile") as started:
        yield started


@pytest.fixture(params=["full", "hostile"])
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return written({"full": FULL, "hostile": hostile(FULL)}[request.param], tmp_path)


def written(evaluation: Evaluation, folder: Path) -> Path:
    write_reports(evaluation, folder)
    return folder / "report.html"


def test_page_loads_nothing_and_has_nothing_to_complain_about(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.ask("document.title").startswith("graphmend: graph breaks")
    assert [address for address in browser.requests if not address.startswith("data:")] == [page.as_uri()]
    assert browser.complaints == []
    assert browser.ask("document.scripts.length") == 1


@pytest.mark.parametrize(("width", "height"), [(360, 740), (768, 1024), (1440, 900)])
def test_page_does_not_scroll_sideways(browser: Browser, page: Path, width: int, height: int) -> None:
    browser.screen(width, height, mobile=width < 500)
    browser.open(page)
    browser.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert browser.ask("innerWidth") == width
    assert browser.ask(TOO_WIDE) == []
    assert browser.ask("document.documentElement.scrollWidth") <= width


def test_hunk_stands_beside_its_break_on_a_desk_and_above_it_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    page = written(FULL, tmp_path)
    beside = """
    (() => { const [diff, text] = document.querySelector('.change[open] .pair').children;
      return diff.getBoundingClientRect().right <= text.getBoundingClientRect().left + 1; })()
    """
    for width, expected in ((1280, True), (360, False)):
        browser.screen(width, 800)
        browser.open(page)
        assert browser.ask(beside) is expected


def test_dark_mode_is_dark_and_paper_is_not(browser: Browser, tmp_path: Path) -> None:
    page = written(FULL, tmp_path)
    brightness = """
    ((element, name) => getComputedStyle(element)[name].match(/\\d+/g).slice(0, 3)
      .reduce((sum, each) => sum + Number(each), 0))
    """
    found = {}
    for scheme, medium in (("light", ""), ("dark", ""), ("dark", "print")):
        browser.colour_scheme(scheme, medium)
        browser.open(page)
        asked = (
            "document.body, 'backgroundColor'",
            "document.querySelector('ins'), 'backgroundColor'",
            "document.body, 'color'",
        )
        found[scheme + medium] = [browser.ask(f"{brightness}({each})") for each in asked]
    browser.colour_scheme("light")
    for name, (back, added, text) in found.items():
        assert (min(back, added) > 600 and text < 150) is (name != "dark"), name
        assert (max(back, added) < 200 and text > 600) is (name == "dark"), name


def test_search_leaves_the_models_that_were_asked_for(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(large(FULL, 60), tmp_path))
    shown = "[...document.querySelectorAll('.model')].filter(each => each.checkVisibility()).length"
    assert browser.ask(shown) == 60
    browser.ask(f"({_SET})('search', 'input', 'LONGFORMER gb0124')")
    assert browser.ask(shown) == 10
    assert browser.ask("document.getElementById('shown').textContent") == "10 of 60 models"
    browser.ask(f"({_SET})('search', 'input', 'no such model')")
    assert browser.ask(shown) == 0
    browser.ask(f"({_SET})('search', 'input', '')")
    browser.ask(f"({_SET})('state', 'change', 'PROBLEM')")
    assert browser.ask(shown) == 20


def test_link_to_a_folded_change_opens_it(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(FULL, tmp_path))
    browser.ask("document.querySelectorAll('details').forEach(each => { each.open = false })")
    browser.ask("document.querySelector('.model a[href^=\"#c\"]').click()")
    browser.ask("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert browser.ask("document.getElementById(location.hash.slice(1)).open") is True


def test_page_says_everything_without_scripts(browser: Browser, tmp_path: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(written(FULL, tmp_path))
        assert browser.ask("document.getElementById('filter').checkVisibility()") is False
        assert browser.ask("[...document.querySelectorAll('.model')].every(each => each.checkVisibility())") is True
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_screen_readers_get_names_for_every_drawing_and_control(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(FULL, tmp_path))
    nameless = """
    [...document.querySelectorAll('svg:not([aria-hidden]), input, select')]
      .filter(each => !each.getAttribute('aria-label') && !each.querySelector(':scope > title')).length
    """
    assert browser.ask(nameless) == 0
