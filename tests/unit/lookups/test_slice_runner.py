"""Long work runs beside the loop: in slices, the shortest first, and not for those who have gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from services.lookups.slice_runner import SliceRunner
from stairwise.lookups.scan import SLICE, Work

DEADLINE = 20.0


def with_runner(test: Callable[[SliceRunner], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        runner = SliceRunner()
        try:
            await asyncio.wait_for(test(runner), DEADLINE)
        finally:
            runner.close()

    asyncio.run(run())


def gated(gate: threading.Event) -> Work[str]:
    """Holds the thread in its first slice until others wait too."""
    gate.wait(DEADLINE)
    yield
    return "gate"


def named(name: str, slices: int, log: list[str]) -> Work[str]:
    for _ in range(slices):
        log.append(name)
        yield
    return name


def test_the_loop_goes_on_while_work_is_done() -> None:
    async def test(runner: SliceRunner) -> None:
        gate = threading.Event()
        waiting = asyncio.create_task(runner.run(gated(gate), SLICE))
        for _ in range(100):  # would wait for ever if the work ran in the loop
            await asyncio.sleep(0)
        assert not waiting.done()
        gate.set()
        assert await waiting == "gate"

    with_runner(test)


def test_short_work_goes_before_long_and_long_is_not_left_to_wait_for_ever() -> None:
    async def test(runner: SliceRunner) -> None:
        gate, log = threading.Event(), list[str]()
        first = asyncio.create_task(runner.run(gated(gate), 1))
        long = asyncio.create_task(runner.run(named("long", 40, log), 40 * SLICE))
        short = asyncio.create_task(runner.run(named("short", 12, log), 12 * SLICE))
        await asyncio.sleep(0)
        gate.set()
        assert await asyncio.gather(first, long, short) == ["gate", "long", "short"]
        last = len(log) - log[::-1].index("short")
        assert 0 < log[:last].count("long") <= 8

    with_runner(test)


def test_work_that_nobody_waits_for_any_more_stops() -> None:
    async def test(runner: SliceRunner) -> None:
        started, log = threading.Event(), list[str]()

        def endless() -> Work[None]:
            while True:
                started.set()
                log.append("slice")
                yield

        waiting = asyncio.create_task(runner.run(endless(), SLICE))
        await asyncio.to_thread(started.wait, DEADLINE)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await runner.run(named("next", 1, []), SLICE) == "next"
        assert not runner._jobs
        done = len(log)
        assert await runner.run(named("last", 3, []), SLICE) == "last"
        assert len(log) == done

    with_runner(test)


def test_what_goes_wrong_reaches_the_one_who_waits() -> None:
    def failing() -> Work[None]:
        yield
        raise ValueError("no such row")

    async def test(runner: SliceRunner) -> None:
        with pytest.raises(ValueError, match="no such row"):
            await runner.run(failing(), SLICE)
        assert await runner.call(lambda: 7, 1) == 7

    with_runner(test)
