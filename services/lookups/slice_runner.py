"""Long work beside the loop: scans, and indexes that are made, slice by slice in a thread of their own.

    loop      take a batch · answer a point lookup · take a batch · ...      never waits for more than a slice
    thread    scan a │ scan b │ scan b │ scan a │ make an index │ scan a     between two slices the shortest goes on

The work with the fewest rows left goes first, so that a short scan does not wait for a long one; every few slices the
one that waits longest has its turn, so that none waits for ever. Whoever is cancelled, by its caller or by its
deadline, has no further slice.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from stairwise.lookups.index_making import IndexMaking
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.scan import SLICE, Scan, Work

T = TypeVar("T")

FAIR = 4
"""One slice in so many goes to the work that waits longest."""
MAKE = 4 * SLICE
"""Rows that are given to an index before its memory is looked at."""


@dataclass(eq=False)
class _Job:
    work: Work[Any]
    rows: int
    """About how many are left."""
    future: asyncio.Future[Any]

    def settle(self, result: object, error: Exception | None) -> None:
        """Called in the loop."""
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class SliceRunner:
    """Runs work for the loop that it is called from. Its thread ends with the process, or when it is closed."""

    def __init__(self) -> None:
        self._jobs: list[_Job] = []
        """The one that waits longest comes first."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._makers: dict[IndexMaking, asyncio.Task[None]] = {}
        self.slices = 0
        """How many were run."""

    async def run(self, work: Work[T], rows: int) -> T:
        """What work comes to; about so many rows have to be looked at for it."""
        job = _Job(work, rows, asyncio.get_running_loop().create_future())
        with self._changed:
            self._jobs.append(job)
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._go_on, name="slices", daemon=True)
            self._thread.start()
        try:
            found: T = await job.future
            return found
        finally:
            job.future.cancel()

    async def call(self, call: Callable[[], T], rows: int) -> T:
        """The same for work that is one slice."""
        return await self.run(_in_one(call), rows)

    async def scanned(self, scan: Scan) -> Any:
        return await self.run(scan.work(), scan.rows)

    async def make(self, history: PartitionHistory, making: IndexMaking) -> None:
        """Make an index, with all others who wait for it. It goes on also where none of them waits any longer."""
        await asyncio.shield(self._maker(history, making))

    def tend(self, history: PartitionHistory) -> None:
        """Make, in the background, the indexes that a partition wants."""
        for making in history.makings:
            self._maker(history, making)

    def _maker(self, history: PartitionHistory, making: IndexMaking) -> asyncio.Task[None]:
        maker = self._makers.get(making)
        if maker is None:
            maker = self._makers[making] = asyncio.create_task(self._make(history, making))
            maker.add_done_callback(lambda _: self._makers.pop(making, None))
        return maker

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        for maker in self._makers.values():
            maker.cancel()

    async def _make(self, history: PartitionHistory, making: IndexMaking) -> None:
        while not history.adopt(making):
            await self.run(history.make(making, MAKE), history.rows)

    def _go_on(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return
                job = self._next()
            result, error, is_done = None, None, True
            if not job.future.cancelled():
                try:
                    next(job.work)
                    is_done = False
                except StopIteration as end:
                    result = end.value
                except Exception as failed:
                    error = failed
            job.rows -= SLICE
            self.slices += 1
            if is_done:
                with self._changed:
                    self._jobs.remove(job)
                job.work.close()
                if not job.future.get_loop().is_closed():
                    job.future.get_loop().call_soon_threadsafe(job.settle, result, error)

    def _next(self) -> _Job:
        if self.slices % FAIR == 0:
            job = self._jobs.pop(0)
            self._jobs.append(job)
            return job
        return min(self._jobs, key=lambda job: job.rows)


def _in_one(call: Callable[[], T]) -> Work[T]:
    yield from ()
    return call()
