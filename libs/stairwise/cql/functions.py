"""The functions of CQL as two tables: scalar ones and aggregates, with what they take and give."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from stairwise.schema import Type


class Takes(enum.Enum):
    """What may stand as the argument of a function."""

    NUMBER = "a number"
    DOUBLE = "a number, taken as DOUBLE"
    STRING = "a STRING"
    ORDERED = "a number, a STRING or a TIMESTAMP"
    ANY = "anything"


@dataclass(frozen=True)
class Scalar:
    """A function of values of one row; ``result`` None means the type of its arguments."""

    op: str
    takes: Takes
    result: Type | None
    least: int = 1
    most: int = 1


MAX_ARGUMENTS = 1_000

SCALARS: dict[str, Scalar] = {
    "ABS": Scalar("abs", Takes.NUMBER, None),
    "FLOOR": Scalar("floor", Takes.DOUBLE, Type.DOUBLE),
    "CEIL": Scalar("ceil", Takes.DOUBLE, Type.DOUBLE),
    "ROUND": Scalar("round", Takes.DOUBLE, Type.DOUBLE),
    "SQRT": Scalar("sqrt", Takes.DOUBLE, Type.DOUBLE),
    "LN": Scalar("ln", Takes.DOUBLE, Type.DOUBLE),
    "EXP": Scalar("exp", Takes.DOUBLE, Type.DOUBLE),
    "LOWER": Scalar("lower", Takes.STRING, Type.STRING),
    "UPPER": Scalar("upper", Takes.STRING, Type.STRING),
    "LENGTH": Scalar("length", Takes.STRING, Type.BIGINT),
    "CONCAT": Scalar("concat", Takes.STRING, Type.STRING, most=MAX_ARGUMENTS),
    "COALESCE": Scalar("coalesce", Takes.ANY, None, most=MAX_ARGUMENTS),
}


class Parameter(enum.Enum):
    """The second argument that some aggregates have: a constant."""

    QUANTILE = "a constant from 0 to 1"
    COUNT = "a whole number from 1 to 10,000"
    SHARE = "a constant above 0 and below 1"


@dataclass(frozen=True)
class AggregateFunction:
    """A function of the rows of a group; ``result`` None means the type of its argument."""

    takes: Takes
    result: Type | None
    parameter: Parameter | None = None


AGGREGATES: dict[str, AggregateFunction] = {
    "COUNT": AggregateFunction(Takes.ANY, Type.BIGINT),
    "SUM": AggregateFunction(Takes.NUMBER, None),
    "AVG": AggregateFunction(Takes.NUMBER, Type.DOUBLE),
    "MIN": AggregateFunction(Takes.ORDERED, None),
    "MAX": AggregateFunction(Takes.ORDERED, None),
    "VARIANCE": AggregateFunction(Takes.NUMBER, Type.DOUBLE),
    "STDDEV": AggregateFunction(Takes.NUMBER, Type.DOUBLE),
    "QUANTILE": AggregateFunction(Takes.NUMBER, Type.DOUBLE, Parameter.QUANTILE),
    "MEDIAN": AggregateFunction(Takes.NUMBER, Type.DOUBLE),
    "FIRST": AggregateFunction(Takes.ANY, None),
    "LAST": AggregateFunction(Takes.ANY, None),
    "REGR_SLOPE": AggregateFunction(Takes.NUMBER, Type.DOUBLE),
    "REGR_INTERCEPT": AggregateFunction(Takes.NUMBER, Type.DOUBLE),
    "APPROX_QUANTILE": AggregateFunction(Takes.NUMBER, Type.DOUBLE, Parameter.QUANTILE),
    "APPROX_COUNT_DISTINCT": AggregateFunction(Takes.ANY, Type.BIGINT),
    "TOP": AggregateFunction(Takes.ANY, None, Parameter.COUNT),
    "FREQUENT": AggregateFunction(Takes.ANY, None, Parameter.SHARE),
    "APPROX_FREQUENT": AggregateFunction(Takes.ANY, None, Parameter.COUNT),
    "RECURRING": AggregateFunction(Takes.ANY, None),
}

WEIGHABLE = frozenset({"COUNT", "SUM", "AVG"})
"""Aggregates that a window's WEIGHTED BY can weight: sums over the rows, or a ratio of two of them."""
