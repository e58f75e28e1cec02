"""Diffs that git takes, byte for byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.reporting.diff import unified

BODIES = [
    (b"a\nb\nc\n", b"a\nB\nc\n"),
    (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
    (b"a\nb", b"a\nB"),
    (b"a\nb", b"a\nb\n"),
    (b"a\nb\n", b"a\nb"),
    (b"a\rb\rc", b"a\rB\rc"),
    (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n"),
    (b"# caf\xe9\nx\n", b"# caf\xe9\ny\n"),
    (b"a\x0cb\nc\n", b"a\x0cb\nd\n"),
    (b"a\xe2\x80\xa8b\n1\n", b"a\xe2\x80\xa8b\n2\n"),
    (b"", b"a\n"),
    (b"\t--- x\n+++ y\n", b"\t--- x\n+++ z\n"),
]


@pytest.mark.parametrize(("before", "after"), BODIES)
@pytest.mark.parametrize("name", ["model.py", "with space.py", 'quo"te\\.py', "größe.py", "deep/er/model.py"])
def test_git_applies_the_diff(tmp_path: Path, name: str, before: bytes, after: bytes) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    diff = unified(name, before, after)
    apply = ["git", "-C", str(tmp_path), "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(apply, input=diff, check=True)
    assert path.read_bytes() == after


def test_nothing_changed_gives_no_diff() -> None:
    assert unified("a.py", b"x\n", b"x\n") == b""


def test_colours_are_around_lines_only() -> None:
    plain = unified("a.py", b"x\nsame\n", b"y\nsame\n")
    coloured = unified("a.py", b"x\nsame\n", b"y\nsame\n", Paint(True))
    for code in (b"\x1b[0m", b"\x1b[1m", b"\x1b[1;31m", b"\x1b[32m", b"\x1b[36m"):
        assert code in coloured
        coloured = coloured.replace(code, b"")
    assert coloured == plain
