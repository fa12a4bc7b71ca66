"""Run a command that is told to end (SIGTERM) when the process that started it dies.

    python -I -S die_with_parent.py PARENT COMMAND...

A supervisor that is killed can't stop its parts; the kernel then tells them. A child has to ask for that itself,
and does so here, in a process of its own that then becomes the command: Python's ``preexec_fn`` would run in a
fork of a process with threads, where gRPC's threads made one child in twenty die before its command had begun.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tie_to(parent: int) -> None:
    """Be told to end when the parent, which started this process, dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the parent has died already")


def main(parent: int, command: list[str]) -> None:
    tie_to(parent)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]} can't be started: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
