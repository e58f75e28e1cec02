"""What a child that runs code of a repository may reach: see `SECURITY.md` for what that stops, and what it does not.

Everywhere: no secrets in its environment, a home of its own. On Linux also: no look into this process, no daemon that
outlives it, no more memory than the machine has, and, with `bwrap`, nothing to write but its own folders.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_LINUX = sys.platform == "linux"
_SUPERVISOR = Path(__file__).resolve().parent / "supervisor.py"
_SHARE_OF_MEMORY = 0.8
_ENOUGH = 8 * 2**30
_NOTE = "limit"
_CGROUP = Path("/sys/fs/cgroup")
_DEVICES = ("/dev/nvidia*", "/dev/dri", "/dev/kfd")
_TRIAL = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net", "--", "true")


class SandboxError(Exception):
    """There can be no sandbox here. The text is one line: what, cause, way out."""


def contained(
    command: Sequence[str],
    folder: Path,
    *,
    memory: int | None,
    own_processes: bool,
    sandbox: Sequence[str] = (),
) -> list[str]:
    """A command that runs `command` and leaves no process. `sandbox` is what `sandboxed` returns, if there is one.

    `memory` is in bytes of all processes together, by default most of what the machine has.
    """
    if not _LINUX:
        return list(command)
    limit = machine_memory() if memory is None else memory
    options = ["--parent", str(os.getpid()), "--note", str(note(folder)), "--memory", str(limit)]
    options += ["--keep-privileges"] if sandbox else ["--own-processes"] if own_processes else []
    return [sys.executable, "-I", "-S", str(_SUPERVISOR), *options, "--", *sandbox, *command]


def note(folder: Path) -> Path:
    """The file that says which limit the command in `folder` was ended for."""
    return folder / _NOTE


def exceeded(folder: Path) -> str | None:
    """What limit the command in `folder` was ended for."""
    try:
        return note(folder).read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return None


def forget_limit(folder: Path) -> None:
    """Before another command runs in the folder."""
    note(folder).unlink(missing_ok=True)


def machine_memory() -> int:
    """Bytes that processes of this machine, or of this container, may take together; 0 if that is not known."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in _memory_files():
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(file.read_text()))
    return int(min(limits) * _SHARE_OF_MEMORY)


def memory_for_one_of(jobs: int) -> int:
    """Bytes for one of as many runs: an equal part, but enough to import torch in a few processes; 0 if not known."""
    whole = machine_memory()
    return max(whole // jobs, min(whole, _ENOUGH))


def home_of_its_own(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Variables for an empty home in `folder`; what was downloaded or installed for the user stays in reach."""
    home, theirs = folder / "home", variables.get("HOME") or os.path.expanduser("~")
    home.mkdir(parents=True, exist_ok=True)
    cache = Path(variables.get("XDG_CACHE_HOME") or Path(theirs, ".cache"))
    hub = Path(variables.get("HF_HOME") or cache / "huggingface")
    return {
        "HOME": str(home),
        "HF_HUB_CACHE": variables.get("HF_HUB_CACHE") or str(hub / "hub"),
        "HF_DATASETS_CACHE": variables.get("HF_DATASETS_CACHE") or str(hub / "datasets"),
        "TORCH_HOME": variables.get("TORCH_HOME") or str(cache / "torch"),
        "PYTHONUSERBASE": variables.get("PYTHONUSERBASE") or site.getuserbase(),
    }


LEADING_HOME = frozenset(
    {"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "PWD", "OLDPWD"}
)
"""Variables that lead to the user's folders, and are left out."""


def require_sandbox() -> str:
    """Where `bwrap` is. Raises `SandboxError` when it is missing, or makes no sandbox here."""
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxError("--sandbox needs bubblewrap, which is not installed; install `bubblewrap`, or leave it out")
    done = subprocess.run([program, *_TRIAL], capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        told = " ".join(done.stderr.split())[:200]
        raise SandboxError(f"--sandbox: bubblewrap can make no sandbox here ({told}); use a container, or leave it out")
    return program


def sandboxed(worktree: Path, folder: Path, environment: Mapping[str, str], *, python: str, network: bool) -> list[str]:
    """The beginning of a command that runs in a sandbox: it may write to `worktree` and `folder`, and nowhere else.

    Temporary folders and homes are empty there, but for the run's own and for what Python imports from. There is no
    network, unless `network` is allowed. Raises `SandboxError`.
    """
    options = [require_sandbox(), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    options += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--cap-drop", "ALL"]
    options += [] if network else ["--unshare-net"]
    hidden = {"/tmp", "/var/tmp", "/run", os.path.expanduser("~"), tempfile.gettempdir(), "/home", "/root"}
    for place in sorted(hidden):
        if os.path.isdir(place) and place != "/":
            options += ["--tmpfs", os.path.realpath(place)]
    for place in (*_read_places(worktree, folder, environment, python), *(["/run/systemd/resolve"] if network else [])):
        options += ["--ro-bind-try", place, place]
    for place in sorted(path for pattern in _DEVICES for path in glob.glob(pattern)):
        options += ["--dev-bind-try", place, place]
    for writable in (worktree, folder):
        options += ["--bind", str(writable.resolve()), str(writable.resolve())]
    if network:
        downloads = [environment[name] for name in ("HF_HUB_CACHE", "TORCH_HOME") if name in environment]
        options += [part for place in downloads for part in ("--bind-try", place, place)]
    return [*options, "--chdir", str(worktree.resolve()), "--"]


def _read_places(worktree: Path, folder: Path, environment: Mapping[str, str], python: str) -> list[str]:
    """Folders that are needed although they may lie in a home or a temporary folder."""
    places = [
        sys.prefix,
        sys.base_prefix,
        *(path for path in sys.path if path),
        str(Path(__file__).resolve().parents[1]),
    ]
    places += [str(Path(python).parent.parent), str(Path(python).resolve().parent.parent)]
    places += environment.get("PYTHONPATH", "").split(os.pathsep)
    places += [environment[name] for name in ("HF_HUB_CACHE", "HF_DATASETS_CACHE", "TORCH_HOME") if name in environment]
    places += [os.path.join(environment["PYTHONUSERBASE"], "lib")] if "PYTHONUSERBASE" in environment else []
    with contextlib.suppress(ValueError):  # the run's own folder: other arms, recordings
        common = os.path.commonpath([worktree.resolve(), folder.resolve()])
        if common not in {"/", os.path.realpath(tempfile.gettempdir()), os.path.realpath(os.path.expanduser("~"))}:
            places.append(common)
    return sorted({place for place in places if os.path.isabs(place) and place != "/"}, key=len)


def _memory_files() -> Iterator[Path]:
    yield _CGROUP / "memory.max"
    yield _CGROUP / "memory" / "memory.limit_in_bytes"
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield _CGROUP / path.lstrip("/") / "memory.max"
            elif "memory" in controllers.split(","):
                yield _CGROUP / "memory" / path.lstrip("/") / "memory.limit_in_bytes"
