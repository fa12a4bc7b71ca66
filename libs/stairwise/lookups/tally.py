"""What structures give for intervals, before it becomes partial aggregates: numbers that still can be added.

Partitions that are held together are added here, as arrays; only then are partials made of them, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.aggregates.grouped import INT64_MAX, INT64_MIN
from stairwise.aggregates.limbs import LIMB_BITS
from stairwise.aggregates.ranks import rank
from stairwise.expressions.views import Ints, from_numpy, from_words
from stairwise.lookups.statement import Need
from stairwise.structures.running_intervals import Summand
from stairwise.structures.summands import NULLS, SUM, partial_columns, words_of

_NULLS, _LOW, _HIGH = Summand(NULLS), Summand(SUM), Summand(SUM, 1)


@dataclass(frozen=True)
class Tally:
    """For each interval its rows; for each need the running sums, and the best rank where that is what is needed."""

    rows: Ints
    sums: Sequence[Mapping[Summand, Ints]]
    best: Sequence[Ints | None]

    def placed(self, at: Ints, length: int, needs: Sequence[Need]) -> Tally:
        """The same at these places among so many intervals, of which the others have no rows."""
        best = [
            None if ranks is None else _scattered(ranks, at, length, INT64_MIN if need.family == "max" else INT64_MAX)
            for ranks, need in zip(self.best, needs, strict=True)
        ]
        sums = [{column: _scattered(values, at, length) for column, values in each.items()} for each in self.sums]
        return Tally(_scattered(self.rows, at, length), sums, best)

    def partials(self, needs: Sequence[Need]) -> list[pa.Array]:
        """The partials, side by side."""
        columns: list[pa.Array] = []
        for need, sums, best in zip(needs, self.sums, self.best, strict=True):
            if best is None:
                columns += partial_columns(need.family, self.rows, sums)
                continue
            values = self.rows - sums[_NULLS] if _NULLS in sums else self.rows
            columns.append(rank(pa.array([], need.args[0].type.arrow)).values(best, values > 0))
        return columns

    def column(self, function: str, need: int) -> pa.Array:
        """COUNT or SUM of BIGINT from what is needed for it."""
        sums = self.sums[need]
        count = self.rows - sums[_NULLS] if _NULLS in sums else self.rows
        return from_numpy(count) if function == "COUNT" else from_words(words_of(sums, len(count)), count > 0)


class Total:
    """The same for one key, in plain numbers: arrays of length one cost more than the sums."""

    def __init__(self, needs: int) -> None:
        self.rows = 0
        self.sums: list[dict[Summand, int]] = [{} for _ in range(needs)]

    def tally(self) -> Tally:
        sums = [{column: np.array([_signed(value)]) for column, value in each.items()} for each in self.sums]
        return Tally(np.array([self.rows]), sums, [None] * len(sums))

    def value(self, function: str, need: int) -> int | float | None:
        """COUNT, SUM or AVG of BIGINT from what is needed for it."""
        sums = self.sums[need]
        count = self.rows - _signed(sums.get(_NULLS, 0))
        if function == "COUNT" or not count:
            return count if function == "COUNT" else None
        total = _signed(sums.get(_LOW, 0)) + (_signed(sums.get(_HIGH, 0)) << LIMB_BITS)
        return total / count if function == "AVG" else total  # Python divides integers exactly, and rounds once


def _scattered(values: Ints, at: Ints, length: int, elsewhere: np.int64 | int = 0) -> Ints:
    found: Ints = np.full(length, elsewhere)
    found[at] = values
    return found


def _signed(value: int) -> int:
    """Sums run modulo 2^64."""
    return ((value + 2**63) & (2**64 - 1)) - 2**63


def added(tallies: Sequence[Tally], needs: Sequence[Need]) -> Tally:
    """Over the same keys in several partitions."""
    first, *others = tallies
    if not others:
        return first
    rows = sum((other.rows for other in others), first.rows)
    sums, best = [], []
    for place, need in enumerate(needs):
        total = dict(first.sums[place])
        winner = first.best[place]
        for other in others:
            for column, values in other.sums[place].items():
                total[column] = total[column] + values if column in total else values
            contender = other.best[place]
            if winner is not None and contender is not None:
                winner = (np.maximum if need.family == "max" else np.minimum)(winner, contender)
        sums.append(total)
        best.append(winner)
    return Tally(rows, sums, best)
