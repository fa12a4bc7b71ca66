"""The WHERE of a join, cut at its ANDs: which inputs each part asks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stairwise.algebra.query import Select
from stairwise.expressions.conditions import conjuncts, fields
from stairwise.expressions.tree import Expr


@dataclass(frozen=True)
class Conjunct:
    """One part of the condition; ``inputs`` are the inputs that it asks."""

    expr: Expr
    inputs: frozenset[int]


class Condition:
    """The WHERE of a join, cut into its conjuncts."""

    def __init__(self, select: Select) -> None:
        self.starts: list[int] = np.cumsum([0, *(len(i.stream.columns) for i in select.inputs)]).tolist()
        """Where the columns of each input begin in an input row, and the row's length."""
        self.conjuncts = [Conjunct(part, self.inputs_of(part)) for part in conjuncts(select.where)]

    def inputs_of(self, expr: Expr) -> frozenset[int]:
        """The inputs that an expression asks."""
        places = (np.searchsorted(self.starts, field.index, side="right") for field in fields(expr))
        return frozenset(int(place) - 1 for place in places)
