"""Findings as Markdown, for reports, pull requests and the summary of a CI job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting import text
from graphmend_codemod.reporting.report import FixStatus, Report, count_kinds, kind_of, shown_path


def render(report: Report) -> str:
    """The summary, a table of rules, and every site that is left alone with its reason."""
    parts = [text.summary(report)]
    if report.findings:
        parts.append("\n".join(rule_table(report.findings)))
    if any(finding.declined for finding in report.findings):
        parts += ["### Not applied", "\n".join(declined_list(report.findings))]
    if report.problems:
        problems = [f"- {code(shown_path(one.path, report.root))}: {escaped(one.message)}" for one in report.problems]
        parts += ["### Not checked", "\n".join(problems)]
    return "\n\n".join(parts)


def rule_table(findings: Iterable[Finding]) -> Iterator[str]:
    """Rows of a table: how many sites of each kind every rule has, in the order of the codes."""
    groups: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.code, finding.slug].append(finding)
    yield "| rule | sites | " + " | ".join(kind.value for kind in FixStatus) + " |"
    yield "|---|" + "---:|" * (len(FixStatus) + 1)
    for (rule, slug), found in sorted(groups.items()):
        kinds = count_kinds(found)
        yield f"| {rule} {slug} | {len(found)} | " + " | ".join(str(kinds[kind]) for kind in FixStatus) + " |"


def declined_list(findings: Iterable[Finding]) -> Iterator[str]:
    """One item for each site that is left alone and has a reason."""
    for finding in findings:
        if finding.declined and kind_of(finding) in {FixStatus.DECLINED, FixStatus.ADVICE}:
            where = code(f"{finding.path}:{finding.span.start_line}")
            yield f"- {where} {finding.code} {escaped(finding.message)}: {escaped(finding.declined)}"


def code(words: str) -> str:
    """A code span that holds any text."""
    words = printable(" ".join(words.split()))
    fence = "`" * (max((len(run) for run in _runs_of_backticks(words)), default=0) + 1)
    pad = " " if "`" in words else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def escaped(words: str) -> str:
    """Text on one line in which only code spans between single backticks keep a meaning."""
    words = printable(" ".join(words.split()))
    pieces = words.split("`")
    # A lone backtick, and a run of them, may pair otherwise than it looks, and leave what should be code unescaped.
    if len(pieces) % 2 == 0 or any(len(run) > 1 for run in _runs_of_backticks(words)):
        return _escaped_plain("`".join(pieces)).replace("`", "\\`")
    return "`".join(piece if index % 2 else _escaped_plain(piece) for index, piece in enumerate(pieces))


def _escaped_plain(words: str) -> str:
    for char in "\\*_[]<>|&":
        words = words.replace(char, f"\\{char}")
    return words


def _runs_of_backticks(words: str) -> list[str]:
    return [run for run in "".join(char if char == "`" else " " for char in words).split() if run]
