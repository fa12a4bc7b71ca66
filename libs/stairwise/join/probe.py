"""The symmetric join of time windows: every row probes what the other inputs hold, once, when it settles.

    a   ──●────────●──────────────●───▶        the new rows of a probe all of b, old and new;
    b   ─────●──────────●────●────────▶        then the new rows of b probe the old ones of a:
              old        │  new                every pair is found once, whoever came later

    answers        the rows of n inputs side by side where the condition holds and that any window can hold together
    update         O(1) a row and O(1) a match for equalities, vectorised; otherwise the rows that are near in time:
                   as near as a band in the condition says (``bands``), or the windows
    space          the rows that the widest windows reach, in pages sorted by time
    order          any, as long as no row comes at or below the watermark
    from           seed 002 section 4.2, seed 000 section 4 (one probe for all windows), seed 001 sections 5.2.1 (a new
                   row probes input after input, nothing in between is kept), 5.2.2 (rows of one key together, see
                   ``key_groups``) and 5.3 (in which order, see ``join_order``)

What is found carries the times of its rows. Which windows hold it from when to when follows from them alone: windows
do not enter here but by how long a row can matter to the widest (``Stay``). What must be equal is found by chains of
equal keys (``links``); the inputs that are left, and every other condition, by looking at each candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stairwise.algebra.conditions import Condition, Conjunct
from stairwise.algebra.query import Select
from stairwise.expressions.conditions import fields
from stairwise.expressions.evaluate import selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Bools, Ints, int64_view
from stairwise.join.bands import bands_of
from stairwise.join.key_groups import ROWS_A_KEY, KeyGroups
from stairwise.join.links import Equalities, Link
from stairwise.join.order import Key, Load, best_order
from stairwise.operators.preparation import Preparation, row_expressions
from stairwise.reports.contract import Batch
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.state.chains import GrowingInts, in_order
from stairwise.state.row_buffer import PLACE, TIME, RowBuffer
from stairwise.state.store import Store

PIECE = 32_768
"""About how many new rows probe together."""

WAIT = 131_072
"""So many rows wait for the report that shows what they join with, and probe together when it is due: lazy evaluation.

