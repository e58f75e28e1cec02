"""One generated module through `fix`, and what there is to complain about."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from graphmend_codemod import runner
from graphmend_codemod.rules.registry import all_rules
from tests.property.generator import generate
from tests.property.program import Program, shrink
from tests.tools.behaviour import FEW_SCENARIOS, differences
from tests.tools.compiled import compiled_differences
from tests.tools.fixes import SUBJECT_PATH, settings_with
from tests.tools.observe import Scenario

_COMPILED = (Scenario(gradients="off"), Scenario(training=True, gradients="inner"))


@dataclass(frozen=True)
class Outcome:
    """What became of one case. `applied` and `declined` count findings by rule; `complaints` is empty when all is well.

    `after` is the fixed source, or the source itself. `reasons` are those of declined findings.
    """

    seed: int
    program: Program
    after: str
    applied: Counter[str]
    declined: Counter[str]
    reasons: tuple[str, ...]
    complaints: tuple[str, ...]
    compiled: bool = False

    @property
    def changed(self) -> bool:
        """True when a fix was applied."""
        return self.after != self.program.text


@dataclass(frozen=True)
class Fixed:
    """A text after `fix`, and what `fix` said."""

    text: str
    applied: Counter[str] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def run_case(seed: int, *, compiled: bool = False) -> Outcome:
    """Generate, fix, compare in eager mode, and when `compiled` under `torch.compile` as well."""
    program = generate(seed)
    fixed = fix(program.text)
    complaints = tuple(itertools.islice(_complaints(program, fixed, compiled), 5))
    return Outcome(seed, program, fixed.text, fixed.applied, fixed.declined, fixed.reasons, complaints, compiled)


def shrunk(outcome: Outcome, tries: int = 300) -> Outcome:
    """A smaller module with complaints of the same kind."""
    kinds = {_kind(complaint) for complaint in outcome.complaints}

    def fails(program: Program) -> bool:
        if not _parses(program.text):
            return False
        found = next(_complaints(program, fix(program.text), outcome.compiled), None)
        return found is not None and _kind(found) in kinds

    program = shrink(outcome.program, fails, tries)
    fixed = fix(program.text)
    complaints = tuple(itertools.islice(_complaints(program, fixed, outcome.compiled), 3))
    return Outcome(
        outcome.seed, program, fixed.text, fixed.applied, fixed.declined, fixed.reasons, complaints, outcome.compiled
    )


def report(outcome: Outcome) -> str:
    """What a developer needs to see of a failure."""
    return "\n".join(
        [
            f"seed {outcome.seed}, rules applied: {dict(outcome.applied)}",
            *outcome.complaints,
            "---- before ----",
            _from_forward(outcome.program.text),
            "---- after ----",
            _from_forward(outcome.after),
            f"---- inputs ---- {list(outcome.program.inputs)}",
        ]
    )


def _kind(complaint: str) -> str:
    return complaint.partition(":")[0].partition(",")[0]


def _from_forward(text: str) -> str:
    """The part of a module that differs from case to case, with the helpers that a fix may have placed before."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if "def forward(" in line)
    if first and lines[first - 1].strip().startswith("@"):
        first -= 1
    return "\n".join(lines[first:])


@lru_cache(maxsize=1024)
def fix(text: str) -> Fixed:
    """`text` with safe fixes."""
    result = runner.fix_text(text.encode(), SUBJECT_PATH, settings_with())
    after = result.fixes[0].after.decode() if result.fixes else text
    refused = [finding for finding in result.remaining if finding.declined is not None]
    return Fixed(
        text=after,
        applied=Counter(finding.code for fix in result.fixes for finding in fix.applied),
        declined=Counter(finding.code for finding in refused),
        reasons=tuple(f"{finding.code} {finding.declined}" for finding in refused),
        problems=tuple(str(problem) for problem in result.problems),
    )


def _parses(text: str) -> bool:
    """False for a program that has lost the loop around its `break`."""
    try:
        compile(text, "subject.py", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _complaints(program: Program, fixed: Fixed, compiled: bool) -> Iterator[str]:
    yield from (f"problem: {problem}" for problem in fixed.problems)
    if fixed.text == program.text:
        if fixed.applied:
            yield "a fix was applied and nothing changed"
        return
    try:
        ast.parse(fixed.text)
    except SyntaxError as error:
        yield f"not Python any more: {error}"
        return
    again = fix(fixed.text)
    if again.text != fixed.text:
        yield f"fixing again changes it: {dict(again.applied)}"
    for difference in differences(program.text, fixed.text, program.inputs, scenarios=FEW_SCENARIOS):
        yield f"eager: {difference}"
    if compiled:
        yield from _compiled_complaints(program, fixed)


def _compiled_complaints(program: Program, fixed: Fixed) -> Iterator[str]:
    """Where compiled code is worse than that of the original.

    Gradients of a whole forward under `no_grad` are left out: there compiled inputs come back detached. State is, too,
    after a rule that does not promise it.
    """
    before, after, inputs = program.text, fixed.text, program.inputs
    state = all(rule.contract.compiled_state == "kept" for rule in all_rules() if rule.code in fixed.applied)
    for scenario in _COMPILED[:1] if program.signature.startswith("@") else _COMPILED:
        found = next(compiled_differences(after, inputs, scenarios=[scenario], state=state), None)
        if found is not None and next(compiled_differences(before, inputs, scenarios=[scenario]), None) is None:
            yield f"compiled: {found}"
