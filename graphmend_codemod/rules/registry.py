"""Every rule, found by looking into this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from graphmend_codemod import rules
from graphmend_codemod.rules.base import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """All rules in the order of their codes."""
    found = []
    for module in pkgutil.iter_modules(rules.__path__):
        if module.name.startswith("gm"):
            found.append(importlib.import_module(f"{rules.__name__}.{module.name}").rule)
    return tuple(sorted(found, key=lambda rule: rule.code))


@cache
def rule_by_code(code: str) -> Rule | None:
    """The rule with this code, or None."""
    return next((rule for rule in all_rules() if rule.code == code), None)
