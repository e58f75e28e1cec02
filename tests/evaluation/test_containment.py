"""What code of a repository can reach from its child process: each test has a child that tries."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from graphmend_evaluation import containment
from graphmend_evaluation.isolation import Policy, how_it_ended, run_child
from tests.tools.processes import nothing_runs

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "evaluation")}

BOTH = pytest.mark.parametrize("own", [True, False], ids=["own processes", "shared"])


def run_code(code: str, tmp_path: Path, **policy: object) -> str:
    """What a child prints, and how it ended if not well."""
    folder, tree = tmp_path / "run", tmp_path / "tree"
    folder.mkdir(exist_ok=True)
    tree.mkdir(exist_ok=True)
    command = [sys.executable, "-c", textwrap.dedent(code)]
    ending = run_child(command, tree, folder, Policy(**{"timeout": 30, **policy}))  # type: ignore[arg-type]
    told = (folder / "stdout.txt").read_text()
    return told if ending.returncode == 0 else f"{told}{how_it_ended(ending, folder)}"


SPY = """
import sys
from pathlib import Path
found, parent, secret = set(), sys.argv[1], sys.argv[2][::-1].encode()
for entry in Path("/proc").glob("[0-9]*"):
    for name in ("environ", "mem"):
        try:
            with open(entry / name, "rb") as file:
                if name == "mem" and entry.name == parent:
                    found.add("memory")  # who may open it may read it
                if name == "environ" and secret in file.read():
                    found.add("environment")
        except OSError:
            pass
print(*sorted(found))
"""
HOLDER = """
import os, subprocess, sys
from pathlib import Path
from graphmend_evaluation.isolation import Policy, run_child
folder, own = Path(sys.argv[1]), sys.argv[2] == "True"
command = [sys.executable, str(folder / "spy.py"), str(os.getpid()), sys.argv[3]]
print("plain", subprocess.run(command, capture_output=True, text=True, env={}).stdout.strip())
run_child(command, folder, folder, Policy(timeout=30, own_processes=own))
print("contained", (folder / "stdout.txt").read_text().strip())
"""


@BOTH
def test_a_token_in_the_environment_of_the_parent_cannot_be_read(tmp_path: Path, own: bool) -> None:
    """A process that was started with a token starts a child that looks for it, plainly and contained."""
    secret = f"secret-{os.urandom(8).hex()}"
    (tmp_path / "spy.py").write_text(SPY)
    done = subprocess.run(
        [sys.executable, "-c", HOLDER, str(tmp_path), str(own), secret[::-1]],
        env={**ENVIRONMENT, "MY_TOKEN": secret},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == ["plain environment memory", "contained "]


@BOTH
def test_a_daemon_does_not_outlive_the_child(tmp_path: Path, own: bool) -> None:
    code = f"""
        import os, subprocess
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.closerange(0, 100)
                    os.execvp("sleep", ["sleep", "600", "0.{os.getpid()}"])
                os._exit(0)
        print("left")
    """
    assert run_code(code, tmp_path, own_processes=own) == "left\n"
    assert nothing_runs(f"600 0.{os.getpid()}")


def test_with_processes_of_its_own_it_sees_no_other(tmp_path: Path) -> None:
    code = """
        import os
        print(len([name for name in os.listdir("/proc") if name.isdecimal()]))
        try:
            os.kill(PARENT, 0)
        except ProcessLookupError:
            print("no parent")
    """.replace("PARENT", str(os.getpid()))
    allowed = subprocess.run(["unshare", "-r", "-p", "-f", "--mount-proc", "true"], capture_output=True, check=False)
    told = run_code(code, tmp_path)
    if allowed.returncode == 0:
        assert told == "2\nno parent\n"
    else:
        assert int(told.split()[0]) > 2


@BOTH
def test_more_memory_than_the_limit_ends_the_child_and_not_the_machine(tmp_path: Path, own: bool) -> None:
    """Two processes that together take more, none of which does alone."""
    code = """
        import os, time
        os.fork()
        held = b"x" * (150 << 20)
        time.sleep(20)
    """
    script = f"{textwrap.dedent(code)}"
    folder = tmp_path / "run"
    folder.mkdir()
    command = containment.contained([sys.executable, "-c", script], folder, memory=200 << 20, own_processes=own)
    began = time.monotonic()
    assert subprocess.run(command, check=False).returncode == 1
    assert time.monotonic() - began < 10
    assert containment.exceeded(folder) == "it took more than 0.195 GiB of memory"


def test_the_default_limit_is_a_share_of_the_machines_memory() -> None:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    whole = containment.machine_memory()
    assert 0.05 * physical < whole <= 0.8 * physical
    assert containment.memory_for_one_of(1) == whole
    assert min(whole, 8 * 2**30) <= containment.memory_for_one_of(1000) <= whole


def test_the_kernel_takes_the_child_first_when_memory_runs_out(tmp_path: Path) -> None:
    assert run_code("print(open('/proc/self/oom_score_adj').read())", tmp_path).strip() == "1000"


def test_it_has_a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    monkeypatch.setenv("HOME", str(theirs))
    code = """
        import os, pathlib
        pathlib.Path.home().joinpath(".bashrc").write_text("evil")
        pathlib.Path(os.path.expandvars("$HOME/.config")).mkdir()
        print(pathlib.Path.home().name)
    """
    assert run_code(code, tmp_path) == "home\n"
    assert list(theirs.iterdir()) == []


@BOTH
def test_how_it_ended_is_told_as_without_containment(tmp_path: Path, own: bool) -> None:
    for code, told in (
        ("import os; os._exit(3)", "the process ended with exit code 3 and left no result"),
        ("import os; os.kill(os.getpid(), 11)", "the process was ended by SIGSEGV"),
        ("import os; os.abort()", "the process was ended by SIGABRT"),
    ):
        assert told in run_code(code, tmp_path, own_processes=own)


ESCAPE = """
    import os, pathlib, socket
    def attempt(what, work):
        try:
            work()
        except Exception as error:
            print(what, type(error).__name__)
        else:
            print(what, "done")
    attempt("outside", lambda: pathlib.Path(OUTSIDE, "made").write_text("x"))
    attempt("secret", lambda: pathlib.Path(OUTSIDE, "secret").read_text())
    attempt("tree", lambda: pathlib.Path("made").write_text("x"))
    attempt("network", lambda: socket.create_connection(("127.0.0.1", PORT), 2))
    attempt("home", lambda: pathlib.Path.home().joinpath("x").write_text("x"))
