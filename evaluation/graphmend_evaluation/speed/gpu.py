"""What the driver's own tool says about a GPU. Nothing is set."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

_QUERY = "name,driver_version,clocks.sm,clocks.mem"
_PATIENCE = 20


@dataclass(frozen=True)
class Gpu:
    """All empty where there is none. `clocks` are those of the moment."""

    name: str = ""
    driver: str = ""
    clocks: str = ""


def gpu_as_found(uuid: str = "") -> Gpu:
    """The GPU with this id, without one the first that the driver lists."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Gpu()
    command = [tool, f"--query-gpu={_QUERY}", "--format=csv,noheader", *([f"--id={uuid}"] if uuid else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Gpu()
    return read_query(done.stdout) if done.returncode == 0 else Gpu()


def read_query(text: str) -> Gpu:
    """The first line of an answer to the query; empty for anything else."""
    parts = [part.strip() for part in next(iter(text.splitlines()), "").split(",")]
    if len(parts) != 4:
        return Gpu()
    name, driver, graphics, memory = parts
    return Gpu(name, driver, f"graphics {graphics}, memory {memory}")
