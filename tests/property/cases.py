"""One generated module through `fix`, and what there is to complain about."""

from __future__ import annotations

import ast
import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.engine.api import FixResult
from graphmend_codemod.rewriting.concrete import verify_concrete
from tests.property.company import joined
from tests.property.generator import generate
from tests.property.program import Program, shrink
from tests.tools.behaviour import FEW_SCENARIOS, differences
from tests.tools.compiled import compiled_differences
from tests.tools.fixes import SUBJECT_PATH, settings_with
from tests.tools.observe import Scenario
from tests.tools.pages import kind_of, sentence

_COMPILED = (Scenario(gradients="off"), Scenario(training=True, gradients="inner"))


@dataclass(frozen=True)
class Outcome:
    """What became of one case. `applied` and `declined` count findings by rule; `complaints` is empty when all is well.

    `after` is the fixed source, or the source itself. `reasons` are those of declined findings. `expected` are
    differences in compiled code, each with the sentence of the rule's page that tells of it.
    """

    seed: int
    program: Program
    after: str
    applied: Counter[str]
    declined: Counter[str]
    reasons: tuple[str, ...]
    complaints: tuple[str, ...]
    compiled: bool = False
    expected: tuple[tuple[str, str], ...] = ()
    opaque: bool = False
    backend: str = ""

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


def run_case(seed: int, *, compiled: bool = False, opaque: bool = False, backend: str = "") -> Outcome:
    """Generate, fix, compare in eager mode, and when `compiled` under `torch.compile` as well."""
    return _outcome(seed, generate(seed), 5, compiled=compiled, opaque=opaque, backend=backend)


def shrunk(outcome: Outcome, tries: int = 300) -> Outcome:
    """A smaller module with complaints of the same kind."""
    kinds = {_kind(complaint) for complaint in outcome.complaints}

    def again(program: Program, most: int) -> Outcome:
        how = {"compiled": outcome.compiled, "opaque": outcome.opaque}
        return _outcome(outcome.seed, program, most, **how, backend=outcome.backend)

    def fails(program: Program) -> bool:
        if not _parses(program.text):
            return False
        tried = again(program, 1)
        return any(_kind(found) in kinds for found in tried.complaints)

    return again(shrink(outcome.program, fails, tries), 3)


def _outcome(seed: int, program: Program, most: int, *, compiled: bool, opaque: bool, backend: str) -> Outcome:
    fixed = fix(program.text, program.company, opaque=opaque)
    again = fix(fixed.text, program.company, opaque=opaque)
    expected: list[tuple[str, str]] = []
    found = _complaints(program, fixed, again, expected if compiled else None, backend)
    complaints = tuple(itertools.islice(found, most))
    return Outcome(
        seed,
        program,
        fixed.text,
        fixed.applied,
        fixed.declined,
        fixed.reasons,
        complaints,
        compiled,
        tuple(expected),
        opaque,
        backend,
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
            *(("---- the other file ----", outcome.program.company) if outcome.program.company else ()),
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


def fix(text: str, company: str = "", *, opaque: bool = False) -> Fixed:
    """`text` with safe fixes, or opaque ones too, in a project with the file `company` when there is one."""
    return _fix(text, company, opaque)


@lru_cache(maxsize=1024)
def _fix(text: str, company: str, opaque: bool) -> Fixed:
    result = _fixed_in_project(text, company, opaque) if company else _fixed_alone(text, opaque)
    changed = {change.path: change for change in result.fixes}
    after = changed[SUBJECT_PATH.name].after.decode() if SUBJECT_PATH.name in changed else text
    refused = [finding for finding in result.remaining if finding.declined is not None]
    return Fixed(
        text=after,
        applied=Counter(finding.code for change in result.fixes for finding in change.applied),
        declined=Counter(finding.code for finding in refused),
        reasons=tuple(f"{finding.code} {finding.declined}" for finding in refused),
        problems=tuple(str(problem) for problem in result.problems),
    )


def _fixed_alone(text: str, opaque: bool) -> FixResult:
    return api.fix_text(text.encode(), SUBJECT_PATH, settings_with(opaque=opaque), proof=verify_concrete)


def _fixed_in_project(text: str, company: str, opaque: bool) -> FixResult:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        (root / SUBJECT_PATH.name).write_text(text, encoding="utf-8")
        (root / "company.py").write_text(company, encoding="utf-8")
        settings = Settings(root=root)._replace(opaque=opaque)
        return api.fix([root / SUBJECT_PATH.name], settings, write=False, cache=False, proof=verify_concrete)


def _parses(text: str) -> bool:
    """False for a program that has lost the loop around its `break`."""
    try:
        compile(text, "subject.py", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _complaints(
    program: Program, fixed: Fixed, again: Fixed, expected: list[tuple[str, str]] | None, backend: str
) -> Iterator[str]:
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
    if again.text != fixed.text:
        yield f"fixing again changes it: {dict(again.applied)}"
    before, after = joined(program.text, program.company), joined(fixed.text, program.company)
    try:
        for difference in differences(before, after, program.inputs, name=program.name, scenarios=FEW_SCENARIOS):
            yield f"eager: {difference}"
    except Exception as error:  # torch.jit.script, say, that does not take the fixed module
        yield f"eager, cannot be made: {type(error).__name__}: {error}"
        return
    if expected is not None and "torch.jit" not in program.company:  # a script is not compiled
        yield from _compiled_complaints(program, fixed, expected, backend)


def _compiled_complaints(
    program: Program, fixed: Fixed, expected: list[tuple[str, str]], backend: str
) -> Iterator[str]:
    """Where compiled code is worse than that of the original, and no page tells of it; `expected` gets the others.

    Gradients of a whole forward under `no_grad` are left out: there compiled inputs come back detached. So are
    arrays of NumPy: Dynamo traces them as tensors, where eager mode raises, and later calls may take their branches.
    """
    before, after = joined(program.text, program.company), joined(fixed.text, program.company)
    inputs, name = [given for given in program.inputs if ".numpy()" not in given], program.name
    for scenario in _COMPILED[:1] if program.signature.startswith("@") else _COMPILED:
        if (
            next(compiled_differences(before, inputs, name=name, scenarios=[scenario], backend=backend), None)
            is not None
        ):
            continue
        for found in compiled_differences(after, inputs, name=name, scenarios=[scenario], backend=backend):
            where, _, _ = found.partition(": ")
            page = sentence(kind_of(found, where), fixed.applied, found)
            if not page:
                yield f"compiled: {found}"
                break
            expected.append((found, page))
