"""Pages about rules, from what the rules say."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.reporting import rules as pages
from graphmend_codemod.rules.framework.registry import all_rules
from graphmend_codemod.rules.framework.rule import Cost, Rule

CHECKOUT = Path(__file__).parent.parent.parent
RULES = all_rules()


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_a_rule_says_what_why_and_when_not(rule: Rule) -> None:
    described = pages.as_dict(rule)
    assert rule.code not in str(described["summary"])
    assert described["summary"]
    assert described["explanation"]
    assert described["title"]
    assert described["fixes"] or described["safety"] == "advice"
    assert described["declines"]


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_examples_in_json_are_whole_modules(rule: Rule) -> None:
    described = json.loads(pages.as_json(rule))
    for example in described["fixes"]:
        assert isinstance(ast.parse(example["before"]), ast.Module)
        assert isinstance(ast.parse(example["after"]), ast.Module)
    for example in described["declines"]:
        assert isinstance(ast.parse(example["source"]), ast.Module)


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_a_page_has_every_section(rule: Rule) -> None:
    page = pages.markdown(rule)
    assert page.startswith(f"# {rule.slug} ({rule.code})\n\n")
    assert "\n## Contract\n" in page
    assert "\n## When it is not applied\n" in page
    assert page.count("```") % 2 == 0
    assert page.endswith("\n")
    assert not page.endswith("\n\n")


def test_the_index_links_every_page() -> None:
    index = pages.markdown_index(RULES)
    assert all(f"[{rule.code}]({pages.page_name(rule)})" in index for rule in RULES)


def test_several_rules_are_a_json_list() -> None:
    assert [one["code"] for one in json.loads(pages.as_json(RULES))] == [rule.code for rule in RULES]


def generate(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKOUT / "scripts" / "document_rules.py"), "--folder", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(CHECKOUT)})


def test_pages_are_written_compared_and_cleared_away(tmp_path: Path) -> None:
    assert generate(tmp_path, "--check").returncode == 1
    assert generate(tmp_path).returncode == 0
    assert generate(tmp_path, "--check").returncode == 0
    assert len(list(tmp_path.iterdir())) == len(RULES) + 1

    (tmp_path / "GM000-gone.md").write_text("a rule that was removed")
    (tmp_path / "index.md").write_text("outdated")
    checked = generate(tmp_path, "--check")
    assert checked.returncode == 1
    assert "GM000-gone.md: not up to date" in checked.stderr
    assert "index.md: not up to date" in checked.stderr
    generate(tmp_path)
    assert not (tmp_path / "GM000-gone.md").exists()
    assert generate(tmp_path, "--check").returncode == 0


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_what_a_fix_costs_is_shown_wherever_a_rule_is(rule: Rule) -> None:
    kind = rule.contract.cost
    assert f"| cost when compiled | {pages.cost(rule)} |" in pages.markdown(rule)
    assert f"  cost when compiled: {pages.cost(rule)}" in list(pages.text(rule, Paint(False)))
    described = json.loads(pages.as_json(rule))["contract"]
    assert (described["cost"], described["cost_note"]) == (kind.value, rule.contract.cost_note or None)
    row = next(line for line in pages.markdown_index(RULES).splitlines() if line.startswith(f"| [{rule.code}]"))
    assert f"| {rule.safety.value} | {kind.value} |" in row


def test_the_index_explains_every_kind_of_cost() -> None:
    assert set(pages.COSTS) == set(Cost)
