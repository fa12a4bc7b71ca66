"""Differences of bags, for EXCEPT and for what changed between two answers.

answers        left − right and right − left as multisets, cell by cell
update         O((l + r) log (l + r)), by sorting codes
space          O(l + r)
order          the copies that remain are the last ones in the order given
from           seed 002 section 4.3 (multiset difference), section 4.5 (ISTREAM, DSTREAM)

left    a  a  a  b              the first copy of a on the left meets the one on the right,
right   a  c                    what is over stays: a a b
"""

from __future__ import annotations

import numpy as np

from stairwise.expressions.views import Bools, Ints
from stairwise.reports.cells import Cells, codes_of, union_all


def difference(left: Cells, right: Cells) -> tuple[Bools, Bools]:
    """Which rows of ``left`` have no partner in ``right``, and which of ``right`` have none in ``left``."""
    codes, first = codes_of(union_all(left, right))
    here, there = codes[: len(left)], codes[len(left) :]
    count_here = np.bincount(here, minlength=len(first))
    count_there = np.bincount(there, minlength=len(first))
    return copy_number(here) >= count_there[here], copy_number(there) >= count_here[there]


def copy_number(codes: Ints) -> Ints:
    """For each row, how many rows before it have the same code."""
    order = np.argsort(codes, kind="stable")
    in_order = codes[order]
    starts = np.searchsorted(in_order, in_order, side="left")
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) - starts
    return numbers
