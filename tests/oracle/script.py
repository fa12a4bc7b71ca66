"""A whole script over raw rows: what `stairwise run` must print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stairwise.cql.script import Catalogue
from stairwise.schema import Stream
from tests.oracle.lateness import on_time
from tests.oracle.query import Line, evaluate
from tests.oracle.rows import OracleRow, from_json

Message = Mapping[str, object]
Place = Callable[[Stream, int, Message], int]
"""The partition of a stream's row, by its number in the input and what it says."""


def _in_one_partition(stream: Stream, number: int, message: Message) -> int:
    return 0


def run(script: str, messages: Mapping[str, Sequence[Message]], *, place: Place = _in_one_partition) -> list[Line]:
    """The lines of all queries of a script over each stream's messages in order of arrival, then sealed.

    They are ordered by time, then by query in order of definition, then as the query has them.
    """
    catalogue = Catalogue()
    catalogue.execute(script)
    rows = {stream.name: _rows(stream, messages.get(stream.name, ()), place) for stream in catalogue.streams.values()}
    lines = [line for query in catalogue.queries.values() for line in evaluate(query, rows)]
    return sorted(lines, key=lambda line: line["time"])


def _rows(stream: Stream, messages: Sequence[Message], place: Place) -> list[OracleRow]:
    arrivals = [
        from_json(stream, message, partition=place(stream, number, message), sequence=number)
        for number, message in enumerate(messages)
    ]
    kept, _ = on_time(arrivals, stream.lateness)
    return kept
