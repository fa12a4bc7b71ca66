"""What a shard reports is a function of the topics: not of the order in which partitions are read, of when it is
asked, of restarts and kills in between, nor of the number of shards. Queries join and leave on the way, and LATENESS is
altered."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.operators import spark_pages
from services.operators.parcel import Parcel
from services.operators.shard import Shard, ShardReport
from services.operators.stage1 import SequencedMessage, parcels_of, runs
from stairwise.changes import changing_groups, copies
from stairwise.distinct import appearances
from stairwise.flow import kept_rows
from stairwise.join import moving_join
from stairwise.plan.published import block_of, taking_of
from stairwise.reports import standing_answer
from stairwise.reports.contract import Life, Report
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DAWN, DUSK, Stream
from stairwise.state.store import MemoryStore, Store
from stairwise.streams.sequence import Position, sequence
from stairwise.wire.batches import BatchHeaders, decode_rows, encode_rows
from stairwise.wire.reports import LifeRecord
from tests.committed import State
from tests.oracle import OracleRow, evaluate
from tests.plans import as_script, plan_log
from tests.shard_lines import whole_reports

PARTITIONS = 3
DECLARED = "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts"
SCRIPTS = (
    f"{DECLARED} LATENESS 3 SECONDS PARTITIONS {PARTITIONS};"
    "CREATE QUERY a AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k",
    "CREATE QUERY b AS SELECT COUNT(*) AS n, MAX(v) AS most FROM s [TUMBLE 4 SECONDS];"
    "CREATE QUERY distinct_k AS SELECT DISTINCT k FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS];"
    "CREATE QUERY plain AS SELECT k, v FROM s WHERE v > 0;"
    "CREATE QUERY pairs AS SELECT x.k, x.v, y.v AS w "
    " FROM s [RANGE 4 SECONDS] x JOIN s [TUMBLE 3 SECONDS] y ON x.k = y.k;"
    "CREATE QUERY last_rows AS SELECT k, v FROM s [ROWS 3 SLIDE 4 SECONDS];"
    "CREATE QUERY counted AS SELECT COUNT(*) AS n, SUM(v) AS total FROM s [ROWS 4 SLIDE 2];"
    "CREATE QUERY moves AS SELECT k, v FROM s [RANGE 12 SECONDS SLIDE 3 SECONDS LAG 1 SECOND] EMIT CHANGES;"
    "CREATE QUERY last_of_each AS SELECT k, v FROM s [PARTITION BY k ROWS 2 SLIDE 4 SECONDS] WHERE v > -3 EMIT CHANGES;"
    "CREATE QUERY beyond AS SELECT k FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS] EXCEPT"
    " SELECT k FROM s [ROWS 3 SLIDE 5 SECONDS] WHERE v > 0 EMIT CHANGES",
    "DROP QUERY a; ALTER STREAM s SET LATENESS 9 SECONDS;"
    "CREATE QUERY paired AS SELECT x.k, COUNT(*) AS n, SUM(y.v) AS total FROM s [RANGE 8 SECONDS SLIDE 2 SECONDS] x"
    " JOIN s [RANGE 6 SECONDS SLIDE 3 SECONDS] y ON x.k = y.k GROUP BY x.k HAVING COUNT(*) > 1 EMIT CHANGES;"
    "CREATE QUERY paired_values AS SELECT DISTINCT x.v FROM s [RANGE 8 SECONDS SLIDE 2 SECONDS] x"
    " JOIN s [RANGE 6 SECONDS SLIDE 3 SECONDS] y ON x.k = y.k EMIT ISTREAM",
    "CREATE QUERY a AS SELECT k, MIN(v) AS least FROM s [TUMBLE 7 SECONDS] GROUP BY k;"
    "CREATE QUERY wide AS SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 20 SECONDS SLIDE 4 SECONDS];"
    "CREATE QUERY pairs_close AS SELECT x.k, y.v AS w, x.v"
    " FROM s [RANGE 2 SECONDS SLIDE 2 SECONDS] x JOIN s [RANGE 5 SECONDS SLIDE 3 SECONDS] y ON y.k = x.k EMIT RSTREAM;"
    "CREATE QUERY pairs_wide AS SELECT x.v * y.v AS w, x.k"
    " FROM s [RANGE 20 SECONDS SLIDE 4 SECONDS] x JOIN s [RANGE 9 SECONDS LAG 2 SECONDS] y ON x.k = y.k;"
    "CREATE QUERY counted_rows AS SELECT k, v FROM s [ROWS 5 SLIDE 3] WHERE v > -3 EMIT CHANGES;"
    "CREATE QUERY counted_groups AS SELECT k, MAX(v) AS most FROM s [ROWS 6 SLIDE 2] GROUP BY k EMIT ISTREAM;"
    "CREATE QUERY counted_values AS SELECT DISTINCT k FROM s [ROWS 3 SLIDE 1] EMIT DSTREAM;"
    "CREATE QUERY last_groups AS SELECT k, COUNT(*) AS n, FIRST(v) AS first FROM s [ROWS 7 SLIDE 4 SECONDS]"
    " GROUP BY k EMIT CHANGES;"
    "CREATE QUERY last_pairs AS SELECT x.k, COUNT(*) AS n FROM s [PARTITION BY k ROWS 2 SLIDE 3 SECONDS] x"
    " JOIN s [RANGE 7 SECONDS SLIDE 2 SECONDS] y ON x.k = y.k GROUP BY x.k EMIT CHANGES;"
    "CREATE QUERY distinct_changes AS SELECT DISTINCT k FROM s [RANGE 5 SECONDS SLIDE 2 SECONDS] EMIT CHANGES;"
    "CREATE QUERY distinct_wide AS SELECT DISTINCT k FROM s [RANGE 30 SECONDS SLIDE 5 SECONDS] EMIT DSTREAM;"
    "CREATE QUERY distinct_two AS SELECT DISTINCT v > 0 AS p, k FROM s [RANGE 3 SECONDS SLIDE 4 SECONDS LAG 2 SECONDS]",
    "CREATE QUERY fine AS SELECT k, COUNT(*) AS n FROM s [RANGE 14 SECONDS SLIDE 7 SECONDS] GROUP BY k EMIT CHANGES;"
    "CREATE QUERY odd AS SELECT AVG(v) AS mean FROM s [RANGE 5 SECONDS SLIDE 3 SECONDS]; DROP QUERY b;"
    "DROP QUERY moves; CREATE QUERY both AS SELECT k, v FROM s [TUMBLE 5 SECONDS] UNION ALL"
    " SELECT DISTINCT k, v FROM s [PARTITION BY k ROWS 1 SLIDE 2 SECONDS] EMIT DSTREAM;"
    "DROP QUERY pairs; CREATE QUERY pairs AS SELECT x.k, x.v + y.v AS w"
    " FROM s [RANGE 15 SECONDS SLIDE 5 SECONDS] x JOIN s [RANGE 7 SECONDS SLIDE 7 SECONDS] y ON x.k = y.k EMIT ISTREAM;"
    "DROP QUERY distinct_k; CREATE QUERY distinct_levels AS SELECT DISTINCT k AS key"
    " FROM s [RANGES 24 SECONDS, 6 SECONDS SLIDES 6 SECONDS, 3 SECONDS];"
    "CREATE QUERY distinct_lagging AS SELECT DISTINCT v > 0 AS p, k FROM s"
    " [RANGE 15 SECONDS SLIDE 5 SECONDS LAG 2 SECONDS]; ALTER STREAM s SET LATENESS 1 SECOND",
)


PLANS = plan_log(*SCRIPTS)
DROPPED = {"a@1": 3, "b@2": 5, "distinct_k@2": 5, "moves@2": 5, "pairs@2": 5}
"""By which version a query was dropped."""
STREAM: Stream = PLANS.newest.streams["s"]

FEWER = settings(max_examples=max(5, settings().max_examples * 2 // 5))
"""Each case runs the whole plan several times over."""

Rows = list[tuple[int, str | None, int | None]]


@pytest.fixture(autouse=True, scope="module")
def _in_files() -> Iterator[None]:
    """Nearly every page is large enough to lie in a file, and no disk is waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_pages, "LARGE", 64)
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="module")
def forgetful() -> Iterator[None]:
    """What nobody needs is looked for at every report, not when there are thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appearances, "_SMALL", 2)
        patch.setattr(appearances, "_GROWTH", 1)
        for module in (kept_rows, standing_answer, copies, changing_groups, moving_join):
            patch.setattr(module, "_MANY", 0)
        yield


@dataclass(frozen=True)
class Written:
    """What ingest wrote for a partition: batches of rows, each under a plan version."""

    partition: int
    batches: list[tuple[int, Rows]]

    def messages(self) -> list[SequencedMessage]:
        position, messages, lateness = Position(), [], STREAM.lateness
        for offset, (version, rows) in enumerate([*self.batches, (len(SCRIPTS), [])]):
            previous, lateness = position.watermark(lateness), PLANS.at(version).streams["s"].lateness
            position = position.raised(previous)
            table = [{"ts": ts, "k": k, "v": v} for ts, k, v in rows]
            batch = pa.RecordBatch.from_pylist(table, schema=STREAM.arrow_schema)
            judged = sequence(batch, np.array([r[0] for r in rows], np.int64), position, lateness)
            times = judged.on_time.column("ts").to_pylist()
            headers = BatchHeaders(
                version=version,
                sequence=position.sequence,
                rows=judged.on_time.num_rows,
                watermark=judged.position.watermark(lateness),
                previous=previous,
                lowest=min(times, default=-(2**62)),
                highest=max(times, default=-(2**62)),
                sealed=offset == len(self.batches),
                seen=position.highest,
            )
            messages.append(SequencedMessage("s.s.1", self.partition, offset, encode_rows(judged.on_time), headers))
            position = judged.position
        return messages


@dataclass
class Said:
    """What shards have written."""

    messages: dict[tuple[str, int, int, str], list[Report]] = field(default_factory=dict)
    """By signature, time, ordinal and mark, what each shard reported."""
    versions: dict[tuple[str, int, int, str], int] = field(default_factory=dict)
    lives: dict[str, LifeRecord] = field(default_factory=dict)

    def take(self, out: ShardReport) -> None:
        headers = out.headers
        key = (headers.signature, *headers.position, headers.mark.value)
        self.messages.setdefault(key, []).extend([] if out.report is None else [out.report])
        assert self.versions.setdefault(key, headers.version) == headers.version
        for identity, life in out.lives.items():
            assert self.lives.setdefault(identity, life) == life, "every shard says the same"


class InMemory:
    """The state of a shard that nobody kills."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def read(self) -> MemoryStore:
        return self._store

    def save(self, store: Store) -> None:
        pass


