"""What a result was measured on. Nothing here imports torch or touches a device's settings."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from graphmend_evaluation.evaluation import Machine


def this_machine(*loads: float) -> Machine:
    """The machine, with the load averages that were noted on the way and the one of now."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        system=f"{platform.system()} {platform.machine()}",
        gpus=_gpus(),
        load=(*loads, load_average()),
    )


def load_average() -> float:
    """The load average of the last minute; 0.0 where the system has none."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _gpus() -> tuple[str, ...]:
    """Names of NVIDIA GPUs, as the driver's own tool tells them."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(line.strip() for line in found.stdout.splitlines() if line.strip()) if not found.returncode else ()
