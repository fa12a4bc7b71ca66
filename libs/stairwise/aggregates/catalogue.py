"""Which algebra answers which aggregate of a query."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from stairwise.aggregates.contract import Algebra
from stairwise.aggregates.counts import Count
from stairwise.aggregates.distinct import Distinct
from stairwise.aggregates.doubles import DoubleSum
from stairwise.aggregates.ends import End
from stairwise.aggregates.extremes import Extreme
from stairwise.aggregates.hyperloglog import HyperLogLog
from stairwise.aggregates.items import Choice, ItemCounts
from stairwise.aggregates.moments import Variance
from stairwise.aggregates.quantiles import Quantile
from stairwise.aggregates.regression import Regression
from stairwise.aggregates.sketches import QuantileSketch
from stairwise.aggregates.sums import IntegerSum
from stairwise.errors import StairwiseError
from stairwise.expressions.tree import Aggregate

_SAME_IF_DISTINCT = frozenset({"MIN", "MAX", "APPROX_COUNT_DISTINCT"})
_OVER_DISTINCT = frozenset({"COUNT", "SUM", "AVG", "VARIANCE", "STDDEV", "QUANTILE", "APPROX_QUANTILE"})


def algebra_for(aggregate: Aggregate) -> Algebra:
    """The algebra of an aggregate: equal aggregates have equal algebras."""
    if aggregate.distinct and aggregate.function not in _SAME_IF_DISTINCT:
        if aggregate.function not in _OVER_DISTINCT:
            raise StairwiseError(
                f"{aggregate.function} does not take DISTINCT", hint=f"write {aggregate.function} without it"
            )
        return Distinct(aggregate.args[0].type.arrow, _plain(aggregate))
    return _plain(aggregate)


def _plain(aggregate: Aggregate) -> Algebra:
    dtype = aggregate.args[0].type.arrow if aggregate.args else pa.null()
    parameter = as_written(aggregate.parameter or 0)
    match aggregate.function:
        case "COUNT":
            return Count()
        case "SUM" | "AVG":
            average = aggregate.function == "AVG"
            return DoubleSum(average) if pa.types.is_floating(dtype) else IntegerSum(average)
        case "MIN" | "MAX":
            return Extreme(dtype, largest=aggregate.function == "MAX")
        case "VARIANCE" | "STDDEV":
            return Variance(root=aggregate.function == "STDDEV")
        case "FIRST" | "LAST":
            return End(dtype, last=aggregate.function == "LAST")
        case "QUANTILE":
            return Quantile(dtype, parameter)
        case "REGR_SLOPE" | "REGR_INTERCEPT":
            return Regression(intercept=aggregate.function == "REGR_INTERCEPT")
        case "APPROX_QUANTILE":
            return QuantileSketch(parameter)
        case "APPROX_COUNT_DISTINCT":
            return HyperLogLog()
        case "APPROX_FREQUENT":
            return ItemCounts(dtype, Choice.TOP, parameter)  # of each of its sub-windows
        case "TOP" | "FREQUENT" | "RECURRING":
            return ItemCounts(dtype, Choice(aggregate.function), parameter)
    raise StairwiseError(f"there is no aggregate {aggregate.function}")


def as_written(parameter: float) -> Fraction:
    """A number of a statement as its author wrote it: 0.1 is a tenth, not the double next to it."""
    return Fraction(repr(parameter))
