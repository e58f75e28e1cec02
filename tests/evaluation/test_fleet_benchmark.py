"""The fleet's benchmark: a small run, and what its page derives from one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import fleet_page
from benchmarks.fleet_outcome import Baseline, FleetOutcome, Requests
from benchmarks.fleet_runs import FleetRun
from benchmarks.outcome import Machine

from tests.repository.tools import CHECKOUT, broken_repository


def run(name: str, workers: int, wall: float, cpu: float, **more: int) -> FleetRun:
    return FleetRun(
        name=name,
        workers=workers,
        repositories=100,
        failed=more.get("failed", 0),
        sites=5,
        wall=wall,
        cpu=cpu,
        parent=(40_000_000, 41_000_000),
        child=30_000_000,
        tree=100_000_000,
        disk=2_000_000,
        left=0,
        fetched=more.get("fetched", 0),
    )


@pytest.fixture
def outcome() -> FleetOutcome:
    """Round numbers."""
    return FleetOutcome(
        machine=Machine("2026-01-01", "a processor", 2, "Linux x86_64", "3.11", 0.1, 2.0),
        graphmend="0.1.0 (0123456789)",
        baselines=(Baseline("generated", 100, 1000, 5_000_000, 25.0, 24.0),),
        runs=(run("local 1", 1, 40.0, 36.0), run("local 2", 2, 20.0, 37.0)),
        served=(
            run("fetched", 2, 20.0, 40.0, fetched=1_000_000),
            run("fetched, cold cache", 2, 20.0, 40.0, fetched=1_000_000),
            run("fetched, warm cache", 2, 20.0, 40.0, fetched=100_000),
        ),
        requests=(Requests("opened", 10, 30, 10, 190, 20.0, 10.0), Requests("unchanged", 10, 20, 0, 200, 20.0, 10.0)),
        orders=5_000_000,
    )


def test_the_page_derives_what_ten_thousand_need(outcome: FleetOutcome) -> None:
    page = fleet_page.render(outcome, "raw.json")
    assert "2.00 times as fast" in page
    assert "takes 0.36 CPU seconds, 0.12 of them beside its own check" in page
    assert "- the generated ones: 1.0 hours of one core, 0.5 hours with two at a time." in page
    assert "100 MB over the network, and with a warm cache 10 MB" in " ".join(page.split())
    # 500 new ones an hour by what may be made, 2,500 unchanged ones by what may be asked.
    assert "| opened | 3.0 | 1.0 | 19.0 | 1.00 | 500 | 20.0 |" in page
    assert "| unchanged | 2.0 | 0.0 | 20.0 | 1.00 | 2,500 | 4.0 |" in page


def test_a_target_that_is_missed_is_told(outcome: FleetOutcome) -> None:
    assert outcome.met
    slow = replace(outcome, runs=(run("local 1", 1, 40.0, 36.0), run("local 2", 2, 30.0, 37.0)))
    assert not slow.met
    assert "**not met**" in fleet_page.render(slow, "raw.json")
    assert not replace(outcome, served=(run("fetched", 2, 20.0, 40.0, failed=1),)).met


@pytest.mark.slow
def test_a_small_run_writes_the_page_and_the_numbers(tmp_path: Path) -> None:
    broken_repository(tmp_path / "clones/real")
    command = [sys.executable, str(CHECKOUT / "evaluation/benchmarks/fleet.py"), "--generated", "1", "--no-dask"]
    command += ["--served", "1", "--pull-requests", "1", "--real", str(tmp_path / "clones")]
    done = subprocess.run(
        [*command, "--page", str(tmp_path / "page.md"), "--results", str(tmp_path / "results")],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    (raw,) = (tmp_path / "results").iterdir()
    found = json.loads(raw.read_text())
    assert [(one["name"], one["repositories"], one["left"]) for one in found["runs"]] == [
        ("local 1", 2, 0),
        ("local 2", 2, 0),
    ]
    assert [(one["done"], one["api"]) for one in found["requests"]] == [("opened", 3), ("unchanged", 2)]
    assert (tmp_path / "page.md").read_text().startswith("# What a fleet takes")
