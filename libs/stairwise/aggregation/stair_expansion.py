"""One query out of its signature's stair: its steps, its aggregates, then HAVING, projection and EMIT as ever.

stair        τ    step   rows                      query   RANGE 20s SLIDE 10s, SUM(qty) > 9
             10   −10    a 3 │ b 1     ◀──────────         τ − 20 at 10, 20, 30, ...
             10     0    a 2
             15   −15    ...                               not its time
             20     0    a 9 │ c 2     ◀──────────
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.aggregates import ragged
from stairwise.aggregation.level_steps import Stepped
from stairwise.aggregation.stair import Stair, answer_name, key_name
from stairwise.algebra.query import Query, Select, levels_of
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints
from stairwise.operators.due import Frame, Steps, frames_of
from stairwise.operators.levels import asked_window, asks_for_steps
from stairwise.operators.roster import due_at, own_times
from stairwise.reports.answers import yields_items
from stairwise.reports.blocks import Reports
from stairwise.reports.contract import Life
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import Expansion, report_schema
from stairwise.reports.packing import unpacked
from stairwise.windows.schedule import report_grids


@dataclass(frozen=True)
class _Asked:
    """The steps that a query asks of a stair: in order of time, then level."""

    time: Ints
    level: Ints
    step: Ints


class SharedExpansion:
    """What one query shows of its signature's stairs, which come in order."""

    def __init__(self, query: Query, life: Life) -> None:
        select = query.relation
        assert isinstance(select, Select)
        window = asked_window(select)
        self.life = life
        self.query, self._select = query, select
        self._frames = frames_of(window)
        self._grids = report_grids(window)
        self._has_levels = levels_of(query) is not None
        self._schema = report_schema(query)
        self._answers = [answer_name(aggregate) for aggregate in select.aggregates]
        self._stepped = Stepped(query) if asks_for_steps(select) else None
        self._expansion = Expansion(query)
        self.faults = self._expansion.faults

    def expand(self, stair: Stair) -> Emissions | None:
        """Its lines; None where it is not due."""
        reports = self.reports(stair)
        return None if reports is None else self._expansion.expand_block(reports)

    def expand_held(self, stair: Stair, times: Ints) -> Emissions | None:
        """Its lines at some of its report times in a run of which a stair is the first."""
        return self.expand(self.held(stair, times))

    def held(self, stair: Stair, times: Ints) -> Stair:
        """A stair at some of the query's report times in the run that it begins."""
        parts = [(due, due - f.lag, due - f.lag - f.range) for f in self._frames if len(due := due_at(f, times))]
        time, front, rear = (np.concatenate(column) for column in zip(*parts, strict=True))
        rear = np.minimum(np.maximum(rear, self.life.horizon), front)
        order = np.lexsort([-rear, front, time])
        return stair.held(Steps(time[order], front[order], rear[order]))

    def is_due(self, stair: Stair) -> bool:
        """Does the query report at any time of a stair?"""
        if self._stepped is not None:
            return self.reports(stair) is not None
        times = self._times(stair)
        return any(len(due_at(frame, times)) for frame in self._frames)

    def reports(self, stair: Stair) -> Reports | None:
        """Its own reports, as if it had been evaluated alone."""
        found = self._found(stair)
        if self._stepped is not None:
            return self._stepped.reports(stair, found)
        asked = _in_order(found)
        if not len(asked.time):
            return None
        start, count = stair.start[asked.step], stair.stop[asked.step] - stair.start[asked.step]
        rows = stair.rows
        if np.array_equal(start[1:], start[:-1] + count[:-1]):
            rows = rows.slice(int(start[0]), int(count.sum()))
        else:
            rows = rows.take(pa.array(expand_ranges(start, count)))
        columns = [_plain(rows.column(key_name(i))) for i in range(len(self._select.keys))]
        answers = [unpacked(rows, name) for name in self._answers]
        if yields_items(self._select):
            columns, answers, count = _items(columns, answers[0], count)
        if self._has_levels:
            columns = [pa.array(np.repeat(asked.level, count)), *columns]
        begins = np.concatenate(([True], asked.time[1:] != asked.time[:-1]))
        offsets = np.concatenate(([0], np.cumsum(count)))[np.append(np.flatnonzero(begins), len(count))]
        times = asked.time[begins]
        batch = pa.RecordBatch.from_arrays([*columns, *answers], schema=self._schema)
        return Reports(self.query.name, times, np.zeros(len(times), np.int64), offsets, batch)

    def _found(self, stair: Stair) -> list[tuple[Ints, Ints]]:
        """For each frame, when it is due and which steps it has then."""
        times = self._times(stair)
        return [self._steps_of(frame, times, stair) for frame in self._frames]

    def _times(self, stair: Stair) -> Ints:
        return own_times(stair.times, self.life, self._grids, stair.first_row, stair.sealed_at)

    def _steps_of(self, frame: Frame, times: Ints, stair: Stair) -> tuple[Ints, Ints]:
        due = due_at(frame, times)
        front = due - frame.lag
        rear = np.minimum(np.maximum(front - frame.range, self.life.horizon), front)
        steps = stair.steps
        if len(due) == len(steps) and np.array_equal(due, steps.time) and np.array_equal(rear, steps.rear):
            return due, np.arange(len(due))
        return due, stair.find(Steps(due, front, rear))


def _in_order(found: list[tuple[Ints, Ints]]) -> _Asked:
    """What the levels of a query ask for, in order of time, then level."""
    time = np.concatenate([due for due, _ in found])
    level = np.repeat(np.arange(len(found)), [len(due) for due, _ in found])
    step = np.concatenate([steps for _, steps in found])
    if len(found) == 1:
        return _Asked(time, level, step)
    order = np.lexsort([level, time])
    return _Asked(time[order], level[order], step[order])


def _plain(column: pa.Array) -> pa.Array:
    """A key column of a stair as its values."""
    return column.dictionary.take(column.indices)


def _items(keys: list[pa.Array], items: pa.ListArray, count: Ints) -> tuple[list[pa.Array], list[pa.Array], Ints]:
    """One row for each item of a group: keys, item and count, and how many rows each step has then."""
    offsets, entries = ragged.read(items)
    owner = pa.array(ragged.owners(offsets))
    ends = np.concatenate(([0], np.cumsum(count)))
    return (
        [key.take(owner) for key in keys],
        [entries.field("item"), entries.field("count")],
        np.diff(np.asarray(offsets)[ends]),
    )
