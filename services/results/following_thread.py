"""A thread that follows a topic for a loop: the loop hears when it has caught up, and when it can go on no more."""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

log = logging.getLogger(__name__)


class FollowingThread(ABC, threading.Thread):
    """``caught_up`` is set, in the loop, when everything has been read that was there at the start. A failure ends the
    thread and calls ``failed`` there: what no longer follows its topic must not look healthy."""

    def __init__(self, topic: str, failed: Callable[[], None]) -> None:
        super().__init__(name=f"follow-{topic}", daemon=True)
        self.caught_up = asyncio.Event()
        self._topic = topic
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            self._follow()
        except Exception:
            log.exception("the topic %s can no longer be followed", self._topic)
            self._loop.call_soon_threadsafe(self._failed)
        finally:
            self._close()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self.join)

    @abstractmethod
    def _follow(self) -> None:
        """Read on until ``_stopping`` is set."""

    @abstractmethod
    def _close(self) -> None:
        """Let go of Kafka."""
