"""Portable paths of stack frames: relative to the project or to `site-packages`."""

from __future__ import annotations

import ast
import linecache
import os
import re
from pathlib import Path

from graphmend_codemod.trace.document import LIBRARY, OWN, TORCH, SourceLine

_INSTALLED = re.compile(r".*/(site-packages|dist-packages)/(?P<rest>.+)$")
_INSTALLED_IN_TEXT = re.compile(r"/[^\s`'\"]*/(site-packages|dist-packages)/")
_PYTHON = re.compile(r".*/lib/(python3\.\d+/.+)$")
_TORCH = re.compile(r"^(site-packages/torch/|.*/torch/(_dynamo|_inductor|_functorch|nn/modules|utils|autograd|optim)/)")
_MADE = ("<frozen ", "<string>", "<eval_with_key>")
_GUIDES = re.compile(r"graphmend_evaluation/tracing/|/runpy\.py$")


class Paths:
    """Paths of one process. `cwd` is where it began, which is what its relative paths are relative to."""

    def __init__(self, root: Path, cwd: str) -> None:
        self._root = root.resolve()
        self._cwd = cwd or str(self._root)
        self._known: dict[str, tuple[str, str, str]] = {}
        self._classes: dict[str, list[tuple[int, int, str]]] = {}

    def place(self, path: str, line: int, function: str) -> SourceLine:
        """The place as the trace has it."""
        shown, where, _ = self._look_up(path)
        return SourceLine(shown, line, function, where)

    def line(self, path: str, number: int) -> str:
        """A line of source as it is on disk now, without its newline; empty where there is none."""
        return linecache.getline(self._look_up(path)[2], number).rstrip("\r\n")

    def function(self, path: str, number: int) -> str:
        """The name of the innermost function around a line of a file as it is now; `<module>` where there is none."""
        try:
            tree = ast.parse("".join(linecache.getlines(self._look_up(path)[2])))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return "<module>"
        found = [
            (each.lineno, each.name)
            for each in ast.walk(tree)
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            and each.lineno <= number <= (each.end_lineno or each.lineno)
        ]
        return max(found, default=(0, "<module>"))[1]

    def owner(self, path: str, number: int) -> str:
        """The name of the innermost class around a line of a file as it is now; empty where there is none."""
        if path not in self._classes:
            try:
                tree = ast.parse("".join(linecache.getlines(self._look_up(path)[2])))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                tree = ast.Module([], [])
            self._classes[path] = [
                (each.lineno, each.end_lineno or each.lineno, each.name)
                for each in ast.walk(tree)
                if isinstance(each, ast.ClassDef)
            ]
        around = [each for each in self._classes[path] if each[0] <= number <= each[1]]
        return max(around, default=(0, 0, ""))[2]

    def tidy(self, text: str) -> str:
        """Words of torch without the folders of this machine."""
        text = _INSTALLED_IN_TEXT.sub(r"\1/", text)
        return text.replace(f"{self._root}{os.sep}", "")

    def is_noise(self, path: str) -> bool:
        """True for frames that only lead to the program: of the interpreter, and of graphmend itself."""
        return path.startswith(_MADE) or _GUIDES.search(path.replace(os.sep, "/")) is not None

    def _look_up(self, path: str) -> tuple[str, str, str]:
        if path not in self._known:
            self._known[path] = self._judge(path)
        return self._known[path]

    def _judge(self, path: str) -> tuple[str, str, str]:
        if not path or path.startswith("<"):
            return path, LIBRARY, path
        absolute = os.path.normpath(os.path.join(self._cwd, path))
        slashed = absolute.replace(os.sep, "/")
        if match := _INSTALLED.match(slashed):
            shown = f"site-packages/{match['rest']}"
            return shown, TORCH if _TORCH.match(shown) else LIBRARY, absolute
        if _TORCH.match(slashed):
            return slashed[slashed.rindex("/torch/") + 1 :], TORCH, absolute
        if not os.path.exists(absolute) and (found := self._moved(slashed)) is not None:
            return found, OWN, str(self._root / found)
        real = Path(absolute).resolve()
        if real.is_relative_to(self._root):
            return real.relative_to(self._root).as_posix(), OWN, str(real)
        if match := _PYTHON.match(slashed):
            return match[1], LIBRARY, absolute
        return os.path.relpath(absolute, self._root).replace(os.sep, "/"), LIBRARY, absolute

    def _moved(self, path: str) -> str | None:
        """A file of the project that a log names by the path it has on another machine."""
        parts = path.strip("/").split("/")
        for number in range(len(parts)):
            tail = "/".join(parts[number:])
            if (self._root / tail).is_file():
                return tail
        return None
