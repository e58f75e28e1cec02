"""A report that is too long for a pull request's text: all of it is attached, in parts that read by themselves."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from graphmend_codemod.bot.split_markdown import split
from graphmend_codemod.forge.github import GitHub
from tests.forge.tools import Hub
from tests.repository.tools import BROKEN, CLEAN


@pytest.fixture
def long(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A repository with more sites than a small forge takes."""
    monkeypatch.setattr(GitHub, "body_limit", 3_600)
    monkeypatch.setattr(GitHub, "report_limit", 2_500)
    for number in range(12):
        hub.clone.write(f"zoo/model_{number}.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    return hub


def sites(texts: list[str]) -> set[str]:
    return set(re.findall(r"zoo/model_\d+\.py:\d+", "\n".join(texts)))


def test_it_is_with_the_checks_of_the_commit(long: Hub) -> None:
    long.fake.apps.add("bot")
    assert long.pr().code == 0
    (pull,), checks = long.pulls, long.fake.repos["octo/zoo"].checks
    assert "see the full report in the checks" in pull.body
    assert len(checks) > 1
    assert {one["head_sha"] for one in checks} == {long.tip}
    assert len(sites([one["output"]["text"] for one in checks])) == 24
    assert pull.comments == []
    assert long.pr().out.startswith("unchanged")
    assert long.fake.repos["octo/zoo"].checks == checks


def test_without_the_right_to_make_checks_it_is_in_comments_that_are_kept_up_to_date(long: Hub) -> None:
    ran = long.pr()
    assert (ran.code, ran.err) == (0, "")
    (pull,) = long.pulls
    before = len(pull.comments)
    assert before > 1
    assert all(text.startswith("<details><summary>graphmend report, part") for text in pull.comments)
    assert len(sites(pull.comments)) == 24
    for number in range(4):
        long.clone.write(f"zoo/model_{number}.py", CLEAN)
    long.clone.commit()
    long.push("main")
    ran = long.pr()
    assert (ran.out.split()[0], ran.err) == ("updated", "")
    assert len(pull.comments) == before
    assert len(sites([pull.body])) == 16
    assert all("this comment is now empty" in text for text in pull.comments)


def test_a_report_that_fits_is_not_attached(hub: Hub) -> None:
    hub.pr()
    assert hub.pulls[0].comments == []
    assert hub.asked("check-runs") == 0


def test_a_dry_run_tells_that_it_would_be_attached(long: Hub) -> None:
    assert "would attach the full report in" in long.pr("--dry-run").out
    assert long.asked("^POST /api") == 0


def test_a_report_that_cannot_be_attached_costs_only_a_remark(long: Hub) -> None:
    long.fail("POST", "/comments$", 403, message="no comments here")
    ran = long.pr()
    assert (ran.code, len(long.pulls)) == (0, 1)
    assert "the full report is not attached" in ran.err


_LINES = """\
- `a.py:1` in `f`: häßlich
text

### head
| a | b |
|---|---|
| 1 | 2 |
```diff
```
<details><summary>more</summary>
</details>
+ code
"""
LINES = st.lists(st.sampled_from(_LINES.splitlines()), max_size=60)


_FOLDED = ["<details><summary>more</summary>"] * 4


@settings(max_examples=150, deadline=None)
@example(lines=[*_FOLDED, "- `a.py:1` in `f`: häßlich"], limit=200)
@example(
    lines=["- `a.py:1`", *_FOLDED[1:], "| a | b |", "|---|---|", _FOLDED[0], "- `a.py:1` in `f`: häßlich"], limit=204
)
@given(lines=LINES, limit=st.integers(200, 500))
def test_parts_have_room_and_balance(lines: list[str], limit: int) -> None:
    parts = split(
        "\n".join(f"{line} {n}" if line.startswith(("-", "+")) else line for n, line in enumerate(lines)), limit
    )
    assert all(len(part.encode()) <= limit for part in parts)
    for part in parts[:-1]:
        outside = re.sub(r"^```.*?^```$", "", part, flags=re.MULTILINE | re.DOTALL)
        assert outside.count("<details") >= outside.count("</details>") - lines.count("</details>")
    kept = [line for part in parts for line in part.splitlines() if line.startswith(("-", "+"))]
    assert kept == [f"{line} {n}" for n, line in enumerate(lines) if line.startswith(("-", "+"))]


def test_a_table_keeps_its_head_and_a_fence_its_kind() -> None:
    table = "| a | b |\n|---|---|\n" + "".join(f"| {n} | x |\n" for n in range(40))
    parts = split(f"{table}\n\n```diff\n" + "+ line\n" * 40 + "```\n", 150)
    pages = [MarkdownIt("gfm-like", {"linkify": False}).render(part) for part in parts]
    assert sum(page.count("<td>") for page in pages) == 80
    assert all(page.count("<table>") == page.count("</table>") for page in pages)
    assert sum("language-diff" in page for page in pages) > 1


def test_a_line_that_is_too_long_is_cut() -> None:
    (part,) = split("x" * 1000, 100)
    assert len(part) <= 100
    assert part.endswith("...\n")
    assert split("", 100) == ()
