"""A benchmark that is told to end cleans up first: what it has started ends with it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def end_in_order() -> None:
    """From now on a signal to end raises SystemExit, so that every ``with`` and ``finally`` is left as usual."""
    for number in SIGNALS:
        signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


@contextmanager
def undisturbed() -> Iterator[None]:
    """A second signal does not cut short the cleaning up."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
