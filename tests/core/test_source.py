"""Reading a file exactly, understanding it, and writing it back without harm."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmend_codemod.core.atomic_write import write_atomically
from graphmend_codemod.core.findings import Span
from graphmend_codemod.core.source import SourceError, SourceFile


def from_text(text: str | bytes) -> SourceFile:
    raw = text if isinstance(text, bytes) else text.encode()
    return SourceFile.from_bytes(raw, Path("/project/package/module.py"), Path("/project"))


def span_of(node: ast.stmt | ast.expr) -> Span:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


# Reading


def test_a_file_is_named_relative_to_the_project(tmp_path: Path) -> None:
    file = tmp_path / "package" / "module.py"
    file.parent.mkdir()
    file.write_bytes(b"x = 1\r\n")
    source = SourceFile.read(file, tmp_path)
    assert (source.path, source.raw) == ("package/module.py", b"x = 1\r\n")
    below = SourceFile.below(str(tmp_path), source.path)
    assert (below.path, below.raw, below.text) == (source.path, source.raw, source.text)


def test_a_file_outside_the_project_keeps_a_usable_name(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.py"
    file.write_bytes(b"")
    assert SourceFile.read(file, tmp_path / "project").path == "../elsewhere.py"


def test_the_text_keeps_every_newline() -> None:
    assert from_text("a\r\nb\rc\nd").text == "a\r\nb\rc\nd"


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbfx = '\xc3\xa9'\r\n",
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
        b"# coding: utf-8\rx = '\xc3\xa9'\r",
        b"# coding: shift_jis\nx = '\x82\xa0'\n",
        b"",
        b"\n",
        b"x",
    ],
)
def test_unchanged_text_is_written_back_to_the_same_bytes(raw: bytes) -> None:
    source = from_text(raw)
    assert source.encode(source.text) == raw
    assert ast.dump(source.parse()) == ast.dump(ast.parse(raw))


@pytest.mark.parametrize(
    ("raw", "reason", "line"),
    [
        (b"x = '\xe9'\n", "is not utf-8 text", 1),
        (b"x = 1\r\ny = 2\r\nz = '\xe9'\r\n", "is not utf-8 text", 3),
        (b"# coding: klingon\n", "unknown encoding: klingon", 1),
        (b"# coding: rot13\n", "'rot13' is not a text encoding", 1),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem", 1),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_their_line(raw: bytes, reason: str, line: int) -> None:
    with pytest.raises(SourceError, match=reason) as caught:
        from_text(raw)
    assert caught.value.line == line
    assert "\n" not in str(caught.value)


def test_an_encoding_that_does_not_give_the_same_bytes_again_is_refused() -> None:
    with pytest.raises(SourceError, match="cannot be written back unchanged"):
        from_text(b"# coding: utf-7\nx = '+AGE-'\n")


def test_a_missing_file_a_folder_and_a_symlink_loop_are_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    for path, reason in ((tmp_path / "no.py", "No such file"), (tmp_path, "regular file"), (loop, "[Ss]ymbolic link")):
        with pytest.raises(SourceError, match=reason):
            SourceFile.read(path, tmp_path)


def test_a_named_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(SourceError, match="regular file"):
        SourceFile.read(tmp_path / "pipe.py", tmp_path)


# Newline and indentation


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a", "\n"), ("a\nb\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\r", "\r"), ("a\nb\r\n", "\n")],
)
def test_the_newline_is_the_one_of_most_lines(text: str, newline: str) -> None:
    assert from_text(text).newline == newline


@pytest.mark.parametrize(
    ("text", "indent"),
    [
        ("x = 1\n", "    "),
        ("class A:\n  def f(self):\n    return 1\n", "  "),
        ("class A:\r\n\tdef f(self):\r\n\t\treturn 1\r\n", "\t"),
        ("def f(\n        a,\n        b,\n):\n   return a\n", "   "),
        ('"""\nif so:\n     five\n"""\nif a:\n  b\nif b:\n  c\n', "  "),
        ("if a:  # why\n  b\n", "  "),
        ("if a:\n    # b\n  c\n", "    "),
    ],
)
def test_one_level_of_indentation_is_taken_from_the_blocks(text: str, indent: str) -> None:
    assert from_text(text).indent == indent


# Parsing


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"x = (\n", "never closed"),
        (b"print 'a'\n", "is it Python 2"),
        (b"x = 1\0\n", "null bytes"),
        (b"(" * 1000 + b")" * 1000, "too many nested parentheses"),
        (b"x = " + b"-" * 100_000 + b"1", "nested too deeply"),
        pytest.param(
            b"x = 1" + b"+1" * 100_000,
            "nested too deeply",
            marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 parses it"),
        ),
    ],
)
def test_text_that_python_cannot_parse_is_refused_in_one_line(raw: bytes, reason: str) -> None:
    with pytest.raises(SourceError, match=reason) as caught:
        from_text(raw).parse()
    assert "\n" not in str(caught.value)


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(SourceError) as caught:
        from_text("x = 1\r\ny = = 2\r\n").parse()
    assert caught.value.line == 2


def test_warnings_about_the_checked_code_stay_inside(recwarn: pytest.WarningsRecorder) -> None:
    from_text('x = "\\d" is 1\n').parse()
    assert not recwarn.list


def test_parsing_does_not_execute_or_import(tmp_path: Path) -> None:
    from_text(f"open({str(tmp_path / 'made')!r}, 'w')\n").parse()
    assert not (tmp_path / "made").exists()


# Positions


def test_columns_count_utf8_bytes_and_lines_end_where_ast_ends_them() -> None:
    text = "é = 'ü'; b = 1\r\n\fc = '😀'; d = 2\re = 'x\x85\u2028'; f = 3\n"
    source = from_text(text)
    found = {source.segment(span_of(node)) for node in source.parse().body}
    assert found == {"é = 'ü'", "b = 1", "c = '😀'", "d = 2", "e = 'x\x85\u2028'", "f = 3"}


@pytest.mark.parametrize(("line", "column"), [(0, 0), (3, 0), (1, 9), (1, -1), (2, 1)])
def test_a_position_outside_of_the_file_is_an_error(line: int, column: int) -> None:
    with pytest.raises(ValueError, match="not in the file"):
        from_text("x = 1\n").offset(line, column)


@given(st.lists(st.sampled_from(["x", "é", "'😀'", "\n", "\r\n", "\r", "\f", "\x0b", " ", "\u2028"])))
def test_every_offset_is_found_again_from_its_line_and_column(pieces: list[str]) -> None:
    text = "".join(pieces)
    source = from_text(text)
    for offset in range(len(text) + 1):
        line = source.line_at(offset)
        column = len(text[source.line_starts[line - 1] : offset].encode())
        assert source.offset(line, column) == offset


# Suppressions


def suppressed_lines(text: str, code: str = "GM101") -> list[int]:
    source = from_text(textwrap.dedent(text).lstrip("\n"))
    return [n for n in range(1, len(source.line_starts) + 1) if source.suppressed(Span(n, 0, n, 1), code)]


def test_an_ignore_covers_the_logical_line_it_stands_on() -> None:
    text = """
    a = f(  # graphmend: ignore
        1,
    )
    b = g(
        1,
    )  # graphmend: ignore
    c = 1
    """
    assert suppressed_lines(text) == [1, 2, 3, 4, 5, 6]


def test_an_ignore_on_a_header_covers_the_header_alone() -> None:
    assert suppressed_lines("if a:  # graphmend: ignore\n    b\nelse:\n    c  # graphmend: ignore\n") == [1, 4]


def test_an_ignore_with_codes_covers_these_codes_and_families() -> None:
    text = "a  # graphmend: ignore[GM2, GM101]\n"
    assert [bool(suppressed_lines(text, code)) for code in ("GM101", "GM102", "GM201")] == [True, False, True]


@pytest.mark.parametrize(
    "comment",
    ["# graphmend:ignore", "#graphmend: ignore", "# noqa: E501 # graphmend: ignore", "# graphmend: ignore - measured"],
)
def test_spellings_of_ignore(comment: str) -> None:
    assert suppressed_lines(f"a  {comment}\n") == [1]


@pytest.mark.parametrize(
    "line",
    [
        's = "# graphmend: ignore"',
        "a  # graphmend: ignored",
        "a  # graphmend: ignore[]",
        "a  # graphmend: ignore[GM101",
        "a  # ignore",
        "a  # graphmend: ignore-this",
    ],
)
def test_what_is_no_ignore(line: str) -> None:
    assert suppressed_lines(f"{line}\n") == []


def test_an_ignore_alone_on_a_line_covers_no_neighbour() -> None:
    assert suppressed_lines("a\n# graphmend: ignore\nb\n") == [2]


def test_a_skipped_file_is_skipped_even_if_it_does_not_parse() -> None:
    source = from_text("# graphmend: skip-file\nprint 'Python 2', `x`, 0777\n$ ?\n")
    assert source.suppressions.skip_file
    assert source.suppressed(Span(9, 0, 9, 1), "GM101")


def test_the_words_in_a_string_skip_nothing() -> None:
    assert not from_text('x = """\n# graphmend: skip-file\n"""\n').suppressions.skip_file


