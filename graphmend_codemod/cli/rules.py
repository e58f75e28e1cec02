"""`graphmend rule CODE` and `graphmend rules`: what the rules do, from their own words."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from graphmend_codemod.cli import options
from graphmend_codemod.core.terminal import say

if TYPE_CHECKING:
    from graphmend_codemod.rules.framework.rule import Rule


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register both commands."""
    one = options.command(
        subparsers,
        "rule",
        "explain a rule",
        "Explain a rule: what it finds, why that breaks the graph, the fix, and when the fix is declined.",
        "examples:\n  graphmend rule GM101\n  graphmend rule GM101 --output-format json\n",
    )
    one.add_argument("code", metavar="CODE", help="a rule's code or name")
    every = options.command(
        subparsers,
        "rules",
        "list all rules",
        "List all rules, one per line.",
        "examples:\n  graphmend rules\n  graphmend rules --output-format json\n",
    )
    for parser in (one, every):
        parser.add_argument("--output-format", choices=("text", "json"), default="text", help="[default: text]")


def run(args: argparse.Namespace) -> int:
    """Print and return the exit code."""
    from graphmend_codemod.core.colour import paint_for
    from graphmend_codemod.reporting import rules as pages
    from graphmend_codemod.rules.framework.registry import all_rules

    paint = paint_for(sys.stdout, os.environ)
    if args.command == "rule":
        rule = _wanted(args.code, all_rules())
        lines = [pages.as_json(rule)] if args.output_format == "json" else pages.text(rule, paint)
    else:
        rules = all_rules()
        lines = [pages.as_json(rules)] if args.output_format == "json" else pages.table(rules, paint)
    for line in lines:
        say(line)
    return 0


_FORMER = {
    "number-grows": "GM110",
    "shifted-range": "GM404",
    "end-of-range": "GM402",
    "joined-sizes": "GM402",
    "number-in-tensor": "GM402",
    "rows-filled": "GM508",
}
"""Codes of rules by the names that they had before."""


def _wanted(word: str, rules: tuple[Rule, ...]) -> Rule:
    code = _FORMER.get(word.lower(), word.upper())
    for rule in rules:
        if code == rule.code or word.lower() == rule.slug:
            return rule
    import difflib

    from graphmend_codemod.core.settings import looks_like_a_code
    from graphmend_codemod.rules.framework.retired import RETIRED

    if code in RETIRED:
        raise options.CommandError(f"{code} is no longer a rule: {RETIRED[code]}")

    names = {name: rule.code for rule in rules for name in (rule.code, rule.slug)}
    typed = word.upper()
    meant = typed[:2] + typed[2:].translate(str.maketrans("OIL", "011"))  # letters in the place of digits
    codes = difflib.get_close_matches(meant, names) if looks_like_a_code(word) else []
    close = [*codes, *difflib.get_close_matches(word.lower(), [rule.slug for rule in rules])]
    hint = f" (did you mean {' or '.join(f'`{name}`' for name in dict.fromkeys(close))}?)" if close else ""
    raise options.CommandError(f"there is no rule `{word}`{hint}; `graphmend rules` lists all of them")
