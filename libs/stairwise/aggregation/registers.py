"""An open slice as plain arrays with a place for every key: where rows are added while their slice is open.

    key        0      1      2     ...          one array per number that is kept, indexed by the key's number; rows
    rows       3      0      1                  go in by one scatter for each, without sorting or hashing again
    sum       12      .      4
    min        1      .      4

    answers        the partials of COUNT, SUM, AVG, MIN and MAX of BIGINT, TIMESTAMP and DOUBLE
    aggregates     exact whatever the order of rows
    update         O(1) a row and aggregate
    space          8 bytes for each key and number kept, whether or not the key has rows in the slice
    order          none

An array that has a place for every key is the fastest way to add and a poor way to keep, so a slice is packed into
columns of partials (``packed``) as soon as it is closed. BIGINT sums stay in 64 bits as long as a bound on all that
was added shows that they fit; then the upper half moves to an array of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs
from stairwise.aggregates.contract import Algebra
from stairwise.aggregates.counts import Count
from stairwise.aggregates.doubles import DoubleSum
from stairwise.aggregates.extremes import Extreme
from stairwise.aggregates.sums import IntegerSum
from stairwise.aggregation.partials import Kept, Partials
from stairwise.aggregation.slices import Slices
from stairwise.expressions import huge
from stairwise.expressions.views import (
    Bools,
    Ints,
    float64_view,
    from_numpy,
    from_order_keys,
    from_words,
    int64_view,
    order_keys,
    validity,
)

_FITS = 2**62
_LOW_HALF = np.int64(0xFFFF_FFFF)

Codes = Ints | None
"""The key of each row; None where there is one key for all."""


def fits_registers(partials: Partials) -> bool:
    """Can all that is kept be kept in arrays of numbers?"""
    return all(_has_register(kept.algebra) for kept in partials.kept)


def _has_register(algebra: Algebra) -> bool:
    if isinstance(algebra, Extreme):
        return algebra.dtype in (pa.int64(), pa.float64())
    return isinstance(algebra, Count | IntegerSum | DoubleSum)


class _Argument:
    """An argument of some rows. What several registers ask about it is found out once."""

    def __init__(self, column: pa.Array) -> None:
        self.column = column
        self.valid = validity(column)

    @cached_property
    def numbers(self) -> Ints:
        """Of a BIGINT, whatever lies in the slots of NULLs."""
        return int64_view(self.column)

    @cached_property
    def least(self) -> int:
        return int(self.numbers.min())

    @cached_property
    def greatest(self) -> int:
        return int(self.numbers.max())


class _Register(Protocol):
    def grow(self, room: int) -> None: ...

    def add(self, codes: Codes, argument: _Argument) -> None:
        """The argument of at least one row."""

    def packed(self, at: Ints, count: Ints) -> list[pa.Array]:
        """The partial of the keys ``at``; ``count`` of each key's rows have a value."""


class Registers:
    """The accumulators of one slice for keys 0 to ``room``."""

    def __init__(self, partials: Partials, room: int) -> None:
        self._room = room
        self._kept = partials.kept
        self._registers = [_register(kept.algebra, room) for kept in partials.kept]
        self._rows = np.zeros(room, np.int64)
        self._missing: dict[int, Ints] = {}
        """By argument, where it is ever NULL: how many rows of each key have no value."""

    def add(self, codes: Codes, rows: int, args: Sequence[pa.Array], keys: int) -> None:
        """Rows of this slice; ``keys`` is how many keys there are by now."""
        if keys > self._room:
            self._grow(max(keys, 2 * self._room))
        _count(self._rows, codes, rows)
        arguments = [_Argument(arg) for arg in args]
        for number, argument in enumerate(arguments):
            if argument.valid is not None:
                missing = self._missing.setdefault(number, np.zeros(self._room, np.int64))
                gone = ~argument.valid
                _count(missing, None if codes is None else codes[gone], int(np.count_nonzero(gone)))
        for kept, register in zip(self._kept, self._registers, strict=True):
            if kept.args:
                register.add(codes, arguments[kept.args[0]])

    def packed(self, number: int) -> Slices:
        """The slice as columns of partials, with one row for each key that has rows."""
        at = self._rows.nonzero()[0]
        rows = self._rows[at]
        columns: list[pa.Array] = []
        for kept, register in zip(self._kept, self._registers, strict=True):
            columns += register.packed(at, self._counted(kept, rows, at))
        return Slices(np.full(len(at), number, np.int64), at, columns)

    def mark(self, keys: Bools) -> None:
        """Which keys have rows here."""
        keys[: self._room] |= self._rows[: len(keys)] > 0

    def _counted(self, kept: Kept, rows: Ints, at: Ints) -> Ints:
        missing = self._missing.get(kept.args[0]) if kept.args else None
        return rows if missing is None else rows - missing[at]

    def _grow(self, room: int) -> None:
        self._rows = _grown(self._rows, room)
        self._missing = {number: _grown(missing, room) for number, missing in self._missing.items()}
        for register in self._registers:
            register.grow(room)
        self._room = room

    @property
    def nbytes(self) -> int:
        return 8 * self._room * (1 + len(self._missing) + len(self._registers))


def _count(counts: Ints, codes: Codes, rows: int) -> None:
    if codes is None:
        counts[0] += rows
    elif len(counts) <= len(codes):
        counts += np.bincount(codes, minlength=len(counts))
    else:
        np.add.at(counts, codes, 1)


