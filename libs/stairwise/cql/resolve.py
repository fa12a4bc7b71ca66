"""Statements to what they mean: ``resolve_stream``, ``resolve_table``, ``resolve_query``: every name and type known.

Whatever is wrong raises ``StatementError`` with its place; nothing is changed anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from stairwise.algebra.query import Emit, Except, Query, Relation, Select, Union, Widen, inputs, selects
from stairwise.cql import ast
from stairwise.cql.coercion import Typed, coerce, is_null
from stairwise.cql.column_types import column_type
from stairwise.cql.literals import count, duration, size
from stairwise.cql.select import resolve_select
from stairwise.cql.source import Source, Span
from stairwise.cql.window_clauses import single_options
from stairwise.errors import nearest
from stairwise.expressions.tree import ITEM_FUNCTIONS, Field, Output
from stairwise.schema import FOREVER, TIME_COLUMN, Column, Duration, Stream, Type, Unit
from stairwise.windows.spec import MultiWindow, TimeWindow

MAX_COLUMNS = 1_000
MAX_PARTITIONS = 1_024
MAX_NAME = 100
MAX_SET_OPERATIONS = 32
DEFAULT_FUTURE: Duration = 365 * 86_400_000
"""How far ahead of its message's append time a row may be: a year, which no sentinel of the year 9999 is."""

LEAST_RETAINED = 1 << 20
"""Bytes that lookups need at least for a partition's past."""

_OBJECT_NAME = re.compile(r"(?:[A-Za-z0-9_-]+\.)?[A-Za-z0-9_-]+")
"""With the namespace before the dot, if there is one."""

# ── streams ─────────────────────────────────────────────────────────────────────────────────────────────


def resolve_stream(statement: ast.CreateStream, incarnation: int = 1) -> Stream:
    """The stream that a CREATE STREAM declares."""
    source = statement.source
    check_name(source, statement.name, "stream")
    columns = _columns(source, statement.columns)
    options = single_options(source, statement.options)
    timestamp_by, unit = _timestamp_by(source, options.get("TIMESTAMP"), columns)
    partitions = _partitions(source, options.get("PARTITIONS"))
    retain_time, retain_bytes = _retained(source, options.get("RETAIN"), partitions)
    return Stream(
        statement.name.text,
        tuple(columns.values()),
        timestamp_by=timestamp_by,
        lateness=_length(source, options.get("LATENESS"), 0, zero=True) or 0,
        idle_after=_length(source, options.get("IDLE"), None),
        partition_by=_column_option(source, options.get("PARTITION"), columns),
        partitions=partitions,
        granule=_length(source, options.get("GRANULE"), 1_000) or 1_000,
        live="LIVE" in options or timestamp_by is None,
        incarnation=incarnation,
        future=_future(source, options.get("FUTURE"), None if timestamp_by is None else DEFAULT_FUTURE),
        reject_unknown="REJECT" in options,
        retain_time=retain_time,
        retain_bytes=retain_bytes,
        unit=unit,
    )


def resolve_alteration(statement: ast.AlterStream, stream: Stream) -> Stream:
    """The stream as an ALTER STREAM declares it: what is not named stays, and DEFAULT is what CREATE STREAM gives."""
    source = statement.source
    named = single_options(source, statement.options)
    given = {keyword: option for keyword, option in named.items() if option.value is not None}
    for keyword in named:
        match keyword:
            case "LATENESS":
                stream = replace(stream, lateness=_length(source, given.get(keyword), 0, zero=True) or 0)
            case "IDLE":
                stream = replace(stream, idle_after=_length(source, given.get(keyword), None))
            case "RETAIN":
                time, size_ = _retained(source, given.get(keyword), stream.partitions)
                stream = replace(stream, retain_time=time, retain_bytes=size_)
    return stream