def run(
    messages: Sequence[SequencedMessage], shards: int, steps: Sequence[bool], directory: Path | None = None
) -> Said:
    """What the shards say; a True step asks and restarts them there. What comes in between travels together.

    With a directory, their state is that of Spark, and some attempts are killed before they are committed.
    """
    said = Said()
    last: dict[tuple[str, int], tuple[int, int]] = {}
    states = [InMemory() if directory is None else State(directory, n) for n in range(shards)]
    taken: list[SequencedMessage] = []
    for i, message in enumerate(messages):
        taken.append(message)
        if i == len(messages) - 1 or steps[i % len(steps)]:
            parcels = [found for together in runs(taken) for found in parcels_of(together, PLANS, shards)]
            taken = []
            for number, state in enumerate(states):
                mine = [parcel for to, parcel in parcels if to == number]
                if isinstance(state, State) and i % 3 == 0:  # killed when all is written
                    attempt(mine, number, shards, store := state.read())
                    state.save(store, is_committed=False)
                outgoing = attempt(mine, number, shards, store := state.read())
                state.save(store)
                for out in outgoing:
                    headers = out.headers
                    assert last.get((headers.signature, number), (DAWN, -1)) < headers.position, "back in time"
                    last[headers.signature, number] = headers.position
                    said.take(out)
    return said


