"""The one contract of aggregates: lift rows into partials, combine partials, lower a partial to its answer.

    rows of a batch ──lift──▶ partial per group ──combine──▶ partial per group ──lower──▶ one value per group
                              of one slice                   of a window

A partial is an Arrow record batch with one row per group, so that a page in a Store, a message on Kafka and a
published stair are all the same bytes. Partials are exact or order-free: whatever the batches, their order, the
slices or the shards, the same rows give the same partial and so the same bits at the end.

Groups are dense numbers 0..groups-1 (``expressions.codes``). A group without a row has the identity: the partial
that changes nothing when it is combined.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stairwise.expressions.views import Ints
from stairwise.schema import Instant


class Kind(enum.Enum):
    """How much a partial must hold (seed 001 section 2.2.1)."""

    DISTRIBUTIVE = "distributive"
    """The answer itself."""
    ALGEBRAIC = "algebraic"
    """A few numbers, whatever the count of rows."""
    HOLISTIC = "holistic"
    """As much as there are distinct values, or rows."""


@dataclass(frozen=True)
class Rows:
    """Where each row stands in its stream, whose order is (time, partition, sequence)."""

    time: Ints
    partition: npt.NDArray[np.int32]
    sequence: Ints


class Algebra(Protocol):
    """An aggregate over groups. All of it is vectorised over rows and groups; nothing here keeps state."""

    @property
    def kind(self) -> Kind: ...

    @property
    def subtractable(self) -> bool:
        """Can what a part contributed be taken out again? Then it is a ``SubtractableAlgebra``."""

    @property
    def family(self) -> str:
        """What the partial holds. Aggregates over equal arguments with equal families can share one partial."""

    @property
    def state(self) -> pa.Schema:
        """The columns of a partial."""

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        """The partials of a batch's rows: row i, with its arguments, belongs to group ``codes[i]``."""

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        """Partials merged by group: row i of ``partials`` belongs to group ``codes[i]``."""

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        """The answer of each group at report time ``at``, in the aggregate's type."""


@runtime_checkable
class SubtractableAlgebra(Algebra, Protocol):
    def subtract(self, minuend: pa.RecordBatch, subtrahend: pa.RecordBatch) -> pa.RecordBatch:
        """What is left of each group when the part in ``subtrahend``, once combined into it, is taken out."""


class Items(NamedTuple):
    """Rows of an aggregate that yields several per group: by group, then count descending, then item."""

    group: Ints
    item: pa.Array
    count: pa.Array


@runtime_checkable
class ItemAlgebra(SubtractableAlgebra, Protocol):
    """TOP, FREQUENT and RECURRING; their ``lower`` gives the number of items."""

    def items(self, partials: pa.RecordBatch, at: Instant) -> Items: ...


def identity(algebra: Algebra, groups: int) -> pa.RecordBatch:
    """The partial of ``groups`` groups that have no rows."""
    return algebra.combine(pa.RecordBatch.from_pylist([], schema=algebra.state), NO_CODES, groups)


NO_CODES: Ints = np.empty(0, np.int64)

NO_ROWS = Rows(NO_CODES, np.empty(0, np.int32), NO_CODES)
"""For aggregates that do not look at places."""
