"""The command itself: help, mistakes, interruption, closed pipes, start-up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod import __version__
from graphmend_codemod.cli.main import COMMANDS, main

Captured = pytest.CaptureFixture[str]
GRAPHMEND = (sys.executable, "-m", "graphmend_codemod")
CHECKOUT = Path(__file__).parent.parent.parent


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes child processes find the package from any folder."""
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))


def complaint(arguments: list[str], capsys: Captured) -> str:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("graphmend: error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_version_is_told(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"graphmend {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"graphmend {command}" in capsys.readouterr().out.partition("examples:")[2]


def test_help_lists_all_commands(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"    {command} " in out for command in COMMANDS)


def test_the_version_has_a_short_option_and_help_is_a_command(capsys: Captured) -> None:
    for arguments, told in ((["-V"], __version__), (["help", "fix"], "usage: graphmend fix"), (["help"], "examples:")):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        assert told in capsys.readouterr().out


@pytest.mark.usefixtures("environment")
def test_the_name_of_the_command_is_a_module(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "graphmend", "-V"], capture_output=True, check=True, text=True, cwd=project
    )
    assert done.stdout == f"graphmend {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["chekc"], "`check`"),
        (["check", "--selct", "GM1"], "`--select`"),
        (["fix", "--dif"], "`--diff`"),
        (["check", "--output-format=jason"], "`json`"),
    ],
)
def test_a_misspelled_word_is_told_what_may_be_meant(arguments: list[str], meant: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert f"did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["chekc"], ["check", "--nope"], ["fix", "--jobs", "0"], ["rule"]])
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: graphmend" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--select", "GM999"], "--select: unknown rule code `GM999`"),
        (["--select", "gm101"], "--select: unknown rule code `gm101` (did you mean `GM101`"),
        (["--select", "E501"], "--select: unknown rule code `E501`; `graphmend rules` lists all codes"),
        (["--target-torch", "new"], '--target-torch must be a string such as "2.4", not "new"'),
        (["--ignore", "W605"], "--ignore: unknown rule code `W605`; `graphmend rules` lists all codes"),
        (["--config", "gone.toml"], "gone.toml: cannot be read: No such file or directory"),
        (["--stdin-filename", "a.py"], "--stdin-filename requires `-` as PATHS"),
        (["-", "model.py"], "`-` reads standard input and cannot be combined with other paths"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    command: str, arguments: list[str], expected: str, project: Path, capsys: Captured
) -> None:
    assert expected in complaint([command, *arguments], capsys)


def test_a_mistake_in_the_settings_is_told_in_one_line(project: Path, capsys: Captured) -> None:
    (project / "pyproject.toml").write_text("[tool.graphmend]\nselects = ['GM1']\n")
    assert "has no setting `selects` (did you mean `select`?)" in complaint(["check"], capsys)


def test_statistics_do_not_go_with_sarif(project: Path, capsys: Captured) -> None:
    assert "--statistics goes with" in complaint(["check", "--statistics", "--output-format", "sarif"], capsys)


