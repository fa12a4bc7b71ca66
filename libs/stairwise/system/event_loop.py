"""Waiting for whatever comes first: the end of a process, a wake-up from another thread, or a time.

The kernel says when a process has ended (a pidfd becomes readable); threads and signal handlers write one
byte into a socket pair. So nothing is polled, and a supervisor of healthy parts uses no processor time at
all.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable


class EventLoop:
    """One thread calls ``wait`` and ``when_ended``; any thread or signal handler may call ``wake``."""

    def __init__(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._receiver, selectors.EVENT_READ, self._drain)

    def when_ended(self, pid: int, then: Callable[[], None]) -> None:
        """Call ``then``, in ``wait``, once this child has ended; it must not have been reaped by then."""
        handle = os.pidfd_open(pid)

        def ended() -> None:
            self._selector.unregister(handle)
            os.close(handle)
            then()

        self._selector.register(handle, selectors.EVENT_READ, ended)

    def wake(self) -> None:
        """Make ``wait`` return."""
        try:
            self._sender.send(b"!")
        except (BlockingIOError, OSError):
            return  # full: a wake-up is under way already; or closed: nobody waits any more

    def wait(self, timeout: float | None) -> None:
        """Wait until something has happened, at most ``timeout`` seconds."""
        for key, _ in self._selector.select(timeout):
            key.data()

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if key.fileobj is not self._receiver:
                os.close(key.fd)
        self._selector.close()
        self._receiver.close()
        self._sender.close()

    def _drain(self) -> None:
        self._receiver.recv(4096)
