"""Exact sums of doubles and of their products, as sparse integer digits that no order of adding can change.

answers     the sums behind SUM, AVG, VARIANCE, STDDEV and REGR of DOUBLE, and x² and t·y of BIGINT
class       distributive, subtractable
cost        update about three vectorised passes a row, space 5 bytes for each digit present (three is usual)
order       none
source      the exact partials that shared slices need; a superaccumulator whose digits exist on demand

A sum is an integer in base 2^32 whose digit ``limb`` weighs 2^(32·limb). Digits are balanced, from −2^31 to
2^31−1, so every number has one spelling, a digit that is not there is zero, and the top digit has the sign:

    limb        1            0           −1           −2
    weight      2^32         1           2^−32        2^−64
    1234.25     .            1234        2^30         .
    1234.5      .            1235        −2^31        .           a half is spelled as one less a half
    2^32 − 1    1            −1          .            .

1e300 has digits around limb 31 and 1e-300 around limb −32; their sum has both, and nothing in between.

A double lies across at most three neighbouring limbs. Its pieces are cut off with ``rint``, which is exact, and
are added per group and limb as doubles that hold integers below 2^53, which is exact too. NaN and the infinities
are counted, in limbs of their own that no finite number reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stairwise.aggregates import grouped, ragged
from stairwise.expressions.views import Bools, Floats, Ints, from_numpy

LIMB_BITS = 32
NAN_LIMB, PLUS_INFINITY_LIMB, MINUS_INFINITY_LIMB = 100, 108, 116
LIMBS = pa.list_(
    pa.field(
        "item",
        pa.struct([pa.field("limb", pa.int8(), nullable=False), pa.field("digit", pa.int32(), nullable=False)]),
        nullable=False,
    )
)
"""The column of a partial: each group's digits that are not zero, from the lowest limb up."""

_FIELDS = list(LIMBS.value_type)
_RADIX = 2.0**LIMB_BITS
_HALF = np.int64(2**31)
_MOST_ROWS = 2**20
"""Pieces are at most 2^32, so the sum of this many is below 2^53."""
_NEAR = 4
"""Rows whose limbs are this far below the largest's are cut up in one pass; farther ones would underflow."""
_BLOCK = 4096
"""Rows that are multiplied at a time."""
_SPLITTER = 2.0**27 + 1
_NONE: Ints = np.empty(0, np.int64)


_Number = TypeVar("_Number", np.float64, np.int64)


