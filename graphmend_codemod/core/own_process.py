"""Hardening of the current process: other processes may not read its memory."""

from __future__ import annotations

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def hide_this_process() -> None:
    """Let no other process of this user read this one's memory and the environment it was started with (Linux).

    A token may be in both. A debugger cannot be attached any more, and no core is dumped.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
