"""Signals that end a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from graphmend_codemod.core.interruption import Interrupted, interruptible, uninterrupted


class Swallows:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def test_each_ending_signal_raises_with_its_exit_code_and_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted) as caught, interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_nothing_interrupts_cleaning_up() -> None:
    with interruptible() as interruption:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            # A child started meanwhile ignores them too.
            subprocess.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 2)"], check=True)
        interruption.heed()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_a_finalizer_swallowed_is_not_lost() -> None:
    with interruptible() as interruption:
        Swallows()
        with pytest.raises(Interrupted):
            interruption.heed()


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
