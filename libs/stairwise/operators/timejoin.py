"""A SELECT over the join of time windows: rows are joined once, and show while their windows hold them.

answers        projection, DISTINCT and groups over the join of two or more time windows
aggregates     any
update         that of ``probe``: O(1) a row and a match
lookup         O(joined rows that show) per report, vectorised over blocks of reports
space          the rows that the windows reach, and the joined rows that show
order          any, as long as no row comes at or below the watermark
from           seed 002 section 4.2, seed 001 section 3.2 (weak non-monotonic: expiry is known beforehand)
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.cql.query import Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.buffer import TIME
from stairwise.operators.cells import Cells, distinct
from stairwise.operators.contract import Batch, Joined
from stairwise.operators.grouping import Grouping
from stairwise.operators.joined_rows import JoinedRows
from stairwise.operators.lifetimes import lifetimes, stay_of
from stairwise.operators.moments import Moments
from stairwise.operators.preparation import computed, row_expressions
from stairwise.operators.probe import WAIT, JoinedInputs, Probe
from stairwise.operators.store import Store
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.windows.spec import TimeWindow


def time_windows(select: Select) -> list[TimeWindow] | None:
    """The windows of a join of time windows; None where it is none."""
    windows = [source.window for source in select.inputs]
    found = [window for window in windows if isinstance(window, TimeWindow)]
    return found if len(found) == len(windows) > 1 else None


class TimeJoin:
    """A SELECT over two or more time windows."""

    def __init__(self, select: Select, store: Store, prefix: bytes) -> None:
        self.select = select
        windows = time_windows(select)
        assert windows is not None
        self._windows = windows
        self._stays = [stay_of(window) for window in windows]
        self._store = store
        self._key = prefix + b"m"
        page = store.get(self._key)
        firsts = msgspec.msgpack.decode(page, type=list[int]) if page else [0] * len(windows)
        self._probe = Probe(select, store, prefix, firsts)
        self._grouping = Grouping(select) if select.is_grouped else None
        fields = [pa.field(name, expr.type.arrow) for name, expr in row_expressions(select)]
        self._schema = pa.schema([*fields, pa.field(TIME, pa.int64())])
        self._rows = JoinedRows(self._schema)
        self._settled_faults = Faults()
        self._waiting = 0
        """About how many rows have not probed yet."""
        self._watermark = self._probed = DAWN
        """Up to where the order of rows is final, and up to where they have probed."""
        self._add(self._probe.everything(self._stays, Faults()), Faults())

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        self._waiting += batch.rows.num_rows
        self._probe.insert(batch, horizon, faults)

    def joined(self, change: Joined) -> None:
        """Nothing to remember: rows at or below the horizon are not inserted."""

    def settle(self, watermark: Instant) -> None:
        """Rows wait until a moment is asked for, unless they are many."""
        self._watermark = watermark
        if self._waiting > WAIT:
            self._catch_up()

    def _catch_up(self) -> None:
        if self._probed < self._watermark:
            for found in self._probe.settle(self._watermark, self._stays, self._settled_faults):
                self._add(found, self._settled_faults)
            self._probed, self._waiting = self._watermark, 0

    def _add(self, found: JoinedInputs, faults: Faults) -> None:
        if not len(found):
            return
        begins, ends = lifetimes(self._windows, found.times)
        columns = computed(self.select, found.columns, len(found), faults)
        time = pa.array(np.max(found.times, axis=0))
        rows = pa.RecordBatch.from_arrays([*(c for _, c in columns), time], schema=self._schema)
        shows = begins < ends
        if not shows.all():
            begins, ends, rows = begins[shows], ends[shows], rows.filter(pa.array(shows))
        if len(begins):
            self._rows.add(begins, ends, rows)

    def row_moments(self) -> tuple[Ints, Ints]:
        """Time windows report by the clock only."""
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def work(self, moments: Moments) -> Ints:
        self._catch_up()
        return self._rows.counts(moments.times)

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        faults.add(self._settled_faults)
        self._settled_faults = Faults()
        of, numbers = self._rows.showing(moments.times)
        rows = self._rows.take(numbers)
        if self._grouping is not None:
            places = Rows(int64_view(rows.column(TIME)), np.zeros(len(numbers), np.int32), numbers)
            return self._grouping.groups(moments.times, of, rows, places)
        cells = Cells(of, rows.select(self._schema.names[:-1]))
        return distinct(cells) if self.select.distinct else cells

    def evict(self, watermark: Instant) -> None:
        if DAWN < watermark < DUSK:
            self._probe.evict(self._probed, self._stays)
            self._rows.evict(watermark)

    def flush(self) -> None:
        self._store.put(self._key, msgspec.msgpack.encode(self._probe.flush()))
