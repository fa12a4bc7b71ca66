"""Strategies for whole cases: a script (streams and queries) and each stream's messages in order of arrival.

Streams come out of order within and beyond their lateness, with bursts, silences, equal times, NULLs, NaN and
infinities; statements are those of ``statements``. A case shows itself as a script and its data, which is
what a failure shrinks to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from stairwise.schema import Column, Stream, Type
from tests.property.statements import SECOND, Source, queries

Message = dict[str, Any]

VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.BIGINT: st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**53, 2**53 + 1]),
    Type.DOUBLE: st.sampled_from([0.5, 0.0, 1.0, 0.1, -2.25, 0.2, -0.0, 1e16, 1e308, -1e308, 5e-324, 2.0**53])
    | st.sampled_from(["NaN", "Infinity", "-Infinity"]),
    Type.STRING: st.sampled_from(["a", "b", "", "ab", "A", "é"]),
    Type.BOOLEAN: st.booleans(),
    Type.TIMESTAMP: st.sampled_from([0, 5000, -1]),
}
STEPS = st.sampled_from([1000, 0, 0, 1, 250, 999, 1001, 2000, 5000, 20_000])
LEAPS = STEPS | st.sampled_from([90_000, 200_000])
BASES = st.sampled_from([0, 1_700_000_000_000, -7_300])


@dataclass(frozen=True)
class Case:
    """A script and the messages of each of its streams."""

    script: str
    messages: dict[str, list[Message]]

    def __repr__(self) -> str:
        data = "\n".join(f"{stream}: {message}" for stream, messages in self.messages.items() for message in messages)
        return f"\n{self.script}\n{data}\n"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        printer.text(repr(self))


TYPES = st.sampled_from([Type.BIGINT, Type.STRING, Type.DOUBLE, Type.BOOLEAN, Type.TIMESTAMP])


@st.composite
def streams(draw: st.DrawFn, name: str, like: Stream | None = None) -> Stream:
    """A stream with a time and one to five columns more, in any order; one of them of a type that ``like`` has."""
    types = draw(st.lists(TYPES, min_size=1, max_size=4))
    if like is not None:
        types.append(draw(st.sampled_from([c.type for c in like.columns if c.name != like.timestamp_by])))
    columns = [Column(f"{t.value[0].lower()}{i}", t, draw(st.booleans())) for i, t in enumerate(types)]
    columns.insert(draw(st.integers(0, len(columns))), Column("ts", Type.TIMESTAMP, nullable=False))
    return Stream(
        name,
        tuple(columns),
        timestamp_by="ts",
        lateness=draw(st.sampled_from([0, 1, 2 * SECOND, 10 * SECOND])),
        granule=draw(st.sampled_from([1000, 2000, 500])),
    )


def declaration(stream: Stream) -> str:
    columns = ", ".join(f"{c.name} {c.type.value}{'' if c.nullable else ' NOT NULL'}" for c in stream.columns)
    options = f" LATENESS {stream.lateness}ms" if stream.lateness else ""
    options += f" GRANULE {stream.granule}ms" if stream.granule != SECOND else ""
    return f"CREATE STREAM {stream.name} ({columns}) TIMESTAMP BY {stream.timestamp_by}{options};"


@st.composite
def arrivals(
    draw: st.DrawFn, stream: Stream, base: int, most: int, steps: st.SearchStrategy[int] = STEPS
) -> list[Message]:
    """Messages whose times move on by steps, each perhaps set back: within lateness, at its edge, beyond."""
    delays = st.sampled_from([0, 0, 0, 300, stream.lateness, stream.lateness + 1, 3 * SECOND])
    clock = base
    messages: list[Message] = []
    for _ in range(draw(st.integers(0, most) | st.integers(most // 2, most))):
        clock += draw(steps)
        messages.append(draw(_message(stream, clock - draw(delays))))
    return messages


@st.composite
def _message(draw: st.DrawFn, stream: Stream, ts: int) -> Message:
    message: Message = {}
    for column in stream.columns:
        if column.name == stream.timestamp_by:
            message[column.name] = ts
            continue
        value = draw(VALUES[column.type] if not column.nullable else VALUES[column.type] | st.none())
        if value is not None or draw(st.booleans()):
            message[column.name] = value
    return message


@st.composite
def cases(draw: st.DrawFn, *, rows: int = 24, steps: st.SearchStrategy[int] = STEPS) -> Case:
    """One to three queries over two streams and their rows, at most ``rows`` each."""
    first = draw(streams("s"))
    declared = [first, draw(streams("t", like=first))]
    base = draw(BASES)
    sources = [
        Source(declared[0], "s", base),
        Source(declared[1], "t", base),
        Source(declared[0], "s2", base),
    ]
    selects = draw(st.lists(queries(sources), min_size=1, max_size=3))
    script = "\n".join([*map(declaration, declared), *(f"{select};" for select in selects)])
    messages = {stream.name: draw(arrivals(stream, base, rows, steps)) for stream in declared}
    return Case(script, messages)
