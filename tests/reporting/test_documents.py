"""Views of findings that programs read: JSON, SARIF, GitHub commands, Markdown."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.reporting import github, markdown, sarif, statistics
from graphmend_codemod.reporting import json as json_view
from graphmend_codemod.reporting.report import Report
from graphmend_codemod.rules.framework.rule import Contract, Cost, Rule

SCHEMA = json.loads((Path(__file__).parent.parent / "data" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
RULES = (
    Rule(
        "gm101_tensor_if_assign",
        "tensor-if-assign (GM101): an `if` that selects.\n\nWhy it breaks.",
        title="select with torch.where",
        contract=Contract(Cost.NONE),
    ),
    Rule(
        "gm107_tensor_while",
        "tensor-while (GM107): a loop.",
        title="",
        safety=Safety.ADVICE,
        contract=Contract(Cost.NONE),
    ),
)


def log(report: Report) -> Any:
    document = json.loads(sarif.render(report, RULES))
    jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(document)
    return document["runs"][0]


def test_sarif_has_rules_results_and_problems(report: Report) -> None:
    run = log(report)
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["GM101", "GM107"]
    assert [result["ruleId"] for result in run["results"]] == ["GM101", "GM101", "GM301", "GM107"]
    assert [result.get("ruleIndex") for result in run["results"]] == [0, 0, None, 1]
    assert [result["level"] for result in run["results"]] == ["warning", "note", "note", "note"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == (
        "cannot be parsed: invalid syntax"
    )


def test_sarif_without_findings_is_valid(project: Path) -> None:
    assert log(Report((), (), 0, project))["results"] == []


def test_sarif_regions_count_utf16_units_from_one(report: Report) -> None:
    run = log(report)
    assert run["columnKind"] == "utf16CodeUnits"
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    # the smiley takes four bytes, one character, two units; the umlauts one unit each
    assert region == {"startLine": 3, "startColumn": 27, "endLine": 3, "endColumn": 51}


def test_sarif_paths_are_relative_to_the_top_of_the_repository(report: Report) -> None:
    subprocess.run(["git", "init", "-q", str(report.root)], check=True)
    nested = replace(
        report,
        root=report.root / "package",
        findings=tuple(one._replace(path="model.py") for one in report.findings),
    )
    run = log(nested)
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "package/model.py", "uriBaseId": "SRCROOT"}
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == report.root.as_uri() + "/"


def test_sarif_escapes_paths(report: Report) -> None:
    odd = report.findings[0]._replace(path="a b/größe#1%.py")
    outside = report.findings[0]._replace(path="../out side.py")
    run = log(replace(report, findings=(odd, outside)))
    uris = [one["locations"][0]["physicalLocation"]["artifactLocation"] for one in run["results"]]
    assert uris[0]["uri"] == "a%20b/gr%C3%B6%C3%9Fe%231%25.py"
    assert uris[1] == {"uri": (report.root.parent / "out side.py").as_uri()}


def test_sarif_fingerprints_survive_lines_that_move_and_tell_twins_apart(report: Report) -> None:
    twins = replace(report, findings=(report.findings[0], report.findings[0]))
    before = [one["partialFingerprints"] for one in log(twins)["results"]]
    path = report.root / "package" / "model.py"
    path.write_bytes(b"# a new line above\n" + path.read_bytes())
    span = report.findings[0].span._replace(start_line=4, end_line=4)
    moved = report.findings[0]._replace(span=span)
    assert [one["partialFingerprints"] for one in log(replace(report, findings=(moved, moved)))["results"]] == before
    assert before[0] != before[1]


def test_json_has_characters_from_one_and_reasons(report: Report) -> None:
    document = json.loads(json_view.render(report))
    assert document["findings"][0] == {
        "code": "GM101",
        "slug": "tensor-if-assign",
        "path": "package/model.py",
        "cell": None,
        "location": {"line": 3, "column": 26},
        "end_location": {"line": 3, "column": 50},
        "function": "Net.forward",
        "message": "`if` on the tensor `x`",
        "kind": "safe",
        "fixable": True,
        "not_applied": None,
        "needs_torch": None,
        "url": None,
    }
    assert document["findings"][1]["not_applied"] == "`y` has another shape in each branch, `a | b`"
    assert [one["fixable"] for one in document["findings"]] == [True, False, False, False]
    assert document["problems"] == [
        {"path": "package/broken, old.py", "line": 7, "message": "cannot be parsed: invalid syntax"}
    ]
    assert document["summary"] == {
        "files": 5,
        "findings": 4,
        "unparsed_without_torch": 0,
        "safe": 1,
        "unsafe": 1,
        "opaque": 0,
        "declined": 1,
        "advice": 1,
    }
    assert document["root"] == str(report.root)


def test_json_statistics(report: Report) -> None:
    assert json.loads(statistics.as_json(report))[0] == {
        "code": "GM101",
        "slug": "tensor-if-assign",
        "count": 2,
        "safe": 1,
        "unsafe": 0,
        "opaque": 0,
        "declined": 1,
        "advice": 0,
    }


def test_github_commands_are_escaped(report: Report) -> None:
    odd = report.findings[1]._replace(
        path="a,b:c%/model.py", message="100% of\nlines", declined="`x`: no", slug="a,b:c"
    )
    lines = list(github.render(replace(report, findings=(report.findings[0], odd))))
    assert lines == [
        "::warning file=package/model.py,line=3,endLine=3,col=26,title=graphmend GM101 tensor-if-assign,endColumn=50"
        "::`if` on the tensor `x`",
        "::notice file=a%2Cb%3Ac%25/model.py,line=4,endLine=10,col=9,title=graphmend GM101 a%2Cb%3Ac"
        "::100%25 of%0Alines%0Anot applied: `x`: no",
        "::error file=package/broken%2C old.py,title=graphmend,line=7::cannot be parsed: invalid syntax",
    ]


def test_markdown_lists_rules_reasons_and_problems(report: Report) -> None:
    assert markdown.render(report) == (
        """\
Found 4 break sites in 1 of 5 files: 1 fixable with `graphmend fix`, 1 with --unsafe-fixes, 1 declined, 1 advice. \
1 could not be checked.

| rule | sites | safe | unsafe | opaque | declined | advice |
|---|---:|---:|---:|---:|---:|---:|
| GM101 tensor-if-assign | 2 | 1 | 0 | 0 | 1 | 0 |
| GM107 tensor-while | 1 | 0 | 0 | 0 | 0 | 1 |
| GM301 tensor-guard | 1 | 0 | 1 | 0 | 0 | 0 |

### Not applied

- `package/model.py:4` GM101 `if` on the tensor `x`: `y` has another shape in each branch, `a | b`

### Not checked

- `package/broken, old.py`: cannot be parsed: invalid syntax"""
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("`a*b` is *not* <b>", "`a*b` is \\*not\\* \\<b\\>"),
        ("a lone ` tick_", "a lone \\` tick\\_"),
        ("two\nlines", "two lines"),
    ],
)
def test_markdown_keeps_code_spans_and_escapes_the_rest(words: str, expected: str) -> None:
    assert markdown.escaped(words) == expected


def test_markdown_code_spans_hold_backticks() -> None:
    assert markdown.code("a`b") == "`` a`b ``"


@pytest.mark.parametrize("words", ["``` <img src=x> `", "`a` ``<b>`` `", "one ` <i>", "``<img>", "` `` <u> `` `"])
def test_markup_of_others_never_gets_through_odd_backticks(words: str) -> None:
    rendered = MarkdownIt("commonmark").render(markdown.escaped(words))
    assert not re.search(r"<(img|b|i|u)\b", rendered)
