"""The aggregates: one catalogue, which the parser's names and types, evaluation, completion and docs follow.

An aggregate is added here: what it takes and gives, the algebra that answers it, and what docs/cql.md says of it. One
without an algebra is spelled out by the parser in others.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from stairwise.aggregates.contract import Algebra
from stairwise.aggregates.counts import Count
from stairwise.aggregates.covariance import Covariance, Spread
from stairwise.aggregates.distinct import Distinct
from stairwise.aggregates.doubles import DoubleSum
from stairwise.aggregates.ends import End
from stairwise.aggregates.extreme_rows import ExtremeRow
from stairwise.aggregates.extremes import Extreme
from stairwise.aggregates.hyperloglog import HyperLogLog
from stairwise.aggregates.items import Choice, ItemCounts
from stairwise.aggregates.joined_texts import JoinedTexts
from stairwise.aggregates.moments import Variance
from stairwise.aggregates.quantiles import Quantile
from stairwise.aggregates.regression import Regression
from stairwise.aggregates.sketches import QuantileSketch
from stairwise.aggregates.sums import IntegerSum
from stairwise.aggregates.window_edges import WindowEdge
from stairwise.errors import StairwiseError
from stairwise.expressions.functions import Constant, Takes
from stairwise.expressions.tree import Aggregate, Const
from stairwise.schema import Type

_SAME_IF_DISTINCT = frozenset({"MIN", "MAX", "APPROX_COUNT_DISTINCT"})
_OVER_DISTINCT = frozenset({"COUNT", "SUM", "AVG", "VARIANCE", "STDDEV", "QUANTILE", "APPROX_QUANTILE"})


class Parameter(enum.Enum):
    """The last argument that some aggregates have: a constant number."""

    QUANTILE = "a constant from 0 to 1"
    COUNT = "a whole number from 1 to 10,000"
    SHARE = "a constant above 0 and below 1"


@dataclass(frozen=True)
class AggregateFunction:
    """A function of the rows of a group."""

    takes: tuple[Takes | Constant, ...]
    result: Type | None
    """None: the type of its first argument."""
    algebra: Callable[[Aggregate], Algebra] | None
    example: str
    """How it is called, for docs and errors."""
    gives: str
    parameter: Parameter | None = None
    elsewhere: tuple[str, ...] = ()
    """What it is called in other systems."""

    @property
    def arguments(self) -> int:
        return len(self.takes) + (self.parameter is not None)


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
    function = AGGREGATES.get(aggregate.function)
    if function is None or function.algebra is None:
        raise StairwiseError(f"there is no aggregate {aggregate.function}")
    return function.algebra(aggregate)


def as_written(parameter: float) -> Fraction:
    """A number of a statement as its author wrote it: 0.1 is a tenth, not the double next to it."""
    return Fraction(repr(parameter))


def _dtype(aggregate: Aggregate, place: int = 0) -> pa.DataType:
    return aggregate.args[place].type.arrow


def _parameter(aggregate: Aggregate) -> Fraction:
    return as_written(aggregate.parameter or 0)


def _sum(aggregate: Aggregate) -> Algebra:
    average = aggregate.function == "AVG"
    return DoubleSum(average) if pa.types.is_floating(_dtype(aggregate)) else IntegerSum(average)


def _extreme(aggregate: Aggregate) -> Algebra:
    return Extreme(_dtype(aggregate), largest=aggregate.function == "MAX")


def _extreme_row(aggregate: Aggregate) -> Algebra:
    return ExtremeRow(_dtype(aggregate), _dtype(aggregate, 1), largest=aggregate.function == "MAX_BY")


def _variance(aggregate: Aggregate) -> Algebra:
    return Variance(root=aggregate.function == "STDDEV")


def _covariance(aggregate: Aggregate) -> Algebra:
    return Covariance(Spread(aggregate.function))


def _end(aggregate: Aggregate) -> Algebra:
    return End(_dtype(aggregate), last=aggregate.function == "LAST")


def _quantile(aggregate: Aggregate) -> Algebra:
    return Quantile(_dtype(aggregate), _parameter(aggregate))


def _regression(aggregate: Aggregate) -> Algebra:
    return Regression(intercept=aggregate.function == "REGR_INTERCEPT")


def _texts(aggregate: Aggregate) -> Algebra:
    separator = aggregate.args[1]
    assert isinstance(separator, Const), "the parser takes a constant"
    return JoinedTexts(str(separator.value))


def _items(aggregate: Aggregate) -> Algebra:
    """APPROX_FREQUENT has the most frequent of each of its sub-windows."""
    choice = Choice.TOP if aggregate.function == "APPROX_FREQUENT" else Choice(aggregate.function)
    return ItemCounts(_dtype(aggregate), choice, _parameter(aggregate))


def _edge(aggregate: Aggregate) -> Algebra:
    return WindowEdge(int(aggregate.parameter or 0))


_N, _S, _O, _A = (Takes.NUMBER,), (Takes.STRING,), (Takes.ORDERED,), (Takes.ANY,)
_SEPARATOR = Constant(Type.STRING, "a constant STRING")
_PAIR = "DOUBLE, of the rows in which both have a value"

AGGREGATES: dict[str, AggregateFunction] = {
    "COUNT": AggregateFunction(_A, Type.BIGINT, lambda aggregate: Count(), "COUNT(x)",
                               "BIGINT: rows with a value; `COUNT(*)` all rows, `COUNT(DISTINCT x)` the values"),
    "COUNT_IF": AggregateFunction((Takes.CONDITION,), Type.BIGINT, None, "COUNT_IF(condition)",
                                  "BIGINT: rows for which it is true", elsewhere=("COUNTIF",)),
    "SUM": AggregateFunction(_N, None, _sum, "SUM(x)", "an exact integer of 128 bits for BIGINT, else DOUBLE"),
    "AVG": AggregateFunction(_N, Type.DOUBLE, _sum, "AVG(x)", "DOUBLE", elsewhere=("MEAN",)),
    "MIN": AggregateFunction(_O, None, _extreme, "MIN(x)", "the same type"),
    "MAX": AggregateFunction(_O, None, _extreme, "MAX(x)", "the same type"),
    "MIN_BY": AggregateFunction((Takes.ANY, Takes.ORDERED), None, _extreme_row, "MIN_BY(x, y)",
                                "the type of x: x of the row with the least y, of equal ones the first row's",
                                elsewhere=("ARG_MIN", "ARGMIN", "EARLIEST_BY_OFFSET")),
    "MAX_BY": AggregateFunction((Takes.ANY, Takes.ORDERED), None, _extreme_row, "MAX_BY(x, y)",
                                "the type of x: x of the row with the greatest y, of equal ones the first row's",
                                elsewhere=("ARG_MAX", "ARGMAX")),
    "VARIANCE": AggregateFunction(_N, Type.DOUBLE, _variance, "VARIANCE(x)",
                                  "DOUBLE, of a sample; NULL below two values", elsewhere=("VAR_SAMP",)),
    "STDDEV": AggregateFunction(_N, Type.DOUBLE, _variance, "STDDEV(x)", "DOUBLE, of a sample; NULL below two values",
                                elsewhere=("STDDEV_SAMP", "STDDEV_SAMPLE")),
    "COVAR_POP": AggregateFunction((Takes.NUMBER, Takes.NUMBER), Type.DOUBLE, _covariance, "COVAR_POP(y, x)", _PAIR),
    "COVAR_SAMP": AggregateFunction((Takes.NUMBER, Takes.NUMBER), Type.DOUBLE, _covariance, "COVAR_SAMP(y, x)",
                                    f"{_PAIR}; NULL below two of them"),
    "CORR": AggregateFunction((Takes.NUMBER, Takes.NUMBER), Type.DOUBLE, _covariance, "CORR(y, x)",
                              f"{_PAIR}; NULL where one of the two does not vary", elsewhere=("CORRELATION",)),
    "QUANTILE": AggregateFunction(_N, Type.DOUBLE, _quantile, "QUANTILE(x, q)", "DOUBLE, interpolated; q from 0 to 1",
                                  Parameter.QUANTILE, elsewhere=("PERCENTILE", "PERCENTILE_CONT", "QUANTILE_CONT")),
    "MEDIAN": AggregateFunction(_N, Type.DOUBLE, None, "MEDIAN(x)", "as `QUANTILE(x, 0.5)`"),
    "FIRST": AggregateFunction(_A, None, _end, "FIRST(x)", "the same type: the first row's, in the order of the stream",
                               elsewhere=("FIRST_VALUE", "ANY_VALUE", "ARBITRARY")),
    "LAST": AggregateFunction(_A, None, _end, "LAST(x)", "the same type: the last row's",
                              elsewhere=("LAST_VALUE", "LATEST_BY_OFFSET")),
    "STRING_AGG": AggregateFunction((Takes.STRING, _SEPARATOR), Type.STRING, _texts, "STRING_AGG(s, separator)",
                                    "STRING: all that are not NULL, in the order of the stream",
                                    elsewhere=("LISTAGG", "GROUP_CONCAT", "COLLECT_LIST", "ARRAY_AGG")),
    "REGR_SLOPE": AggregateFunction(_N, Type.DOUBLE, _regression, "REGR_SLOPE(y)",
                                    "DOUBLE: the rise, per second, of the line through y over time"),
    "REGR_INTERCEPT": AggregateFunction(_N, Type.DOUBLE, _regression, "REGR_INTERCEPT(y)",
                                        "DOUBLE: the height of that line at the report time"),
    "APPROX_QUANTILE": AggregateFunction(_N, Type.DOUBLE, lambda aggregate: QuantileSketch(_parameter(aggregate)),
                                         "APPROX_QUANTILE(x, q)", "DOUBLE, estimated", Parameter.QUANTILE,
                                         elsewhere=("APPROX_PERCENTILE", "PERCENTILE_APPROX")),
    "APPROX_COUNT_DISTINCT": AggregateFunction(_A, Type.BIGINT, lambda aggregate: HyperLogLog(),
                                               "APPROX_COUNT_DISTINCT(x)", "BIGINT, estimated",
                                               elsewhere=("APPROX_DISTINCT", "COUNT_DISTINCT")),
    "APPROX_FREQUENT": AggregateFunction(_A, None, _items, "APPROX_FREQUENT(x, k)",
                                         "columns item and count: what the k most frequent items of each slide tell of"
                                         " the whole window. One window whose range is a multiple of its slide",
                                         Parameter.COUNT),
    "TOP": AggregateFunction(_A, None, _items, "TOP(x, k)", "columns item and count: the k most frequent",
                             Parameter.COUNT, elsewhere=("TOPK", "TOP_K", "TOPKDISTINCT")),
    "FREQUENT": AggregateFunction(_A, None, _items, "FREQUENT(x, theta)",
                                  "columns item and count: those above the share theta", Parameter.SHARE),
    "RECURRING": AggregateFunction(_A, None, _items, "RECURRING(x)",
                                   "columns item and count: those that come back at every level of a RANGES window,"
                                   " which it needs"),
    "WINDOW_START": AggregateFunction((), Type.TIMESTAMP, _edge, "WINDOW_START",
                                      "TIMESTAMP: where the window of the report begins; of one time window",
                                      elsewhere=("WINDOWSTART", "TUMBLE_START", "HOP_START")),
    "WINDOW_END": AggregateFunction((), Type.TIMESTAMP, _edge, "WINDOW_END", "TIMESTAMP: where it ends",
                                    elsewhere=("WINDOWEND", "TUMBLE_END", "HOP_END")),
}  # fmt: skip

WEIGHABLE = frozenset({"COUNT", "COUNT_IF", "SUM", "AVG"})
"""Aggregates that a window's WEIGHTED BY can weight: sums over the rows, or a ratio of two of them."""

AGGREGATES_ELSEWHERE = {other: name for name, function in AGGREGATES.items() for other in function.elsewhere}
"""What aggregates of other systems are called here."""
