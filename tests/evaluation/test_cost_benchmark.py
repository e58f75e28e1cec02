"""The benchmark of what fixes cost: its cases, its arms, its verdicts, its page."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import cost, cost_page
from benchmarks.commands import ROOT
from benchmarks.cost_arms import ArmError, Arms
from benchmarks.cost_cases import (
    BACKWARD,
    FORWARD,
    IN_BLOCK,
    Case,
    differs_in_survey,
    expert_cases,
    rule_cases,
    type_cases,
)
from benchmarks.cost_runs import ChildError, Options, Partner, Record, append, read

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.registry import all_rules

SURVEY = ROOT / "evaluation" / "survey" / "2026-11-21.json"
RULE_CASES = list(rule_cases(None))
RECORD = Record(
    case="experts/mixtral",
    phase="512 tokens, forward",
    digest="d",
    date="2026-11-22 11:00 UTC",
    rules=("GM502",),
    unsafe=(),
    outlined=False,
    cold=((10.0, 10.5),),
    wall=((20.0, 30.0),),
    steady=((0.1, 0.1), (0.1, 0.101), (0.1, 0.102), (0.1, 0.13)),
    memory=(1 << 20, 2 << 20),
    graphs=(9, 1),
)


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: case.name)
def test_a_rule_fixes_its_example_at_the_sizes_of_the_benchmark(case: Case, tmp_path: Path) -> None:
    pair = Arms(tmp_path).of(case)
    assert pair.fixes.rules == (case.name,)
    assert (pair.before / "case.py").read_bytes() != (pair.after / "case.py").read_bytes()
    assert not case.own_sizes, "give it realistic sizes in cost_cases.py"


def test_every_rule_that_edits_is_measured() -> None:
    assert {case.name for case in RULE_CASES} == {rule.code for rule in all_rules() if rule.safety is not Safety.ADVICE}


def test_expert_blocks_are_measured_at_prefill_and_decode_with_and_without_gradients() -> None:
    found = {case.name: [phase.name for phase in case.phases if not phase.block] for case in expert_cases(None)}
    assert set(found) == {"mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "deepseek_v3", "jamba", "dbrx"}
    names = [f"{tokens}, {what}" for what in (FORWARD, BACKWARD) for tokens in ("512 tokens", "8 tokens", "1 token")]
    assert all(phases == names for phases in found.values())


def test_types_are_those_that_the_survey_could_build() -> None:
    types = {case.name: case for case in type_cases(None, SURVEY)}
    assert {"t5", "bart", "longformer", "led"} <= set(types)
    assert types["led"].files == ("transformers/models/led",)
    assert "t5" in differs_in_survey(SURVEY)
    assert [case.name for case in type_cases({"bart"}, SURVEY)] == ["bart"]


MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            x = x * 2
        print("done")
        return x
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package by the name of the one that is measured."""
    folder = tmp_path / "installed" / "transformers"
    (folder / "models" / "tiny").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    for name in ("__init__.py", "modeling_tiny.py"):
        (folder / "models" / "tiny" / name).write_text(MODEL if name.startswith("modeling") else "")
    (folder / "models" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(folder.parent))
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    return folder


TINY = Case("types", "tiny", (), {"kind": "types"}, ("transformers/models/tiny",))


def test_an_arm_is_fixed_in_a_copy_and_the_installed_package_stays(package: Path, tmp_path: Path) -> None:
    arms = Arms(tmp_path / "work")
    pair = arms.of(TINY)
    assert pair.fixes.rules == ("GM101", "GM201")
    assert pair.fixes.files == ("transformers/models/tiny/modeling_tiny.py",)
    assert "is_compiling" in (pair.after / pair.fixes.files[0]).read_text()
    assert (pair.before / pair.fixes.files[0]).read_text() == MODEL
    assert (package / "models" / "tiny" / "modeling_tiny.py").read_text() == MODEL
    assert os.path.samefile(pair.after / "transformers" / "__init__.py", package / "__init__.py")


def test_one_rule_at_a_time_has_an_arm_of_its_own(package: Path, tmp_path: Path) -> None:
    arms = Arms(tmp_path / "work")
    both, one = arms.of(TINY), arms.of(TINY, ("GM201",))
    assert one.fixes.rules == ("GM201",)
    assert one.digest != both.digest
    assert "if x.sum() > 0:" in (one.after / one.fixes.files[0]).read_text()


def test_a_case_that_its_rule_does_not_fix_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArmError, match="GM101 does not fix its example"):
        Arms(tmp_path).of(replace(RULE_CASES[0], source="x = 1\n"))


