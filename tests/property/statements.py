"""Strategies for CQL: expressions of a wanted type, windows of every kind, and SELECTs of every shape.

All text that comes out is valid over the streams given. The first choice of every strategy is the simplest,
since that is what hypothesis shrinks to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from stairwise.schema import Column, Stream, Type

SECOND = 1000
EMITS = ("", " EMIT RSTREAM", " EMIT ISTREAM", " EMIT DSTREAM", " EMIT CHANGES")


@dataclass(frozen=True)
class Source:
    """A stream in FROM: what its columns are called, and when its rows begin."""

    stream: Stream
    alias: str
    base: int

    @property
    def columns(self) -> list[tuple[str, Type]]:
        return [(f"{self.alias}.{column.name}", column.type) for column in self.stream.columns]


# ── expressions ─────────────────────────────────────────────────────────────────────────────────────────


def literal(type_: Type) -> st.SearchStrategy[str]:
    match type_:
        case Type.BIGINT:
            return st.sampled_from(["0", "1", "2", "-1", "3", "10", "9223372036854775807", "9007199254740993"])
        case Type.DOUBLE:
            return st.sampled_from(["0.5", "0.0", "1.5", "-2.25", "0.1", "1e308", "9007199254740992.0"])
        case Type.STRING:
            return st.sampled_from(["'a'", "''", "'b'", "'ab'", "'it''s'", "'é'"])
        case Type.BOOLEAN:
            return st.sampled_from(["TRUE", "FALSE", "NULL"])
        case _:
            return st.sampled_from(["0", "5000", "TIMESTAMP '1970-01-01T00:00:10Z'"])


NUMBERS = (Type.BIGINT, Type.DOUBLE)


def comparable(type_: Type) -> st.SearchStrategy[str]:
    """A literal that a value of a type can be compared with: numbers of either type."""
    return st.sampled_from(NUMBERS).flatmap(literal) if type_ in NUMBERS else literal(type_)


@st.composite
def expressions(draw: st.DrawFn, columns: Sequence[tuple[str, Type]], type_: Type, depth: int = 2) -> str:
    """An expression of a type over these columns."""
    fitting = [name for name, column_type in columns if column_type is type_]
    if fitting and draw(st.integers(0, 3)) < 3:
        return draw(st.sampled_from(fitting))
    if depth == 0 or type_ is Type.TIMESTAMP:
        return draw(st.sampled_from(fitting)) if fitting else draw(literal(type_))

    def part(wanted: Type) -> str:
        return draw(expressions(columns, wanted, depth - 1))

    if type_ is Type.BOOLEAN:
        return draw(conditions(columns, depth))
    if draw(st.integers(0, 4)) == 4:
        otherwise = draw(st.sampled_from(["", f" ELSE {part(type_)}"]))
        return f"CASE WHEN {part(Type.BOOLEAN)} THEN {part(type_)}{otherwise} END"
    match type_:
        case Type.BIGINT:
            shape = draw(st.sampled_from(["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}"]))
            shape = draw(st.sampled_from([shape, "- {0}", "ABS({0})", "COALESCE({0}, {1})", "LENGTH({2})"]))
            shape = draw(
                st.sampled_from(
                    [shape, shape, "MOD({0}, {1})", "GREATEST({0}, {1})", "NULLIF({0}, {1})", "{2}::BIGINT"]
                )
            )
        case Type.DOUBLE:
            shape = draw(st.sampled_from(["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} + {3}"]))
            shape = draw(st.sampled_from([shape, "FLOOR({0})", "SQRT({0})", "CAST({3} AS DOUBLE)", "ABS({0})"]))
            shape = draw(
                st.sampled_from([shape, shape, "ROUND({0}, 1)", "LEAST({0}, {3})", "NULLIF({0}, {1})", "{2}::DOUBLE"])
            )
        case _:
            shape = draw(st.sampled_from(["{0} || {1}", "UPPER({0})", "LOWER({0})", "COALESCE({0}, {1})"]))
            more = [
                "SUBSTRING({0}, 1, 2)",
                "REPLACE({0}, 'a', 'bc')",
                "SPLIT_PART({0}, 'b', 1)",
                "{3}::STRING",
                "TRIM({0})",
            ]
            shape = draw(st.sampled_from([shape, shape, shape, *more]))
    return f"({shape.format(part(type_), part(type_), part(Type.STRING), part(Type.BIGINT))})"


@st.composite
def conditions(draw: st.DrawFn, columns: Sequence[tuple[str, Type]], depth: int = 2) -> str:
    """Something for WHERE, about one of the columns."""
    name, type_ = draw(st.sampled_from(columns))

    def value() -> str:
        return draw(comparable(type_))

    def operand() -> str:
        return draw(expressions(columns, type_, depth - 1)) if depth > 0 else name

    def other() -> str:
        """A literal, or sometimes an expression."""
        wanted = draw(st.sampled_from(NUMBERS)) if type_ in NUMBERS else type_
        return draw(expressions(columns, wanted, 0)) if draw(st.integers(0, 3)) == 3 else value()

    shapes = ["compare", "null", "in", "between", "like", "and", "not"]
    if type_ is Type.BOOLEAN:
        shapes = ["equal", "null"]
    shape = draw(st.sampled_from(shapes if depth > 0 else shapes[:-2] or shapes))
    if shape == "equal":
        return f"{name} = {value()}"
    if shape in ("and", "not"):
        inner = draw(conditions(columns, depth - 1))
        if shape == "not":
            return f"NOT ({inner})"
        return f"({name} IS NULL {draw(st.sampled_from(['AND', 'OR']))} {inner})"
    if shape == "null":
        return f"{name} IS {draw(st.sampled_from(['NOT NULL', 'NULL']))}"
    if shape == "in":
        negation = draw(st.sampled_from(["", "NOT "]))
        listed = draw(st.sampled_from([value(), f"{value()}, {value()}", f"{value()}, NULL"]))
        return f"{operand()} {negation}IN ({listed})"
    if shape == "between":
        return f"{operand()} BETWEEN {value()} AND {value()}"
    if shape == "like" and type_ is Type.STRING:
        return f"{operand()} LIKE {draw(st.sampled_from(['%a%', 'a%', '_', '%']))!r}"
    return f"{operand()} {draw(st.sampled_from(['>', '=', '<>', '<', '>=', '<=']))} {other()}"


@st.composite
def aggregates(draw: st.DrawFn, columns: Sequence[tuple[str, Type]], *, weighted: bool = False) -> str:
    """An exact aggregate over an expression of these columns."""
    of = {t: [name for name, column_type in columns if column_type is t] for t in Type}
    numbers = [t for t in (Type.BIGINT, Type.DOUBLE) if of[t]]
    number = draw(expressions(columns, draw(st.sampled_from(numbers)), 1)) if numbers else "1"
    choices = ["COUNT(*)", f"SUM({number})", f"AVG({number})", f"COUNT({draw(any_column(columns))})"]
    if not weighted:
        q = draw(st.sampled_from(["0.5", "0", "0.29", "1"]))
        ordered = draw(st.sampled_from([name for name, t in columns if t is not Type.BOOLEAN]))
        anything = draw(any_column(columns))
        choices += [f"{name}({ordered})" for name in ("MIN", "MAX")]
        choices += [f"FIRST({anything})", f"LAST({anything})", f"COUNT(DISTINCT {anything})"]
        choices += [f"{name}({number})" for name in ("VARIANCE", "STDDEV", "MEDIAN")]
        choices += [f"{name}({anything}, {ordered})" for name in ("MIN_BY", "MAX_BY")]
        choices += [f"{name}({number}, {number})" for name in ("CORR", "COVAR_POP", "COVAR_SAMP")]
        if of[Type.STRING]:
            choices.append(f"STRING_AGG({of[Type.STRING][0]}, '/')")
        choices += [f"QUANTILE({number}, {q})", f"REGR_SLOPE({number})", f"REGR_INTERCEPT({number})"]
    chosen = draw(st.sampled_from(choices))
    return f"{chosen} FILTER (WHERE {draw(conditions(columns, 1))})" if draw(st.integers(0, 4)) == 4 else chosen


def any_column(columns: Sequence[tuple[str, Type]]) -> st.SearchStrategy[str]:
    return st.sampled_from([name for name, _ in columns])


# ── windows ─────────────────────────────────────────────────────────────────────────────────────────────

slides = st.sampled_from(["5s", "1s", "2s", "3 SECONDS", "10s", "1500ms", "30s"])
ranges = st.sampled_from(["10s", "1s", "5s", "3s", "1ms", "250ms", "1 MINUTE", "2 HOURS", "1000 DAYS"])


@st.composite
def time_windows(draw: st.DrawFn) -> str:
    slide = draw(st.sampled_from(["", f" SLIDE {draw(slides)}"]))
    lag = draw(st.sampled_from(["", " LAG 2s", " LAG 1ms"]))
    offset = draw(st.sampled_from(["", "", " OFFSET 400ms", " LEFT CLOSED"]))
    return draw(
        st.sampled_from(
            [
                f"[RANGE {draw(ranges)} SLIDE {draw(slides)}{lag}{offset}]",
                f"[TUMBLE {draw(slides)}{lag}{offset}]",
                f"[RANGE {draw(ranges)}{slide}{lag}]",
                "[NOW]",
            ]
        )
    )


@st.composite
def landmark_windows(draw: st.DrawFn, base: int, *, retain: bool) -> str:
    start, end = sorted(base + draw(st.integers(-5, 40)) * SECOND for _ in range(2))
    bounds = draw(st.sampled_from([f"FROM {start}", f"UNTIL {end}", f"FROM {start} UNTIL {end}"]))
    slide = draw(st.sampled_from([" SLIDE 5s", "", " SLIDE 2s"]))
    kept = f" RETAIN {draw(st.integers(1, 5))} ROWS" if retain else ""
    return f"[{bounds}{slide}{kept}]"


@st.composite
def row_windows(draw: st.DrawFn, columns: Sequence[Column]) -> str:
    n = draw(st.integers(1, 6))
    slide = draw(slides)
    keys = draw(st.lists(st.sampled_from([c.name for c in columns]), min_size=1, max_size=2, unique=True))
    return draw(
        st.sampled_from(
            [
                f"[ROWS {n}]",
                f"[ROWS {n} SLIDE {draw(st.integers(1, 4))}]",
                f"[ROWS {n} SLIDE {slide}]",
                f"[PARTITION BY {', '.join(keys)} ROWS {n} SLIDE {slide}]",
                f"[PARTITION BY {', '.join(keys)} ROWS {n}]",
            ]
        )
    )


def windows(source: Source, *, retain: bool) -> st.SearchStrategy[str]:
    """Any window but those with levels; ``retain`` where a landmark has to keep its rows."""
    return time_windows() | landmark_windows(source.base, retain=retain) | row_windows(source.stream.columns)


@st.composite
def level_windows(draw: st.DrawFn, granule: int) -> tuple[str, bool, bool]:
    """A multi-granular window, whether it has levels (no CONTINUOUS HORIZON), and whether it has weights."""
    seconds = sorted(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    levels: list[tuple[int, int]] = []
    for slide in seconds:
        shortest = levels[-1][0] // slide + 1 if levels else 1
        levels.append((slide * draw(st.integers(shortest, shortest + 2)), slide))
    longest = levels[-1][0] * SECOND
    horizon = draw(st.sampled_from([0, longest // 2 // granule, longest // granule])) * granule
    weights = draw(st.sampled_from([0, len(levels)]))
    text = f"RANGES {', '.join(f'{r}s' for r, _ in reversed(levels))}"
    text += f" SLIDES {', '.join(f'{s}s' for _, s in reversed(levels))}"
    text += f" CONTINUOUS HORIZON {horizon}ms" if horizon else ""
    if weights:
        drawn = [draw(st.sampled_from(["1", "0.5", "0.1", "0", "2"])) for _ in levels]
        text += f" WEIGHTED BY ({', '.join(drawn)})"
    return f"[{text}]", not horizon, bool(weights)


# ── SELECTs ─────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def where(draw: st.DrawFn, columns: Sequence[tuple[str, Type]]) -> str:
    """Mostly nothing: what is filtered out tests nothing else."""
    return f" WHERE {draw(conditions(columns))}" if draw(st.integers(0, 3)) == 3 else ""


@st.composite
def grouped_list(draw: st.DrawFn, columns: Sequence[tuple[str, Type]], *, weighted: bool = False) -> tuple[str, str]:
    """The list of a grouped SELECT, and its GROUP BY and HAVING."""
    keys = draw(st.lists(any_column(columns), max_size=2, unique=True))
    if draw(st.integers(0, 5)) == 5:
        keys = [*keys, draw(conditions(columns, 0))]
    found = [draw(aggregates(columns, weighted=weighted)) for _ in range(draw(st.integers(1, 3)))]
    shown = keys if draw(st.booleans()) else keys[1:]
    listed = ", ".join(f"{expr} AS c{i}" for i, expr in enumerate([*shown, *found]))
    group_by = f" GROUP BY {', '.join(keys)}" if keys else ""
    having = draw(st.sampled_from(["", "", "", " HAVING COUNT(*) > 1", " HAVING COUNT(*) < 3"]))
    return listed, group_by + having


@st.composite
def grouped(draw: st.DrawFn, source: Source) -> str:
    window = draw(windows(source, retain=False))
    listed, tail = draw(grouped_list(source.columns))
    distinct = draw(st.sampled_from(["", "", "", "DISTINCT "]))
    return f"SELECT {distinct}{listed} FROM {_from(source, window)}{draw(where(source.columns))}{tail}"


@st.composite
def levelled(draw: st.DrawFn, source: Source) -> str:
    window, has_levels, weighted = draw(level_windows(source.stream.granule))
    listed, tail = draw(grouped_list(source.columns, weighted=weighted))
    if has_levels and not weighted and draw(st.booleans()):
        listed, tail = f"RECURRING({draw(any_column(source.columns))})", ""
    return f"SELECT {listed} FROM {_from(source, window)}{draw(where(source.columns))}{tail}"


@st.composite
def itemised(draw: st.DrawFn, source: Source) -> str:
    window = draw(windows(source, retain=False))
    item, key = draw(any_column(source.columns)), draw(any_column(source.columns))
    function = draw(st.sampled_from([f"TOP({item}, 2)", f"FREQUENT({item}, 0.3)"]))
    listed, tail = draw(st.sampled_from([(function, ""), (f"{key} AS k, {function}", f" GROUP BY {key}")]))
    return f"SELECT {listed} FROM {_from(source, window)}{draw(where(source.columns))}{tail}"


@st.composite
def plain(draw: st.DrawFn, source: Source, types: Sequence[Type] = (), *, windowed: bool = True) -> str:
    """A projection, of the given types where a set operation wants them."""
    types = types or [t for _, t in draw(st.lists(st.sampled_from(source.columns), min_size=1, max_size=3))]
    listed = ", ".join(f"{draw(expressions(source.columns, t))} AS c{i}" for i, t in enumerate(types))
    distinct = draw(st.sampled_from(["", "DISTINCT "])) if windowed else ""
    window = draw(windows(source, retain=True)) if windowed else ""
    return f"SELECT {distinct}{listed} FROM {_from(source, window)}{draw(where(source.columns))}"


@st.composite
def combined(draw: st.DrawFn, left: Source, right: Source, *, windowed: bool = True) -> str:
    """Two or three sides, whose numbers may be of different types."""
    types = draw(st.lists(st.sampled_from([t for _, t in left.columns]), min_size=1, max_size=2))
    operators = st.sampled_from(["UNION ALL", "EXCEPT"] if windowed else ["UNION ALL"])

    def side(source: Source) -> str:
        own = [draw(st.sampled_from((t, *NUMBERS))) if t in NUMBERS else t for t in types]
        return draw(plain(source, own, windowed=windowed))

    text = f"{side(left)} {draw(operators)} {side(right)}"
    match draw(st.sampled_from(["two", "two", "three", "nested"])):
        case "three":
            return f"{text} {draw(operators)} {side(left)}"
        case "nested":
            return f"{side(left)} {draw(operators)} ({text})"
    return text


@st.composite
def joined(draw: st.DrawFn, left: Source, right: Source) -> str:
    columns = [*left.columns, *right.columns]
    pairs = [(a, b) for a, t in left.columns for b, u in right.columns if t is u]
    likely = [(a, b) for a, b in pairs if not (a.endswith(".ts") or b.endswith(".ts"))]
    on = " = ".join(draw(st.sampled_from(likely or pairs)))
    extra = f" AND {draw(conditions(columns, 1))}" if draw(st.integers(0, 3)) == 3 else ""
    froms = [_from(side, draw(windows(side, retain=True))) for side in (left, right)]
    tail = ""
    if draw(st.booleans()):
        listed, tail = draw(grouped_list(columns))
    else:
        names = draw(st.lists(any_column(columns), min_size=1, max_size=3))
        listed = ", ".join(f"{name} AS c{i}" for i, name in enumerate(names))
    if draw(st.booleans()):
        return f"SELECT {listed} FROM {froms[0]}, {froms[1]} WHERE {on}{extra}{tail}"
    return f"SELECT {listed} FROM {froms[0]} JOIN {froms[1]} ON {on}{extra}{tail}"


def _from(source: Source, window: str) -> str:
    text = f"{source.stream.name} {window}" if window else source.stream.name
    return text if source.alias == source.stream.name else f"{text} {source.alias}"


@st.composite
def queries(draw: st.DrawFn, sources: Sequence[Source]) -> str:
    """A SELECT over the sources, of which there are two with different aliases at least."""
    first, second = sources[0], draw(st.sampled_from(sources[1:]))
    shape = draw(
        st.sampled_from(["grouped", "plain", "joined", "combined", "levelled", "itemised", "append", "appended"])
    )
    if shape in ("append", "appended"):
        text = draw(plain(first, windowed=False) if shape == "append" else combined(first, second, windowed=False))
        return text + draw(st.sampled_from(["", " EMIT ISTREAM"]))
    strategies = {
        "grouped": grouped(first),
        "plain": plain(first),
        "joined": joined(first, second),
        "combined": combined(first, second),
        "levelled": levelled(first),
        "itemised": itemised(first),
    }
    return draw(strategies[shape]) + draw(st.sampled_from(EMITS))
