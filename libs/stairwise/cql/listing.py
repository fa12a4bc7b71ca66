"""What SHOW and DESCRIBE say, as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from stairwise.algebra.query import Query
from stairwise.algebra.spelling import spell_duration, spell_retention
from stairwise.schema import FOREVER, Stream, quoted


def listed(what: str, streams: Mapping[str, Stream], queries: Mapping[str, Query], sealed: Collection[str]) -> str:
    """One line for each stream, table or query, by name; that there is none, if so."""
    if what == "QUERIES":
        lines = _aligned([(name, _on_one_line(query.text)) for name, query in sorted(queries.items())])
    else:
        wanted = [stream for _, stream in sorted(streams.items()) if stream.is_table == (what == "TABLES")]
        lines = _aligned([(s.name, _columns(s) + (", sealed" if s.name in sealed else "")) for s in wanted])
    return "\n".join(lines) or f"there are no {what.lower()}"


def described_stream(stream: Stream, *, sealed: bool) -> str:
    columns = [(c.name, c.type.value, "" if c.nullable else "NOT NULL") for c in stream.columns]
    head = f"{stream.kind} {stream.name}{', sealed' if sealed else ''}"
    return "\n".join([head, *(f"  {line}" for line in _aligned(columns)), *(f"  {o}" for o in _options(stream))])


def described_query(query: Query) -> str:
    columns = [(output.name, output.type.value) for output in query.relation.outputs]
    return "\n".join([f"query {query.name}", *(f"  {line}" for line in _aligned(columns)), query.text])


def _options(stream: Stream) -> Iterator[str]:
    """The options as CREATE would write them, those that have a default included."""
    if stream.time_clause:
        yield stream.time_clause
    if stream.is_table:
        yield f"KEY ({', '.join(map(quoted, stream.keys))})"
        if not stream.retroactive:
            yield "NON RETROACTIVE"
    if 0 < stream.lateness < FOREVER:
        yield f"LATENESS {spell_duration(stream.lateness)}"
    if stream.idle_after is not None:
        yield f"IDLE AFTER {spell_duration(stream.idle_after)}"
    if stream.partition_by is not None and not stream.is_table:
        yield f"PARTITION BY {quoted(stream.partition_by)}"
    yield f"PARTITIONS {stream.partitions}"
    if not stream.is_table:
        yield f"GRANULE {spell_duration(stream.granule)}"
        yield from ["LIVE"] if stream.live else []
        if stream.timestamp_by is not None:
            yield "FUTURE UNLIMITED" if stream.future is None else f"FUTURE {spell_duration(stream.future)}"
    if stream.retain_time is not None or stream.retain_bytes is not None:
        yield spell_retention(stream)
    if stream.reject_unknown:
        yield "REJECT UNKNOWN FIELDS"


def _columns(stream: Stream) -> str:
    return ", ".join(f"{column.name} {column.type.value}" for column in stream.columns)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns side by side, two blanks apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
