"""VARIANCE and STDDEV of a sample, from the exact sums of x and x².

answers     VARIANCE(x), STDDEV(x) for x BIGINT or DOUBLE; NULL below two rows with a value
class       algebraic, subtractable
cost        update O(1) a row, lookup O(1) a group, space 8 bytes and 5 for each digit of both sums a group
order       none
source      ``limbs``

The variance is the exact rational (n·Σx² − (Σx)²) / (n·(n−1)), rounded once: nothing cancels before the rounding.
STDDEV is the square root of that rounded variance. A NaN or an infinity among the values makes both NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs, rationals
from stairwise.aggregates.contract import Rows
from stairwise.aggregates.exact_sums import ExactSums, add_powers, numeric_terms, state_of
from stairwise.expressions.views import Ints, from_numpy, int64_view, validity
from stairwise.schema import Instant


@dataclass(frozen=True)
class Variance(ExactSums):
    """VARIANCE, or STDDEV where ``root`` says so."""

    root: bool

    family: ClassVar[str] = "moments"
    state: ClassVar[pa.Schema] = state_of("sum", "squares")

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        total, squares = limbs.Accumulator(groups), limbs.Accumulator(groups)
        terms, specials = numeric_terms(args[0])
        if specials is not None:
            total.add_doubles(specials, codes)
        add_powers(terms, codes, total, squares)
        return self._partial(grouped.count(codes, groups, validity(args[0])), total, squares)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        count = int64_view(partials.column(0))
        some = count > 1
        special = limbs.specials(partials.column(1))
        wanted = np.flatnonzero(some if special is None else some & ~special[1])
        n = rationals.integers(count)
        total, squares = rationals.sums(partials.column(1)), rationals.sums(partials.column(2))
        fraction = (n * squares - total * total) / (n * (n - 1))
        variance = np.full(len(count), np.nan)
        variance[wanted] = fraction.take(wanted).to_doubles()
        return from_numpy(np.sqrt(variance) if self.root else variance, some)
