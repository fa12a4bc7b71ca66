"""Small streams and queries built by hand, for tests of the oracle that must not depend on a parser."""

from __future__ import annotations

from collections.abc import Iterable

from stairwise.cql.query import (
    Aggregate,
    Call,
    Const,
    Emit,
    Expr,
    Field,
    Input,
    Output,
    Query,
    Relation,
    Select,
)
from stairwise.schema import Column, Stream, Type
from stairwise.windows.spec import Window
from tests.oracle import Line, OracleRow

S = 1000
TRADES = Stream(
    "trades",
    (Column("ts", Type.TIMESTAMP), Column("ticker", Type.STRING), Column("qty", Type.BIGINT)),
    timestamp_by="ts",
)
QUOTES = Stream(
    "quotes",
    (Column("ts", Type.TIMESTAMP), Column("ticker", Type.STRING), Column("price", Type.DOUBLE)),
    timestamp_by="ts",
)
TS = Field(0, "ts", Type.TIMESTAMP)
TICKER = Field(1, "ticker", Type.STRING)
QTY = Field(2, "qty", Type.BIGINT)
PRICE = Field(2, "price", Type.DOUBLE)
COUNT = Aggregate("COUNT", (), Type.BIGINT)
TOTAL = Aggregate("SUM", (QTY,), Type.HUGEINT)


def rows(*data: tuple[object, ...]) -> list[OracleRow]:
    """Rows of (seconds, value, ...) in one partition."""
    made = []
    for sequence, (seconds, *values) in enumerate(data):
        ts = round(float(seconds) * S)  # type: ignore[arg-type]
        made.append(OracleRow(ts, 0, sequence, (ts, *values)))  # type: ignore[arg-type]
    return made


def reading(stream: Stream, window: Window | None, alias: str | None = None) -> Input:
    return Input(stream, window, alias or stream.name)


def selecting(source: Input, *columns: Field, where: Expr | None = None, distinct: bool = False) -> Select:
    outputs = tuple(Output(column.name, column) for column in columns)
    return Select((source,), outputs, where=where, distinct=distinct)


def grouping(source: Input, keys: tuple[Field, ...], *aggregates: Aggregate, having: Expr | None = None) -> Select:
    """A SELECT of its keys and then its aggregates, which are named a0, a1, ..."""
    outputs = [Output(key.name, Field(i, key.name, key.type)) for i, key in enumerate(keys)]
    outputs += [Output(f"a{i}", Field(len(keys) + i, f"a{i}", spec.type)) for i, spec in enumerate(aggregates)]
    return Select((source,), tuple(outputs), keys=keys, aggregates=aggregates, having=having)


def query(relation: Relation, emit: Emit = Emit.RSTREAM) -> Query:
    return Query("q1", relation, emit, "")


def compare(op: str, left: Expr, right: Expr) -> Call:
    return Call(op, (left, right), Type.BOOLEAN)


def const(value: bool | int | float | str | None, type_: Type) -> Const:
    return Const(value, type_)


def shown(lines: Iterable[Line]) -> list[tuple[object, ...]]:
    """Lines as (seconds, diff, value, ...): easier on the eye."""
    return [(line["time"] / S, line["diff"], *line["row"].values()) for line in lines]
