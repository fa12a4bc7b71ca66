"""One step of a lookup, answered for the partitions that a worker holds: for itself and for other workers.

A step is asked by ``StepRequest`` and answered by ``StepAnswer``; between workers they travel as ``PartRequest`` and
``PartResponse``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from services.lookups.holdings import Holdings, Partition
from services.lookups.slice_runner import SliceRunner
from stairwise.errors import NotReadyError
from stairwise.expressions.views import Ints
from stairwise.lookups.extent import WindowExtent
from stairwise.lookups.last_rows import extent_at
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.partition_parts import Held, aligned, asked_part, candidates, part, unmade
from stairwise.lookups.scan import Scan
from stairwise.lookups.statement import Lookup
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.state.pages import from_page, to_plain_page
from stairwise.v1 import lookups_pb2 as pb
from stairwise.windows.spec import RowsWindow
from stairwise.wire import topics

Step = pb.PartRequest.Step
WATERMARK, TIMES, CANDIDATES, PARTS, ALIGNED = (
    Step.STEP_WATERMARK,
    Step.STEP_TIMES,
    Step.STEP_CANDIDATES,
    Step.STEP_PARTS,
    Step.STEP_ALIGNED,
)
TIME = "time"


@dataclass(frozen=True)
class KeyedLookup:
    """A lookup, or as many as there are keys."""

    lookup: Lookup
    keys: pa.RecordBatch | None = None
    ranges: Ints | None = None


@dataclass(frozen=True)
class StepRequest:
    """One step; which partitions it is about depends on who is asked."""

    step: Step.ValueType
    stream: Stream
    lookup: Lookup | None = None
    at: Instant = DAWN
    keys: pa.RecordBatch | None = None
    ranges: Ints | None = None
    counts: Mapping[int, int] = field(default_factory=dict)
    skips: Mapping[int, int] = field(default_factory=dict)
    """By partition, how many of its last rows reach back to the rear of a window by rows; how many LAG leaves out."""
    spread: int = 1
    """Over how many partitions the rows of a key may be spread."""

    def to_proto(self, numbers: Sequence[int]) -> pb.PartRequest:
        return pb.PartRequest(
            step=self.step,
            stream=self.stream.name,
            incarnation=self.stream.incarnation,
            partitions=numbers,
            select=self.lookup.text if self.lookup is not None else "",
            at_ms=self.at,
            keys=b"" if self.keys is None else to_plain_page(self.keys),
            ranges_ms=[] if self.ranges is None else self.ranges.tolist(),
            counts=self.counts,
            skips=self.skips,
            spread=self.spread,
        )


@dataclass(frozen=True)
class StepAnswer:
    watermark: Instant = DUSK
    newest: Instant = DAWN
    rows: Sequence[pa.RecordBatch | None] = ()
    """Of each partition, or one of all together."""
    tidy: bool = False
    """Does PARTITION BY send every row here that the partitions ever had?"""

    def to_proto(self) -> pb.PartResponse:
        pages = [b"" if rows is None else to_plain_page(rows) for rows in self.rows]
        return pb.PartResponse(watermark_ms=self.watermark, newest_ms=self.newest, rows=pages, tidy=self.tidy)

    @staticmethod
    def from_proto(response: pb.PartResponse) -> StepAnswer:
        rows = [from_page(page) if page else None for page in response.rows]
        return StepAnswer(response.watermark_ms, response.newest_ms, rows, response.tidy)


async def answer_step(ask: StepRequest, numbers: Sequence[int], holdings: Holdings, runner: SliceRunner) -> StepAnswer:
    """Answer a step for partitions that are held here.

    What is quick is done at once. What is not is settled at once and done by the runner, while others go on.
    """
    held = [find(holdings, ask.stream, number) for number in numbers]
    if ask.step == WATERMARK:
        tidy = all(p.history.is_tidy for p in held)
        return StepAnswer(min(p.history.watermark for p in held), max(p.newest for p in held), tidy=tidy)
    if ask.lookup is None:
        raise ValueError("only the watermark can be asked without a SELECT")
    holdings.hear(ask.stream, ask.at)
    for partition in held:
        if partition.history.watermark < ask.at:  # it moved here since T was fixed
            raise NotReadyError(f"partition {partition.number} of {ask.stream.name} has not reached the lookup's time")
    if ask.step == TIMES:
        count = ask.lookup.window.rows + ask.lookup.lag if isinstance(ask.lookup.window, RowsWindow) else 0
        times = [pa.array(partition.history.last_times(ask.at, count)) for partition in held]
        return StepAnswer(rows=[pa.RecordBatch.from_arrays([column], names=[TIME]) for column in times])
    pairs = [(p.history, _extent(ask, ask.lookup, p)) for p in held]
    return StepAnswer(rows=await _rows(ask, ask.lookup, pairs, runner))


def _extent(ask: StepRequest, lookup: Lookup, partition: Partition) -> WindowExtent:
    number = partition.number
    return extent_at(lookup, ask.at, partition.history, ask.counts.get(number, 0), ask.skips.get(number, 0))


async def scanned(
    parts: Sequence[pa.RecordBatch | Scan], histories: Iterable[PartitionHistory], runner: SliceRunner
) -> list[pa.RecordBatch]:
    """Parts with the scans among them done; and what the partitions want to have made is begun."""
    found = [await runner.scanned(one) if isinstance(one, Scan) else one for one in parts]
    for history in histories:
        runner.tend(history)
    return found


async def made(held: Sequence[Held], lookup: Lookup, runner: SliceRunner) -> None:
    """Returns when there are indexes by which keys can be asked one by one."""
    for history, making in unmade(held, lookup):
        await runner.make(history, making)


def find(holdings: Holdings, stream: Stream, number: int) -> Partition:
    """A partition that is held here and has caught up."""
    partition = holdings.get((topics.sequenced(stream), number))
    if partition is None:
        raise NotReadyError(f"partition {number} of {stream.name} is on its way to another worker")
    if not partition.is_ready:
        raise NotReadyError(f"partition {number} of {stream.name} is still being read")
    return partition


async def _rows(
    ask: StepRequest, lookup: Lookup, held: Sequence[Held], runner: SliceRunner
) -> Sequence[pa.RecordBatch | None]:
    """What the partitions tell: each by itself, or as one where their structures can be added before."""
    if ask.step == CANDIDATES:
        return [candidates(history, lookup, extent, ask.spread) for history, extent in held]
    if ask.step == PARTS:
        if lookup.needs_index:
            await made(held, lookup, runner)
        together = asked_part(held, lookup)
        if together is not None:
            return [together]
        parts = [part(history, lookup, extent, ask.spread, ask.keys) for history, extent in held]
        return await scanned(parts, [history for history, _ in held], runner)
    if ask.step == ALIGNED and ask.keys is not None:
        await made(held, lookup, runner)
        partials = aligned(held, lookup, ask.keys, ask.ranges).partials(lookup.needs)
        return [pa.RecordBatch.from_arrays(partials, schema=lookup.grouping.partials.schema)]
    raise ValueError(f"there is no step {ask.step}")


def step_from_proto(request: pb.PartRequest, stream: Stream, lookup: Lookup | None) -> StepRequest:
    return StepRequest(
        request.step,
        stream,
        lookup,
        request.at_ms,
        from_page(request.keys) if request.keys else None,
        np.array(request.ranges_ms, np.int64) if request.ranges_ms else None,
        dict(request.counts),
        dict(request.skips),
        request.spread or stream.partitions,
    )
