"""What R-INT sums for an aggregate, row by row, and the aggregate's partial from what R-INT gives back.

    aggregate          columns of R-INT
    COUNT(*)           none: positions are counts
    COUNT(x)           NULLs, from the first one on
    SUM, AVG           NULLs; the values: of BIGINT whole while they are below 2^32, else in two halves;
                       of DOUBLE in limbs of 32 bits, as many as the values seen so far have
    VARIANCE, STDDEV   NULLs; the values; their squares

A partial is what ``aggregates`` keeps for the same aggregate, so that parts from several partitions and workers
are combined and rounded by the code that every query uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs
from stairwise.aggregates.exact_sums import numeric_terms
from stairwise.expressions import huge
from stairwise.expressions.views import Ints, Words, float64_view, from_numpy, from_words, int64_view, validity
from stairwise.structures.running_intervals import Summand

NULLS, SUM, SQUARES = 0, 1, 2
"""The parts of a partial."""
FAMILIES = frozenset({"count", "integer sum", "double sum", "moments"})
"""The partials that R-INT can give."""
INTEGER_FAMILIES = frozenset({"count", "integer sum"})
"""Those of them that are plain integers."""
EXTREMES = frozenset({"max", "min"})
"""The partials that are the best value, which B-INT can give of numbers."""

_WHOLE = 2**32
_LOW_HALF = np.int64(_WHOLE - 1)


def columns_of(family: str, args: Sequence[pa.Array]) -> dict[Summand, Ints]:
    """What a batch of rows adds to the running sums behind a partial."""
    if not args:
        return {}
    (values,) = args
    valid = validity(values)
    found = {} if valid is None else {Summand(NULLS): (~valid).astype(np.int64)}
    match family:
        case "integer sum":
            return found | _of_integers(int64_view(values) if valid is None else np.where(valid, int64_view(values), 0))
        case "double sum":
            doubles = float64_view(values)
            total = limbs.Accumulator(len(values))
            total.add_doubles(doubles if valid is None else np.where(valid, doubles, 0.0), np.arange(len(values)))
            return found | _of_limbs(SUM, total)
        case "moments":
            total, squares = _moments(values)
            return found | _of_limbs(SUM, total) | _of_limbs(SQUARES, squares)
    return found


def partial_columns(family: str, rows: Ints, sums: Mapping[Summand, Ints]) -> list[pa.Array]:
    """The partial of intervals with so many ``rows`` and these sums, as columns."""
    count = rows - sums[Summand(NULLS)] if Summand(NULLS) in sums else rows
    columns: list[pa.Array] = [from_numpy(count)]
    if family == "integer sum":
        columns.append(from_words(words_of(sums, len(rows))))
    elif family != "count":
        parts = (SUM,) if family == "double sum" else (SUM, SQUARES)
        columns += [_limbs(part, sums, len(rows)) for part in parts]
    return columns


def _of_integers(values: Ints) -> dict[Summand, Ints]:
    if grouped.reach(values) < _WHOLE:
        return {Summand(SUM): values}
    return {Summand(SUM): values & _LOW_HALF, Summand(SUM, 1): values >> limbs.LIMB_BITS}


def _of_limbs(part: int, total: limbs.Accumulator) -> dict[Summand, Ints]:
    return {Summand(part, limb): digits for limb, digits in total.digits.items()}


def _moments(values: pa.Array) -> tuple[limbs.Accumulator, limbs.Accumulator]:
    each = np.arange(len(values))
    total, squares = limbs.Accumulator(len(values)), limbs.Accumulator(len(values))
    terms, specials = numeric_terms(values)
    if specials is not None:
        total.add_doubles(specials, each)
    for index, (term, shift) in enumerate(terms):
        total.add_doubles(term, each, shift)
        squares.add_products(term, term, each, 2 * shift)
        for other, other_shift in terms[index + 1 :]:
            squares.add_products(2.0 * term, other, each, shift + other_shift)
    return total, squares


def words_of(sums: Mapping[Summand, Ints], length: int) -> Words:
    """Sums of BIGINT in 128 bits."""
    low = huge.from_int64(sums.get(Summand(SUM), np.zeros(length, np.int64)))
    high = sums.get(Summand(SUM, 1))
    return low if high is None else huge.wrapping_add(huge.shift_half(huge.from_int64(high)), low)


def _limbs(part: int, sums: Mapping[Summand, Ints], length: int) -> pa.ListArray:
    total = limbs.Accumulator(length)
    for column, digits in sums.items():
        if column.part == part and length:
            total.add_digits(column.limb, digits)
    return total.to_lists()