def attempt(parcels: Sequence[Parcel], number: int, shards: int, store: Store) -> list[ShardReport]:
    """A micro-batch of a shard, begun from its state."""
    shard = Shard(number, shards, store)
    for parcel in parcels:
        shard.take(Parcel.decode(parcel.encode()), PLANS)
    outgoing = list(shard.advance(PLANS))
    shard.flush()
    return outgoing


def lines_of(said: Said) -> dict[str, list[dict[str, object]]]:
    """What a subscriber of each query sees."""
    lines: dict[str, list[dict[str, object]]] = {}
    for registered in PLANS.registered("s", 0, len(SCRIPTS)):
        seen = lines[registered.identity] = []
        name, expansion = registered.query.name, Expansion(registered.query)
        keys = [key for key in sorted(said.messages) if key[0] == registered.signature and key[3] == "report"]
        told = [said.messages[key] for key in keys]
        if registered.shared is None:
            told = [[report] for report in whole_reports(registered, [only for (only,) in told])]
        for key, reports in zip(keys, told, strict=True):
            signature, time, ordinal, _ = key
            if registered.shared is None:
                rows = [report.rows for report in reports]
            elif registered in PLANS.members(signature, said.versions[key]):
                life = said.lives[registered.identity]
                taking = taking_of(registered.shared, registered.query, Life(life.after, DUSK, life.horizon))
                found = [taking.reports(block_of(report)) for report in reports]
                rows = [block.rows for block in found if block is not None]
            else:
                continue
            if rows:
                report = Report(signature, time, pa.concat_batches(rows), ordinal)
                seen += line_dicts(name, expansion.expand(report))
    return lines


