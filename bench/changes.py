"""What changes cost in the running system: result bytes, and CPU beside the local engine.

A shard of operators takes messages of 4,096 rows as ingest writes them, and is asked for its reports after each. Result
bytes are those of its messages on the topic. Both engines take turns, each run is a new one, and medians count.

``make bench-changes`` measures everything and refreshes docs/benchmarks.md; ``python -m bench.changes NAME ...``
measures some parts only and prints what they give.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa

from bench import parts
from bench.change_costs import operator_costs
from bench.parts import Panel, Part, table
from bench.report import Goal, conclude
from services.operators.shard import Shard, ShardReport
from services.operators.stage1 import SequencedMessage, parcels_of
from services.windows.draft import draft, drafting, records_of
from stairwise.cql.parser import parse_script
from stairwise.local.engine import Engine
from stairwise.schema import DAWN
from stairwise.state.store import MemoryStore
from stairwise.v1 import plans_pb2
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, decode_rows, pack_rows
from stairwise.wire.plans import PlanLog
from stairwise.wire.reports import encode_report

START = 1_700_000_000_000
MESSAGE = 4_096
STREAM = "CREATE STREAM big (ts TIMESTAMP, k BIGINT, x BIGINT) TIMESTAMP BY ts PARTITIONS 1"
WIDE = "SELECT k, x FROM big [RANGE 300 SECONDS SLIDE 1 SECOND] WHERE x >= 0 EMIT CHANGES"
PAIRS = {
    "a selection, RANGE 200 s": "SELECT k, x FROM big [RANGE 200 SECONDS SLIDE 1 SECOND] EMIT CHANGES",
    "COUNT and SUM, ROWS 10,000 SLIDE 10": "SELECT COUNT(*) AS n, SUM(x) AS s FROM big [ROWS 10000 SLIDE 10]",
}
BYTES_GOAL = 3.0
CPU_GOAL = 1.5
ROUNDS = 5


def result_bytes() -> Part:
    """What a wide window of rows writes to the results topic, beside what its rows take on ``s.big``."""
    plans, rows = planned(WIDE), []
    wrote: dict[int, int] = {}
    for count in (15_000, 30_000, 60_000):
        messages = sequenced(plans, count, per_second=200)
        came = sum(len(message.value) for message in messages)
        sizes = [message_bytes(out) for outgoing in shard_reports(plans, messages) for out in outgoing]
        wrote[count] = sum(sizes)
        rows.append([f"{count:,}", f"{came / 1e6:.2f} MB", f"{len(sizes):,}", f"{sum(sizes) / 1e6:.2f} MB"])
    ratio = wrote[count] / came
    figure = f"{ratio:.1f} × ({wrote[count] / 1e6:.2f} MB of {came / 1e6:.2f} MB)"
    name = "result bytes beside those of its stream, RANGE 300 s"
    goals = [Goal(name, f"≤ {BYTES_GOAL} ×", figure, ratio <= BYTES_GOAL)]
    head = ("rows", "bytes on s.big", "messages on results", "bytes on results")
    counts = list(wrote)
    line = counts, [wrote[count] / 1e6 for count in counts]
    panels = [Panel("A selection over RANGE 300 s", "rows", "MB on results", {"": line})]
    return Part(goals, [table(f"`{WIDE}`, 200 rows a second; headers and keys count, too:", head, rows)], panels)


def beside_local() -> Part:
    """CPU of a shard beside that of the local engine."""
    goals = []
    for name, select in PAIRS.items():
        plans = planned(select)
        messages = sequenced(plans, 49_000, per_second=100)
        local, shard = compared(partial(local_lines, plans, messages), partial(written_reports, plans, messages))
        figure = f"{shard / local:.2f} × ({shard:.2f} of {local:.2f} CPU s)"
        goals.append(Goal(f"{name}: shard beside local", f"≤ {CPU_GOAL} ×", figure, shard <= CPU_GOAL * local))
    return Part(goals)


def planned(select: str) -> PlanLog:
    """What the registry would have written for the stream and a query over it."""
    log = PlanLog()
    statements = parse_script(f"{STREAM}; CREATE QUERY q AS {select}")
    catalogue = drafting(log.newest)
    records = records_of([draft(catalogue, statement) for statement in statements])
    log.add(plans_pb2.PlanVersion(number=1, changes=records))
    return log


def sequenced(plans: PlanLog, count: int, per_second: int) -> list[SequencedMessage]:
    """Rows as ingest writes them, so many a second of event time, and their end."""
    stream = plans.newest.streams["big"]
    chance = np.random.default_rng(7)
    times = START + np.arange(count) * 1_000 // per_second
    columns = [pa.array(times), pa.array(np.arange(count) % 1_000), pa.array(chance.integers(0, 1_000_000, count))]
    rows = pa.RecordBatch.from_arrays(columns, schema=stream.arrow_schema)
    messages: list[SequencedMessage] = []
    watermark = DAWN
    for start in [*range(0, count, MESSAGE), count]:
        part = rows.slice(start, MESSAGE)
        lowest, highest = (int(times[start]), int(times[start + part.num_rows - 1])) if part.num_rows else (DAWN, DAWN)
        seen = int(times[start - 1]) if start else DAWN
        previous, watermark = watermark, max(watermark, highest - 1)
        told = BatchHeaders(1, start, part.num_rows, watermark, previous, lowest, highest, start == count, seen=seen)
        messages.append(SequencedMessage(topics.sequenced(stream), 0, len(messages), pack_rows(part), told))
    return messages


def shard_reports(plans: PlanLog, messages: Sequence[SequencedMessage]) -> Iterator[list[ShardReport]]:
    """What a shard says after each message."""
    shard = Shard(0, 1, MemoryStore())
    for message in messages:
        for _, parcel in parcels_of([message], plans, 1):
            shard.take(parcel, plans)
        yield list(shard.advance(plans))
        shard.flush()


def written_reports(plans: PlanLog, messages: Sequence[SequencedMessage]) -> int:
    """How many reports a shard makes."""
    return sum(map(len, shard_reports(plans, messages)))


def message_bytes(out: ShardReport) -> int:
    """What a report takes on the results topic."""
    value = b"" if out.report is None else encode_report(out.report)
    return len(value) + len(out.headers.key()) + sum(len(name) + len(said) for name, said in out.headers.encode())


def local_lines(plans: PlanLog, messages: Sequence[SequencedMessage]) -> int:
    """How many lines the local engine gives, advanced after each message."""
    stream = plans.newest.streams["big"]
    engine = Engine([stream], [registered.query for registered in plans.newest.queries.values()])
    lines = 0
    for message in messages:
        if message.headers.sealed:
            engine.seal("big")
        else:
            engine.feed("big", decode_rows(message.value, stream))
        lines += sum(found.lines.rows.num_rows for piece in engine.advance() for found in piece)
    return lines


def compared(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """The median CPU seconds of two loads that take turns."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for load, seconds in zip((first, second), found, strict=True):
            begin = time.process_time()
            load()
            seconds.append(time.process_time() - begin)
    return median(found[0]), median(found[1])


ALL: dict[str, Callable[[], Part]] = {"bytes": result_bytes, "local": beside_local, "operators": operator_costs}


def everything() -> int:
    done = parts.run(ALL)
    parts.plot("changes", [panel for part in done for panel in part.panels])
    introduction, _, _ = (__doc__ or "").partition("\n\n``make")
    tables = [found for part in done for found in part.tables]
    text = "\n\n".join([introduction, "![result bytes](plots/changes.svg)", *tables])
    return conclude("changes", "Changes", text, [goal for part in done for goal in part.goals])


if __name__ == "__main__":
    pa.array([1])  # the first array imports pandas where it is installed: start-up, not running
    sys.exit(parts.some(ALL, sys.argv[1:]) if sys.argv[1:] else everything())
