"""Count how often each rule has a fix in the code of real projects; `docs/rules/index.md` shows it.

python scripts/count_fixes.py transformers=FOLDER diffusers=FOLDER ...     write docs/rules/seen.json
python scripts/count_fixes.py ... --files FOLDER                           and count each file of FOLDER as a project

A place is a finding of `graphmend check` that can be fixed, unsafe fixes and opaque operators included. The projects'
own lowest torch is not asked for: all are read as if they needed the newest one, so that a rule is not counted by its
age.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

SEEN = Path(__file__).resolve().parent.parent / "docs" / "rules" / "seen.json"
_TARGET = "2.13"
_COULD_NOT = 2


def main(arguments: list[str]) -> int:
    """Count, and write the file. Exit code 2 where a project cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("projects", nargs="+", metavar="NAME=FOLDER", help="a name for the list, and the code")
    parser.add_argument("--out", type=Path, default=SEEN, help="the file to write [default: docs/rules/seen.json]")
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="files of which each stands for a project")
    options = parser.parse_args(arguments)
    places: Counter[str] = Counter()
    projects: defaultdict[str, set[str]] = defaultdict(set)
    names = []
    for project in options.projects:
        name, equals, folder = project.partition("=")
        if not equals or not Path(folder).is_dir():
            parser.error(f"{project}: write NAME=FOLDER, with a folder that exists")
        found = _fixable(Path(folder)).values()
        names.append(name)
        _add(places, projects, name, sum(found, Counter()))
    if options.files is not None:
        names += sorted(each.stem for each in options.files.glob("*.py"))
        for path, counted in _fixable(options.files).items():
            _add(places, projects, Path(path).stem, counted)
    rules = {code: {"places": places[code], "projects": len(projects[code])} for code in sorted(places)}
    record = {"date": date.today().isoformat(), "projects": sorted(names), "rules": rules}
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def _add(places: Counter[str], projects: dict[str, set[str]], name: str, found: Counter[str]) -> None:
    places += found
    for code in found:
        projects[code].add(name)
    print(f"{name}: {found.total()} places, {len(found)} rules", file=sys.stderr)


def _fixable(folder: Path) -> dict[str, Counter[str]]:
    """Places by code, for each file that has one. Exits where graphmend could not read the project."""
    with tempfile.TemporaryDirectory() as empty:
        settings = Path(empty) / "pyproject.toml"
        settings.write_text(f'[tool.graphmend]\ntarget-torch = "{_TARGET}"\n', encoding="utf-8")
        command = [sys.executable, "-m", "graphmend_codemod", "check", str(folder), "--config", str(settings)]
        command += ["--output-format", "json", "--no-cache", "--exit-zero"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode >= _COULD_NOT:
        sys.exit(f"{folder}: {run.stderr.strip().splitlines()[-1]}")
    findings = json.loads(run.stdout)["findings"]
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in findings:
        if each["fixable"] or each["kind"] in ("opaque", "unsafe"):
            counted[each["path"]][each["code"]] += 1
    return counted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
