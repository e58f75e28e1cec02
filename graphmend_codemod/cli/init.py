"""`graphmend init`: write settings and a commit hook after a look at the repository."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.cli import options
from graphmend_codemod.core.terminal import say

if TYPE_CHECKING:
    from graphmend_codemod.core.settings import Settings

HOOKS = ".pre-commit-config.yaml"
_ENTRY = """\
- repo: local
  hooks:
    - id: graphmend
      name: graphmend
      entry: graphmend fix --exit-non-zero-on-fix
      language: system
      types_or: [python, jupyter]
      require_serial: true
"""
_DESCRIPTION = f"""\
Look at the repository, then write [tool.graphmend] to pyproject.toml and the hook's entry
to {HOOKS}. What is there already stays as it is, byte for byte.
"""


class Written(NamedTuple):
    """One file with what is added to it. `text` is None where something keeps it from being added."""

    path: Path
    text: str | None
    said: str


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = options.command(
        subparsers,
        "init",
        "write settings and a commit hook",
        _DESCRIPTION,
        "examples:\n  graphmend init\n  graphmend init --dry-run\n  graphmend init --no-hook src/project\n",
    )
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="a folder of the project [default: .]")
    parser.add_argument("--no-hook", action="store_true", help=f"leave {HOOKS} alone")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written; write nothing")


def run(args: argparse.Namespace) -> int:
    """Look, write, tell, and return the exit code."""
    from graphmend_codemod.core.settings import load_settings
    from graphmend_codemod.engine import api
    from graphmend_codemod.reporting.report import for_newer_torch, plural

    start = Path(args.folder)
    if not start.is_dir():
        raise options.CommandError(f"{start}: is not a folder; name a folder of the project")
    settings = load_settings(start)
    found = api.check([settings.root], settings, jobs=options.workers(argparse.Namespace(jobs=None)))
    fixable = sum(finding.is_applied(unsafe_fixes=False) for finding in found.findings)
    opaque = sum(each.is_applied(unsafe_fixes=False, opaque=True) for each in found.findings) - fixable
    sites = f"{plural(len(found.findings), 'break site')} in {plural(found.files, 'Python file')}, {fixable} fixable"
    say(f"Looked at {settings.root}: {sites}{f', {opaque} with opaque operators' if opaque else ''}.")
    plan = [_settings(settings)] if args.no_hook else [_settings(settings), _hook(_top(settings.root))]
    for one in plan:
        if one.text is not None and not args.dry_run:
            _append(one.path, one.text)
        would = "would write" if args.dry_run else "wrote"
        say(f"{os.path.relpath(one.path)}: {f'{would} {one.said}' if one.text is not None else one.said}")
        if one.text is not None and args.dry_run:
            say("".join(f"    {line}\n" for line in one.text.strip("\n").splitlines()), end="")
    if settings.target_torch is not None and (older := for_newer_torch(found.findings)):
        lowest = ".".join(map(str, settings.target_torch))
        say(
            f"The requirements admit torch {lowest}; {older.fixes} more may be fixable for a newer one: "
            f'if you run one, write target-torch = "{older.version}".'
        )
    if not found.findings:
        say("Next: nothing to fix here; `graphmend trace -- python train.py` shows whether a run breaks all the same.")
    elif fixable:
        say("Next: `graphmend fix --diff` shows what would change, `graphmend migrate` puts all fixes on a branch.")
    elif opaque:
        say("Next: `graphmend fix --opaque --diff` shows the operators, `graphmend check` what to do instead.")
    else:
        say("Next: `graphmend check` says what to do instead, `graphmend trace -- python train.py` what really breaks.")
    return 0


def _settings(settings: Settings) -> Written:
    path = settings.root / "pyproject.toml"
    text = _text(path)
    if re.search(r"^\s*\[tool\.graphmend[\].]", text, re.MULTILINE):
        return Written(path, None, "has [tool.graphmend] already")
    lines = ["[tool.graphmend]"]
    if settings.target_torch is not None:
        version = ".".join(map(str, settings.target_torch))
        lines.append(f'target-torch = "{version}"  # the lowest torch that the requirements admit')
        told = f"[tool.graphmend] with torch {version} as the lowest one"
    else:
        lines.append('# target-torch = "2.6"  # the requirements name no lowest torch')
        told = "[tool.graphmend]; set target-torch in it if you support an old torch: the requirements name none"
    lines.append('# log-calls = "warnings"  # keep warnings in compiled code, once per compilation')
    lines.append(
        f'# helpers = "{_package(settings.root)}/_compile.py"  # functions that several files need; create it empty'
    )
    return Written(path, _separated(text, "\n") + "\n".join(lines) + "\n", told)


def _package(root: Path) -> str:
    """The folder of the project's own package, for an example."""
    found = (each.parent for folder in ("*", "src/*") for each in sorted(root.glob(f"{folder}/__init__.py")))
    names = [each.relative_to(root).as_posix() for each in found]
    return next((name for name in names if name.rpartition("/")[2] not in {"tests", "test", "docs"}), "mypackage")


def _hook(top: Path) -> Written:
    path = top / HOOKS
    text = _text(path)
    if "graphmend" in text:
        return Written(path, None, "names graphmend already")
    if not text.strip():
        return Written(path, _separated(text, "") + "repos:\n" + _indented(_ENTRY, "  "), "the hook")
    items = re.findall(r"^([ ]*)- +(?:repo|hooks|\w+):", text.partition("\nrepos:")[2] or text, re.MULTILINE)
    keys = re.findall(r"^([A-Za-z_][\w-]*):", text, re.MULTILINE)
    if not items or not keys or keys[-1] != "repos":
        snippet = _ENTRY.replace("\n", "\n    ").rstrip()
        return Written(path, None, f"`repos` is not its last key, so add the hook yourself:\n    {snippet}")
    return Written(path, _separated(text, "") + _indented(_ENTRY, items[0]), "the hook")


def _indented(text: str, indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in text.splitlines())


def _separated(text: str, blank: str) -> str:
    """What ends the last line of a text and sets what follows apart from it."""
    if not text:
        return ""
    return ("" if text.endswith("\n") else "\n") + blank


def _top(root: Path) -> Path:
    """The top of the git repository, where pre-commit looks for its settings."""
    root = root.absolute()
    return next((folder for folder in (root, *root.parents) if os.path.exists(folder / ".git")), root)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise options.CommandError(f"{path}: is not UTF-8 text; convert it, or add the settings yourself") from error


def _append(path: Path, text: str) -> None:
    """Add to the end of a file, in its own line endings; what is there stays byte for byte."""
    newline = "\r\n" if b"\r\n" in (path.read_bytes() if path.exists() else b"") else "\n"
    with open(path, "ab") as file:
        file.write(text.replace("\n", newline).encode())
