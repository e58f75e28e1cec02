"""Documents: every link leads somewhere, and the site is built from them without the network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import build_site
from tests.repository.tools import CHECKOUT


def test_every_link_in_a_document_leads_to_a_file_and_a_heading() -> None:
    assert build_site.broken_links() == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/engine.md", "docs/proofs.md"])
def test_every_source_file_that_a_document_names_exists(page: str) -> None:
    named = set(re.findall(r"`([a-z_0-9/]+\.py)`", (CHECKOUT / page).read_text()))
    files = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)} == set()


def test_a_link_that_leads_nowhere_is_named_with_its_page(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "# One\n[a](docs/gone.md), [b](#two), [c](#one), `[d](x.md)`\n```\n[e](y.md)\n```\n"
    )
    assert build_site.broken_links(tmp_path) == [
        "README.md: docs/gone.md: there is no file docs/gone.md",
        "README.md: #two: README.md has no heading #two",
    ]


def test_every_document_is_in_the_navigation_or_linked_from_one_that_is() -> None:
    config = (CHECKOUT / "mkdocs.yml").read_text()
    named = {Path(path) for path in re.findall(r"[\w./-]+\.md\b", config.partition("\nnav:")[2])}
    reached = set(named)
    while more := {path for page in reached for _, path, _ in build_site.links(page) if path.suffix == ".md"} - reached:
        reached |= more
    documents = {path for path in build_site.pages() if path.parts[0] == "docs"}
    assert documents <= reached
    assert named <= set(build_site.pages())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    offline = (  # no connection can be made
        "import runpy, socket, sys; socket.socket.connect = None; sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [sys.executable, "-c", offline, str(CHECKOUT / "scripts/build_site.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in (*site.glob("*.html"), *(site / "docs").rglob("*.html")):
        loaded = re.findall(
            r"<(?:script|img|iframe|link)\b[^>]*(?:src|href)=\"?((?:https?:)?//[^\s\">]+)", page.read_text()
        )
        assert loaded == [], page


def test_search_knows_every_rule_page(site: Path) -> None:
    entries = json.loads((site / "search/search_index.json").read_text())["docs"]
    found = {entry["location"].partition("#")[0] for entry in entries}
    pages = {path.with_suffix(".html").as_posix() for path in build_site.pages() if path.parts[:2] == ("docs", "rules")}
    assert pages <= found
