"""APPROX_COUNT_DISTINCT: HyperLogLog with 4,096 registers, of which only those in use are kept.

answers     APPROX_COUNT_DISTINCT(x), 0 where no row has a value; standard error 1.04/√4096 = 1.6 %
class       algebraic (space is bounded whatever the rows), not subtractable
cost        update O(log n) a row, lookup O(registers), space 4 bytes for each register in use, at most 16 KiB a group
order       none: a register keeps a maximum
source      Flajolet et al., HyperLogLog (2007); the estimate is Ertl's improved one (2017), which needs neither
            bias tables nor a switch between ranges

The first 12 bits of a value's hash choose its register, which keeps the largest count of leading zeros, plus one,
among the other 52. The hash is the project's own arithmetic on integers: the same on every machine.

    hash   |000000000101|0001...      register 5, rank 4
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, ragged
from stairwise.aggregates.contract import Kind, Rows
from stairwise.aggregates.hashing import hash_column
from stairwise.expressions import huge
from stairwise.expressions.views import Floats, Ints, Words, from_numpy, validity
from stairwise.schema import Instant

PRECISION = 12
REGISTERS = 1 << PRECISION

_RANK_BITS = 6
_TAIL = 64 - PRECISION
_ENTRY_BITS = PRECISION + _RANK_BITS
_ENTRIES = pa.list_(pa.field("item", pa.uint32(), nullable=False))


@dataclass(frozen=True)
class HyperLogLog:
    kind: ClassVar[Kind] = Kind.ALGEBRAIC
    subtractable: ClassVar[bool] = False
    family: ClassVar[str] = "hyperloglog"
    state: ClassVar[pa.Schema] = pa.schema([pa.field("registers", _ENTRIES, nullable=False)])

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        hashes, valid = hash_column(args[0]), validity(args[0])
        if valid is not None:
            hashes, codes = hashes[valid], codes[valid]
        return self._highest(entry_of(hashes), codes, groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        offsets, entries = ragged.read(partials.column(0))
        entry = np.asarray(entries.to_numpy()).astype(np.int64)
        return self._highest(entry, ragged.owners(offsets, codes), groups)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        groups = partials.num_rows
        offsets, entries = ragged.read(partials.column(0))
        rank = np.asarray(entries.to_numpy()).astype(np.int64) & ((1 << _RANK_BITS) - 1)
        owner = ragged.owners(offsets)
        highest = _TAIL + 1
        histogram = np.bincount(owner * (highest + 1) + rank, minlength=groups * (highest + 1))
        histogram = histogram.reshape(groups, highest + 1)
        histogram[:, 0] = REGISTERS - np.diff(offsets)
        return from_numpy(np.rint(estimate(histogram)).astype(np.int64))

    def _highest(self, entry: Ints, codes: Ints, groups: int) -> pa.RecordBatch:
        """Of each group's entries for a register the one of highest rank: the last of its run when sorted."""
        keys = np.sort((codes << _ENTRY_BITS) + entry)
        keys = keys[ragged.last_of_runs(grouped.run_starts(keys >> _RANK_BITS), len(keys))]
        values = from_numpy((keys & ((1 << _ENTRY_BITS) - 1)).astype(np.uint32))
        lists = ragged.build_by_owner(keys >> _ENTRY_BITS, groups, values, _ENTRIES)
        return pa.RecordBatch.from_arrays([lists], schema=self.state)


def entry_of(hashes: Words) -> Ints:
    """A register and its rank in one number, the register first."""
    register = (hashes >> np.uint64(_TAIL)).astype(np.int64)
    rest = hashes & np.uint64((1 << _TAIL) - 1)
    rank = _TAIL + 1 - huge.bit_length(rest).astype(np.int64)
    return register << _RANK_BITS | rank


def estimate(histogram: Ints) -> Floats:
    """The number of distinct values, from how many registers have rank 0, 1, ..., one row for each group."""
    registers = float(REGISTERS)
    total = registers * _tau(1.0 - histogram[:, -1] / registers)
    for rank in range(_TAIL, 0, -1):
        total = 0.5 * (total + histogram[:, rank])
    total = total + registers * _sigma(histogram[:, 0] / registers)
    with np.errstate(divide="ignore"):
        return registers * registers / (2.0 * math.log(2.0) * total)


def _sigma(share: Floats) -> Floats:
    """What the empty registers add: x + Σ x^(2^k) · 2^(k−1); infinite where all are empty."""
    power, factor = share.copy(), 1.0
    total = share.copy()
    for _ in range(64):
        power = power * power
        total = total + power * factor
        factor *= 2.0
    return np.where(share == 1.0, np.inf, total)


def _tau(share: Floats) -> Floats:
    """What the full registers add, for the share of those that are not full."""
    root, factor = share.copy(), 1.0
    total = 1.0 - share
    for _ in range(64):
        root = np.sqrt(root)
        factor *= 0.5
        total = total - (1.0 - root) ** 2 * factor
    return np.where((share == 0.0) | (share == 1.0), 0.0, total / 3.0)
