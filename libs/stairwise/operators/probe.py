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
                   row probes input after input, nothing in between is kept) and 5.3 (fewest expected matches first)

What is found carries the times of its rows. Which windows hold it from when to when follows from them alone: windows
do not enter here but by how long a row can matter to the widest (``Stay``). Equalities between two inputs are found by
chains of equal keys; the inputs that are left, and every other condition, by looking at each candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stairwise.cql.query import Call, Expr, Select
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Bools, Ints, int64_view
from stairwise.operators.bands import bands_of
from stairwise.operators.buffer import PLACE, TIME, RowBuffer
from stairwise.operators.cells import canonical_column
from stairwise.operators.chains import NONE, Chains, GrowingInts, in_order
from stairwise.operators.contract import Batch
from stairwise.operators.join import Condition, Conjunct, expand_ranges, fields
from stairwise.operators.keys import KeyTable
from stairwise.operators.preparation import Preparation, row_expressions
from stairwise.operators.store import Store
from stairwise.schema import DAWN, DUSK, Duration, Instant, Type

PIECE = 32_768
"""About how many new rows probe together."""

MANY = 262_144
"""About how many joined rows are handed out together."""

_FEW_KEYS = 4096


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


class _Pair:
    """Two inputs with equalities between them: their keys in one table, and chains of the rows of both."""

    def __init__(self, inputs: tuple[int, int], firsts: Sequence[int]) -> None:
        self.inputs = inputs
        self.conjuncts: list[Conjunct] = []
        self.exprs: dict[int, list[Expr]] = {i: [] for i in inputs}
        self.chains = {i: Chains(firsts[i]) for i in inputs}
        self.table = KeyTable([])

    def prepare(self) -> None:
        self.table = KeyTable([expr.type.arrow for expr in self.exprs[self.inputs[0]]])

    def numbers(self, i: int, columns: list[pa.Array | None], length: int, faults: Faults) -> Ints:
        """The keys of rows of input i; a NULL equals nothing."""
        keys = [canonical_column(evaluate(expr, columns, length, faults)) for expr in self.exprs[i]]
        numbers = self.table.numbers(keys, length)
        for key in keys:
            if key.null_count:
                numbers = np.where(key.is_valid().to_numpy(zero_copy_only=False), numbers, NONE)
        return numbers

    def forget(self) -> None:
        """Forget keys that no row has any more, when they are many."""
        rows = sum(len(chains.keys.kept) for chains in self.chains.values())
        if len(self.table) <= 4 * rows + _FEW_KEYS:
            return
        kept = [chains.keys.kept for chains in self.chains.values()]
        used = np.unique(np.concatenate(kept))
        renumbered = np.append(self.table.keep(used[used >= 0]), NONE)  # a row without a key stays one
        for i, keys in zip(self.inputs, kept, strict=True):
            first = self.chains[i].keys.first
            self.chains[i] = Chains(first)
            self.chains[i].extend(renumbered[keys])


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
        self._rest: list[Conjunct] = []
        """What is neither an equality between two inputs nor asks one alone."""
        self._pairs = self._find_pairs(firsts)
        self._asked = sorted({field.index for _, expr in row_expressions(select) for field in fields(expr)})
        faults = Faults()
        for i, buffer in enumerate(self._buffers):  # what an earlier operator left in the store
            self._take_in(i, buffer.rows(firsts[i], buffer.end), faults)

    def _find_pairs(self, firsts: Sequence[int]) -> dict[tuple[int, int], _Pair]:
        pairs: dict[tuple[int, int], _Pair] = {}
        for conjunct in self._condition.conjuncts:
            if len(conjunct.inputs) == 1:
                continue
            sides = self._equality(conjunct)
            if sides is None:
                self._rest.append(conjunct)
                continue
            low, high = sorted(sides)
            pair = pairs.setdefault((low, high), _Pair((low, high), firsts))
            pair.conjuncts.append(conjunct)
            for i, expr in sides.items():
                pair.exprs[i].append(expr)
        for pair in pairs.values():
            pair.prepare()
        return pairs

    def _equality(self, conjunct: Conjunct) -> dict[int, Expr] | None:
        """The two inputs that an equality is between, each with its side of it."""
        expr = conjunct.expr
        if not (isinstance(expr, Call) and expr.op == "=" and expr.args[0].type is not Type.HUGEINT):
            return None
        asks = [self._condition.inputs_of(arg) for arg in expr.args]
        if any(len(asked) != 1 for asked in asks) or asks[0] == asks[1]:
            return None
        return {next(iter(asked)): arg for asked, arg in zip(asks, expr.args, strict=True)}

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
        found: list[dict[int, Ints]] = []
        for i, rows in enumerate(new):
            self._take_in(i, rows, faults)
        ends = [times.end for times in self._times]
        begins = [end - rows.num_rows for end, rows in zip(ends, new, strict=True)]
        for i, rows in enumerate(new):
            if rows.num_rows:
                upto = [begins[k] if k < i else ends[k] for k in range(len(new))]
                found.append(self._partners(i, np.arange(begins[i], ends[i]), upto, stays, faults).at)
        return self._together(found)

    def _take_in(self, i: int, rows: pa.RecordBatch, faults: Faults) -> None:
        self._times[i].extend(int64_view(rows.column(TIME)))
        columns = self._side_by_side({i: rows})
        for pair in self._pairs.values():
            if i in pair.inputs:
                pair.chains[i].extend(pair.numbers(i, columns, rows.num_rows, faults))

    def everything(self, stays: Sequence[Stay], faults: Faults) -> JoinedInputs:
        """All that the rows which are kept make with one another."""
        times = self._times[0]
        upto = [t.end for t in self._times]
        found = self._partners(0, np.arange(times.first, times.end), upto, stays, faults)
        return self._joined([self._together([found.at])])

    # ── one input after the other ────────────────────────────────────────────────────────────────────────────

    def _partners(self, i: int, rows: Ints, upto: Sequence[int], stays: Sequence[Stay], faults: Faults) -> _Found:
        """What some rows of input i make with the rows of the others below the positions ``upto``."""
        found = _Found({i: rows})
        used: set[Conjunct] = set()
        while len(found.at) < len(self._buffers):
            new, pair = self._next(found)
            probe, at = self._candidates(found, new, pair, stays)
            below = at < upto[new]
            if not below.all():
                probe, at = probe[below], at[below]
            meets = self._always_meet(found, new, stays)
            found = _Found({**found.take(probe), new: at})
            if not meets:
                found = found.keep(self._meet(found, stays))
            used.update(pair.conjuncts if pair is not None else ())
            found = self._filter(found, used, faults)
        return found

    def _next(self, found: _Found) -> tuple[int, _Pair | None]:
        """The input to probe next: that with the fewest matches to expect for a row, by its rows and keys."""
        best: tuple[float, int, _Pair | None] | None = None
        for new in range(len(self._buffers)):
            if new in found.at:
                continue
            rows = len(self._times[new].kept)
            pairs = [p for (a, b), p in self._pairs.items() if new in (a, b) and (a + b - new) in found.at]
            for pair in [*pairs, *([] if pairs else [None])]:
                expected = rows / max(1, len(pair.table)) if pair is not None else rows + 1e12
                if best is None or expected < best[0]:
                    best = (expected, new, pair)
        assert best is not None
        return best[1], best[2]

    def _candidates(self, found: _Found, new: int, pair: _Pair | None, stays: Sequence[Stay]) -> tuple[Ints, Ints]:
        """Rows of an input that may belong to those found: with their key, and not gone before they come."""
        times = self._times[new]
        came = latest_of([self._times[i].at(at) + stays[i].begins for i, at in found.at.items()])
        lowest = np.searchsorted(times.kept, came - stays[new].ends, side="right") + times.first
        for i, least in ((b.earlier, b.least) for b in self._bands if b.later == new and b.earlier in found.at):
            since = self._times[i].at(found.at[i]) + least
            lowest = np.maximum(lowest, np.searchsorted(times.kept, since, side="left") + times.first)
        if pair is not None:
            old = sum(pair.inputs) - new
            return pair.chains[new].probe(pair.chains[old].keys.at(found.at[old]), lowest)
        gone = _earliest_of([self._times[i].at(at) + stays[i].ends for i, at in found.at.items()])
        highest = np.searchsorted(times.kept, gone - stays[new].begins, side="left") + times.first
        for i, least in ((b.later, b.least) for b in self._bands if b.earlier == new and b.later in found.at):
            until = self._times[i].at(found.at[i]) - least
            highest = np.minimum(highest, np.searchsorted(times.kept, until, side="right") + times.first)
        count = np.maximum(highest - lowest, 0)
        return np.repeat(np.arange(len(count)), count), expand_ranges(lowest, count)

    def _meet(self, found: _Found, stays: Sequence[Stay]) -> Bools:
        """Can any window hold the rows together?"""
        times = {i: self._times[i].at(at) for i, at in found.at.items()}
        begins = latest_of([t + stays[i].begins for i, t in times.items()])
        ends = _earliest_of([t + stays[i].ends for i, t in times.items()])
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

    def _filter(self, found: _Found, used: set[Conjunct], faults: Faults) -> _Found:
        """Apply every condition that can be decided now."""
        equalities = [c for pair in self._pairs.values() for c in pair.conjuncts]
        for conjunct in [*equalities, *self._rest]:
            if conjunct not in used and conjunct.inputs <= found.at.keys():
                used.add(conjunct)
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
            for pair in self._pairs.values():
                if i in pair.inputs:
                    pair.chains[i].drop(before)
        for pair in self._pairs.values():
            pair.forget()

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
