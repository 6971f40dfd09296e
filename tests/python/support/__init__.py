"""What tests of several faces need."""
# SPDX-License-Identifier: MIT
import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Has this process killed when the one that started it ends: a test that is killed leaves nothing behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
