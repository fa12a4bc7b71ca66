"""Messages of any format to rows: what each holds is told by a content-type header, else by its first bytes.

    format   content-type                           without one
    JSON     application/json                       one object
    NDJSON   application/x-ndjson                   objects, each on its line
    Arrow    application/vnd.apache.arrow.stream    begins with ff ff ff ff
    Rejected application/vnd.stairwise.rejected     never: one row that its publisher found bad, with the reason

Everything is first read as one object, which is what most messages are: many that look alike as columns, others one by
one. Only what is none is looked at again. Rows stay in the order of the messages, whatever their formats, and know
which part of which message they were.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

import numpy as np
import pyarrow as pa

from stairwise.schema import Stream
from stairwise.streams import rejected
from stairwise.streams.decoded_rows import BLOCK_ROWS, Bad, DecodedRows, Part
from stairwise.streams.framing import MARKER
from stairwise.streams.ipc import ArrowDecoder, ArrowRows, Refusal
from stairwise.streams.reason_codes import Code
from stairwise.streams.rows import UNREADABLE, BadRow, Decoded, RowDecoder, diagnose, within_time
from stairwise.streams.texts import TextLines, TextRun, cut
from stairwise.streams.uniform import UniformDecoder

CONTENT_TYPE = "content-type"
ENOUGH = 512
"""From how many lines on it pays to read them as columns."""
ENOUGH_OBJECTS = 2_048
"""And from how many messages of one object, which have to be put together first."""
UNLIKE = 15
"""So many times they are read one by one after some that did not look alike."""


class Format(Enum):
    """What a message may be, by its content-type."""

    JSON = "application/json"
    NDJSON = "application/x-ndjson"
    ARROW = "application/vnd.apache.arrow.stream"
    REJECTED = "application/vnd.stairwise.rejected"
    """A row of a file that its publisher could not turn into the stream's types: a dead letter to be."""


class MessageDecoder:
    """Decodes the messages of one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._json = RowDecoder(stream)
        self._uniform = UniformDecoder(stream)
        self._arrow = ArrowDecoder(stream)
        self._unlike = 0

    def decode(
        self, values: Sequence[bytes], times: np.ndarray | None, format_of: Callable[[int], Format | None]
    ) -> Iterator[DecodedRows]:
        """All rows of the messages. ``times`` are append times; ``format_of`` tells a message's content-type."""
        if (alike := self._objects_block(values, times)) is not None:
            yield alike
            return
        run = TextRun(self._stream, self._json, values, times)
        coming = iter(values)
        rest = map(self._json.read, coming)
        at = 0
        while True:
            before = len(run.structs)
            try:
                run.structs.extend(rest)
                error = None
            except UNREADABLE as unreadable:
                error = unreadable
            singles = len(run.structs) - before
            run.singles(at, singles)
            at += singles
            if error is None:
                break
            upto = at + 1
            kind = _format(values[at], format_of(at))
            if kind is Format.JSON:
                run.bad.append(Bad(at, 1, diagnose(self._stream, values[at], at, error), None))
            elif kind is Format.REJECTED:
                run.bad.append(rejected.decode(at, values[at]))
            else:
                while upto < len(values) and _format(values[upto], format_of(upto)) is kind:
                    upto += 1
                deque(itertools.islice(coming, upto - at - 1), maxlen=0)  # they are read here
                if kind is Format.ARROW:
                    yield from run.take()
                    yield from self._arrow_blocks(values, at, upto, times)
                else:
                    yield from self._line_blocks(run, values, at, upto, times)
            at = upto
        yield from run.take()

    def _objects_block(self, values: Sequence[bytes], times: np.ndarray | None) -> DecodedRows | None:
        """Messages that are each one object on one line and look alike; None if some do not, or they are few."""
        if len(values) < ENOUGH_OBJECTS:
            return None
        if self._unlike:
            self._unlike -= 1
            return None
        text = [b"\n".join([*values, b""])]
        block = self._columns_block(text, np.arange(len(values)), times, lambda _: None)
        if block is None:
            self._unlike = UNLIKE
        return block

    def _arrow_blocks(
        self, values: Sequence[bytes], at: int, upto: int, times: np.ndarray | None
    ) -> Iterator[DecodedRows]:
        for found in self._arrow.decode(values, range(at, upto), times, BLOCK_ROWS):
            if isinstance(found, Refusal):
                refused = found.error
                reason = BadRow(found.message, refused.code, refused.field, str(refused))
                nothing = pa.RecordBatch.from_pylist([], schema=self._stream.arrow_schema)
                yield DecodedRows(nothing, np.zeros(0, int), [Bad(found.message, 1, reason, None)])
            else:
                yield _arrow_block(found)

    def _line_blocks(
        self, run: TextRun, values: Sequence[bytes], at: int, upto: int, times: np.ndarray | None
    ) -> Iterator[DecodedRows]:
        """Messages of lines: as columns where they are many and alike, else into the run."""
        lines = itertools.chain.from_iterable(cut(message, values[message]) for message in range(at, upto))
        for group in _groups(lines):
            block = self._uniform_block(group, times)
            if block is not None:
                yield from run.take()
                yield block
                continue
            for some in group:
                run.lines(some.message, some.text)
                if len(run.structs) >= BLOCK_ROWS:
                    yield from run.take()

    def _uniform_block(self, group: Sequence[TextLines], times: np.ndarray | None) -> DecodedRows | None:
        counts = [lines.count for lines in group]
        if sum(counts) < ENOUGH:
            return None
        message = np.repeat([lines.message for lines in group], counts)
        return self._columns_block([lines.text for lines in group], message, times, _LinesOf(group).line)

    def _columns_block(
        self,
        text: Sequence[bytes],
        message: np.ndarray,
        times: np.ndarray | None,
        excerpt: Callable[[int], bytes | None],
    ) -> DecodedRows | None:
        """Lines that look alike, each of a ``message`` of which it is the ``excerpt``; None if some do not."""
        rows = self._uniform.decode(text, len(message), None if times is None else times[message])
        if rows is None:
            return None
        decoded = within_time(self._stream, Decoded(rows, np.arange(len(message)), []))
        bad = [Bad(int(message[b.index]), 1, b, excerpt(b.index)) for b in decoded.bad]
        return DecodedRows(
            decoded.rows,
            message[decoded.index],
            bad,
            lambda some: [(int(message[row]), 1, excerpt(row)) for row in decoded.index[some].tolist()],
        )


