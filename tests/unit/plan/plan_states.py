"""What a logical plan holds at an instant, by the definitions: the judge over rewrites.

Below a window a plan is a stream (rows with times), above it a relation. Rows are dicts from place to value, so that
looking at a column that was dropped is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stairwise.expressions.evaluate import evaluate
from stairwise.expressions.tree import Call, Expr, Field
from stairwise.plan import logical
from stairwise.plan.logical import Plan, scans
from stairwise.windows import spec

Row = dict[int, Any]


@dataclass(frozen=True)
class Timed:
    ts: int
    order: int
    row: Row


Data = Mapping[str, Sequence[tuple[Any, ...]]]
"""The rows of each stream, by its name; the first column is the time."""


def answer(plan: Plan, data: Data, tau: int) -> Counter[tuple[Any, ...]]:
    """The relation at ``tau`` as a multiset of output rows."""
    return Counter(tuple(row[place] for place in sorted(row)) for row in _relation(plan, data, tau))


def _relation(plan: Plan, data: Data, tau: int) -> list[Row]:
    match plan:
        case logical.Window():
            return [timed.row for timed in _held(plan, _stream(plan.input, data, tau), tau)]
        case logical.Select():
            return [row for row in _relation(plan.input, data, tau) if _holds(plan.condition, row)]
        case logical.Narrow():
            return [_kept(plan, row) for row in _relation(plan.input, data, tau)]
        case logical.Project():
            return [_projected(plan, row) for row in _relation(plan.input, data, tau)]
        case logical.Join():
            left, right = _relation(plan.left, data, tau), _relation(plan.right, data, tau)
            pairs = [{**one, **other} for one in left for other in right]
            return [pair for pair in pairs if plan.condition is None or _holds(plan.condition, pair)]
        case logical.Distinct():
            return [dict(row) for row in dict.fromkeys(tuple(r.items()) for r in _relation(plan.input, data, tau))]
        case logical.Union():
            return [*_relation(plan.left, data, tau), *_relation(plan.right, data, tau)]
        case logical.Except():
            left = Counter(tuple(r.items()) for r in _relation(plan.left, data, tau))
            right = Counter(tuple(r.items()) for r in _relation(plan.right, data, tau))
            return [dict(row) for row in (left - right).elements()]
        case logical.Group():
            return _groups(plan, _relation(plan.input, data, tau))
        case logical.Scan():
            return [timed.row for timed in _stream(plan, data, tau)]


def _stream(plan: Plan, data: Data, tau: int) -> list[Timed]:
    """The rows of a stream up to ``tau``, in order."""
    match plan:
        case logical.Scan():
            rows = [
                Timed(values[0], order, dict(zip((f.index for f in plan.fields), values, strict=True)))
                for order, values in enumerate(data[plan.stream.name])
                if values[0] <= tau
            ]
            return _sorted(rows)
        case logical.Select():
            return [t for t in _stream(plan.input, data, tau) if _holds(plan.condition, t.row)]
        case logical.Narrow():
            return [Timed(t.ts, t.order, _kept(plan, t.row)) for t in _stream(plan.input, data, tau)]
        case logical.Project():
            return [Timed(t.ts, t.order, _projected(plan, t.row)) for t in _stream(plan.input, data, tau)]
        case logical.Distinct():
            latest = {tuple(t.row.items()): t for t in _stream(plan.input, data, tau)}
            return _sorted(latest.values())
        case logical.Union():
            return _sorted([*_stream(plan.left, data, tau), *_stream(plan.right, data, tau)])
    raise TypeError(f"{plan!r} is no stream")


def _sorted(rows: Iterable[Timed]) -> list[Timed]:
    return sorted(rows, key=lambda timed: (timed.ts, timed.order))


def _held(plan: logical.Window, rows: list[Timed], tau: int) -> list[Timed]:
    match plan.window:
        case spec.TimeWindow(range=range_, lag=lag):
            return [t for t in rows if tau - lag - range_ < t.ts <= tau - lag]
        case spec.LandmarkWindow(start=start, end=end, retain=retain):
            held = [t for t in rows if (start is None or start <= t.ts) and (end is None or t.ts <= end)]
            return held if retain is None else held[-retain:]
        case spec.RowsWindow(rows=count):
            return rows[-count:]
        case spec.PartitionedWindow(keys=keys, rows=count):
            (scan,) = scans(plan)
            places = [f.index for f in scan.fields if f.name in keys]
            partitions: dict[tuple[Any, ...], list[Timed]] = {}
            for t in rows:
                partitions.setdefault(tuple(t.row[place] for place in places), []).append(t)
            return [t for partition in partitions.values() for t in partition[-count:]]
    raise TypeError(f"{plan.window!r} is not for these tests")


def _value(expr: Expr, row: Row) -> Any:
    """What an expression says of one row: rewrites move expressions and leave their values to the engine."""
    fields = list(_fields(expr))
    columns: list[Any] = [None] * (1 + max((field.index for field in fields), default=0))
    for field in fields:
        columns[field.index] = pa.array([row[field.index]], field.type.arrow)
    return evaluate(expr, columns, 1)[0].as_py()


def _fields(expr: Expr) -> Iterable[Field]:
    if isinstance(expr, Field):
        yield expr
    for arg in expr.args if isinstance(expr, Call) else ():
        yield from _fields(arg)


def _holds(condition: Expr, row: Row) -> bool:
    return _value(condition, row) is True


def _kept(plan: logical.Narrow, row: Row) -> Row:
    return {field.index: row[field.index] for field in plan.fields}


def _projected(plan: logical.Project, row: Row) -> Row:
    return {place: _value(o.expr, row) for place, o in enumerate(plan.outputs)}


def _groups(plan: logical.Group, rows: list[Row]) -> list[Row]:
    """Only COUNT and the keys: what is grouped is what matters here."""
    groups = Counter(tuple(_value(key, row) for key in plan.keys) for row in rows)
    return [
        {**dict(enumerate(keys)), **{len(keys) + i: count for i in range(len(plan.aggregates))}}
        for keys, count in groups.items()
    ]