@pytest.mark.usefixtures("environment")
def test_interruption_is_one_line_and_130(project: Path) -> None:
    with subprocess.Popen(
        [*GRAPHMEND, "check", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin
        child.stdin.write(b"#" * 2**20)  # more than a pipe holds: it returns once the command reads
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (130, b"", b"graphmend: interrupted\n")


def test_an_interruption_while_it_starts_is_130_too(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    from graphmend_codemod.__main__ import run

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.__import__", interrupted)
    code = run()
    monkeypatch.undo()
    assert (code, capsys.readouterr().err) == (130, "graphmend: interrupted\n")


@pytest.mark.usefixtures("environment")
def test_a_closed_pipe_is_quiet(project: Path, before: str) -> None:
    sites = "\n".join(f'        logger.info(f"got {{x.shape[{index}]}} rows")' for index in range(200))
    (project / "model.py").write_text(before.replace("        seen", f"{sites}\n        seen"))
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([*GRAPHMEND, "check"], stdout=theirs, stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.usefixtures("environment")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_under_the_output_is_told(project: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*GRAPHMEND, "check", "clean.py"], stdout=full, stderr=subprocess.PIPE, check=False, text=True
        )
    assert done.returncode == 2
    assert done.stderr == "graphmend: error: output: No space left on device\n"


@pytest.mark.usefixtures("environment")
def test_names_that_the_terminal_cannot_show_do_not_end_the_run(project: Path, before: str) -> None:
    (project / "größe.py").write_text(before)
    done = subprocess.run(
        [*GRAPHMEND, "check", "--output-format", "concise"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 1
    assert b"gr\\xf6\\xdfe.py:10:9: GM201" in done.stdout


@pytest.mark.usefixtures("environment")
def test_a_clean_file_costs_no_heavy_import(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "graphmend_codemod", "fix", "clean.py"],
        capture_output=True,
        check=True,
        text=True,
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    heavy = "libcst joblib git rich json subprocess difflib tomli shutil torch logging multiprocessing threading "
    heavy += "dataclasses inspect hashlib"
    assert not imported & set(heavy.split())


_ASKS_MANY_RULES = """# coding=utf-8
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, ids: torch.LongTensor, x: torch.Tensor, rows: torch.Tensor):
        mask = (ids == 7).unsqueeze(-1).expand_as(x)
        if not torch.compiler.is_compiling() and x[mask].numel() != rows.numel():
            raise ValueError(f"{rows.numel()} elements")
        x = x.masked_scatter(mask, rows)
        return x[:, -1]
"""


@pytest.mark.usefixtures("environment")
def test_a_clean_file_loads_no_proof_of_the_rules_that_are_asked_about_it(project: Path) -> None:
    (project / "clean.py").write_text(_ASKS_MANY_RULES)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "graphmend_codemod", "fix", "clean.py"],
        capture_output=True,
        check=True,
        text=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "graphmend_codemod.rules.proofs.untraced.places" in imported
    heavy = "engine.applicable rules.proofs.conditions.deciding_operands rules.proofs.traceable_equivalents "
    heavy += "rules.proofs.numbers.fixed_sizes.known_sizes rules.proofs.memory.shared_memory "
    heavy += "rules.proofs.rowwise.masked_region rules.proofs.logging.log_guard"
    assert not imported & {f"graphmend_codemod.{name}" for name in heavy.split()}
    assert not imported & {"dataclasses", "tokenize"}


def test_rules_are_listed(capsys: Captured) -> None:
    assert main(["rules"]) == 0
    assert any(line.startswith("GM101  tensor-if-assign ") for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("word", ["GM101", "gm101", "tensor-if-assign"])
def test_a_rule_is_explained(word: str, capsys: Captured) -> None:
    assert main(["rule", word]) == 0
    out = capsys.readouterr().out
    assert out.startswith("GM101 tensor-if-assign (control flow)\n")
    for part in ("when compiled: ", "Example 1, before:", "Example 1, after:", 'Not applied ("'):
        assert part in out


def test_a_rule_is_found_by_its_former_name(capsys: Captured) -> None:
    assert main(["rule", "rows-filled"]) == 0
    assert capsys.readouterr().out.startswith("GM508 length-mask ")


def test_the_code_of_a_rule_that_was_removed_is_known_and_told_about(tmp_path: Path, capsys: Captured) -> None:
    assert "GM505 is no longer a rule: " in complaint(["rule", "GM505"], capsys)
    assert main(["check", str(tmp_path), "--select", "GM505,GM2", "--ignore", "GM106"]) == 0


def test_an_unknown_rule_is_told_with_close_ones(capsys: Captured) -> None:
    told = complaint(["rule", "GM1O1"], capsys)
    assert told.startswith("graphmend: error: there is no rule `GM1O1` (did you mean `GM")
    assert "`GM101`" in told


def test_the_code_of_another_tool_is_no_slip_for_a_rule(capsys: Captured) -> None:
    assert "did you mean" not in complaint(["rule", "E501"], capsys)


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["check", "--out"], "--output-format"), (["check", "--output-format", "js"], "json"), (["mig"], "migrate")],
)
def test_bash_completes_commands_options_and_choices(
    words: list[str], expected: str, tmp_path: Path, capsys: Captured
) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    line = " ".join(["graphmend", *words])
    program = f'source ./script; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _graphmend; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", program], capture_output=True, check=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == [expected]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_command_with_its_help(shell: str, capsys: Captured) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in COMMANDS)
    assert "exit with 0 even if there are findings" in out


def test_without_a_command_the_commands_are_listed(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2
    assert "graphmend check " in capsys.readouterr().err


def test_a_misspelled_option_without_a_command_gets_a_suggestion(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--verison"])
    assert stopped.value.code == 2
    assert "did you mean `--version`?" in capsys.readouterr().err
