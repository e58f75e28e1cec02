"""The most memory that this process has held. Imports no torch."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def peak_resident_bytes() -> int | None:
    """The most memory that was resident since the start or since `forget_peak`."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else None


def forget_peak() -> bool:
    """Let the peak begin anew; false where the system does not offer it."""
    try:
        descriptor = os.open("/proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(descriptor, b"5")
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
