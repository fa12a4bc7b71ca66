"""TOP, FREQUENT and RECURRING: the items of a group with how often each occurs, exact.

answers     TOP(x, k): the k items of highest count. FREQUENT(x, theta): the items that more than theta of the rows
            with a value hold, with theta as it is written. RECURRING(x): all items, and over the levels of a
            multi-granular window those that occur in every level's own part (``recurring``)
class       holistic, subtractable
cost        update O(log n) a row, lookup O(items), space one value and count for each distinct value a group
order       none
source      seed 001 chapter 6 (frequent items, here without the approximation); seed 003 section IV.C (recurring)

Items come by count descending, then by value. NULL is no item; −0.0 is 0.0, and all NaNs are one item.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, ragged
from stairwise.aggregates.contract import Items, Kind, Rows
from stairwise.aggregates.ranks import rank
from stairwise.expressions.views import Bools, Ints, from_numpy, int64_view
from stairwise.schema import Instant


class Choice(enum.Enum):
    """Which items an aggregate shows."""

    TOP = "TOP"
    FREQUENT = "FREQUENT"
    RECURRING = "RECURRING"


@dataclass(frozen=True)
class ItemCounts:
    """Items of Arrow type ``dtype``; ``parameter`` is the k of TOP or the theta of FREQUENT."""

    dtype: pa.DataType
    choice: Choice
    parameter: Fraction = Fraction(0)

    kind: ClassVar[Kind] = Kind.HOLISTIC
    subtractable: ClassVar[bool] = True
    family: ClassVar[str] = "item counts"

    @cached_property
    def state(self) -> pa.Schema:
        return pa.schema([pa.field("items", self._counts, nullable=False)])

    @cached_property
    def _counts(self) -> pa.ListType:
        """From the least item up; every count is above zero."""
        fields = [pa.field("item", self.dtype, nullable=False), pa.field("count", pa.int64(), nullable=False)]
        return pa.list_(pa.field("item", pa.struct(fields), nullable=False))

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        column = args[0]
        if column.null_count:
            codes = codes[column.is_valid().to_numpy(zero_copy_only=False)]
            column = column.drop_null()
        return self._added(column, np.ones(len(column), np.int64), codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        owner, item, count = self._entries(partials, codes)
        return self._added(item, count, owner, groups)

    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        groups = np.arange(minuend.num_rows)
        more, less = self._entries(minuend, groups), self._entries(subtrahend, groups)
        return self._added(
            pa.concat_arrays([more[1], less[1]]),
            np.concatenate([more[2], -less[2]]),
            np.concatenate([more[0], less[0]]),
            len(groups),
        )

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        """How many items each group shows."""
        return from_numpy(np.bincount(self.items(partials, at).group, minlength=partials.num_rows))

    def items(self, partials: pa.RecordBatch, at: Instant) -> Items:
        groups = partials.num_rows
        owner, item, count = self._entries(partials, np.arange(groups))
        if self.choice is Choice.FREQUENT:
            shown = self._is_frequent(owner, count, groups)
            owner, item, count = owner[shown], item.filter(from_numpy(shown)), count[shown]
        # Entries lie by (group, item): a stable sort by falling count leaves equal counts in order of the item.
        order = np.argsort(-count, kind="stable")
        if groups > 1:
            order = order[grouped.sort_codes(owner[order], groups)]
        if self.choice is Choice.TOP:
            order = order[_place_in_run(owner[order]) < int(self.parameter)]
        return Items(owner[order], item.take(from_numpy(order)), from_numpy(count[order]))

    def _is_frequent(self, owner: Ints, count: Ints, groups: int) -> Bools:
        """count > theta · n in exact integers, where n counts the group's rows."""
        theta = self.parameter
        total = grouped.add(count, owner, groups)
        if theta.denominator < 2**31 and grouped.reach(total) < 2**31:
            return np.asarray(count * theta.denominator > total[owner] * theta.numerator)
        return np.asarray(
            count.astype(object) * theta.denominator > total.astype(object)[owner] * theta.numerator, np.bool_
        )

    def _entries(self, partials: pa.RecordBatch, codes: Ints) -> tuple[Ints, pa.Array, Ints]:
        offsets, entries = ragged.read(partials.column(0))
        return ragged.owners(offsets, codes), entries.field(0), int64_view(entries.field(1))

    def _added(self, item: pa.Array, count: Ints, codes: Ints, groups: int) -> pa.RecordBatch:
        """Counts of equal items added up, without those that are zero."""
        ranks = rank(item)
        order = grouped.sort(ranks.keys, codes, groups)
        keys, codes, count = ranks.keys[order], codes[order], count[order]
        starts = grouped.run_starts(codes, keys)
        if len(starts):
            total = np.add.reduceat(count, starts)
            kept = total != 0
            starts, count = starts[kept], total[kept]
        children = [ranks.values(keys[starts], None), from_numpy(count)]
        fields = list(self._counts.value_type)
        entries = pa.StructArray.from_arrays(children, fields=fields)
        lists = ragged.build_by_owner(codes[starts], groups, entries, self._counts)
        return pa.RecordBatch.from_arrays([lists], schema=self.state)


def _place_in_run(labels: Ints) -> Ints:
    """For sorted labels, how many equal ones stand before each."""
    starts = grouped.run_starts(labels)
    return np.arange(len(labels)) - np.repeat(starts, np.diff(starts, append=len(labels)))