"""


def test_in_a_sandbox_only_its_own_folders_are_written_and_there_is_no_network(tmp_path: Path) -> None:
    """Where bubblewrap makes no sandbox, the option says so in one line: there is no third way."""
    outside, run = tmp_path / "outside", tmp_path / "run"
    for folder in (outside, run, tmp_path / "plain"):
        folder.mkdir()
    (outside / "secret").write_text("secret")
    trial = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--proc", "/proc", "true"]
    works = shutil.which("bwrap") is not None and subprocess.run(trial, check=False).returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as listening:
        code = ESCAPE.replace("OUTSIDE", repr(str(outside))).replace("PORT", str(listening.getsockname()[1]))
        plain = run_code(code, tmp_path / "plain").splitlines()
        assert plain == ["outside done", "secret done", "tree done", "network done", "home done"]
        (outside / "made").unlink()
        if works:
            told = run_code(code, run, sandbox=True).splitlines()
            assert [line.split()[0] for line in told if line.endswith("done")] == ["tree", "home"], told
        else:
            with pytest.raises(containment.SandboxError, match="bubblewrap"):
                run_code(code, run, sandbox=True)
    assert list(outside.iterdir()) == [outside / "secret"]


def test_without_bubblewrap_the_option_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(containment.SandboxError, match="--sandbox needs bubblewrap, which is not installed"):
        containment.require_sandbox()


def test_a_bubblewrap_that_may_make_no_sandbox_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("bwrap") == str(program)
    with pytest.raises(containment.SandboxError, match=r"can make no sandbox here .*No permissions"):
        containment.require_sandbox()


def test_nothing_is_begun_for_a_parent_that_has_ended_meanwhile(tmp_path: Path) -> None:
    """The parent may be killed while the supervisor starts: then nobody would end what it begins."""
    command = containment.contained(["touch", str(tmp_path / "made")], tmp_path, memory=0, own_processes=True)
    assert subprocess.run(command, check=False).returncode == 0
    (tmp_path / "made").unlink()
    command[command.index("--parent") + 1] = "1"
    assert subprocess.run(command, check=False).returncode == 1
    assert not (tmp_path / "made").exists()
