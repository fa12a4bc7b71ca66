"""The partials that some aggregates need, side by side in columns: those of a SELECT, or of all queries of a signature.

    q1   SUM(qty), COUNT(*)           kept    qty: count and sum        arguments   qty
    q2   AVG(qty), MAX(price)                 *: count                              price
    q3   MAX(price) > 10                      price: max

Aggregates over equal arguments that need the same partial share it, whichever query they stand in, and every argument
is computed once. When a query brings a partial that is not kept yet, slices from before know nothing of it; they get
the identity in its place and no query reads it there, since its horizon lies above them (``since``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stairwise.aggregates import ragged
from stairwise.aggregates.catalogue import algebra_for
from stairwise.aggregates.contract import Algebra, ItemAlgebra, Items, Kind, Rows, SubtractableAlgebra, identity
from stairwise.aggregates.counts import Count
from stairwise.aggregates.doubles import DoubleSum
from stairwise.aggregates.extremes import Extreme
from stairwise.aggregates.moments import Variance
from stairwise.aggregates.regression import Regression
from stairwise.aggregates.sums import IntegerSum
from stairwise.aggregates.window_edges import WindowEdge
from stairwise.expressions.tree import ITEM_FUNCTIONS, Aggregate, Expr
from stairwise.expressions.views import Ints
from stairwise.operators.levels import Partial

_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("whole numbers and extremes", (Count, IntegerSum, Extreme)),
    ("sums of DOUBLE", (DoubleSum,)),
    ("moments", (Variance, Regression)),
)
"""What is walked, by what a step costs."""

_WALKABLE = tuple(kind for _, kinds in _KINDS for kind in kinds)


@dataclass(frozen=True)
class Kept:
    """One partial: its algebra, which arguments it takes and which columns are its own."""

    key: str
    """What it is, in a spelling that a page can carry."""
    algebra: Algebra
    args: tuple[int, ...]
    start: int
    stop: int


class Partials:
    """Partials for a set of aggregates, side by side in columns. Nothing here changes."""

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        """``aggregates`` in the order of their answers, each once."""
        self.aggregates = tuple(aggregates)
        self.place = {aggregate: i for i, aggregate in enumerate(self.aggregates)}
        """Where the answer of each aggregate stands."""
        algebras = [algebra_for(aggregate) for aggregate in aggregates]
        self.args: list[Expr] = list(dict.fromkeys(arg for aggregate in aggregates for arg in aggregate.args))
        kept: dict[str, Kept] = {}
        fields: list[pa.Field] = []
        self._of: list[tuple[Aggregate, Algebra, Kept]] = []
        """Each aggregate with its own algebra and its partial."""
        for aggregate, algebra in zip(self.aggregates, algebras, strict=True):
            key = kept_key(aggregate)
            if key not in kept:
                start = len(fields)
                fields += [f.with_name(f"{len(kept)}.{f.name}") for f in algebra.state]
                args = tuple(self.args.index(arg) for arg in aggregate.args)
                kept[key] = Kept(key, algebra, args, start, len(fields))
            self._of.append((aggregate, algebra, kept[key]))
        self.kept = list(kept.values())
        self.schema = pa.schema(fields)

    @cached_property
    def counts_of_sums(self) -> set[int]:
        """Which columns are counts of which it is only asked whether they are zero, for SUM."""
        return {kept.start for kept in self.kept if all(_is_plain_sum(a) for a, _, own in self._of if own is kept)}

    @cached_property
    def is_holistic(self) -> bool:
        """Does a partial grow with the rows, so that combining ahead of need gains nothing?"""
        return any(kept.algebra.kind is Kind.HOLISTIC for kept in self.kept)

    @cached_property
    def is_walkable(self) -> bool:
        """Can all be added up or compared as numbers, so that a walk gives many steps at once?"""
        return all(isinstance(kept.algebra, _WALKABLE) for kept in self.kept)

    @cached_property
    def is_subtractable(self) -> bool:
        """Can what rows contributed be taken out again?"""
        return all(isinstance(kept.algebra, SubtractableAlgebra) for kept in self.kept)

    def lift(self, args: Sequence[pa.Array], places: Rows, codes: Ints, groups: int) -> list[pa.Array]:
        """The partials of rows, whose arguments stand in the order of ``args``."""
        columns: list[pa.Array] = []
        for kept in self.kept:
            columns += kept.algebra.lift([args[i] for i in kept.args], places, codes, groups).columns
        return columns

    def combine(self, partials: list[pa.Array], codes: Ints, groups: int) -> list[pa.Array]:
        columns: list[pa.Array] = []
        for kept in self.kept:
            columns += kept.algebra.combine(own(kept, partials), codes, groups).columns
        return columns

    def subtract(self, minuend: list[pa.Array], subtrahend: list[pa.Array]) -> list[pa.Array]:
        """What is left of partials of which parts are taken out, group by group."""
        columns: list[pa.Array] = []
        for kept in self.kept:
            assert isinstance(kept.algebra, SubtractableAlgebra)
            columns += kept.algebra.subtract(own(kept, minuend), own(kept, subtrahend)).columns
        return columns

    def items(self, partials: list[pa.Array]) -> Items | None:
        """The rows of TOP and its like; None where the aggregates have one value per group."""
        for _, algebra, kept in self._of[:1]:
            if isinstance(algebra, ItemAlgebra):
                return algebra.items(own(kept, partials), 0)
        return None

    def lower(self, partials: Sequence[pa.Array | None], at: Ints) -> list[pa.Array]:
        """The answers of all aggregates; ``at`` is the report time of each group, or one for all of them.

        TOP and its like have several answers for a group: a list of items with their counts. What is asked for as
        a partial stays one. Where counts are None, none of them is zero and sums are answers.
        """
        return [
            partials[kept.start + 1]
            if partials[kept.start] is None
            else _answer(aggregate, algebra, own(kept, partials), at)
            for aggregate, algebra, kept in self._of
        ]

    def moved(self, partials: list[pa.Array], rows: int, before: Partials) -> list[pa.Array]:
        """Columns of ``before`` as columns of this set: the identity where it kept nothing of the kind."""
        known = {kept.key: kept for kept in before.kept}
        columns: list[pa.Array] = []
        for kept in self.kept:
            old = known.get(kept.key)
            columns += partials[old.start : old.stop] if old else identity(kept.algebra, rows).columns
        return columns


def _is_plain_sum(aggregate: Aggregate) -> bool:
    algebra = algebra_for(aggregate)
    return isinstance(algebra, IntegerSum) and not algebra.average and not isinstance(aggregate, Partial)


@lru_cache(maxsize=4096)
def kept_key(aggregate: Aggregate) -> str:
    """Which partial an aggregate needs."""
    return f"{algebra_for(aggregate).family} {aggregate.args!r}"


def kind_of(aggregates: Sequence[Aggregate]) -> tuple[str, tuple[str, ...]]:
    """How the partials of a query are kept and looked up, as the dearest of them asks for; which ones are tables.

    Queries of another kind have slices of their own, so none pays for the walks and answers of a dearer one. Sketches,
    FIRST and LAST are combined from nodes of the tree; tables, which grow with the rows, from slices alone.
    """
    algebras = {kept_key(aggregate): algebra_for(aggregate) for aggregate in aggregates}
    tables = sorted(key for key, algebra in algebras.items() if algebra.kind is Kind.HOLISTIC)
    if tables:
        return "tables of values", tuple(tables)
    cheap: tuple[type, ...] = ()
    for name, types in _KINDS:
        cheap += types
        if all(isinstance(algebra, cheap) for algebra in algebras.values()):
            return name, ()
    return "partials of any kind", ()


def union_of(wanted: Mapping[Aggregate, int], before: Partials) -> Partials:
    """The partials for these aggregates; those that were kept before keep their order."""
    if len(wanted) == len(before.aggregates) and all(aggregate in wanted for aggregate in before.aggregates):
        return before
    staying = [aggregate for aggregate in before.aggregates if aggregate in wanted]
    return Partials([*staying, *(aggregate for aggregate in wanted if aggregate not in before.place)])


def own(kept: Kept, partials: Sequence[pa.Array | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(partials[kept.start : kept.stop], schema=kept.algebra.state)


def _answer(aggregate: Aggregate, algebra: Algebra, partials: pa.RecordBatch, at: Ints) -> pa.Array:
    if isinstance(aggregate, Partial):
        return partials.to_struct_array()
    if aggregate.function in ITEM_FUNCTIONS:
        return _items(algebra, partials)
    return _lowered(algebra, partials, at)


def _items(algebra: Algebra, partials: pa.RecordBatch) -> pa.Array:
    assert isinstance(algebra, ItemAlgebra)
    items = algebra.items(partials, 0)
    fields = [pa.field("item", items.item.type), pa.field("count", pa.int64())]
    entries = pa.StructArray.from_arrays([items.item, items.count], fields=fields)
    return ragged.build_by_owner(items.group, partials.num_rows, entries, pa.list_(entries.type))


def _lowered(algebra: Algebra, partials: pa.RecordBatch, at: Ints) -> pa.Array:
    moves = isinstance(algebra, WindowEdge) or (isinstance(algebra, Regression) and algebra.intercept)
    if len(at) <= 1 or not moves:
        return algebra.lower(partials, int(at[0]) if len(at) else 0)
    edges = [0, *(np.flatnonzero(np.diff(at)) + 1).tolist(), len(at)]
    return pa.concat_arrays([algebra.lower(partials.slice(i, j - i), int(at[i])) for i, j in pairwise(edges)])
