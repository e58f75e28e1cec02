"""The text of a migration's commits: what changes, why it is safe, what was measured."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence

from graphmend_codemod.core.findings import Finding, Safety
from graphmend_codemod.evaluation.port import MeasuredVersion, ModelResult
from graphmend_codemod.migrate.outcome import Migration, RuleCommit, TakenBack
from graphmend_codemod.reporting.recorded import holds_for
from graphmend_codemod.reporting.report import plural
from graphmend_codemod.reporting.rules import cost, explanation, summary
from graphmend_codemod.rules.framework.rule import Rule

_WIDTH = 72


def subject(rule: Rule, applied: Sequence[Finding], files: Collection[str], run: int = 0) -> str:
    """`graphmend: GM101 select with torch.where instead of branching (12 sites, 5 files)`.

    `run` counts the recorded runs up to the one that the sites broke in, and is part of it unless it is 0.
    """
    recorded = f", from recorded run {run}" if run else ""
    count = f"({plural(len(applied), 'site')}, {plural(len(files), 'file')})"
    return f"graphmend: {rule.code} {rule.title}{recorded} {count}"


def message(commit: RuleCommit, outcome: Migration, version: str) -> str:
    """The whole message, its body wrapped at 72 columns."""
    models, rule, applied = outcome.models, commit.rule, commit.applied
    blocks = [commit.subject, _filled(_sentence(summary(rule)))]
    blocks += [_paragraph(block) for block in re.split(r"\n\s*\n", explanation(rule)) if block.strip()]
    blocks.append(_filled(_safety(rule, applied)))
    if commit.round:
        blocks += _recorded(commit)
    if models:
        blocks.append("\n".join(_measured(models)))
    taken = [each for each in outcome.taken_back if each.finding.code == rule.code]
    if taken:
        blocks.append("\n".join(_taken_back(taken)))
    blocks.append(_filled(f"Made by graphmend {version}; `graphmend rule {rule.code}` explains the rule."))
    return "\n\n".join(blocks) + "\n"


def breaks(arm: MeasuredVersion) -> str:
    """How many graph breaks, or that nobody knows."""
    return "not measured" if arm.breaks is None else str(arm.breaks)


def before_and_after(result: ModelResult) -> str:
    """`3 -> 0`, or `not measured`."""
    if result.before.breaks is None and result.after.breaks is None:
        return "not measured"
    return f"{breaks(result.before)} -> {breaks(result.after)}"


def measured_with(models: Sequence[ModelResult]) -> str:
    """` with python 3.11.7, torch 2.13.0`, or nothing when no model could be measured."""
    for result in models:
        known = [f"{name} {version}" for name, version in result.versions if name in {"python", "torch"}]
        if known:
            return f" with {', '.join(known)}"
    return ""


def _safety(rule: Rule, applied: Sequence[Finding]) -> str:
    contract = rule.contract
    compiled = (
        f"Under torch.compile: exceptions {contract.compiled_exceptions}; logs, prints and warnings "
        f"{contract.compiled_logs}; attributes, buffers and random state {contract.compiled_state}. "
        f"Cost when compiled: {cost(rule)}."
    )
    unsafe = sum(finding.safety is Safety.UNSAFE for finding in applied)
    if unsafe:
        return (
            f"Review with care: {unsafe} of {plural(len(applied), 'site')} got an unsafe fix (--unsafe-fixes), "
            f"which is not proven to keep eager behaviour. {compiled}"
        )
    return (
        "Why it is safe: in eager mode outputs, gradients, exceptions, logs and state are exactly what they were. "
        f"{compiled}"
    )


def _recorded(commit: RuleCommit) -> Iterator[str]:
    """What the fixes owe to a run, and for which calls operators hold."""
    yield _filled(
        f"The sites broke graphs in recorded run {commit.round} of the models below (`graphmend migrate --record`), "
        "compiled and without torch.compile."
    )
    operators = [(finding, holds) for finding in commit.applied if (holds := holds_for(finding))]
    if operators:
        said = "What these operators give is known for calls like the recorded ones; others take the author's path:"
        lines = [_filled(said)]
        for finding, holds in operators:
            words = textwrap.wrap("; ".join(holds), _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
            lines += [f"  {finding.path}:{finding.span.start_line}", *(f"    {each}" for each in words)]
        yield "\n".join(lines)


def _measured(models: Sequence[ModelResult]) -> Iterator[str]:
    yield f"Graph breaks of the whole branch, before -> after{measured_with(models)}:"
    for result in models:
        yield f"  {result.model}  {before_and_after(result)}"


def _taken_back(taken: Sequence[TakenBack]) -> Iterator[str]:
    yield "Reverted after evaluation:"
    for each in taken:
        yield f"  {each.finding.path}:{each.finding.span.start_line} {each.reason}"


def _paragraph(block: str) -> str:
    """Running text is filled; a list or an indented block stays as it is."""
    lines = block.strip("\n").splitlines()
    if any(line.startswith((" ", "\t", "- ", "* ")) for line in lines):
        return "\n".join(line.rstrip() for line in lines)
    return _filled(block)


def _filled(words: str) -> str:
    return textwrap.fill(" ".join(words.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)


def _sentence(words: str) -> str:
    return words if words.endswith((".", "!", "?", ":")) else f"{words}."