class _LinesOf:
    """Single lines of a group, found when they are asked for."""

    def __init__(self, group: Sequence[TextLines]) -> None:
        self._group = group
        self._split: list[bytes] | None = None

    def line(self, number: int) -> bytes:
        if self._split is None:
            self._split = b"".join(lines.text for lines in self._group).split(b"\n")
        return self._split[number]


def _groups(lines: Iterator[TextLines]) -> Iterator[list[TextLines]]:
    """What follows each other, put together to about a block's rows."""
    group: list[TextLines] = []
    count = 0
    for some in lines:
        if group and count + some.count > BLOCK_ROWS:
            yield group
            group, count = [], 0
        group.append(some)
        count += some.count
    if group:
        yield group


def _format(value: bytes, told: Format | None) -> Format:
    if told is not None:
        return told
    if value.startswith(MARKER):
        return Format.ARROW
    return Format.NDJSON if b"}\n{" in value or b"}\r\n{" in value else Format.JSON


def _arrow_block(arrow: ArrowRows) -> DecodedRows:
    """Rows of Arrow messages; of one message, bad ones with the same reason are one part, and so are late ones."""
    message = arrow.message
    groups: dict[tuple[int, Code, str | None], list[BadRow]] = {}
    for row in arrow.decoded.bad:
        groups.setdefault((int(message[row.index]), row.code, row.field), []).append(row)
    bad = [
        Bad(number, len(group), group[0], arrow.excerpt(np.array([row.index for row in group])))
        for (number, _, _), group in groups.items()
    ]
    index = arrow.decoded.index

    def parts(some: np.ndarray) -> Iterator[Part]:
        raw = index[some]
        if len(raw):
            for rows in np.split(raw, np.flatnonzero(np.diff(message[raw])) + 1):
                yield int(message[rows[0]]), len(rows), arrow.excerpt(rows)

    return DecodedRows(arrow.decoded.rows, message if len(index) == len(message) else message[index], bad, parts)
