"""What runs on GitHub for this project: files that GitHub can read, commands that exist, notes for a release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scripts.release_notes import notes
from tests.ci.test_github_action import actionlint, with_node
from tests.repository.tools import CHECKOUT

WORKFLOWS = sorted((CHECKOUT / ".github/workflows").glob("*.yml"))


@with_node
@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def testactionlint_has_nothing_to_say(file: Path) -> None:
    assert actionlint(file) == []


@pytest.mark.parametrize("file", sorted((CHECKOUT / ".github").rglob("*.yml")), ids=lambda file: file.name)
def test_what_github_reads_is_yaml_and_runs_only_targets_that_exist(file: Path) -> None:
    content = yaml.safe_load(file.read_text())
    targets = set(re.findall(r"(?m)^([a-z-]+):", (CHECKOUT / "Makefile").read_text()))
    for job in content.get("jobs", {}).values():
        for step in job.get("steps", []):
            words = step.get("run", "").split()
            wanted = {word for word in words[1:] if "=" not in word} if words[:1] == ["make"] else set()
            assert wanted <= targets, words
            scripts = [word for word in words if word.startswith("scripts/")]
            assert all((CHECKOUT / script).is_file() for script in scripts), words
            assert "uses" not in step or re.search(r"@(v\d|release/)", step["uses"]), step


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path: Path) -> None:
    (tmp_path / "graphmend_codemod").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "graphmend_codemod/__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n## 1.2.0 (2026-11-30)\n\n- A\n\n## 1.1.0\n\n- B\n"
    )
    assert notes("v1.2.0", tmp_path) == "- A\n"
    with pytest.raises(ValueError, match=r"pyproject\.toml: has version 1\.2\.0, the tag is v1\.3\.0"):
        notes("v1.3.0", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n- A\n")
    with pytest.raises(ValueError, match=r"no section `## 1\.2\.0`"):
        notes("v1.2.0", tmp_path)


def test_tests_run_on_every_python_that_is_promised_and_has_a_wheel() -> None:
    text = (CHECKOUT / "pyproject.toml").read_text()
    promised = re.findall(r"Programming Language :: Python :: (3\.\d+)", text)
    tests = yaml.safe_load((CHECKOUT / ".github/workflows/tests.yml").read_text())
    assert tests["jobs"]["unit"]["strategy"]["matrix"]["python"] == promised
    (wheels,) = re.findall(r'(?m)^build = "(cp.*)"', text)
    assert wheels.split() == [f"cp{version.replace('.', '')}-*" for version in promised]
