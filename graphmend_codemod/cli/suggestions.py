""" "Did you mean" suggestions for misspelled commands, options and choices."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)
_UNKNOWN = re.compile(r"unrecognized arguments: (.*)", re.DOTALL)


def with_suggestion(message: str, parser: argparse.ArgumentParser) -> str:
    """The message of a usage error with a suggestion behind it where something known is close."""
    wrong = _CHOICE.search(message)
    if wrong is not None:
        return message + _hint(wrong[1], re.findall(r"[\w-]+", wrong[2]))
    unknown = _UNKNOWN.search(message)
    if unknown is not None:
        words = [word.partition("=")[0] for word in unknown[1].split() if word.startswith("-")]
        return message + "".join(_hint(word, _options(parser)) for word in words[:1])
    return message


def _hint(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word[:80], sorted(set(known)), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """The long options of a parser and of its commands."""
    found: list[str] = []
    for action in parser._actions:
        found += [option for option in action.option_strings if option.startswith("--")]
        if isinstance(action, argparse._SubParsersAction):
            found += [option for one in action.choices.values() for option in _options(one)]
    return found