class Accumulator:
    """Digits per limb and group while they are being added: column ``limb`` has one number for each group."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        self._columns: dict[int, Ints] = {}

    def add_doubles(self, values: Floats, codes: Ints, shift: int = 0) -> None:
        """Add values · 2^(32·shift), NaN and infinities included."""
        for start in range(0, len(values), _MOST_ROWS):
            self._add_some(values[start : start + _MOST_ROWS], codes[start : start + _MOST_ROWS], shift)

    def add_products(self, left: Floats, right: Floats, codes: Ints, shift: int = 0) -> None:
        """Add left · right · 2^(32·shift) of finite values, exactly: as the rounded product and what it lost."""
        for one in _by_size(left, np.abs(left)):
            mine, others = _choose(codes, one.rows), _choose(right, one.rows)
            for other in _by_size(others, np.abs(others)):
                factors = _scaled(_choose(one.values, other.rows), -one.limb), _scaled(other.values, -other.limb)
                for part in two_product(*factors):
                    self.add_doubles(part, _choose(mine, other.rows), shift + one.limb + other.limb)

    def add_lists(self, column: pa.ListArray, codes: Ints, sign: int = 1) -> None:
        """Add (or with ``sign`` −1 take away) sums that are spelled out already; row i goes to ``codes[i]``."""
        offsets, entries = ragged.read(column)
        if len(entries) == 0:
            return
        shape = table(offsets, entries)
        if shape is not None:
            for limb, digits in shape:
                self._add_column(limb, sign * grouped.add(digits.astype(np.int64), codes, self._groups))
            return
        places, digit = arrays(entries)
        used = np.flatnonzero(np.bincount(places.view(np.uint8)))  # int8 seen as uint8: −1 is 255
        place_of = np.zeros(256, np.int64)
        place_of[used] = np.arange(len(used)) * self._groups
        cell = ragged.owners(offsets, codes)
        cell += place_of[places.view(np.uint8)]
        cells = grouped.add(digit.astype(np.int64), cell, len(used) * self._groups)
        for place, total in zip(used.astype(np.uint8).view(np.int8), cells.reshape(len(used), -1), strict=True):
            self._add_column(int(place), sign * total)

    def add_digits(self, limb: int, digits: Ints) -> None:
        """Add one integer for each group, times 2^(32·limb)."""
        self._add_column(limb, digits)

    @property
    def digits(self) -> Mapping[int, Ints]:
        """What was added, by limb, as it stands: digits may be larger than 2^31 until ``carry``."""
        return self._columns

    def grow(self, groups: int) -> None:
        """Make room for more groups, which have no sum yet."""
        more = np.zeros(groups - self._groups, np.int64)
        self._columns = {limb: np.concatenate([column, more]) for limb, column in self._columns.items()}
        self._groups = groups

    def carry(self) -> None:
        """Bring every digit back below 2^31, so that as much as before can be added again."""
        carried = Accumulator(self._groups)
        carried.add_lists(self.to_lists(), np.arange(self._groups))
        self._columns = carried._columns

    def mapped(self, groups: int, change: Callable[[Ints], Ints]) -> Accumulator:
        """What sums of these groups make for other ``groups``: ``change`` adds and subtracts, digit by digit."""
        found = Accumulator(groups)
        found._columns = {limb: change(column) for limb, column in self._columns.items()}
        return found

    def to_lists(self) -> pa.ListArray:
        """Carry, drop zeros, and lay the digits out by group."""
        columns = dict(self._columns)
        limbs: list[int] = []
        digits: list[Ints] = []
        while columns:
            limb = min(columns)
            column = columns.pop(limb)
            carry = (column + _HALF) >> LIMB_BITS
            if carry.any():
                column = column - (carry << LIMB_BITS)
                columns[limb + 1] = columns[limb + 1] + carry if limb + 1 in columns else carry
            limbs.append(limb)
            digits.append(column)
        if not limbs:
            return ragged.build(np.zeros(self._groups, np.int64), _entries(_NONE, _NONE), LIMBS)
        cells = np.stack(digits, axis=1)
        present = cells != 0
        places = np.tile(np.array(limbs, np.int8), self._groups)
        if present.all():
            return ragged.build_table(self._groups, _entries(places, cells.ravel()), LIMBS)
        at = np.flatnonzero(present)
        lengths = sum((present[:, place] for place in range(len(limbs))), np.zeros(self._groups, np.int64))
        return ragged.build(lengths, _entries(places[at], cells.ravel()[at]), LIMBS)

    def _add_some(self, values: Floats, codes: Ints, shift: int) -> None:
        size = np.abs(values)
        if len(size) and not math.isfinite(size.max()):
            self._count_specials(values, codes)
            values = np.where(np.isfinite(values), values, 0.0)
            size = np.abs(values)
        for part in _by_size(values, size):
            pieces = _scaled(part.values, -part.limb)
            self._add_near(pieces, _choose(codes, part.rows), part.limb + shift, part.last + shift)

    def _add_near(self, values: Floats, codes: Ints, limb: int, last: int) -> None:
        """Cut ``values``, which are below 2^32, into a digit for ``limb``, one for the next below, down to ``last``.

        ``values`` is used up: fresh arrays for each step would cost more than the steps.
        """
        whole = np.empty_like(values)
        while limb > last:
            np.rint(values, out=whole)
            self._add_pieces(limb, whole, codes)
            values -= whole
            if not values.any():
                return
            values *= _RADIX
            limb -= 1
        self._add_pieces(limb, values, codes)

    def _add_pieces(self, limb: int, pieces: Floats, codes: Ints) -> None:
        one = self._groups == 1
        total = np.array([pieces.sum()]) if one else np.bincount(codes, pieces, self._groups)
        self._add_column(limb, total.astype(np.int64))

    def _add_column(self, limb: int, column: Ints) -> None:
        known = self._columns.get(limb)
        self._columns[limb] = column if known is None else known + column

    def _count_specials(self, values: Floats, codes: Ints) -> None:
        specials = (
            (NAN_LIMB, np.isnan(values)),
            (PLUS_INFINITY_LIMB, values == np.inf),
            (MINUS_INFINITY_LIMB, values == -np.inf),
        )
        for limb, mask in specials:
            if mask.any():
                self._add_column(limb, grouped.count(codes, self._groups, mask))


def subtract(minuend: pa.RecordBatch, subtrahend: pa.RecordBatch, columns: Iterable[int]) -> list[Accumulator]:
    """The differences of some columns of two partials over the same groups."""
    every = np.arange(minuend.num_rows)
    differences = []
    for column in columns:
        difference = Accumulator(minuend.num_rows)
        difference.add_lists(minuend.column(column), every)
        difference.add_lists(subtrahend.column(column), every, sign=-1)
        differences.append(difference)
    return differences


def integer_terms(values: Ints) -> list[tuple[Floats, int]]:
    """Doubles and shifts that make up int64 values exactly: the sum of term · 2^(32·shift)."""
    if grouped.reach(values) <= 2**53:
        return [(values.astype(np.float64), 0)]
    high, low = values >> LIMB_BITS, values & np.int64(2**LIMB_BITS - 1)
    return [(high.astype(np.float64), 1), (low.astype(np.float64), 0)]


def two_product(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The rounded product and the exact rest, for values far from overflow and underflow (Dekker).

    In blocks that stay in the cache: of whole columns the many intermediate arrays would cost most of the time.
    """
    product, rest = np.empty_like(left), np.empty_like(left)
    for start in range(0, len(left), _BLOCK):
        block = slice(start, start + _BLOCK)
        a, b, p = left[block], right[block], product[block]
        np.multiply(a, b, out=p)
        a_high, a_low = _halves(a)
        b_high, b_low = (a_high, a_low) if left is right else _halves(b)
        rest[block] = a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, rest


