"""APPROX_QUANTILE: counts in buckets whose width is in proportion to the value.

answers     APPROX_QUANTILE(x, q) for x BIGINT or DOUBLE, within 1 % of the value at place floor(q·(n−1)) of the
            sorted values; NULL where no row has a value
class       algebraic (space is bounded whatever the rows), subtractable
cost        update O(log n) a row, lookup O(buckets), space 12 bytes for each bucket present a group: 64 for each
            power of two that the values span
order       none: buckets are fixed, so the sketch of a union is the sum of the sketches
source      Masson, Rim, Lee: DDSketch (VLDB 2019), with its linearly interpolated logarithm

A double's exponent and the first six bits of its mantissa are its bucket, so finding it is a shift of its bits
and needs no logarithm, whose last bit could differ between machines:

    1    1.016  1.031 ...        1.984  2      2.03 ...                          4
    ├──────┼──────┼── 64 buckets ──┼────┼────────┼──── 64, each twice as wide ────┤

A bucket from l to u answers 2lu/(l+u), off by at most (u−l)/(u+l) ≤ 1/129, which is 0.78 %. Zero, the infinities
and NaN, which is the greatest, are answered exactly, numbers below 2^−1022 as if they were 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, ragged
from stairwise.aggregates.contract import Kind, Rows
from stairwise.expressions.views import Floats, Ints, canonical, float64_view, from_numpy, int64_view, validity
from stairwise.schema import Instant

RELATIVE_ERROR = 0.01

_DROPPED_BITS = 52 - 6
_SMALLEST_NORMAL = 2.0**-1022
_BUCKET_BITS = 19
"""Buckets lie between −2^17 and 2^17; one more bit keeps them apart from their neighbour's group."""
_BUCKETS = pa.list_(
    pa.field(
        "item",
        pa.struct([pa.field("bucket", pa.int32(), nullable=False), pa.field("count", pa.int64(), nullable=False)]),
        nullable=False,
    )
)


@dataclass(frozen=True)
class QuantileSketch:
    q: Fraction

    kind: ClassVar[Kind] = Kind.ALGEBRAIC
    subtractable: ClassVar[bool] = True
    family: ClassVar[str] = "quantile sketch"
    state: ClassVar[pa.Schema] = pa.schema([pa.field("buckets", _BUCKETS, nullable=False)])

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        column, valid = args[0], validity(args[0])
        whole = not pa.types.is_floating(column.type)
        values = int64_view(column).astype(np.float64) if whole else float64_view(column)
        if valid is not None:
            values, codes = values[valid], codes[valid]
        return self._added(bucket_of(values), np.ones(len(values), np.int64), codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        owner, bucket, count = self._entries(partials, codes)
        return self._added(bucket, count, owner, groups)

    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        every = np.arange(minuend.num_rows)
        more, less = self._entries(minuend, every), self._entries(subtrahend, every)
        return self._added(
            np.concatenate([more[1], less[1]]),
            np.concatenate([more[2], -less[2]]),
            np.concatenate([more[0], less[0]]),
            len(every),
        )

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        groups = partials.num_rows
        owner, bucket, count = self._entries(partials, np.arange(groups))
        if len(owner) == 0:
            return pa.nulls(groups, pa.float64())
        total = grouped.add(count, owner, groups)
        before = np.cumsum(total) - total
        place = before + _floor_product(np.maximum(total - 1, 0), self.q)
        entry = np.searchsorted(np.cumsum(count), place, side="right")
        return from_numpy(value_of(bucket[np.minimum(entry, len(bucket) - 1)]), total > 0)

    def _entries(self, partials: pa.RecordBatch, codes: Ints) -> tuple[Ints, Ints, Ints]:
        offsets, entries = ragged.read(partials.column(0))
        bucket = np.asarray(entries.field(0).to_numpy()).astype(np.int64)
        return ragged.owners(offsets, codes), bucket, int64_view(entries.field(1))

    def _added(self, bucket: Ints, count: Ints, codes: Ints, groups: int) -> pa.RecordBatch:
        """Counts of equal buckets added up, without those that are zero."""
        middle = 1 << (_BUCKET_BITS - 1)
        keys = (codes << _BUCKET_BITS) + (bucket + middle)
        order = np.argsort(keys)
        keys, count = keys[order], count[order]
        starts = grouped.run_starts(keys)
        if len(starts):
            total = np.add.reduceat(count, starts)
            starts, count = starts[total != 0], total[total != 0]
        keys = keys[starts]
        bucket = (keys & ((1 << _BUCKET_BITS) - 1)) - middle
        entries = pa.StructArray.from_arrays(
            [from_numpy(bucket.astype(np.int32)), from_numpy(count)], fields=list(_BUCKETS.value_type)
        )
        lists = ragged.build_by_owner(keys >> _BUCKET_BITS, groups, entries, _BUCKETS)
        return pa.RecordBatch.from_arrays([lists], schema=self.state)


def bucket_of(values: Floats) -> Ints:
    """Numbers in the order of the values: 0 for zero, negative for negative values."""
    values = canonical(values)
    values = np.where(np.abs(values) < _SMALLEST_NORMAL, 0.0, values)
    size = np.abs(values).view(np.int64) >> _DROPPED_BITS
    return np.where(values < 0, -size, size)


def value_of(buckets: Ints) -> Floats:
    """The value that is nearest, in proportion, to all of a bucket."""
    size = np.abs(buckets)
    least = (size << _DROPPED_BITS).view(np.float64)
    beyond = ((size + 1) << _DROPPED_BITS).view(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        # 2lu/(l+u) without overflow; the topmost finite bucket ends at infinity, and answers its lower end.
        middle = least * (2.0 / (1.0 + least / beyond))
    exact = (size == 0) | ~np.isfinite(beyond)
    value = np.where(exact, least, middle)
    return np.where(buckets < 0, -value, value)


def _floor_product(numbers: Ints, by: Fraction) -> Ints:
    if by.denominator < 2**31 and grouped.reach(numbers) < 2**31:
        return numbers * by.numerator // by.denominator
    return np.array([int(n) * by.numerator // by.denominator for n in numbers], np.int64)
