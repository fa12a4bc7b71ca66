"""One event from ``in.*`` to a subscriber: which files it passes, and how often it crosses from folder to folder.

Run with -s to see the way. A reader who follows an event opens these files in this order; a crossing is a call into
another folder of the library or another service.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from services.operators.shard import Shard
from services.operators.stage1 import SequencedMessage, parcels_of
from stairwise.plan.published import block_of, taking_of
from stairwise.reports.contract import Life
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.state.store import MemoryStore
from stairwise.streams.rows import RowDecoder
from stairwise.streams.sequence import Position, sequence
from stairwise.wire.batches import BatchHeaders, encode_rows
from stairwise.wire.reports import Mark, decode_report, encode_report
from tests.plans import plan_log

ROOT = Path(__file__).resolve().parents[2]
MOST_CROSSINGS = 51
PLANS = plan_log(
    "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
    "CREATE QUERY q AS SELECT k, SUM(v) AS total FROM s [TUMBLE 10 SECONDS] GROUP BY k"
)
STREAM = PLANS.newest.streams["s"]


class Way:
    """The files through which calls go, one behind the other, and the calls from one folder into another."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.crossings = 0

    def enter(self, frame: FrameType, event: str, _: Any) -> None:
        file = _ours(frame)
        if event != "call" or file is None:
            return
        if not self.files or self.files[-1] != file:
            self.files.append(file)
        caller = frame.f_back
        while caller is not None and _ours(caller) is None:
            caller = caller.f_back
        if caller is not None and str(_ours(caller)).rpartition("/")[0] != file.rpartition("/")[0]:
            self.crossings += 1


def _ours(frame: FrameType) -> str | None:
    """The file of a call, where it is one of the library or of a service."""
    path = frame.f_code.co_filename
    if not path.startswith((f"{ROOT}/libs/stairwise/", f"{ROOT}/services/")):
        return None
    return path.removeprefix(f"{ROOT}/").removeprefix("libs/")


@contextmanager
def walked(name: str, ways: dict[str, Way]) -> Iterator[None]:
    ways[name] = Way()
    before = sys.getprofile()
    sys.setprofile(ways[name].enter)
    try:
        yield
    finally:
        sys.setprofile(before)


def message(text: bytes, position: Position) -> tuple[SequencedMessage, Position]:
    """What ingest makes of an event: decoded, on time, sequenced, in a batch."""
    decoded = RowDecoder(STREAM).decode([text])
    times = decoded.rows.column(STREAM.time_column).to_numpy()
    done = sequence(decoded.rows, times, position, STREAM.lateness)
    bounds = (int(times.min()), int(times.max()))
    headers = BatchHeaders(1, done.sequence, 1, done.position.watermark(0), position.watermark(0), *bounds)
    return SequencedMessage("s.s.1", 0, done.sequence, encode_rows(done.on_time), headers, ""), done.position


def walk(ways: dict[str, Way]) -> list[dict[str, Any]]:
    """The way of an event, once everything is warm: the first one before it has made operators and compiled loops."""
    shard, expansion = Shard(0, 1, MemoryStore()), Expansion(PLANS.newest.queries["q"].query)
    position, lines = Position(), []
    for number, ts in enumerate((1_000, 11_000, 21_000)):
        before = "" if number == 2 else "before "
        with walked(before + "ingest", ways):
            said, position = message(b'{"ts": %d, "k": "a", "v": 5}' % ts, position)
        with walked(before + "take", ways):
            for _, parcel in parcels_of([said], PLANS, 1):
                shard.take(parcel, PLANS)
        with walked(before + "advance", ways):
            made = [out for out in shard.advance(PLANS) if out.headers.mark is Mark.REPORT]
        with walked(before + "results", ways):
            registered = PLANS.newest.queries["q"]
            assert registered.shared is not None
            for out in made:
                assert out.report is not None
                taking = taking_of(registered.shared, registered.query, Life())
                reports = taking.reports(block_of(decode_report(out.headers, encode_report(out.report))))
                assert reports is not None
                lines += line_dicts("q", expansion.expand_block(reports))
    return lines


def test_an_event_passes_few_folders() -> None:
    ways: dict[str, Way] = {}
    lines = walk(ways)
    assert [(line["time"], line["row"]) for line in lines] == [
        (10_000, {"k": "a", "total": 5}),
        (20_000, {"k": "a", "total": 5}),
    ]
    for name in ("ingest", "take", "advance", "results"):
        print(f"\n{name}: {len(set(ways[name].files))} files, {ways[name].crossings} crossings")
        print("\n".join(f"  {file}" for file in ways[name].files))
    assert ways["advance"].crossings <= MOST_CROSSINGS
