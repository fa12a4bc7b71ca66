"""Which way the partials of a block of steps are found: from running sums, by walks, by a sweep or from the tree.

                        many keys in each step                        few of the keys
    one front           running sums, where all are whole numbers     from the tree, step by step:
    one or two fronts   a walk each: all steps as it passes           pays for what is there only
    many fronts         one sweep: all steps by subtraction

Running sums, walks and sweeps lay out a place for every key, which costs little for each place; the tree costs more for
each partial that it combines. A block is cut into pieces whose answers can be borne in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from stairwise.aggregation.found_partials import Found
from stairwise.aggregation.slice_store import SliceStore
from stairwise.aggregation.sweep import swept
from stairwise.aggregation.walk import LARGEST_TABLE, combined, walked
from stairwise.expressions.views import Ints
from stairwise.operators.due import Steps

WORK = 400_000
"""About how many rows of partials one piece is made from, or makes."""

FEW_FRONTS = 2
"""Up to so many fronts are walked one by one."""

SMALL_TABLE = 20_000
"""Tables of so few cells are made in any case."""

CELLS_PER_ROW = 8
"""So many cells of a table cost as much as one row that is combined."""


def pieces(store: SliceStore, steps: Steps) -> Iterator[Steps]:
    """Steps in runs of bearable work, never parting what is due at one time."""
    if len(steps) * len(store.keys) <= WORK and store.partials.is_walkable:
        yield steps
        return
    held = _held(store, *store.between(steps.rear, steps.front))
    work = np.minimum(held, len(store.keys)) if store.partials.is_walkable else held
    for start, stop in _runs(work, np.concatenate(([True], steps.time[1:] != steps.time[:-1]))):
        yield steps[start:stop]


def found(store: SliceStore, steps: Steps) -> list[Found]:
    """The partials of the steps of a piece, in their order."""
    first, last = store.between(steps.rear, steps.front)
    if steps.has_one_front:
        subtracted = store.running.between(first, int(last[0]), store)
        if subtracted is not None:
            return [subtracted]
        if _fits_table(store, first, last, 0):
            return [walked(store, first, int(last[0]))]
    new = (steps.time[1:] != steps.time[:-1]) | (steps.front[1:] != steps.front[:-1])
    edges = [0, *(np.flatnonzero(new) + 1).tolist(), len(steps)]
    fronts = len(edges) - 1
    slices = 0 if fronts <= FEW_FRONTS else int(last.max()) - int(first.min()) + 1
    if _fits_table(store, first, last, slices):
        if fronts <= FEW_FRONTS:
            return [walked(store, first[start:stop], int(last[start])) for start, stop in pairwise(edges)]
        return [swept(store, first, last)]
    runs = _runs(_held(store, first, last), np.ones(len(steps), bool))
    return [combined(store, first[start:stop], last[start:stop]) for start, stop in runs]


def _fits_table(store: SliceStore, first: Ints, last: Ints, slices: int) -> bool:
    """Are tables of the steps, and of so many slices, less work than to combine what is there?"""
    if not store.partials.is_walkable:
        return False
    cells = (len(first) + 1 + slices) * len(store.keys)
    if cells <= SMALL_TABLE:
        return True
    return cells <= LARGEST_TABLE and cells <= CELLS_PER_ROW * int(_held(store, first, last).sum())


def _held(store: SliceStore, first: Ints, last: Ints) -> Ints:
    """For each step about how many rows of partials it is combined from."""
    rows = store.layer(0).count(first, last)
    if store.partials.is_holistic:
        return rows
    return np.minimum(rows, 2 * len(store.ends).bit_length() * len(store.keys))


def _runs(work: Ints, may_begin: np.ndarray) -> Iterator[tuple[int, int]]:
    """Runs of about ``WORK``, each beginning where one may."""
    starts = np.flatnonzero(may_begin)
    done = np.concatenate(([0], np.cumsum(work)))[starts] // WORK
    edges = starts[np.concatenate(([True], done[1:] != done[:-1]))].tolist()
    return pairwise([*edges, len(work)])
