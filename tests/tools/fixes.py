"""The public entry points on one text: *noop*, *transformed*, *declined*."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.engine.api import CheckResult, FixResult
from graphmend_codemod.rules.framework.examples import module_text

PROJECT = Path(__file__).parent / "no_project_here"
"""A project root without files: the text under test stands alone."""

SUBJECT_PATH = PROJECT / "subject.py"

MOVED_LOOP = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, mask: torch.BoolTensor):
        places = torch.full((mask.shape[0], 4), -1)
        for row, chosen in enumerate(mask):
            found = torch.where(chosen)[0]
            places[row, found] = 1
        return places * 2
"""
"""A loop that moves into a function of its own: a torch before 2.4 calls no operator there, and the fix is declined."""


def settings_with(**changes: Any) -> Settings:
    """Default settings of the empty project, with changes."""
    return Settings(root=PROJECT)._replace(**changes)


def fixed(source: str, **changes: Any) -> tuple[str, FixResult]:
    """`source` after `fix`, and what `fix` says about it."""
    result = api.fix_text(source.encode(), SUBJECT_PATH, settings_with(**changes))
    assert not result.problems, result.problems
    after = result.fixes[0].after.decode() if result.fixes else source
    return after, result


def fixed_among(root: Path, source: str, others: Mapping[str, str], **settings: Any) -> tuple[str, list[str]]:
    """`source` fixed as `model.py` beside other files, and the reasons that are left in it."""
    files = {"model.py": source, **others}
    for name, text in files.items():
        (root / name).write_text(dedent(text))
    result = api.fix([root / "model.py"], Settings(root)._replace(**settings), write=True, cache=False)
    assert not result.problems
    return (root / "model.py").read_text(), [each.declined or "" for each in result.remaining]


def checked(source: str, **changes: Any) -> CheckResult:
    """What `check` says about `source`."""
    result = api.check_text(source.encode(), SUBJECT_PATH, settings_with(**changes))
    assert not result.problems, result.problems
    return result


def noop(source: str, **changes: Any) -> None:
    """Assert that nothing is found in `source`, and so nothing changed."""
    __tracebackhide__ = True
    source = dedent(source)
    ast.parse(source)
    after, result = fixed(source, **changes)
    assert result.remaining == ()
    assert after == source


def transformed(source: str, expected: str, **changes: Any) -> FixResult:
    """Assert that `source` becomes `expected`, which must parse, and that fixing that again changes nothing."""
    __tracebackhide__ = True
    source, expected = dedent(source), dedent(expected)
    ast.parse(expected)
    after, result = fixed(source, **changes)
    assert after == expected
    again, _ = fixed(after, **changes)
    assert again == after, "fixing the result again changes it"
    return result


def declined(source: str, because: str, **changes: Any) -> Finding:
    """Assert that `source` is found, left alone, and that a reason contains `because`.

    What `fix` leaves is what `check` finds in the same text, which `test_examples.py` compares: one of both is enough.
    """
    __tracebackhide__ = True
    source = dedent(source)
    after, result = fixed(source, **changes)
    assert after == source
    reasons = [finding.declined for finding in result.remaining]
    for finding in result.remaining:
        if finding.declined is not None and because in finding.declined:
            return finding
    raise AssertionError(f"no finding was declined because {because!r}; reasons: {reasons}")


def embedded(statements: str, setup: str) -> str:
    """`statements` in the place of the line `...` of `setup`; module text as it is when there is no setup."""
    return module_text(statements, setup)
