"""What changed around a line of the project since another file was committed: why a baseline does not know of it."""

from __future__ import annotations

import re
from pathlib import Path

from graphmend_codemod.repository.git import Git, RepositoryError

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(?P<start>\d+)(?:,(?P<count>\d+))? @@")
_MOST_LINES = 12


def since(reference: Path, path: Path, line: int) -> list[str]:
    """Words and a hunk of `git diff` on how `path` changed around `line` since `reference` was committed last.

    Empty where git cannot tell: outside of a repository, in a shallow clone, where `reference` is not committed.
    """
    git = Git(reference.parent)
    try:
        if git.text("rev-parse", "--is-shallow-repository").strip() != "false":
            return []
        commit = git.text("log", "-1", "--format=%h", "--", reference.name).strip()
        if not commit:
            return []
        diff = git.text("diff", "--no-color", "--no-ext-diff", "-U1", commit, "--", str(path.resolve()))
    except RepositoryError:
        return []
    hunk = _hunk(diff.splitlines(), line)
    if not hunk and _is_new(git, commit, path):
        return [f"the file is new since {commit}, which wrote {reference.name}"]
    if not hunk:
        return [f"its lines did not change since {commit}: another input, setting or version of torch leads there"]
    return [f"changed since {commit}, which wrote {reference.name}:", *hunk]


def _is_new(git: Git, commit: str, path: Path) -> bool:
    """Whether a commit does not have a file."""
    return not git.text("ls-tree", "--name-only", commit, "--", str(path.resolve())).strip()


def _hunk(diff: list[str], line: int) -> list[str]:
    """The hunk whose new lines hold `line`, cut around it where it is long."""
    starts = [(number, match) for number, text in enumerate(diff) if (match := _HUNK.match(text))]
    for number, match in starts:
        first, count = int(match["start"]), int(match["count"] or 1)
        if not first <= line < first + count:
            continue
        end = next((other for other, _ in starts if other > number), len(diff))
        body, now, at = diff[number + 1 : end], first, 0
        for position, text in enumerate(body):
            at = position if now <= line else at
            now += not text.startswith("-")
        start = max(0, at - _MOST_LINES // 2)
        return [diff[number], *body[start : start + _MOST_LINES]]
    return []