# Writing


def test_content_is_replaced_and_the_mode_kept(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_bytes(b"old\r\n")
    file.chmod(0o754)
    write_atomically(file, b"old\r\n", b"new\r\n")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new\r\n", 0o754)
    assert [path.name for path in tmp_path.iterdir()] == ["module.py"]


def refused(file: Path, before: bytes, *, root: Path | None = None) -> str:
    """The reason for which a write is refused; the folder must be as it was."""
    folder = file.parent
    existing = {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
    with pytest.raises(SourceError) as caught:
        write_atomically(file, before, b"new\n", root=root)
    assert existing == ({path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_that_changed_in_the_meantime_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_bytes(b"edited by hand\n")
    assert "changed by another process" in refused(file, b"old\n")


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_bytes(b"old\n")
    file.chmod(0o444)
    assert "read-only" in refused(file, b"old\n")


def test_a_deleted_file_and_a_deleted_folder_are_not_made_again(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "module.py", b"old\n")
    assert "No such file" in refused(tmp_path / "gone" / "module.py", b"old\n")


def test_a_symbolic_link_stays_one_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "module.py", tmp_path / "link.py"
    target.write_bytes(b"old\n")
    link.symlink_to(target)
    write_atomically(link, b"old\n", b"new\n", root=tmp_path)
    assert link.is_symlink()
    assert target.read_bytes() == b"new\n"


def test_a_symbolic_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    project, target = tmp_path / "project", tmp_path / "outside.py"
    project.mkdir()
    target.write_bytes(b"old\n")
    (project / "link.py").symlink_to(target)
    assert "outside the project" in refused(project / "link.py", b"old\n", root=project)
    assert target.read_bytes() == b"old\n"


def test_a_file_that_is_named_outside_of_the_project_is_written_and_a_link_there_is_not_followed(
    tmp_path: Path,
) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    (other / "module.py").write_bytes(b"old\n")
    write_atomically(project / ".." / "other" / "module.py", b"old\n", b"new\n", root=project)
    assert (other / "module.py").read_bytes() == b"new\n"
    (tmp_path / "elsewhere.py").write_bytes(b"old\n")
    (other / "link.py").symlink_to(tmp_path / "elsewhere.py")
    assert "outside the project" in refused(other / "link.py", b"old\n", root=project)


def test_a_symlink_loop_cannot_be_written(tmp_path: Path) -> None:
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    with pytest.raises(SourceError, match="cannot be written"):
        write_atomically(loop, b"", b"new\n")


def test_a_hard_link_elsewhere_keeps_its_content(tmp_path: Path) -> None:
    file, other = tmp_path / "module.py", tmp_path / "cache.py"
    file.write_bytes(b"old\n")
    os.link(file, other)
    write_atomically(file, b"old\n", b"new\n")
    assert (file.read_bytes(), other.read_bytes()) == (b"new\n", b"old\n")


def test_a_disk_that_is_full_leaves_the_old_content_and_no_rest(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_bytes(b"old\n")
    script = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from graphmend_codemod.core.source import SourceError
        from graphmend_codemod.core.atomic_write import write_atomically
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            write_atomically(Path(sys.argv[1]), b"old\\n", b"x" * 100_000)
        except SourceError as error:
            print(error)
        """
    )
    command, root = [sys.executable, "-c", script, str(file)], Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "cannot be written: File too large; it was not changed" in done.stdout
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"module.py": b"old\n"}
