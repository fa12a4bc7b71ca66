"""The subscribers of the benchmark of results: a process of its own, so that the service's CPU time is its alone.

    python -m bench.results_load ADDRESS REPORTS CHANNELS < names of queries

Says ``ready`` when all are subscribed, and at the end, in JSON, how many reports came and after how long each. A row
tells when it was written: its column ``s`` is the clock in microseconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import grpc

from stairwise.v1 import results_pb2 as pb
from stairwise.v1 import results_pb2_grpc

WITHIN = 120.0
"""For how many seconds reports are waited for."""
BATCH = 500
"""How many subscriptions are opened at a time."""


async def receive(call: grpc.aio.UnaryStreamCall, reports: int, delays: list[float]) -> int:
    """Read so many reports; how many came."""
    came = 0
    while came < reports:
        message = await call.read()
        if message is grpc.aio.EOF:
            break
        if message.HasField("update"):
            written = int(message.update.changes[0].row.values[2].integer)
            delays.append(time.time() - written / 1e6)
        came += message.HasField("progress")
    return came


async def main(address: str, reports: int, channels: int) -> None:
    names = sys.stdin.read().split()
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    opened = [grpc.aio.insecure_channel(address, options=options) for _ in range(channels)]
    stubs = [results_pb2_grpc.ResultsStub(channel) for channel in opened]
    calls = []
    for start in range(0, len(names), BATCH):
        some = [
            stubs[(start + i) % channels].Subscribe(pb.SubscribeRequest(query=name))
            for i, name in enumerate(names[start : start + BATCH])
        ]
        for call in some:
            assert (await call.read()).HasField("header")
        calls += some
    print("ready", flush=True)
    delays: list[float] = []
    reading = [asyncio.create_task(receive(call, reports, delays)) for call in calls]
    done, late = await asyncio.wait(reading, timeout=WITHIN)
    for task in late:
        task.cancel()
    came = sum(task.result() for task in done)
    print(json.dumps({"came": came, "delays": sorted(delays)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