def two_sum(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The rounded sum and the exact rest (Knuth)."""
    total = left + right
    part = total - left
    return total, (left - (total - part)) + (right - part)


def arrays(entries: pa.StructArray) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """The limbs and the digits of the entries of a column of sums."""
    return np.asarray(entries.field("limb").to_numpy()), np.asarray(entries.field("digit").to_numpy())


def table(offsets: Ints, entries: pa.StructArray) -> list[tuple[int, npt.NDArray[np.int32]]] | None:
    """Each limb with the digits of all rows, from the lowest limb up, if all rows have the same limbs.

    That is the usual case, values being of similar size, and spares the walk over entries of any shape.
    """
    rows = len(offsets) - 1
    if len(entries) == 0 or len(entries) % rows:
        return None
    width = len(entries) // rows
    limb, digit = arrays(entries)
    if (np.diff(offsets) != width).any() or (limb[width:] != limb[:-width]).any():
        return None
    return [(int(place), digit[index::width]) for index, place in enumerate(limb[:width])]


def specials(column: pa.ListArray) -> tuple[Floats, Bools] | None:
    """What NaN and infinities make of each group's sum, and where there are any; None if there are none at all.

    Any NaN, or infinities of both signs, make NaN; else the infinity.
    """
    offsets, entries = ragged.read(column)
    limb, _ = arrays(entries)
    if len(limb) == 0 or limb.max() < NAN_LIMB:
        return None
    owner = ragged.owners(offsets)
    groups = len(column)
    nan, plus, minus = np.zeros((3, groups), np.bool_)
    nan[owner[(limb >= NAN_LIMB) & (limb < PLUS_INFINITY_LIMB)]] = True
    plus[owner[(limb >= PLUS_INFINITY_LIMB) & (limb < MINUS_INFINITY_LIMB)]] = True
    minus[owner[limb >= MINUS_INFINITY_LIMB]] = True
    value = np.where(plus, np.inf, -np.inf)
    value[nan | (plus & minus)] = np.nan
    return value, nan | plus | minus


def exact(column: pa.ListArray, row: int) -> Fraction:
    """The finite sum of one group as an exact number."""
    _, entries = ragged.read(column.slice(row, 1))
    limbs, digits = (array.tolist() for array in arrays(entries))
    finite = [(limb, digit) for limb, digit in zip(limbs, digits, strict=True) if limb < NAN_LIMB]
    return sum((digit * Fraction(2) ** (LIMB_BITS * limb) for limb, digit in finite), Fraction(0))


class _Part(NamedTuple):
    """Values of similar size: which rows they are (None: all), the limb of the largest and that of the last bits."""

    values: Floats
    rows: Bools | None
    limb: int
    last: int


def _by_size(values: Floats, size: Floats) -> list[_Part]:
    """Finite values, with their magnitudes, in parts of similar size. Zeros may be left out."""
    parts: list[_Part] = []
    rows: Bools | None = None
    while len(size) and (largest := float(size.max())) > 0:
        limb = (math.frexp(largest)[1] - 1) // LIMB_BITS
        least = float(size.min())
        near_enough = math.ldexp(1.0, max(LIMB_BITS * (limb - _NEAR), -1074))
        if least >= near_enough:
            # A double's last bit weighs 2^−52 of its first.
            parts.append(_Part(values, None, limb, (math.frexp(least)[1] - 53) // LIMB_BITS))
            break
        near = size >= near_enough
        last = limb - _NEAR - 2
        far = ~near & (size > 0)
        if not far.any():
            parts.append(_Part(_choose(values, rows), rows, limb, last))
            break
        parts.append(_Part(values[near], near, limb, last))
        size = np.where(far, size, 0.0)
        rows = far
    return parts


def _choose(values: npt.NDArray[_Number], chosen: Bools | None) -> npt.NDArray[_Number]:
    return values if chosen is None else values[chosen]


def _scaled(values: Floats, limbs: int) -> Floats:
    """values · 2^(32·limbs), in two steps where the factor itself would be out of range."""
    half = limbs // 2
    if abs(limbs) <= 30:
        return values * _RADIX**limbs
    return values * _RADIX**half * _RADIX ** (limbs - half)


def _halves(values: Floats) -> tuple[Floats, Floats]:
    """A double as the sum of two with at most 26 bits each (Veltkamp)."""
    spread = values * _SPLITTER
    high = spread - (spread - values)
    return high, values - high


def _entries(limb: npt.NDArray[np.integer], digit: Ints) -> pa.StructArray:
    children = [from_numpy(limb.astype(np.int8)), from_numpy(digit.astype(np.int32))]
    return pa.StructArray.from_arrays(children, fields=_FIELDS)