def _grown(array: Ints, room: int, filling: int = 0) -> Ints:
    return np.concatenate([array, np.full(room - len(array), filling, np.int64)])


def _register(algebra: Algebra, room: int) -> _Register:
    match algebra:
        case Extreme():
            return _Best(algebra, room)
        case IntegerSum():
            return _IntegerTotal(room)
        case DoubleSum():
            return _DoubleTotal(room)
        case _:
            return _Rows()


class _Rows:
    """COUNT: the counts are kept by the slice itself."""

    def grow(self, room: int) -> None:
        pass

    def add(self, codes: Codes, argument: _Argument) -> None:
        pass

    def packed(self, at: Ints, count: Ints) -> list[pa.Array]:
        return [from_numpy(count)]


class _IntegerTotal:
    """SUM and AVG of BIGINT: low + 2^32 · high."""

    def __init__(self, room: int) -> None:
        self._low = np.zeros(room, np.int64)
        self._high: Ints | None = None
        self._bound = 0
        """No total in ``low`` is beyond it."""

    def grow(self, room: int) -> None:
        self._low = _grown(self._low, room)
        self._high = None if self._high is None else _grown(self._high, room)

    def add(self, codes: Codes, argument: _Argument) -> None:
        values = argument.numbers
        reach = max(-argument.least, argument.greatest)
        if argument.valid is not None:
            values = np.where(argument.valid, values, 0)
            reach = grouped.reach(values)
        most = reach * len(values)
        if self._bound + most >= _FITS:
            self._carry()
        if most < _FITS:
            _add(self._low, codes, values)
            self._bound += most
        else:
            _add(self._low, codes, values & _LOW_HALF)
            _add(self._upper(), codes, values >> 32)
            self._bound += len(values) << 32

    def _upper(self) -> Ints:
        if self._high is None:
            self._high = np.zeros(len(self._low), np.int64)
        return self._high

    def _carry(self) -> None:
        high = self._upper()
        high += self._low >> 32
        self._low &= _LOW_HALF
        self._bound = 2**32

    def packed(self, at: Ints, count: Ints) -> list[pa.Array]:
        words = huge.from_int64(self._low[at])
        if self._high is not None:
            words = huge.wrapping_add(words, huge.shift_half(huge.from_int64(self._high[at])))
        return [from_numpy(count), from_words(words)]


def _add(totals: Ints, codes: Codes, values: Ints) -> None:
    if codes is None:
        totals[0] += values.sum()
    else:
        np.add.at(totals, codes, values)


class _DoubleTotal:
    """SUM and AVG of DOUBLE: exact digits in limbs."""

    def __init__(self, room: int) -> None:
        self._total = limbs.Accumulator(room)
        self._zeros = np.zeros(0, np.int64)
        self._added = 0

    def grow(self, room: int) -> None:
        self._total.grow(room)

    def add(self, codes: Codes, argument: _Argument) -> None:
        values = float64_view(argument.column)
        if argument.valid is not None:
            values = np.where(argument.valid, values, 0.0)
        if codes is None:
            if len(self._zeros) < len(values):
                self._zeros = np.zeros(len(values), np.int64)
            codes = self._zeros[: len(values)]
        self._added += len(values) << 32
        if self._added >= _FITS:
            self._total.carry()
            self._added = (len(values) + 1) << 32
        self._total.add_doubles(values, codes)

    def packed(self, at: Ints, count: Ints) -> list[pa.Array]:
        return [from_numpy(count), self._total.to_lists().take(pa.array(at))]


class _Best:
    """MIN or MAX, by integers in the order of the values."""

    def __init__(self, algebra: Extreme, room: int) -> None:
        self._largest = algebra.largest
        self._is_double = pa.types.is_floating(algebra.dtype)
        self._nothing = grouped.INT64_MIN if self._largest else grouped.INT64_MAX
        """Stands for no value, unless it is one: then ``is_value`` says so."""
        self._best = np.full(room, self._nothing)
        self._is_value: Bools | None = None

    def grow(self, room: int) -> None:
        self._best = _grown(self._best, room, int(self._nothing))
        if self._is_value is not None:
            self._is_value = np.concatenate([self._is_value, np.zeros(room - len(self._is_value), bool)])

    def add(self, codes: Codes, argument: _Argument) -> None:
        valid = argument.valid
        values = order_keys(float64_view(argument.column)) if self._is_double else argument.numbers
        if not self._is_double and (argument.least if self._largest else argument.greatest) == self._nothing:
            self._mark(codes, values == self._nothing if valid is None else (values == self._nothing) & valid)
        if valid is not None:
            values = np.where(valid, values, self._nothing)
        better = np.maximum if self._largest else np.minimum
        if codes is not None:
            better.at(self._best, codes, values)
        elif valid is None and not self._is_double:
            self._best[0] = better(self._best[0], argument.greatest if self._largest else argument.least)
        else:
            self._best[0] = better(self._best[0], better.reduce(values))

    def _mark(self, codes: Codes, mask: Bools) -> None:
        if self._is_value is None:
            self._is_value = np.zeros(len(self._best), bool)
        self._is_value[0 if codes is None else codes[mask]] |= bool(mask.any())

    def packed(self, at: Ints, count: Ints) -> list[pa.Array]:
        best = self._best[at]
        seen = best != self._nothing
        if self._is_value is not None:
            seen |= self._is_value[at]
        return [from_numpy(from_order_keys(best) if self._is_double else best, seen)]
