"""What people see of a fleet: colours, earlier runs, CSV, and the live page."""

from __future__ import annotations

import csv
import http.client
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.fleet import history, report
from graphmend_codemod.fleet.results import CLEAN, FAILED, FINDINGS, LEFT, Row, Store
from graphmend_codemod.fleet.serve import HOST, make_server


def row(name: str, status: str, sites: int = 0, **more: int) -> Row:
    return Row(name, f"/clones/{name}", "check", status, sites=sites, **more)  # type: ignore[arg-type]


FIRST = (row("a", FINDINGS, 9, fixable=6), row("b", LEFT, 22), row("c", CLEAN), row("d", FAILED))
SECOND = (row("a", FINDINGS, 4, fixable=2), row("b", LEFT, 22), row("c", CLEAN))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The file of two runs."""
    file = tmp_path / "fleet.sqlite"
    store = Store(file)
    for rows in (FIRST, SECOND):
        store.begin("check")
        store.expect("check", 4, 0)
        for each in rows:
            store.keep(each)
    store.close()
    return file


def test_sites_that_cannot_be_fixed_are_not_green() -> None:
    page = report.as_html(FIRST)
    colours = {name: page.partition(f"<tr><td>{name}<td>check<td class=")[2].partition(">")[0] for name in "abcd"}
    assert colours == {"a": "changed", "b": "left", "c": "good", "d": "bad"}


def test_what_can_be_fixed_has_a_column_and_is_in_the_headline() -> None:
    assert report.headline(FIRST) == "4 repositories, 31 sites found, 6 can be fixed, 1 failed"
    assert "<th class=n>fixable" in report.as_html(FIRST)


def test_earlier_runs_are_told_apart(results: Path) -> None:
    store = Store(results)
    found = history.runs(store.everything())
    store.close()
    assert [(run.repositories, run.failed, run.sites, run.fixable) for run in found] == [(4, 1, 31, 6), (3, 0, 26, 2)]
    assert 'aria-label="Sites left after each run: 31, 26"' in report.as_html(SECOND, earlier=found)


def test_csv_holds_all_rows_of_all_runs_and_no_formula(results: Path, tmp_path: Path) -> None:
    store = Store(results)
    store.keep(row("=cmd()", CLEAN))
    store.close()
    file = tmp_path / "fleet.csv"
    assert main(["fleet", "report", "--results", str(results), "--csv", str(file)]) == 0
    rows = list(csv.DictReader(StringIO(file.read_text())))
    assert len(rows) == 8
    assert {each["name"] for each in rows} == {"a", "b", "c", "d", "'=cmd()"}
    assert rows[0]["fixable"] == "6"


def test_row_of_an_older_version_is_read(results: Path) -> None:
    store = Store(results)
    store._connection.execute("UPDATE repositories SET row = replace(row, '\"fixable\": 2, ', '')")
    assert [each.fixable for each in store.rows()] == [0, 0, 0]
    store.close()


@pytest.fixture
def port(results: Path) -> Iterator[int]:
    server = make_server(results, 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()
    thread.join(10)


def get(port: int, path: str, host: str = "localhost") -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    connection.request("GET", path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_live_page_shows_what_has_come_since(port: int, results: Path) -> None:
    status, text = get(port, "/")
    assert status == 200
    assert "check: 3 of 4 repositories are done" in text
    assert "connect-src &#x27;self&#x27;" in text or "connect-src 'self'" in text
    store = Store(results)
    store.keep(row("d", CLEAN))
    store.close()
    assert "check: all 4 repositories are done." in get(port, "/")[1]
    assert get(port, "/fleet.csv")[1].startswith("finished,name,")


def test_names_of_other_hosts_and_other_paths_are_refused(port: int) -> None:
    assert get(port, "/", host="evil.example")[0] == 403
    assert get(port, "/../fleet.sqlite")[0] == 404


def test_taken_port_is_told_with_the_way_out(port: int, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "serve", "--results", str(results), "--port", str(port)]) == 2
    assert "--port" in capsys.readouterr().err


def test_a_repository_that_was_checked_and_changed_is_counted_once() -> None:
    checked = Row("zoo", "/zoo", "check", "findings", sites=3, fixable=2)
    changed = Row("zoo", "/zoo", "migrate", "migrated", sites=3, fixable=2, fixed=2)

    assert report.headline([changed, checked]) == "1 repository, 3 sites found, 2 fixed, none failed"
