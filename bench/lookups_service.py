"""The lookups service beside a bare echo, while rows flow: latency of single lookups, rate of many in one call."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
import psutil
import pyarrow as pa

from bench.lookups_echo import METHOD
from bench.lookups_load import BATCH, KEYS, PARTITIONS, RETAIN, ROWS_A_MILLISECOND, stream_of, write
from bench.report import Goal
from stairwise.client.lookups import Many
from stairwise.system.broker import Broker
from stairwise.system.installation import find_installation
from stairwise.system.launch import await_healthy, launch, stop
from stairwise.system.ports import free_ports
from stairwise.v1 import lookups_pb2, lookups_pb2_grpc
from tests.integration.lookup_system import Worker, Writer

FLOW = 200_000
HISTORY = 2 * RETAIN * ROWS_A_MILLISECOND // BATCH
"""Batches of each partition that are there before: more than are kept."""
CALLS = 1500
MANY = 1000
MANY_CALLS = 600
CALLERS = 4
"""Who ask for many at the same time."""

P50_GOAL, P99_GOAL = 1.5, 3.0
MANY_GOAL = 400_000


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def system() -> Iterator[tuple[str, Path]]:
    """A broker in a directory that goes away afterwards."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        port, controller = free_ports(2)
        broker = Broker(find_installation(os.environ), directory / "broker", port, controller)
        broker.prepare()
        part = launch(broker.part(), directory)
        try:
            await_healthy(part)
            yield broker.address, directory
        finally:
            stop(part)


def timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measure() -> tuple[list[Goal], str]:
    with system() as (brokers, directory):
        writer = Writer(brokers)
        stream = stream_of(f"flow_{uuid.uuid4().hex[:6]}")
        writer.create(stream)
        write(writer, stream, 0, HISTORY)
        worker = Worker(brokers, directory)
        try:
            worker.await_healthy()
            address = f"127.0.0.1:{free_ports(1)[0]}"
            load = [
                "bench.lookups_load",
                brokers,
                stream.name,
                str(FLOW),
                str(HISTORY * BATCH // ROWS_A_MILLISECOND),
            ]
            with (
                running([sys.executable, "-m", "bench.lookups_echo", address]),
                running([sys.executable, "-m", *load, str(HISTORY * BATCH)]),
            ):
                return _measured(worker, address, stream.name)
        finally:
            worker.close()


def _measured(worker: Worker, echo_address: str, stream: str) -> tuple[list[Goal], str]:
    channel = grpc.insecure_channel(worker.address)
    stub = lookups_pb2_grpc.LookupsStub(channel)
    echo_channel = grpc.insecure_channel(echo_address)
    grpc.channel_ready_future(echo_channel).result(30)
    echo = echo_channel.unary_unary(METHOD)
    selects = [
        f"SELECT SUM(qty) AS v, COUNT(*) AS c FROM {stream} [RANGE 1 SECOND] WHERE ticker = 't{number}'"
        for number in range(50)
    ]
    requests = [lookups_pb2.LookupRequest(select=select) for select in selects]
    for request in requests * 2:
        stub.Lookup(request)
    _await_flow(stub, requests[0])
    first = stub.Lookup(requests[0]).watermark_ms
    begin = time.monotonic()
    bare, looked = [], []
    for number in range(CALLS):  # by turns, so that both see the same machine
        payload = requests[number % len(requests)].SerializeToString()
        bare.append(timed(lambda payload=payload: echo(payload)))
        looked.append(timed(lambda number=number: stub.Lookup(requests[number % len(requests)])))
    seconds = time.monotonic() - begin
    last = stub.Lookup(requests[0]).watermark_ms
    many = _many(stub, stream, psutil.Process(worker.process.pid))
    figures = {p: (np.percentile(bare, p) * 1e3, np.percentile(looked, p) * 1e3) for p in (50, 99)}
    goals = [
        Goal(
            f"single lookups, p{p}, {FLOW:,} rows a second flowing",
            f"{goal} times a bare echo or less",
            f"{slow / quick:.2f} ({slow:.2f} ms, {quick:.2f} ms)",
            slow / quick <= goal,
        )
        for (p, (quick, slow)), goal in zip(figures.items(), (P50_GOAL, P99_GOAL), strict=True)
    ]
    goals.append(
        Goal(
            f"LookupMany, {MANY:,} in a call, {CALLERS} callers",
            f"{MANY_GOAL:,} lookups a second or more",
            f"{many.several:,.0f} (one caller: {many.one:,.0f})",
            many.several >= MANY_GOAL,
        )
    )
    rate = PARTITIONS * ROWS_A_MILLISECOND * (last - first) / seconds
    text = (
        f"While single lookups were measured, {rate:,.0f} rows a second were taken in. One of {MANY:,} "
        f"lookups in a call took {many.worker:.2f} µs of the worker's CPU, all included that it does meanwhile, and "
        f"{many.client:.2f} µs of the client's."
    )
    return goals, text


def _await_flow(stub: lookups_pb2_grpc.LookupsStub, request: lookups_pb2.LookupRequest) -> None:
    """Wait until rows flow: the process that writes them takes seconds to start."""
    begin = stub.Lookup(request).watermark_ms
    deadline = time.monotonic() + 60
    while stub.Lookup(request).watermark_ms < begin + 1000:
        if time.monotonic() > deadline:
            raise RuntimeError("no rows flow")
        time.sleep(0.05)


@dataclass(frozen=True)
class _Rates:
    """Lookups a second: from the first call to the end of the last, by one caller and by several at a time."""

    one: float
    several: float
    worker: float
    """CPU µs of the worker for a lookup, with all that it does meanwhile."""
    client: float


def _many(stub: lookups_pb2_grpc.LookupsStub, stream: str, worker: psutil.Process) -> _Rates:
    chance = np.random.default_rng(4)
    select = f"SELECT ticker, SUM(qty) AS v, COUNT(*) AS c FROM {stream} [RANGE 1 SECOND] GROUP BY ticker"
    requests = []
    for _ in range(8):
        keys = pa.array([f"t{number}" for number in chance.integers(0, KEYS, MANY)])
        ranges = chance.integers(10, 1000, MANY).tolist()
        requests.append(lookups_pb2.LookupManyRequest(lookups=[Many(select, keys, ranges).to_proto()]))
    for request in requests:
        stub.LookupMany(request)

    def call(number: int) -> None:
        stub.LookupMany(requests[number % len(requests)])

    one = timed(lambda: [call(number) for number in range(MANY_CALLS)])
    before = _cpu(worker), time.process_time()
    with ThreadPoolExecutor(CALLERS) as callers:
        several = timed(lambda: list(callers.map(call, range(MANY_CALLS))))
    lookups = MANY * MANY_CALLS
    after = _cpu(worker), time.process_time()
    spent = [(end - begin) * 1e6 / lookups for begin, end in zip(before, after, strict=True)]
    return _Rates(lookups / one, lookups / several, *spent)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
