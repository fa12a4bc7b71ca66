"""Back to text: expressions, aggregates, windows and durations as a reader of CQL would write them."""

from __future__ import annotations

from collections.abc import Sequence

from stairwise.expressions.tree import Aggregate, Call, Const, Expr, Field
from stairwise.schema import Duration, Stream, Type, quoted
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
    Window,
)

_INFIX = frozenset({"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or", "like"})

_UNITS = (("DAY", 86_400_000), ("HOUR", 3_600_000), ("MINUTE", 60_000), ("SECOND", 1_000), ("MILLISECOND", 1))


def spell_duration(length: Duration) -> str:
    """The largest unit that divides it: 90 SECONDS, 2 HOURS."""
    unit, factor = next((u, f) for u, f in _UNITS if length % f == 0 and (length or f == 1))
    return f"{length // factor} {unit}{'' if length == factor else 'S'}"


def spell_expr(expr: Expr) -> str:
    match expr:
        case Field():
            return expr.name
        case Const():
            return _const(expr)
        case Call("not", (Call("is_null", (operand,)),)):
            return f"{_operand(operand)} IS NOT NULL"
        case Call("not", (Call("in", (operand, *items)),)):
            return f"{_operand(operand)} NOT IN ({_list(items)})"
        case Call("not", (operand,)):
            return f"NOT {_operand(operand)}"
        case Call("neg", (operand,)):
            return f"-{_operand(operand)}"
        case Call("is_null", (operand,)):
            return f"{_operand(operand)} IS NULL"
        case Call("in", (operand, *items)):
            return f"{_operand(operand)} IN ({_list(items)})"
        case Call("case", (*branches, otherwise)):
            whens = zip(branches[::2], branches[1::2], strict=True)
            spelled = "".join(f" WHEN {spell_expr(w)} THEN {spell_expr(t)}" for w, t in whens)
            return f"CASE{spelled} ELSE {spell_expr(otherwise)} END"
        case Call(op, (operand,)) if op.startswith("cast_"):
            return f"CAST({spell_expr(operand)} AS {expr.type.value})"
        case Call(op, args) if op in _INFIX:
            return f" {op.upper()} ".join(map(_operand, args))
        case Call():
            return f"{expr.op.upper()}({_list(expr.args)})"


def _operand(expr: Expr) -> str:
    """In brackets unless it is one word or a function."""
    text = spell_expr(expr)
    bare = not isinstance(expr, Call) or text.startswith(("CASE", expr.op.upper() + "("))
    return text if bare else f"({text})"


def _list(exprs: Sequence[Expr]) -> str:
    return ", ".join(map(spell_expr, exprs))


def _const(const: Const) -> str:
    if const.value is None:
        return "NULL"
    if isinstance(const.value, bool):
        return str(const.value).upper()
    if isinstance(const.value, str):
        return "'" + const.value.replace("'", "''") + "'"
    return f"TIMESTAMP {const.value}" if const.type is Type.TIMESTAMP else repr(const.value)


def spell_aggregate(aggregate: Aggregate) -> str:
    arguments = _list(aggregate.args) or "*"
    distinct = "DISTINCT " if aggregate.distinct else ""
    parameter = "" if aggregate.parameter is None else f", {aggregate.parameter:g}"
    return f"{aggregate.function}({distinct}{arguments}{parameter})"


def spell_window(window: Window | None) -> str:
    """The clause with all defaults written out; nothing for no window."""
    match window:
        case None:
            return ""
        case TimeWindow():
            lag = f" LAG {spell_duration(window.lag)}" if window.lag else ""
            offset = f" OFFSET {spell_duration(window.offset)}" if window.offset else ""
            slide = spell_duration(window.slide)
            return f"[RANGE {spell_duration(window.range)} SLIDE {slide}{lag}{offset}]"
        case LandmarkWindow():
            bounds = [f"FROM {window.start}"] if window.start is not None else []
            bounds += [f"UNTIL {window.end}"] if window.end is not None else []
            retain = "" if window.retain is None else f" RETAIN {window.retain} ROWS"
            return f"[{' '.join(bounds)} SLIDE {spell_duration(window.slide)}{retain}]"
        case RowsWindow():
            slide = str(window.row_slide) if window.time_slide is None else spell_duration(window.time_slide)
            return f"[ROWS {window.rows} SLIDE {slide}]"
        case PartitionedWindow():
            keys = ", ".join(window.keys)
            return f"[PARTITION BY {keys} ROWS {window.rows} SLIDE {spell_duration(window.slide)}]"
        case RelationWindow():
            return f"(last of each {', '.join(window.keys)}{'' if window.retroactive else ', as of the row'})"
        case MultiWindow():
            ranges = ", ".join(spell_duration(level.range) for level in reversed(window.levels))
            slides = ", ".join(spell_duration(level.slide) for level in reversed(window.levels))
            horizon = "" if window.horizon is None else f" CONTINUOUS HORIZON {spell_duration(window.horizon)}"
            weights = "" if window.weights is None else f" WEIGHTED BY ({', '.join(map(str, window.weights))})"
            return f"[RANGES {ranges} SLIDES {slides}{horizon}{weights}]"


def spell_stream(stream: Stream) -> str:
    """The CREATE STREAM or CREATE TABLE statement that declares it."""
    columns = ", ".join(
        f"{quoted(c.name)} {c.type.value}" + ("" if c.nullable else " NOT NULL") for c in stream.columns
    )
    if stream.is_table:
        return _spell_table(stream, columns)
    said = [f"CREATE STREAM {quoted(stream.name)} ({columns})"]
    said += [stream.time_clause] if stream.timestamp_by is not None else []
    said += [f"LATENESS {spell_duration(stream.lateness)}"] if stream.lateness else []
    said += [f"IDLE AFTER {spell_duration(stream.idle_after)}"] if stream.idle_after is not None else []
    said += [f"PARTITION BY {quoted(stream.partition_by)}"] if stream.partition_by is not None else []
    said += [f"PARTITIONS {stream.partitions}", f"GRANULE {spell_duration(stream.granule)}"]
    said += ["LIVE"] if stream.live and stream.timestamp_by is not None else []
    said += [f"FUTURE {spell_future(stream)}"] if stream.timestamp_by is not None or stream.future is not None else []
    said += ["REJECT UNKNOWN FIELDS"] if stream.reject_unknown else []
    said += [spell_retention(stream)] if stream.retain_time is not None or stream.retain_bytes is not None else []
    return " ".join(said)


def _spell_table(table: Stream, columns: str) -> str:
    said = [f"CREATE TABLE {quoted(table.name)} ({columns}) KEY ({', '.join(map(quoted, table.keys))})"]
    said += [table.time_clause] if table.timestamp_by is not None else []
    said += ["NON RETROACTIVE"] if not table.retroactive else []
    said += [f"PARTITIONS {table.partitions}"]
    said += ["REJECT UNKNOWN FIELDS"] if table.reject_unknown else []
    return " ".join(said)


def spell_future(stream: Stream) -> str:
    return "UNLIMITED" if stream.future is None else spell_duration(stream.future)


def spell_retention(stream: Stream) -> str:
    """The RETAIN option of a stream that has one."""
    said = [spell_duration(stream.retain_time)] if stream.retain_time is not None else []
    said += [f"AT MOST {stream.retain_bytes} BYTES"] if stream.retain_bytes is not None else []
    return " ".join(["RETAIN", *said])
