"""Views that continuous integration reads: GitLab's Code Quality and JUnit."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from graphmend_codemod.core.findings import Problem
from graphmend_codemod.reporting import gitlab, junit, sarif
from graphmend_codemod.reporting import json as json_view
from graphmend_codemod.reporting.report import Report
from graphmend_codemod.rules.framework.registry import all_rules


def test_gitlab_gets_a_place_a_severity_and_a_fingerprint_for_each(report: Report) -> None:
    entries = json.loads(gitlab.render(report))
    assert [entry["check_name"] for entry in entries][:4] == [each.code for each in report.findings]
    assert {entry["severity"] for entry in entries[:4]} == {"minor", "info"}
    assert entries[0]["location"]["path"] == "package/model.py"
    assert entries[0]["location"]["positions"]["begin"]["line"] == 3
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
    assert "not applied: `y` has another shape" in entries[1]["description"]


def test_two_equal_lines_have_two_fingerprints(report: Report) -> None:
    twice = replace(report, findings=(report.findings[0], report.findings[0]), problems=())
    first, second = json.loads(gitlab.render(twice))
    assert first["fingerprint"] != second["fingerprint"]


def test_junit_fails_what_can_be_fixed_and_skips_the_rest(report: Report) -> None:
    report = replace(report, problems=(Problem("bad.py", 'not <valid> & "so"', 3),))
    suite = ElementTree.fromstring(junit.render(report))[0]
    counts = {name: int(suite.get(name, "")) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 5, "failures": 1, "errors": 1, "skipped": 3}
    assert [child.tag for case in suite for child in case] == ["failure", "skipped", "skipped", "skipped", "error"]
    assert suite[4][0].get("message") == 'not <valid> & "so"'


def test_junit_of_a_clean_run_has_a_case_that_passes(report: Report) -> None:
    suite = ElementTree.fromstring(junit.render(replace(report, findings=(), problems=())))[0]
    assert (suite.get("tests"), len(suite[0])) == ("1", 0)


def test_programs_get_the_address_of_the_page_where_one_is_published(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = all_rules()[:1]
    assert json.loads(json_view.render(report))["findings"][0]["url"] is None
    assert "helpUri" not in json.loads(sarif.render(report, rules))["runs"][0]["tool"]["driver"]["rules"][0]
    monkeypatch.setenv("GRAPHMEND_DOCS_URL", "https://docs.example.org")
    page = "https://docs.example.org/rules/GM101-tensor-if-assign.html"
    assert json.loads(json_view.render(report))["findings"][0]["url"] == page
    described = json.loads(sarif.render(report, rules))["runs"][0]["tool"]["driver"]["rules"][0]
    assert described["helpUri"] == page
    assert page in json.loads(gitlab.render(report))[0]["description"]
