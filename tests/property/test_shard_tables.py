"""Joins with tables in a running system: what a shard reports is a function of the topics, and what the oracle says.

Updates come while reports are made, and queries join and leave on the way. An update counts from its time on, but not
before what the table had been told of the stream when it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.operators import table_updates
from services.operators.parcel import Parcel
from services.operators.shard import Shard
from services.operators.stage1 import SequencedMessage, parcels_of, runs
from stairwise.reports.contract import Report
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DAWN, DUSK, EARLIEST, Stream
from stairwise.state.store import MemoryStore
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, encode_rows
from tests.oracle import OracleRow, evaluate
from tests.plans import as_script, plan_log
from tests.property.forgetting import forgetful
from tests.shard_lines import whole_reports

JOIN = "SELECT s.k, s.v, {0}.w FROM s [RANGE 6ms SLIDE 3ms] JOIN {0} ON s.k = {0}.k"
DECLARED = (
    "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts LATENESS 2ms PARTITIONS 2 GRANULE 1ms;"
    "CREATE TABLE timed (k STRING, w BIGINT, since TIMESTAMP) KEY (k) TIMESTAMP BY since PARTITIONS 2;"
    "CREATE TABLE plain (k STRING, w BIGINT) KEY (k) NON RETROACTIVE PARTITIONS 1"
)
SCRIPTS = (
    f"{DECLARED}; CREATE QUERY a AS {JOIN.format('timed')}",
    f"CREATE QUERY b AS {JOIN.format('plain')};"
    "CREATE QUERY counted AS SELECT timed.w, COUNT(*) AS n FROM s [ROWS 3 SLIDE 2], timed WHERE s.k = timed.k"
    " GROUP BY timed.w",
    "DROP QUERY a",
    "CREATE QUERY a AS SELECT s.v, timed.w, plain.w AS x, timed.since FROM s [TUMBLE 4ms], plain, timed"
    " WHERE s.k = timed.k AND s.k = plain.k",
)
PLANS = plan_log(*SCRIPTS)
DROPPED = {"a@1": 3}
STREAMS: dict[str, Stream] = dict(PLANS.newest.streams)
TOPIC = topics.sequenced(STREAMS["s"])
PLACES = [(name, partition) for name, stream in STREAMS.items() for partition in range(stream.partitions)]


@pytest.fixture(autouse=True, scope="module")
def _compacting() -> Iterator[None]:
    """What a shard keeps of a table is compacted all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_updates, "FEW", 0)
        with forgetful():
            yield