def resolve_table(statement: ast.CreateTable, incarnation: int = 1) -> Stream:
    """The table that a CREATE TABLE declares: a stream of updates, of which the last of each key counts."""
    source = statement.source
    check_name(source, statement.name, "table")
    columns = _columns(source, statement.columns)
    options = single_options(source, statement.options)
    timestamp_by, unit = _timestamp_by(source, options.get("TIMESTAMP"), columns)
    if "KEY" not in options:
        raise source.error(
            statement.name.span,
            f"the table {statement.name.text!r} has no key",
            expected="KEY (column, ...) behind the columns",
            hint="a row replaces the earlier one that has its key",
        )
    keys = options["KEY"].value
    assert isinstance(keys, tuple), "the grammar gives KEY a list of names"
    for key in keys:
        if key.text not in columns:
            hint = nearest(key.text, columns, "column")
            raise source.error(key.span, f"there is no column {key.text!r}", hint=hint)
        columns[key.text] = replace(columns[key.text], nullable=False)
    return Stream(
        statement.name.text,
        tuple(columns.values()),
        timestamp_by=timestamp_by,
        lateness=FOREVER,
        partition_by=keys[0].text,
        partitions=_partitions(source, options.get("PARTITIONS"), default=1),
        incarnation=incarnation,
        reject_unknown="REJECT" in options,
        keys=tuple(dict.fromkeys(key.text for key in keys)),
        retroactive="NON" not in options,
        unit=unit,
    )


def _timestamp_by(
    source: Source, option: ast.Option | None, columns: dict[str, Column]
) -> tuple[str | None, Unit | None]:
    """The column that TIMESTAMP BY names, which is never NULL then, and what its numbers count, if that is said."""
    if option is None:
        return None, None
    assert isinstance(option.value, ast.TimeColumn), "the grammar gives TIMESTAMP BY a column and perhaps a unit"
    timestamp_by = _known_column(source, option.value.name, columns)
    if columns[timestamp_by].type is not Type.TIMESTAMP:
        raise source.error(
            option.span,
            f"column {timestamp_by!r} is of type {columns[timestamp_by].type.value}",
            expected="a column of type TIMESTAMP",
            hint=f"declare it as {timestamp_by} TIMESTAMP",
        )
    columns[timestamp_by] = replace(columns[timestamp_by], nullable=False)
    unit = option.value.unit
    return timestamp_by, None if unit is None else Unit(unit.text)


def check_name(source: Source, name: ast.Name, kind: str) -> None:
    """Names of streams and queries go into topic names and command lines, so they stay plain."""
    if len(name.text) > MAX_NAME or not _OBJECT_NAME.fullmatch(name.text):
        raise source.error(
            name.span,
            f"a {kind} cannot be called {name.text[:40]!r}",
            expected=f"letters, digits, _ and -, at most {MAX_NAME} of them; before a dot, the namespace",
        )


