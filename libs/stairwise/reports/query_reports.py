"""The reports of a query by itself, out of the blocks of its operator, as they are published.

    block ──▶ expansion ──┬── whole answers ────────────────▶ reports
                          └── what moves ───────────────────▶ reports, some of them keyframes
                                  └──▶ standing answer ─────────┴── or whole answers, where a query shows these

**Keyframes.** A report that says what moved is worth something only to who knows what stood before. So now and then one
says that, too. It does so when the reports since the last keyframe have become as long as what stands: all keyframes
together are no longer than what lies between them, and who begins reads no more than about twice what stands.

    reports     K━━━━━ m m m m m K━━━━━ m m m m m K━━━━━ m       m says where the last K is

What the expansion and the standing answer hold follows from the rows in the query's windows. When a driver starts again
from the store, the operator gives these rows as a block at the query's last report (its *history*). The moves of that
block are what stood then.

Earlier versions published whole answers. One may have been killed before it stored what it had published; then the
same reports are made again, and readers pass over the second ones. So all reports that are made first from such a store
are keyframes, and so is the first one that follows when these are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.reports.contract import Position, Report
from stairwise.reports.emission import Emissions
from stairwise.reports.standing_answer import DIFF, UNTIL, KeptAnswer, without_last
from stairwise.schema import DAWN, Duration
from stairwise.state.store import Store

MESSAGE = 32
"""A report of no rows is about as long as so many rows."""
DAY: Duration = 86_400_000
"""No longer than this is there no keyframe, so that retention leaves one."""
FAR = 2**62
"""As long as no answer: a keyframe is due."""
_FAULTS, _KEYFRAME = b"faults", b"keyframe"


class MomentBlock(Protocol):
    """A block that says when each of its reports is."""

    @property
    def times(self) -> Ints: ...

    @property
    def ordinals(self) -> Ints: ...


class BlockExpansion(Protocol):
    """What a query shows of its operator's blocks."""

    faults: Faults

    def expand(self, block: Any) -> Emissions | None: ...


class _Keyframe(msgspec.Struct):
    """The last one, and how long the reports from it on are, in rows."""

    position: Position = (DAWN, 0)
    length: int = 0


class QueryReports:
    def __init__(
        self,
        name: str,
        expansion: BlockExpansion,
        standing: KeptAnswer | None,
        history: MomentBlock | None,
        store: Store,
        *,
        whole: bool,
    ) -> None:
        """``expansion`` shows rows as those of the reports: whole answers where ``standing`` is None, what moves where
        it is there; ``whole``: the reports are whole answers then, too. Goes on from what is in the store, and from
        what its windows hold, if it has reported already."""
        self._is_whole = whole
        self._name, self._expansion, self._standing, self._store = name, expansion, standing, store
        page = store.get(_KEYFRAME)
        self._keyframe = None if page is None else msgspec.msgpack.decode(page, type=_Keyframe)
        """None: a keyframe comes next."""
        self._is_sure = page is not None or store.get(_FAULTS) is None
        """Or may what is reported have been published before, as whole answers, by one that stored no keyframes?"""
        if history is not None and (stood := expansion.expand(history)) is not None and standing is not None:
            standing.take(int(history.times[-1]), _moves(stood))
        page, again = store.get(_FAULTS), expansion.faults
        before = (0, 0) if page is None else msgspec.msgpack.decode(page, type=tuple[int, int])
        self._before = Faults(before[0] - again.overflow, before[1] - again.division)
        """What was counted before, without what the history has counted again."""

    def reports(self, block: MomentBlock) -> Iterator[Report]:
        """One for each report time of a block at which the query is due."""
        emitted = self._expansion.expand(block)
        if emitted is None:
            return
        found = {(time, ordinal): span for time, ordinal, span in emitted.spans()}
        rows = emitted.rows if self._standing is None else _moves(emitted)
        for moment in zip(block.times.tolist(), block.ordinals.tolist(), strict=True):
            span = found.get(moment, slice(0, 0))
            own = rows.slice(span.start, span.stop - span.start)
            yield Report(self._name, moment[0], own, moment[1]) if self._standing is None else self._moved(moment, own)

    def _moved(self, position: Position, moves: pa.RecordBatch) -> Report:
        assert self._standing is not None
        if self._is_whole:
            self._standing.take(position[0], moves)
            return Report(self._name, position[0], without_last(self._standing.rows()), position[1])
        last, before = self._keyframe, None
        is_due = last is not None and last.length >= len(self._standing)
        if last is None or is_due or not self._is_sure or position[0] - last.position[0] >= DAY:
            last = self._keyframe = _Keyframe(position)
            before = self._standing.rows()
        last.length += MESSAGE + moves.num_rows
        self._standing.take(position[0], moves)
        return Report(self._name, position[0], moves, position[1], keyframe=last.position, before=before)

    @property
    def faults(self) -> Faults:
        """What went wrong in the expansion's expressions, all told."""
        faults = Faults(self._before.overflow, self._before.division)
        faults.add(self._expansion.faults)
        return faults

    def flush(self) -> None:
        faults = self.faults
        self._store.put(_FAULTS, msgspec.msgpack.encode((faults.overflow, faults.division)))
        if not self._is_sure and self._keyframe is not None:
            self._keyframe, self._is_sure = _Keyframe(length=FAR), True
        if self._keyframe is not None:
            self._store.put(_KEYFRAME, msgspec.msgpack.encode(self._keyframe))


def _moves(emitted: Emissions) -> pa.RecordBatch:
    """Changes, or rows with their ends, as moves."""
    field, values = (DIFF, emitted.diff) if emitted.until is None else (UNTIL, emitted.until)
    columns = [*emitted.rows.columns, pa.array(values, field.type)]
    return pa.RecordBatch.from_arrays(columns, schema=emitted.rows.schema.append(field))
