"""`graphmend check`, as a user calls it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from graphmend_codemod.cli.main import main
from tests.tools.fixes import MOVED_LOOP

Captured = pytest.CaptureFixture[str]


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_findings_are_listed_with_place_mark_excerpt_and_reason(project: Path, capsys: Captured) -> None:
    assert main(["check"]) == 1
    out = capsys.readouterr().out
    assert "model.py:10:9: GM201 [*] `logger.info` breaks the graph\n" in out
    assert '10 |         logger.info(f"got {x.shape[0]} rows")\n' in out
    assert "model.py:11:16: GM201 `logger.warning` breaks the graph\n" in out
    assert "  = not applied: its return value is used\n" in out
    assert out.endswith("Found 2 break sites in 1 of 2 files: 1 fixable with `graphmend fix`, 1 declined.\n")


def test_nothing_is_written(project: Path, before: str, capsys: Captured) -> None:
    main(["check", "--no-cache"])
    assert (project / "model.py").read_text() == before
    assert sorted(path.name for path in project.iterdir()) == ["clean.py", "model.py", "pyproject.toml"]


def test_a_clean_file_is_clean(project: Path, capsys: Captured) -> None:
    assert main(["check", "clean.py"]) == 0
    assert capsys.readouterr().out == "No break sites in 1 file.\n"


def test_declined_sites_fail_only_when_strict(project: Path, after: str, capsys: Captured) -> None:
    (project / "model.py").write_text(after)
    assert main(["check"]) == 0
    assert "Found 1 break site in 1 of 2 files: 1 declined." in capsys.readouterr().out
    assert main(["check", "--strict"]) == 1
    assert main(["check", "--strict", "--exit-zero"]) == 0


def test_codes_are_selected_and_ignored(project: Path, capsys: Captured) -> None:
    assert main(["check", "--select", "GM1,GM3"]) == 0
    assert main(["check", "--select", "GM2", "--ignore", "GM201"]) == 0
    assert main(["check", "--ignore", "GM1"]) == 1
    assert main(["check", "--select=GM1", "--select=GM201"]) == 1


def test_select_on_the_command_line_wins_over_settings(project: Path, capsys: Captured) -> None:
    (project / "pyproject.toml").write_text("[tool.graphmend]\nignore = ['GM201']\n")
    assert main(["check"]) == 0
    assert main(["check", "--select", "GM201"]) == 1


def test_per_file_ignores_are_honoured(project: Path, capsys: Captured) -> None:
    (project / "pyproject.toml").write_text("[tool.graphmend.per-file-ignores]\n'mod*.py' = ['GM2']\n")
    assert main(["check"]) == 0
    assert "No break sites" in capsys.readouterr().out


def test_settings_of_another_file_can_be_given(project: Path, capsys: Captured) -> None:
    (project / "other.toml").write_text("[tool.graphmend]\nselect = ['GM1']\n")
    assert main(["check", "--config", "other.toml"]) == 0


def test_standard_input_is_checked_at_its_place(
    project: Path, before: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    stdin(monkeypatch, "# another line\n" + before)
    assert main(["check", "-", "--stdin-filename", "package/new.py"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("package/new.py:11:9: GM201 [*]")
    assert '11 |         logger.info(f"got' in out


def test_concise_output_has_a_line_for_each_finding(project: Path, capsys: Captured) -> None:
    main(["check", "--output-format", "concise"])
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_json_output_is_json(project: Path, capsys: Captured) -> None:
    assert main(["check", "--output-format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in document["findings"]] == ["safe", "declined"]


def test_sarif_output_is_valid_and_describes_every_rule(project: Path, capsys: Captured) -> None:
    assert main(["check", "--output-format", "sarif"]) == 1
    document = json.loads(capsys.readouterr().out)
    schema = Path(__file__).parent.parent / "data" / "sarif-2.1.0-rtm.5.json"
    jsonschema.Draft4Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(document)
    rules = [rule["id"] for rule in document["runs"][0]["tool"]["driver"]["rules"]]
    assert "GM101" in rules
    assert [rules[result["ruleIndex"]] for result in document["runs"][0]["results"]] == ["GM201", "GM201"]


def test_github_output_has_commands(project: Path, capsys: Captured) -> None:
    assert main(["check", "--output-format", "github"]) == 1
    assert capsys.readouterr().out.startswith("::warning file=model.py,line=10,")


def test_markdown_output_has_a_table(project: Path, capsys: Captured) -> None:
    main(["check", "--output-format", "markdown"])
    assert "| GM201 log-call | 2 | 1 | 0 | 0 | 1 | 0 |" in capsys.readouterr().out


def test_statistics_are_counted(project: Path, capsys: Captured) -> None:
    assert main(["check", "--statistics"]) == 1
    assert capsys.readouterr().out == "2  GM201  [*]  log-call  1 safe, 1 declined\n"
    main(["check", "--statistics", "--output-format", "json"])
    assert json.loads(capsys.readouterr().out)[0]["count"] == 2


def test_a_file_that_cannot_be_parsed_is_told_and_the_others_are_checked(project: Path, capsys: Captured) -> None:
    (project / "broken.py").write_text("import torch\nclass Model(torch.nn.Module:\n")
    assert main(["check", "--exit-zero"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("graphmend: error: broken.py:2: cannot be parsed: ")
    assert captured.err.count("\n") == 1
    assert "model.py:10:9: GM201" in captured.out


def test_suppressed_findings_are_left_out(project: Path, before: str, capsys: Captured) -> None:
    (project / "model.py").write_text("# graphmend: skip-file\n" + before)
    assert main(["check"]) == 0
    assert capsys.readouterr().out == "No break sites in 2 files.\n"


def test_a_path_that_does_not_exist_is_told_and_the_others_are_checked(project: Path, capsys: Captured) -> None:
    assert main(["check", "gone.py", "model.py"]) == 2
    captured = capsys.readouterr()
    assert captured.err == "graphmend: error: gone.py: does not exist; check the path\n"
    assert "model.py:10:9: GM201" in captured.out
    assert captured.out.endswith(" 1 could not be checked.\n")


def test_each_project_keeps_its_own_settings(project: Path, before: str, capsys: Captured) -> None:
    other = project / "other"
    other.mkdir()
    (other / "pyproject.toml").write_text("[tool.graphmend]\nignore = ['GM2']\n")
    (other / "model.py").write_text(before)
    third = project / "third"
    third.mkdir()
    (third / "pyproject.toml").write_text("[tool.graphmend]\n")
    (third / "model.py").write_text(before)
    assert main(["check", "--output-format", "concise", "other/model.py", "model.py", "third/model.py"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == ["model.py"] * 2 + ["third/model.py"] * 2


def test_quiet_leaves_findings_alone_on_the_screen(project: Path, capsys: Captured) -> None:
    assert main(["check", "-q", "--output-format", "concise"]) == 1
    captured = capsys.readouterr()
    assert [line.split()[1] for line in captured.out.splitlines()] == ["GM201", "GM201"]
    assert captured.err == ""


def test_verbose_names_the_project_its_settings_and_the_time(project: Path, capsys: Captured) -> None:
    assert main(["check", "-v", "--target-torch", "2.4", "--exclude", "model.py,other"]) == 0
    err = capsys.readouterr().err
    assert f"graphmend: project {project}: select GM, ignore nothing, torch 2.4\n" in err
    assert "graphmend: 1 Python files\n" in err
    assert "graphmend: checking took 0." in err


def test_a_finding_names_the_page_of_its_rule(project: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    main(["check"])
    assert "  = help: graphmend rule GM201\n" in capsys.readouterr().out
    monkeypatch.setenv("GRAPHMEND_DOCS_URL", "https://git.example.org/-/blob/main/docs/")
    main(["check"])
    assert "  = help: https://git.example.org/-/blob/main/docs/rules/GM201-log-call.md\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "fix"])
def test_a_target_on_the_command_line_wins(command: str, project: Path, capsys: Captured) -> None:
    (project / "model.py").write_text(MOVED_LOOP)
    assert main([command, "--target-torch", "2.3"]) == 0
    assert main([command, "--target-torch", "2.4"]) == 1


def test_a_change_is_checked_again_while_watching(project: Path) -> None:
    command = [sys.executable, "-u", "-m", "graphmend_codemod", "check", "--watch", "-q", "--output-format", "concise"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=project, env=environment
    ) as child:
        assert child.stdout
        assert child.stderr
        assert [child.stdout.readline().split()[1] for _ in range(2)] == ["GM201", "GM201"]
        assert "watching" in child.stderr.readline()
        (project / "model.py").write_text((project / "clean.py").read_text() + "        print(x)\n")
        assert "watching" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (130, "graphmend: interrupted\n")


@pytest.mark.parametrize("ignored", [False, True])
def test_a_package_in_an_environment_is_checked_where_it_is_named(
    ignored: bool, project: Path, capsys: Captured
) -> None:
    package = project / ".venv" / "lib" / "site-packages" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (project / "model.py").rename(package / "model.py")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / ".gitignore").write_text(".venv\n" if ignored else "")
    main(["check", "-q"])
    assert capsys.readouterr().out == ""
    main(["check", str(package)])
    assert ".venv/lib/site-packages/package/model.py:10:9: GM201 [*]" in capsys.readouterr().out