@pytest.mark.slow
def test_a_child_that_cannot_load_says_why(tmp_path: Path) -> None:
    with (
        Partner(tmp_path / "child", tmp_path / "seed", Options()) as child,
        pytest.raises(ChildError, match=r"child: FileNotFoundError.*case\.py"),
    ):
        child.ask("load", arm=str(tmp_path), build=RULE_CASES[0].build)


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, ()),
        ({"steady": ((0.1, 0.12),) * 3}, ("steady 1.20",)),
        ({"steady": ((0.1, 0.09), (0.1, 0.12), (0.1, 0.12))}, ()),
        ({"cold": ((10.0, 12.0),)}, ("cold 1.20",)),
        ({"cold": ((10.0, 12.0),), "outlined": True}, ()),
        ({"cold": ((10.0, 14.0),), "outlined": True}, ("cold 1.40",)),
        ({"cold": ((10.0, 14.0),), "steady": ((0.1, 0.4),) * 3, "unsafe": ("GM502",)}, ()),
        ({"phase": f"8 tokens, {BACKWARD}", "steady": ((0.1, 0.16),) * 3, "outlined": True}, ()),
        ({"phase": f"8 tokens, {BACKWARD}", "steady": ((0.1, 0.18),) * 3, "outlined": True}, ("steady 1.80",)),
        ({"device": "cuda"}, ("cold 1.50",)),
        ({"error": "out of memory", "steady": ()}, ()),
    ],
)
def test_a_target_is_missed_outside_the_noise(changes: dict[str, object], missed: tuple[str, ...]) -> None:
    assert cost_page.misses(replace(RECORD, **changes)) == missed  # type: ignore[arg-type]


def test_an_example_that_misses_alone_is_judged_in_a_block() -> None:
    alone = replace(RECORD, case="rules/GM102", phase=FORWARD, steady=((0.1, 0.16),) * 3, rules=("GM102",))
    block = replace(alone, phase=FORWARD + IN_BLOCK, steady=((1.1, 1.12),) * 3)
    assert cost_page.judged([alone]) == [alone]
    assert cost_page.judged([alone, block]) == [block]
    assert cost_page.judged([alone, replace(block, error="out of memory")])[0] == alone
    page = cost_page.render([alone, block], {"machine": "here"}, "results.json")
    assert "**All 1 measurements of safe fixes keep their targets.**" in page
    assert "**alone steady 1.60**" in page
    assert "| GM102, in a block |" in page
    slow = cost_page.render([alone, replace(block, steady=((1.1, 1.3),) * 3)], {"machine": "here"}, "results.json")
    assert "- rules/GM102, forward, in a block: steady 1.18\n" in slow
    eager = [replace(alone, graphs=(0, 1)), replace(block, cold=((1.0, 3.0),))]
    page = cost_page.render(eager, {"machine": "here"}, "results.json")
    assert "- rules/GM102, forward, in a block: cold 3.00 (the example runs in eager mode before:" in page


def test_records_are_kept_and_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "measured.jsonl"
    again = replace(RECORD, cold=((1.0, 2.0),))
    for record in (RECORD, replace(RECORD, phase="other"), again):
        append(path, record)
    path.write_text(path.read_text() + '{"case": "experts/')
    assert list(read(path).values()) == [again, replace(RECORD, phase="other")]


def test_the_page_begins_with_what_is_missed_and_says_what_was_not_measured(tmp_path: Path) -> None:
    slow = replace(RECORD, case="types/led", phase=FORWARD, cold=((90.0, 153.0),), rules=("GM106", "GM403"))
    alone = replace(slow, select=("GM106",))
    failed = replace(RECORD, case="types/t5", phase=FORWARD, error="after: out of memory", steady=(), cold=())
    work = tmp_path / "work"
    work.mkdir()
    for record in (RECORD, slow, alone, failed):
        append(work / "measured.jsonl", record)
    places = ["--work", str(work), "--results", str(tmp_path), "--page", str(tmp_path / "cost.md")]
    assert cost.main(["--page-only", *places]) == 1
    page = (tmp_path / "cost.md").read_text()
    assert "**1 of 2 measurements of safe fixes miss a target:**\n\n- types/led, forward: cold 1.70" in page
    assert "| led | GM106, GM403 | 9 -> 1 | 90.0 -> 153.0 | 1.70 |" in page
    assert "| led, GM106 alone |" in page
    assert "- types/t5, forward: after: out of memory" in page
    assert "`cost.py --rules` was not run" in page
    assert "- GPUs: none was at hand." in page
    [written] = tmp_path.glob("*-cost.json")
    assert len(json.loads(written.read_text())["records"]) == 4