@st.composite
def partitions(draw: st.DrawFn) -> list[Written]:
    row = st.tuples(
        st.integers(0, 60_000),
        st.sampled_from(["x", "y", "z", None]),
        st.one_of(st.none(), st.integers(-5, 5)),
    )
    written = []
    for number in range(PARTITIONS):
        versions = sorted(draw(st.lists(st.integers(1, len(SCRIPTS)), min_size=1, max_size=6)))
        batches = [(version, sorted(draw(st.lists(row, max_size=6)), key=lambda r: r[0])) for version in versions]
        written.append(Written(number, batches))
    return written


@FEWER
@given(partitions(), st.randoms(use_true_random=False), st.lists(st.booleans(), min_size=1, max_size=7))
def test_reports_depend_on_nothing_but_the_topics(written: list[Written], random, steps: list[bool]) -> None:
    queues = [w.messages() for w in written]
    in_turn = [message for queue in queues for message in queue]
    shuffled = []
    waiting = [list(queue) for queue in queues]
    while any(waiting):
        shuffled.append(random.choice([queue for queue in waiting if queue]).pop(0))
    expected = run(in_turn, 1, [False])
    lines = lines_of(expected)
    for shards in (1, 3):
        with tempfile.TemporaryDirectory() as directory:
            said = run(shuffled, shards, steps, Path(directory))
        assert said.messages.keys() == expected.messages.keys()
        assert said.lives == expected.lives
        assert lines_of(said) == lines


@FEWER
@given(partitions())
@example(
    [  # a query with another partial but the same cuts joins between two rows of one instant
        Written(0, [(5, [(1, "x", None)])]),
        Written(1, [(1, [])]),
        Written(2, [(1, []), (4, [(1, "x", None)])]),
    ]
)
def test_queries_that_join_and_leave_say_what_the_oracle_says(written: list[Written]) -> None:
    queues = [w.messages() for w in written]
    said = run([message for queue in queues for message in queue], 2, [True])
    lines = lines_of(said)
    rows = {"s": [row for queue in queues for message in queue for row in oracle_rows(message)]}
    for registered in PLANS.registered("s", 0, len(SCRIPTS)):
        joined = [first_watermark(queue, registered.version) for queue in queues]
        after = max(joined)
        horizon = reached_before(queues, registered.version, after)
        if registered.shared is not None:
            life = said.lives[registered.identity]
            assert life.after == after
            horizon = life.horizon
        dropped = DROPPED.get(registered.identity)
        until = DUSK if dropped is None else min(first_watermark(queue, dropped) for queue in queues)
        told = evaluate(as_script(DECLARED, registered.query), rows, after=after, horizon=horizon)
        assert lines[registered.identity] == [line for line in told if line["time"] <= until]


def first_watermark(queue: Sequence[SequencedMessage], version: int) -> int:
    """The partition's watermark before its first batch with this plan version."""
    return next(message.headers.previous for message in queue if message.headers.version >= version)


def reached_before(queues: Sequence[Sequence[SequencedMessage]], version: int, watermark: int) -> int:
    """How high the rows reach that came before a plan version, in any partition."""
    before = [m for queue in queues for m in queue if m.headers.version < version]
    return DAWN if watermark == DAWN else max(watermark + 1, *(row.ts for m in before for row in oracle_rows(m)))


def oracle_rows(message: SequencedMessage) -> list[OracleRow]:
    decoded = decode_rows(message.value, STREAM).to_pylist()
    first = message.headers.sequence
    values = [(row["ts"], row["k"], row["v"]) for row in decoded]
    return [OracleRow(value[0], message.partition, first + i, value) for i, value in enumerate(values)]