When there are more they probe at once (eagerly), so that a long slide does not leave all the work to its report.
"""

_RENEWED = 8
"""The order of inputs is looked at again when one in so many rows is new."""

MANY = 262_144
"""About how many joined rows are handed out together."""


class Stay(NamedTuple):
    """How a row of an input can matter: from ``begins`` after its time, at the earliest, until ``ends`` after it."""

    begins: Duration
    ends: Duration


@dataclass(frozen=True)
class JoinedInputs:
    """Joined rows in the order in which they came about: the times of their rows, and the columns asked for."""

    times: list[Ints]
    """For each input, when its row was."""
    columns: list[pa.Array | None]
    """By position in an input row."""

    def __len__(self) -> int:
        return len(self.times[0])


class _Found(NamedTuple):
    """Rows joined so far: for each input that is in it, where its rows stand."""

    at: dict[int, Ints]

    def keep(self, mask: Bools) -> _Found:
        return self if mask.all() else _Found({i: rows[mask] for i, rows in self.at.items()})

    def take(self, rows: Ints) -> dict[int, Ints]:
        return {i: at[rows] for i, at in self.at.items()}


class Probe:
    """The inputs of a join, their rows, and what new rows find among them."""

    def __init__(self, select: Select, store: Store, prefix: bytes, firsts: Sequence[int]) -> None:
        """``firsts`` are the positions of the first rows kept, as they stood at the last flush."""
        self.select = select
        self._condition = Condition(select)
        self._width = self._condition.starts[-1]
        self._bands = bands_of(self._condition, [source.stream for source in select.inputs])
        self._preparations = [Preparation(select, i) for i in range(len(select.inputs))]
        self._buffers = [
            RowBuffer(store, prefix + b"%d" % i, preparation.schema, firsts[i])
            for i, preparation in enumerate(self._preparations)
        ]
        self._times = [GrowingInts(first) for first in firsts]
        self._equalities = Equalities(self._condition)
        self._links = self._equalities.links(firsts)
        self._order = list(range(len(select.inputs)))
        """In which inputs are probed."""
        self._unordered = 0
        """How many rows have come since the order was looked at."""
        self._asked = sorted({field.index for _, expr in row_expressions(select) for field in fields(expr)})
        faults = Faults()
        for i, buffer in enumerate(self._buffers):  # what an earlier operator left in the store
            self._take_in(i, buffer.rows(firsts[i], buffer.end), faults)

    # ── rows in ──────────────────────────────────────────────────────────────────────────────────────────────

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        for source, buffer, preparation in zip(self.select.inputs, self._buffers, self._preparations, strict=True):
            if source.stream.name == batch.stream:
                buffer.add(preparation.rows(batch, horizon, faults))

    def settle(self, watermark: Instant, stays: Sequence[Stay], faults: Faults) -> Iterator[JoinedInputs]:
        """The rows at or below the watermark settle; what they make with one another and with all before them."""
        starts = [buffer.end for buffer in self._buffers]
        for buffer in self._buffers:
            buffer.settle(watermark)
        rows = [buffer.rows(start, buffer.end) for buffer, start in zip(self._buffers, starts, strict=True)]
        found: list[list[Ints]] = []
        for pieces in _pieces(rows):
            joined = self._probe_new(pieces, stays, faults)
            if len(joined[0]):
                found.append(joined)
            if sum(len(at[0]) for at in found) > MANY:
                yield self._joined(found)
                found = []
        if found:
            yield self._joined(found)

    def _probe_new(self, new: list[pa.RecordBatch], stays: Sequence[Stay], faults: Faults) -> list[Ints]:
        """New rows of all inputs: each finds all rows of the inputs behind its own, and old ones of those before.

        Gives where the rows of each input stand.
        """
        for i, rows in enumerate(new):
            self._take_in(i, rows, faults)
        self._unordered += sum(rows.num_rows for rows in new)
        if len(new) > 2 and _RENEWED * self._unordered >= sum(len(times.kept) for times in self._times):
            self._order, self._unordered = self._best_order(stays), 0
        return self._found_by([end - rows.num_rows for end, rows in zip(self.ends, new, strict=True)], stays, faults)

    def _found_by(self, begins: Sequence[int], stays: Sequence[Stay], faults: Faults) -> list[Ints]:
        """Where the rows stand that those from some positions on make with one another and with all before them."""
        ends = self.ends
        found: list[dict[int, Ints]] = []
        for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            if begin < end:
                upto = [begins[k] if k < i else ends[k] for k in range(len(ends))]
                found.append(self._partners(i, np.arange(begin, end), upto, stays, faults).at)
        return self._together(found)

    def _take_in(self, i: int, rows: pa.RecordBatch, faults: Faults) -> None:
        self._times[i].extend(int64_view(rows.column(TIME)))
        columns = self._side_by_side({i: rows})
        for link in self._links:
            if i in link.inputs:
                link.extend(i, columns, rows.num_rows, faults)

    @property
    def ends(self) -> list[int]:
        """The positions behind the rows that have probed."""
        return [times.end for times in self._times]

    def everything(self, stays: Sequence[Stay], faults: Faults, upto: Sequence[int] | None = None) -> JoinedInputs:
        """All that the rows which are kept, or those below some positions, make with one another."""
        upto = self.ends if upto is None else upto
        found = self._partners(0, np.arange(self._times[0].first, upto[0]), upto, stays, faults)
        return self._joined([self._together([found.at])])

    def again(self, begins: Sequence[int], stays: Sequence[Stay], faults: Faults) -> JoinedInputs:
        """What the rows from some positions on make with one another and with all before them."""
        return self._joined([self._found_by(begins, stays, faults)])

    # ── one input after the other ────────────────────────────────────────────────────────────────────────────

    def _best_order(self, stays: Sequence[Stay]) -> list[int]:
        """By what the windows hold now (``join_order``)."""
        rows = [len(times.kept) for times in self._times]
        rates = [count / max(1, stay.ends) for count, stay in zip(rows, stays, strict=True)]
        keys = [Key({i: link.chains[i].distinct for i in link.inputs}) for link in self._links]
        return best_order(Load(rates, rows, keys))

    def _partners(self, i: int, rows: Ints, upto: Sequence[int], stays: Sequence[Stay], faults: Faults) -> _Found:
        """What some rows of input i make with the rows of the others below the positions ``upto``."""
        groups = self._groups(i, rows)
        found = _Found({i: rows if groups is None else np.arange(len(groups))})
        decided: set[Conjunct] = set()
        equal: dict[int, set[int]] = {}
        while len(found.at) < len(self._buffers):
            new, link = self._next(found, groups)
            meets = groups is None and self._always_meet(found, new, stays)
            probe, at = self._candidates(found, new, link, stays, groups)
            below = at < upto[new]
            if not below.all():
                probe, at = probe[below], at[below]
            if link is not None:
                _note(equal, link, self._old(found, link), new)
            found = _Found({**found.take(probe), new: at})
            if not meets:
                found = found.keep(self._meet(found, stays, groups))
            found = self._filter(found, decided, equal, faults, groups)
        if groups is None:
            return found
        probe, mine = groups.apart(found.at[i])
        found = _Found({**found.take(probe), i: mine})
        found = found.keep(self._meet(found, stays))
        return self._filter(found, decided, equal, faults)

    def _groups(self, i: int, rows: Ints) -> KeyGroups | None:
        """Consecutive rows by the key that all inputs have in common, where there are many to a key."""
        for link in self._links:
            if len(link.inputs) == len(self._buffers):
                keys = link.chains[i].firsts(int(rows[0]), int(rows[-1]) + 1) if len(rows) else 1
                if keys * ROWS_A_KEY <= len(rows):
                    return KeyGroups(i, rows, link.keys_of(i, rows), self._times[i].at(rows))
        return None

    def _next(self, found: _Found, groups: KeyGroups | None) -> tuple[int, Link | None]:
        """The input to probe next, and by what: the key with the most values, or else row by row."""
        waiting = [i for i in self._order if i not in found.at]
        for new in waiting:
            links = [link for link in self._links if new in link.inputs and not found.at.keys().isdisjoint(link.inputs)]
            if groups is not None:
                links = [link for link in links if len(link.inputs) == len(self._buffers)]
            if links:
                return new, max(links, key=lambda link: len(link.table))
        return waiting[0], None

    def _old(self, found: _Found, link: Link) -> int:
        """Of the inputs that are found, the one from which a link goes on."""
        return next(i for i in link.inputs if i in found.at)

    def _since(self, i: int, at: Ints, groups: KeyGroups | None = None) -> Ints:
        """When some rows were, or the first ones of groups."""
        return groups.since[at] if groups is not None and groups.input == i else self._times[i].at(at)

    def _until(self, i: int, at: Ints, groups: KeyGroups | None = None) -> Ints:
        """When some rows were, or the last ones of groups."""
        return groups.until[at] if groups is not None and groups.input == i else self._times[i].at(at)

    def _candidates(
        self, found: _Found, new: int, link: Link | None, stays: Sequence[Stay], groups: KeyGroups | None
    ) -> tuple[Ints, Ints]:
        """Rows of an input that may belong to those found: with their key, and not gone before they come."""
        times = self._times[new]
        came = latest_of([self._since(i, at, groups) + stays[i].begins for i, at in found.at.items()])
        lowest = np.searchsorted(times.kept, came - stays[new].ends, side="right") + times.first
        for i, least in ((b.earlier, b.least) for b in self._bands if b.later == new and b.earlier in found.at):
            since = self._since(i, found.at[i], groups) + least
            lowest = np.maximum(lowest, np.searchsorted(times.kept, since, side="left") + times.first)
        if link is not None:
            old = self._old(found, link)
            grouped = groups is not None and groups.input == old
            keys = groups.keys[found.at[old]] if groups and grouped else link.keys_of(old, found.at[old])
            return link.chains[new].probe(keys, lowest)
        gone = _earliest_of([self._until(i, at, groups) + stays[i].ends for i, at in found.at.items()])
        highest = np.searchsorted(times.kept, gone - stays[new].begins, side="left") + times.first
        for i, least in ((b.later, b.least) for b in self._bands if b.earlier == new and b.later in found.at):
            until = self._until(i, found.at[i], groups) - least
            highest = np.minimum(highest, np.searchsorted(times.kept, until, side="right") + times.first)
        count = np.maximum(highest - lowest, 0)
        at = expand_ranges(lowest, count)  # first: it asks whether there is room
        return np.repeat(np.arange(len(count)), count), at

    def _meet(self, found: _Found, stays: Sequence[Stay], groups: KeyGroups | None = None) -> Bools:
        """Can any window hold the rows together?"""
        begins = latest_of([self._since(i, at, groups) + stays[i].begins for i, at in found.at.items()])
        ends = _earliest_of([self._until(i, at, groups) + stays[i].ends for i, at in found.at.items()])
        return np.asarray(begins < ends)

    def _always_meet(self, found: _Found, new: int, stays: Sequence[Stay]) -> bool:
        """Are the rows of one input, in order of time, still there when the last row of the new one comes?

        That those of the new one are still there when they come is what candidates are.
        """
        if len(found.at) > 1 or not len(self._times[new].kept):
            return False
        ((i, at),) = found.at.items()
        oldest, newest = int(self._times[i].at(at[:1])[0]) if len(at) else DUSK, int(self._times[new].kept[-1])
        return newest + stays[new].begins < oldest + stays[i].ends

    def _filter(
        self,
        found: _Found,
        decided: set[Conjunct],
        equal: dict[int, set[int]],
        faults: Faults,
        groups: KeyGroups | None = None,
    ) -> _Found:
        """Apply every condition that can be decided now: of a group's rows nothing can yet but their key."""
        there = found.at.keys() - ({groups.input} if groups is not None else ())
        for conjunct in [*self._equalities.conjuncts, *self._equalities.others]:
            if conjunct in decided or not conjunct.inputs <= found.at.keys():
                continue
            if self._equalities.follows(conjunct, equal):
                decided.add(conjunct)
            elif conjunct.inputs <= there:
                decided.add(conjunct)
                wanted = sorted({field.index for field in fields(conjunct.expr)})
                columns = self._columns(found.at, wanted)
                length = len(next(iter(found.at.values())))
                found = found.keep(selects(conjunct.expr, columns, length, faults))
        return found

    # ── what is found ────────────────────────────────────────────────────────────────────────────────────────

    def _together(self, found: list[dict[int, Ints]]) -> list[Ints]:
        """Put in order: by the time of the latest row, then by the rows themselves, the first input's first."""
        none = np.zeros(0, np.int64)
        at = [np.concatenate([none, *(some[i] for some in found)]) for i in range(len(self._buffers))]
        if len(at[0]):
            # Positions stand in the order of (time, partition, sequence), so they order rows as their places do.
            latest = latest_of([times.at(rows) for times, rows in zip(self._times, at, strict=True)])
            _, *at = in_order([latest, *at])
        return at

    def _joined(self, found: list[list[Ints]]) -> JoinedInputs:
        """The rows at some places, those of one piece behind those of the piece before."""
        at = found[0] if len(found) == 1 else [np.concatenate(places) for places in zip(*found, strict=True)]
        times = [times.at(rows) for times, rows in zip(self._times, at, strict=True)]
        return JoinedInputs(times, self._columns(dict(enumerate(at)), self._asked))

    def _columns(self, at: dict[int, Ints], wanted: Sequence[int]) -> list[pa.Array | None]:
        columns: list[pa.Array | None] = [None] * self._width
        starts = self._condition.starts
        for i, positions in at.items():
            mine = [j for j in wanted if starts[i] <= j < starts[i + 1]]
            if mine:
                rows = self._buffers[i].take(positions, [f"f{j}" for j in mine])
                for j, column in zip(mine, rows.columns, strict=True):
                    columns[j] = column
        return columns

    def _side_by_side(self, rows: dict[int, pa.RecordBatch]) -> list[pa.Array | None]:
        columns: list[pa.Array | None] = [None] * self._width
        for batch in rows.values():
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                if name not in PLACE and name.startswith("f"):
                    columns[int(name[1:])] = column
        return columns

    def evict(self, reached: Instant, stays: Sequence[Stay]) -> None:
        """Drop the rows that matter to nothing after ``reached``."""
        if not DAWN < reached < DUSK:
            return
        for i, (buffer, times) in enumerate(zip(self._buffers, self._times, strict=True)):
            before = int(np.searchsorted(times.kept, reached - stays[i].ends, side="right")) + times.first
            buffer.drop(before)
            times.drop(before)
            for link in self._links:
                if i in link.inputs:
                    link.chains[i].drop(before)
        for link in self._links:
            link.forget()

    def flush(self) -> list[int]:
        """Write back what changed; gives the positions of the first rows that are kept."""
        for buffer in self._buffers:
            buffer.flush()
        return [buffer.first for buffer in self._buffers]

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take."""
        total: int = sum(buffer.nbytes for buffer in self._buffers)
        return total


def latest_of(columns: Sequence[Ints]) -> Ints:
    """The latest time of each row."""
    return reduce(np.maximum, columns)


def _earliest_of(columns: Sequence[Ints]) -> Ints:
    return reduce(np.minimum, columns)


def _note(equal: dict[int, set[int]], link: Link, old: int, new: int) -> None:
    """An input has been found by a link from another: they have its values in common."""
    for value in link.values:
        together = equal.setdefault(value, {old})
        if old in together:
            together.add(new)


def _pieces(rows: list[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """New rows of all inputs in pieces of bearable size, cut at the same instants."""
    times = [int64_view(batch.column(TIME)) for batch in rows]
    total = sum(map(len, times))
    if total <= PIECE:
        if total:
            yield rows
        return
    together = np.sort(np.concatenate(times), kind="stable")  # a few runs that are in order already
    cuts = np.unique(together[PIECE - 1 :: PIECE])
    edges = [np.concatenate(([0], np.searchsorted(t, cuts, side="right"), [len(t)])) for t in times]
    for number in range(len(cuts) + 1):
        yield [
            batch.slice(int(edge[number]), int(edge[number + 1] - edge[number]))
            for batch, edge in zip(rows, edges, strict=True)
        ]