FEWER = settings(max_examples=max(5, settings().max_examples // 4))


@dataclass
class Written:
    """A partition as ingest writes it, and its rows as the oracle takes them."""

    stream: Stream
    partition: int
    version: int = 1
    highest: int = DAWN
    sequence: int = 0
    follows: dict[str, int] = field(default_factory=dict)
    messages: list[SequencedMessage] = field(default_factory=list)
    rows: list[OracleRow] = field(default_factory=list)

    @property
    def watermark(self) -> int:
        return DAWN if self.highest == DAWN else self.highest - self.stream.lateness - 1

    def write(self, row: tuple[int, str, int] | None, version: int, *, sealed: bool = False) -> None:
        previous, times, values = self.watermark, [], []
        if row is not None and (self.stream.is_table or row[0] > previous):
            ts, k, v = row
            time = ts if self.stream.timestamp_by else EARLIEST
            times = [time]
            values = [{"s": (ts, k, v), "timed": (k, v, ts), "plain": (k, v, time)}[self.stream.name]]
            counts = max(time, self.follows.get(TOPIC, DAWN) + 1) if self.stream.is_table else time
            self.rows.append(OracleRow(counts, self.partition, self.sequence, values[0][: len(self.stream.columns)]))
            self.highest = max(self.highest, time)
        columns = [[value[i] for value in values] for i in range(len(self.stream.arrow_schema))]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self.stream.arrow_schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.stream.arrow_schema)
        bounds = times * 2 or [DAWN, DAWN]
        self.version = max(self.version, version)
        headers = BatchHeaders(
            self.version, self.sequence, len(values), self.watermark, previous, *bounds, sealed, self.follows
        )
        self.sequence += len(values)
        offset = len(self.messages)
        topic = topics.sequenced(self.stream)
        self.messages.append(SequencedMessage(topic, self.partition, offset, encode_rows(batch), headers))


@st.composite
def histories(draw: st.DrawFn) -> list[Written]:
    """What ingest may write: rows, marks of how far the stream is, and versions that partitions come to by and by."""
    places = {place: Written(STREAMS[place[0]], place[1]) for place in PLACES}
    streams = [w for (name, _), w in places.items() if name == "s"]
    random = draw(st.randoms(use_true_random=False))
    for clock in range(draw(st.integers(0, 80))):
        written = places[random.choice(PLACES)]
        version = min(written.version + (random.random() < 0.15), len(SCRIPTS))
        if not written.stream.is_table:
            written.write((clock + random.randrange(3), random.choice("xy"), clock), version)
        elif random.random() < 0.5:
            written.write((clock + random.randrange(-20, 6), random.choice("xy"), 100 + clock), version)
        else:
            reached = min(w.watermark for w in streams)
            written.follows = {TOPIC: reached} if reached > DAWN else written.follows
            written.write(None, version)
    for written in streams:
        written.write(None, len(SCRIPTS))
        written.write(None, len(SCRIPTS), sealed=True)
    for written in places.values():
        if written.stream.is_table:
            written.write(None, len(SCRIPTS))
            is_sealed = draw(st.booleans())
            written.follows = written.follows if is_sealed else {TOPIC: DUSK}
            written.write(None, len(SCRIPTS), sealed=is_sealed)
    return list(places.values())


Said = dict[tuple[str, int, int, str], list[Report]]


def run(messages: Sequence[SequencedMessage], shards: int, steps: Sequence[bool]) -> Said:
    """What the shards say; a True step asks and restarts them there."""
    said: Said = {}
    stores = [MemoryStore() for _ in range(shards)]
    running = [Shard(n, shards, store) for n, store in enumerate(stores)]
    taken: list[SequencedMessage] = []
    for i, message in enumerate(messages):
        taken.append(message)
        if i == len(messages) - 1 or steps[i % len(steps)]:
            for together in runs(taken):
                for number, parcel in parcels_of(together, PLANS, shards):
                    running[number].take(Parcel.decode(parcel.encode()), PLANS)
            taken = []
            for shard in running:
                for out in shard.advance(PLANS):
                    key = (out.headers.signature, *out.headers.position, out.headers.mark.value)
                    assert key not in said, "a report is made once"
                    said[key] = [] if out.report is None else [out.report]
                shard.flush()
            running = [Shard(n, shards, store) for n, store in enumerate(stores)]
    return said


def lines_of(said: Said) -> dict[str, list[dict[str, object]]]:
    lines: dict[str, list[dict[str, object]]] = {}
    for registered in PLANS.registered("s", 0, len(SCRIPTS)):
        expansion = Expansion(registered.query)
        seen = lines[registered.identity] = []
        own = [
            r for (signature, *_), reports in sorted(said.items()) if signature == registered.signature for r in reports
        ]
        for report in whole_reports(registered, own):
            seen += line_dicts(registered.query.name, expansion.expand(report))
    return lines


@FEWER
@given(histories(), st.randoms(use_true_random=False), st.lists(st.booleans(), min_size=1, max_size=7))
def test_reports_depend_on_nothing_but_the_topics(written: list[Written], random: Random, steps: list[bool]) -> None:
    waiting = [list(w.messages) for w in written]
    shuffled: list[SequencedMessage] = []
    while any(waiting):
        shuffled.append(random.choice([queue for queue in waiting if queue]).pop(0))
    expected = run([message for w in written for message in w.messages], 1, [False])
    for shards in (1, 2):
        said = run(shuffled, shards, steps)
        assert said.keys() == expected.keys()
        assert lines_of(said) == lines_of(expected)


@FEWER
@given(histories())
def test_joins_with_tables_say_what_the_oracle_says(written: list[Written]) -> None:
    lines = lines_of(run([message for w in written for message in w.messages], 1, [True]))
    rows = {name: [row for w in written if w.stream.name == name for row in w.rows] for name in STREAMS}
    for registered in PLANS.registered("s", 0, len(SCRIPTS)):
        read = [w for w in written if w.stream in registered.query.streams]
        after = max(_mark_at(w, registered.version) for w in read)
        seen = (_seen_at(w, registered.version) for w in read if not w.stream.is_table)
        horizon = DAWN if after == DAWN else max(after + 1, *seen)
        dropped = DROPPED.get(registered.identity)
        until = DUSK if dropped is None else min(_mark_at(w, dropped) for w in read)
        told = evaluate(as_script(DECLARED, registered.query), rows, after=after, horizon=horizon)
        assert lines[registered.identity] == [line for line in told if line["time"] <= until]


def _mark_at(written: Written, version: int) -> int:
    """How far a partition is where it comes to a plan version."""
    head = next(m.headers for m in written.messages if m.headers.version >= version)
    return head.follows.get(TOPIC, DAWN) if written.stream.is_table else head.previous


def _seen_at(written: Written, version: int) -> int:
    """No row of a partition lies above it that came before a plan version."""
    head = next(m.headers for m in written.messages if m.headers.version >= version)
    return DAWN if head.previous == DAWN else head.previous + written.stream.lateness + 1
