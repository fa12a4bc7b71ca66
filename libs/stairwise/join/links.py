"""What links the inputs of a join: values that must be equal, and the rows of the inputs by them.

    a.k = b.k AND b.k = c.k AND a.x = b.x          values     k of a, b, c;   x of a, b
                                                   links      a b c by k;     a b by k and x

    answers        which inputs can be found from which others by a key, whatever the order in which they are probed
    update         that of ``words`` and ``chains``: O(1) a row and link
    space          for each link, one table of keys for all of its inputs, and two numbers a row
    from           seed 001 section 5.2 (windows joined by a common attribute can be probed in any order)

What equals the same equals one another, so an equality need not be written to be used. Inputs that have more in common
than others have a link of their own, by all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from stairwise.algebra.conditions import Condition, Conjunct
from stairwise.expressions.evaluate import evaluate
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Call, Expr
from stairwise.expressions.views import Ints
from stairwise.reports.cells import canonical_column
from stairwise.schema import Type
from stairwise.state.chains import NONE, Chains
from stairwise.state.key_table import KeyTable

_FEW_KEYS = 4096


class Equalities:
    """The equalities of a condition between two inputs, put together to values that must be equal."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._values: list[dict[tuple[int, Expr], None]] = []
        """Each as the expressions of inputs that have it, in the order in which they are written."""
        self.conjuncts: list[Conjunct] = []
        self.others: list[Conjunct] = []
        """What is neither such an equality nor asks one input alone."""
        for conjunct in condition.conjuncts:
            if len(conjunct.inputs) == 1:
                continue
            sides = self._sides(conjunct)
            if sides is None:
                self.others.append(conjunct)
            else:
                self.conjuncts.append(conjunct)
                self._unite(list(sides.items()))
        self._of = [self._first_of_each(value) for value in self._values]

    def _sides(self, conjunct: Conjunct) -> dict[int, Expr] | None:
        """The two inputs that an equality is between, each with its side of it."""
        expr = conjunct.expr
        if not (isinstance(expr, Call) and expr.op == "=" and expr.args[0].type is not Type.HUGEINT):
            return None
        asks = [self._condition.inputs_of(arg) for arg in expr.args]
        if any(len(asked) != 1 for asked in asks) or asks[0] == asks[1]:
            return None
        return {next(iter(asked)): arg for asked, arg in zip(asks, expr.args, strict=True)}

    def _unite(self, sides: list[tuple[int, Expr]]) -> None:
        touched = [value for value in self._values if any(side in value for side in sides)]
        self._values = [value for value in self._values if value not in touched]
        self._values.append({entry: None for value in [*touched, dict.fromkeys(sides)] for entry in value})

    def _first_of_each(self, value: Mapping[tuple[int, Expr], None]) -> dict[int, Expr]:
        """The expression by which each input has a value; another of the same input is looked at row by row."""
        found: dict[int, Expr] = {}
        for i, expr in value:
            found.setdefault(i, expr)
        return found

    @property
    def values(self) -> list[dict[int, Expr]]:
        """What must be equal: for each value, the expression by which each input has it."""
        return self._of

    def links(self, firsts: Sequence[int]) -> list[Link]:
        """For each set of inputs that have a value in common, all values that they have; the smallest sets first."""
        sets = sorted({tuple(sorted(of)) for of in self._of}, key=lambda inputs: (len(inputs), inputs))
        found = []
        for inputs in sets:
            values = [number for number, of in enumerate(self._of) if of.keys() >= set(inputs)]
            exprs = {i: [self._of[number][i] for number in values] for i in inputs}
            found.append(Link(values, exprs, firsts))
        return found

    def follows(self, conjunct: Conjunct, equal: Mapping[int, set[int]]) -> bool:
        """Does an equality hold where inputs have been found by their values? ``equal`` has those of each value."""
        sides = self._sides(conjunct)
        return sides is not None and any(
            sides.keys() <= equal.get(number, set()) and all(of.get(i) == expr for i, expr in sides.items())
            for number, of in enumerate(self._of)
        )


class Link:
    """Inputs with values in common: their keys in one table, and chains of the rows of each."""

    def __init__(self, values: Sequence[int], exprs: Mapping[int, list[Expr]], firsts: Sequence[int]) -> None:
        self.values = tuple(values)
        """Which of the equalities' values the key is made of."""
        self.inputs = tuple(exprs)
        self._exprs = exprs
        self.chains = {i: Chains(firsts[i]) for i in exprs}
        self.table = KeyTable([expr.type.arrow for expr in exprs[self.inputs[0]]])

    def extend(self, i: int, columns: list[pa.Array | None], length: int, faults: Faults) -> None:
        """The next rows of input i; a NULL equals nothing."""
        keys = [canonical_column(evaluate(expr, columns, length, faults)) for expr in self._exprs[i]]
        numbers = self.table.numbers(keys, length)
        for key in keys:
            if key.null_count:
                numbers = np.where(key.is_valid().to_numpy(zero_copy_only=False), numbers, NONE)
        self.chains[i].extend(numbers)

    def keys_of(self, i: int, rows: Ints) -> Ints:
        """The numbers of the keys of some rows."""
        return self.chains[i].keys.at(rows)

    def forget(self) -> None:
        """Forget keys that no row has any more, when they are many."""
        rows = sum(len(chains.keys.kept) for chains in self.chains.values())
        if len(self.table) <= 4 * rows + _FEW_KEYS:
            return
        kept = [chains.keys.kept for chains in self.chains.values()]
        used = np.unique(np.concatenate(kept))
        renumbered = np.append(self.table.keep(used[used >= 0]), NONE)  # a row without a key stays one
        for i, keys in zip(self.inputs, kept, strict=True):
            first = self.chains[i].keys.first
            self.chains[i] = Chains(first)
            self.chains[i].extend(renumbered[keys])
