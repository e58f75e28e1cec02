"""The two arms of a case: folders with the source as it is, and as graphmend fixes it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cost_cases import RULES, Case

from graphmend_codemod.core.cache import own_version
from graphmend_codemod.core.findings import Safety
from graphmend_codemod.core.settings import Settings, with_target_torch
from graphmend_codemod.engine import api

_PACKAGE = "transformers"
_OPERATOR = re.compile(rb"\.library\.(custom_op|define)\(")
_SUMMARY = "fixed.json"


class ArmError(Exception):
    """An arm that cannot be made. The text is one line."""


@dataclass(frozen=True)
class Fixes:
    """What fixing changed in the files of a case.

    `outlined` says that a region became an operator; `unsafe` are the rules among `rules` whose fix
    here is unsafe or opaque.
    """

    rules: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()
    outlined: bool = False
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """Folders before and after, with what lies between them; `digest` is another one for other texts."""

    before: Path
    after: Path
    fixes: Fixes
    digest: str


class Arms:
    """Makes arms below a work folder, and keeps them for as long as graphmend is the same.

    `target_torch` is the oldest version of torch that the fixed code is for, as `fix --target-torch` takes it.
    """

    def __init__(self, work: Path, *, jobs: int = 1, target_torch: str | None = None) -> None:
        self._work = work / "arms"
        self._jobs = jobs
        self._target_torch = target_torch
        self._summaries: dict[Path, Mapping[str, Fixes]] = {}

    def of(
        self, case: Case, select: Sequence[str] = (), *, unsafe: bool = False, imported: frozenset[str] = frozenset()
    ) -> Pair:
        """The arms of a case, fixed by all rules or those selected; `imported` are more files that it runs.

        Raises `ArmError` when the package or a file cannot be handled.
        """
        if case.group == RULES:
            return self._rule(case)
        before = self._before()
        after = self._after(before, case if select else None, select, unsafe=unsafe)
        summary = self._summary(after)
        own = [path for path in summary if any(path == name or path.startswith(f"{name}/") for name in case.files)]
        own += sorted(imported.intersection(summary) - set(own))
        parts = [summary[path] for path in own]
        fixes = Fixes(
            tuple(sorted({rule for part in parts for rule in part.rules})),
            tuple(sorted({rule for part in parts for rule in part.unsafe})),
            any(part.outlined for part in parts),
            tuple(own),
        )
        texts = [(after / path).read_bytes() for path in sorted(own)]
        return Pair(before, after, fixes, _digest(texts))

    def _rule(self, case: Case) -> Pair:
        """The example of a page, fixed by its own rule; an unsafe fix is asked for."""
        folder = self._work / case.id
        for arm in ("before", "after"):
            (folder / arm).mkdir(parents=True, exist_ok=True)
        source = folder / "before" / "case.py"
        source.write_text(case.source, encoding="utf-8")
        settings = self._settings(source.parent)._replace(select=(case.name,), unsafe_fixes=True, opaque=True)
        result = api.fix_text(case.source.encode(), source, settings)
        if not result.fixes:
            reasons = "; ".join(str(each.declined) for each in result.remaining)
            raise ArmError(f"{case.name} does not fix its example at these sizes: {reasons or 'it finds nothing'}")
        fixed = result.fixes[0]
        (folder / "after" / "case.py").write_bytes(fixed.after)
        unsafe = tuple(sorted({each.code for each in fixed.applied if each.safety is not Safety.SAFE}))
        outlined = _becomes_operator(fixed.before, fixed.after)
        fixes = Fixes((case.name,), unsafe, outlined, ("case.py",))
        return Pair(folder / "before", folder / "after", fixes, _digest([fixed.before, fixed.after]))

    def _before(self) -> Path:
        arm = self._work / "before"
        if not arm.is_dir():
            spec = importlib.util.find_spec(_PACKAGE)
            if spec is None or spec.origin is None:
                raise ArmError(f"{_PACKAGE} is not installed; install graphmend with its extra: graphmend[eval]")
            _link(Path(spec.origin).parent, arm / _PACKAGE)
            # A repository of its own: what is ignored around it is not looked at.
            subprocess.run(["git", "init", "--quiet", str(arm)], check=True, capture_output=True)
        return arm

    def _after(self, before: Path, case: Case | None, select: Sequence[str], *, unsafe: bool) -> Path:
        """All of the package fixed; with a selection of rules only the files of the case."""
        name = "-".join(["after", *(["unsafe"] if unsafe else []), *select, *([case.name] if case else [])])
        arm = self._work / f"{name}-{_digest([own_version().encode()])[:12]}"
        if arm.is_dir():
            return arm
        for old in self._work.glob(f"{name}-" + "?" * 12):
            shutil.rmtree(old)
        settings = self._settings(before)._replace(unsafe_fixes=unsafe)
        if select:
            settings = settings._replace(select=tuple(select))
        paths = [before / path for path in (case.files if case else (_PACKAGE,))]
        result = api.fix(paths, settings, write=False, jobs=self._jobs)
        if not result.files:
            raise ArmError(f"no file of {', '.join(map(str, paths))} was looked at")
        unfinished = arm.with_name(f"{arm.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        _link(before / _PACKAGE, unfinished / _PACKAGE)
        summary = {}
        for fix in result.fixes:
            target = unfinished / fix.path
            target.unlink()  # it is one file with that of the installed package
            target.write_bytes(fix.after)
            summary[fix.path] = {
                "rules": sorted({each.code for each in fix.applied}),
                "unsafe": sorted({each.code for each in fix.applied if each.safety is Safety.UNSAFE}),
                "outlined": _becomes_operator(fix.before, fix.after),
            }
        (unfinished / _SUMMARY).write_text(json.dumps(summary, indent=1), encoding="utf-8")
        unfinished.rename(arm)
        return arm

    def _settings(self, root: Path) -> Settings:
        settings = Settings(root=root)
        return settings if self._target_torch is None else with_target_torch(settings, self._target_torch)

    def _summary(self, arm: Path) -> Mapping[str, Fixes]:
        if arm not in self._summaries:
            found = json.loads((arm / _SUMMARY).read_text(encoding="utf-8"))
            self._summaries[arm] = {
                path: Fixes(tuple(each["rules"]), tuple(each["unsafe"]), each["outlined"], (path,))
                for path, each in found.items()
            }
        return self._summaries[arm]


def _becomes_operator(before: bytes, after: bytes) -> bool:
    """True if the file after has operators of its own, and the file before has none."""
    return _OPERATOR.search(after) is not None and _OPERATOR.search(before) is None


def _link(source: Path, target: Path) -> None:
    """A copy that shares its files with the source, compiled ones too: importing it compiles nothing anew."""
    shutil.copytree(source, target, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _digest(texts: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for text in texts:
        found.update(len(text).to_bytes(8, "big") + text)
    return found.hexdigest()
