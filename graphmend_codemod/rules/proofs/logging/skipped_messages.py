"""Branches without their messages: what a compile path leaves out of a branch that it stands for."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.argument_effects import effect_of
from graphmend_codemod.rules.proofs.logging.log_calls import find_log_call
from graphmend_codemod.rules.proofs.logging.log_guard import effect, why_not


def without_messages(site: Site, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a branch but for those that only tell something, and may be left out of compiled code.

    That are log calls, and `if verbose: print(...)` around nothing else.
    """
    return [statement for statement in body if not _only_tells(site, statement)]


def _only_tells(site: Site, statement: ast.stmt) -> bool:
    if not isinstance(statement, (ast.Expr, ast.If)):
        return False
    there = site.at(statement)
    if there is None:
        return False
    if isinstance(statement, ast.If):
        told = all(_only_tells(site, each) for each in statement.body)
        return told and not statement.orelse and effect_of(there, statement.test) is None
    call = find_log_call(there, statement.value)
    return call is not None and why_not(there, call) is None and effect(there, call) is None