def _columns(source: Source, definitions: tuple[ast.ColumnDefinition, ...]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for definition in definitions:
        name = definition.name.text
        if name in columns:
            raise source.error(
                definition.name.span, f"two columns are called {name!r}", hint="give one of them another name"
            )
        if name == TIME_COLUMN or len(name) > MAX_NAME:
            raise source.error(
                definition.name.span,
                f"a column cannot be called {name[:40]!r}",
                expected=f"at most {MAX_NAME} characters, and not {TIME_COLUMN}, which is the engine's own",
            )
        if len(columns) == MAX_COLUMNS:
            raise source.error(definition.name.span, f"a stream has at most {MAX_COLUMNS:,} columns")
        columns[name] = Column(name, column_type(source, definition.type, "a column"), nullable=not definition.not_null)
    return columns


def _column_option(source: Source, option: ast.Option | None, columns: Mapping[str, Column]) -> str | None:
    if option is None:
        return None
    assert isinstance(option.value, ast.Name), "the grammar gives PARTITION BY a name"
    return _known_column(source, option.value, columns)


def _known_column(source: Source, name: ast.Name, columns: Mapping[str, Column]) -> str:
    if name.text not in columns:
        hint = nearest(name.text, columns, "column")
        raise source.error(name.span, f"there is no column {name.text!r}", hint=hint)
    return name.text


def _future(source: Source, option: ast.Option | None, default: Duration | None) -> Duration | None:
    if option is not None and isinstance(option.value, ast.Unlimited):
        return None
    return _length(source, option, default)


def _length(
    source: Source, option: ast.Option | None, default: Duration | None, *, zero: bool = False
) -> Duration | None:
    if option is None:
        return default
    assert isinstance(option.value, ast.Duration), "the grammar gives this option a duration"
    return duration(source, option.value, option.keyword, zero=zero)


def _partitions(source: Source, option: ast.Option | None, default: int = 4) -> int:
    if option is None:
        return default
    assert isinstance(option.value, ast.Number), "the grammar gives PARTITIONS a number"
    return count(source, option.value, "PARTITIONS", MAX_PARTITIONS)


def _retained(source: Source, option: ast.Option | None, partitions: int) -> tuple[Duration | None, int | None]:
    """How far back lookups reach, and how many bytes they take for the stream."""
    if option is None:
        return None, None
    said = option.value
    assert isinstance(said, ast.Retention), "the grammar gives RETAIN of a stream a time, a size or both"
    time = None if said.time is None else duration(source, said.time, "RETAIN")
    if said.size is None:
        return time, None
    most = size(source, said.size, "RETAIN")
    if most < partitions * LEAST_RETAINED:
        raise source.error(
            said.size.span,
            f"RETAIN AT MOST {most:,} bytes is too little for PARTITIONS {partitions}",
            expected=f"1 MiB for each partition or more: {partitions} MiB",
        )
    return time, most


# ── queries ─────────────────────────────────────────────────────────────────────────────────────────────


def resolve_query(name: str, select: ast.SelectStatement, streams: Mapping[str, Stream]) -> Query:
    """The query that a SELECT states, over the streams that there are."""
    relation: Relation
    if isinstance(select.relation, ast.Select):
        relation = resolve_select(select.source, select.relation, streams, select.ordering)
    elif select.ordering is not None:
        raise select.source.error(
            select.ordering.span,
            f"ORDER BY and LIMIT are of a single SELECT, not of {select.relation.op}",
            hint="leave them out: the order of the rows inside a report is fixed",
        )
    else:
        relation = _relation(select.source, select.relation, streams, MAX_SET_OPERATIONS)
    emit = _emit(select, relation)
    if select.using is not None:
        _check_filter(select, select.using, relation, emit)
    return Query(name, relation, emit, select.text, by_lookups=select.using is not None)


def _check_filter(select: ast.SelectStatement, using: Span, relation: Relation, emit: Emit) -> None:
    """USING LOOKUPS stands behind a filter: keys whose aggregates over a sliding window are in a range."""
    if not _is_filter(relation):
        raise select.source.error(
            using,
            "USING LOOKUPS is for the keys of one stream that meet HAVING over a sliding window",
            expected="SELECT k, SUM(x) FROM s [RANGE ...] GROUP BY k HAVING SUM(x) > ... EMIT CHANGES USING LOOKUPS",
            hint="leave USING LOOKUPS out: any query can do without",
        )
    if emit is not Emit.CHANGES:
        raise select.source.error(using, f"USING LOOKUPS shows changes, not {emit.value}", hint="write EMIT CHANGES")


def _is_filter(relation: Relation) -> bool:
    if not isinstance(relation, Select) or len(relation.inputs) > 1 or relation.distinct or relation.is_ordered:
        return False
    if any(aggregate.function in ITEM_FUNCTIONS for aggregate in relation.aggregates):
        return False
    return isinstance(relation.inputs[0].window, TimeWindow) and bool(relation.keys) and relation.having is not None


def _relation(source: Source, node: ast.Relation, streams: Mapping[str, Stream], depth: int) -> Relation:
    if isinstance(node, ast.Select):
        return resolve_select(source, node, streams)
    if depth == 0:
        raise source.error(node.span, f"a query has at most {MAX_SET_OPERATIONS} set operations in a chain")
    left = _relation(source, node.left, streams, depth - 1)
    right = _relation(source, node.right, streams, depth - 1)
    left, right = _aligned(source, node, left, right)
    _check_set_operation(source, node, left, right)
    return Union(left, right) if node.op == "UNION" else Except(left, right)


def _check_set_operation(source: Source, node: ast.SetOperation, left: Relation, right: Relation) -> None:
    windows = [i.window for side in (left, right) for i in inputs(side)]
    unwindowed = [w is None for w in windows]
    if any(unwindowed) and not all(unwindowed):
        raise source.error(
            node.span,
            f"{node.op} of an input with a window and one without",
            hint="give both sides a window, or none",
        )
    if node.op == "EXCEPT" and any(unwindowed):
        raise source.error(
            node.span,
            "EXCEPT without windows would have to remember both streams",
            hint="give both sides a window: [RANGE 60 SECONDS]",
        )
    if any(isinstance(w, MultiWindow) for w in windows):
        raise source.error(
            node.span,
            f"a window with several levels has no place in {node.op}",
            hint="write a query of its own for it",
        )


def _aligned(source: Source, node: ast.SetOperation, left: Relation, right: Relation) -> tuple[Relation, Relation]:
    """Both sides with equal column types, the narrower ones widened."""
    if len(left.outputs) != len(right.outputs):
        raise source.error(
            node.span,
            f"{node.op}: the left side has {len(left.outputs)} and the right side {len(right.outputs)} columns",
            hint="both sides need the same columns in the same order",
        )
    for index, (ours, theirs) in enumerate(zip(left.outputs, right.outputs, strict=True)):
        if ours.type is theirs.type:
            continue
        if _is_null_column(left, index):
            target = theirs.type
        elif _is_null_column(right, index):
            target = ours.type
        elif ours.type.is_numeric and theirs.type.is_numeric:
            types = {ours.type, theirs.type}
            target = Type.DOUBLE if Type.DOUBLE in types else Type.HUGEINT
        else:
            raise source.error(
                node.span,
                f"{node.op}: column {index + 1}, {ours.name!r}, is {ours.type.value} on the left and"
                f" {theirs.type.value} on the right",
                hint="both sides need the same types in the same order",
            )
        left = _widened(source, left, index, target, node.span)
        right = _widened(source, right, index, target, node.span)
    return left, right


def _is_null_column(relation: Relation, index: int) -> bool:
    return all(is_null(select.outputs[index].expr) for select in selects(relation))


def _widened(source: Source, relation: Relation, index: int, target: Type, span: Span) -> Relation:
    """The relation with one of its columns in a wider type.

    DISTINCT and EXCEPT compare their rows before they are widened. To the literal NULL it makes no difference.
    """
    if relation.outputs[index].type is target:
        return relation
    compares = isinstance(relation, Except) or (isinstance(relation, Select) and relation.distinct)
    if compares and not _is_null_column(relation, index):
        rows = tuple(Output(o.name, Field(i, o.name, o.type)) for i, o in enumerate(relation.outputs))
        relation = Widen(relation, rows)
    if isinstance(relation, Union | Except):
        return replace(
            relation,
            left=_widened(source, relation.left, index, target, span),
            right=_widened(source, relation.right, index, target, span),
        )
    outputs = list(relation.outputs)
    given = outputs[index]
    outputs[index] = Output(given.name, coerce(source, Typed(given.expr, span), target))
    return replace(relation, outputs=tuple(outputs))


def _emit(select: ast.SelectStatement, relation: Relation) -> Emit:
    """What was asked for; else the whole answer of aggregates and the changes of everything else.

    Without windows every row is reported once, at its own time, and nothing ever leaves: RSTREAM, ISTREAM and
    CHANGES say the same, which RSTREAM stands for.
    """
    append_only = all(i.window is None for i in inputs(relation))
    if append_only:
        if select.emit is not None and select.emit.text == Emit.DSTREAM.value:
            raise select.source.error(
                select.emit.span,
                "without a window nothing ever leaves, so DSTREAM would stay empty",
                hint="write EMIT ISTREAM, or give the stream a window",
            )
        return Emit.RSTREAM
    if select.emit is not None:
        return Emit(select.emit.text)
    grouped = isinstance(relation, Select) and relation.is_grouped
    return Emit.RSTREAM if grouped else Emit.CHANGES
