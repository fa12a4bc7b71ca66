"""Rows of JSON text that follow each other in a partition, from messages of one object or of many lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stairwise.schema import Stream
from stairwise.streams.decoded_rows import BLOCK_ROWS, Bad, DecodedRows
from stairwise.streams.rows import UNREADABLE, RowDecoder, diagnose

_NEWLINE = ord("\n")


@dataclass(frozen=True)
class TextLines:
    """Whole lines of a message, each with its end; no more than a block has rows."""

    message: int
    text: bytes
    count: int


def cut(message: int, value: bytes) -> Iterator[TextLines]:
    """The lines of a message, so many at a time."""
    if not value.endswith(b"\n"):
        value += b"\n"
    is_end = np.frombuffer(value, np.uint8) == _NEWLINE
    count = int(np.count_nonzero(is_end))
    if count <= BLOCK_ROWS:
        yield TextLines(message, value, count)
        return
    ends = [0, *(np.flatnonzero(is_end)[BLOCK_ROWS - 1 :: BLOCK_ROWS] + 1).tolist(), len(value)]
    for start, end in itertools.pairwise(ends):
        if end > start:
            yield TextLines(message, value[start:end], value.count(b"\n", start, end))


class TextRun:
    """Collects rows until they are asked for as a block."""

    def __init__(self, stream: Stream, decoder: RowDecoder, values: Sequence[bytes], times: np.ndarray | None) -> None:
        self._stream = stream
        self._decoder = decoder
        self._values = values
        self._times = times
        self._begin()

    def _begin(self) -> None:
        self.structs: list[Any] = []
        self.bad: list[Bad] = []
        self._messages: list[np.ndarray] = []
        self._texts: list[bytes] = []
        self._lines: dict[int, list[bytes]] = {}
        """Of the rows from this number on, the lines that they are."""
        self._rows = 0

    def singles(self, first: int, count: int) -> None:
        """The structs that were added last are whole messages."""
        if count:
            self._messages.append(np.arange(first, first + count))
            self._texts += self._values[first : first + count]
            self._rows += count

    def lines(self, message: int, block: bytes) -> None:
        """Lines of a message, each with its end."""
        structs = self._decoder.structs_of(block)
        lines: list[bytes] | None = None
        if structs is None:
            structs, lines = [], []
            for line in filter(bytes.strip, block.split(b"\n")):
                try:
                    structs.append(self._decoder.read(line))
                    lines.append(line)
                except UNREADABLE as error:
                    reason = diagnose(self._stream, line, message, error)
                    self.bad.append(Bad(message, 1, reason, line.rstrip(b"\r")))
            block = b"\n".join(lines)
        if not structs:
            return
        self._lines[self._rows] = lines if lines is not None else [block]
        self._texts.append(block)
        self.structs += structs
        self._messages.append(np.full(len(structs), message))
        self._rows += len(structs)

    def take(self) -> Iterator[DecodedRows]:
        """What was collected, as one block if it is anything."""
        if not self.structs and not self.bad:
            return
        message = np.concatenate(self._messages) if self._messages else np.zeros(0, int)
        raw = _Raw(self._values, message, self._lines)
        times = None if self._times is None else self._times[message]
        decoded = self._decoder.columns(self.structs, times, b"\n".join(self._texts), raw.all)
        for row in decoded.bad:
            self.bad.append(Bad(int(message[row.index]), 1, row, raw.excerpt(row.index)))
        bad = sorted(self.bad, key=lambda bad: bad.message)
        self._begin()
        yield DecodedRows(
            decoded.rows,
            message[decoded.index],
            bad,
            lambda some: [(int(message[row]), 1, raw.excerpt(row)) for row in decoded.index[some].tolist()],
        )


class _Raw:
    """The text of each row of a run, found when it is asked for."""

    def __init__(self, values: Sequence[bytes], message: np.ndarray, lines: dict[int, list[bytes]]) -> None:
        self._values = values
        self._message = message
        self._starts = sorted(lines)
        self._lines = lines

    def all(self) -> Sequence[bytes]:
        rows = list(map(self._values.__getitem__, self._message.tolist()))
        for start in self._starts:
            lines = self._split(start)
            rows[start : start + len(lines)] = lines
        return rows

    def excerpt(self, row: int) -> bytes | None:
        """The line that a row is; None for a whole message."""
        at = int(np.searchsorted(self._starts, row, side="right")) - 1
        if at < 0:
            return None
        start = self._starts[at]
        lines = self._split(start)
        return lines[row - start].rstrip(b"\r") if row - start < len(lines) else None

    def _split(self, start: int) -> list[bytes]:
        lines = self._lines[start]
        if len(lines) == 1 and b"\n" in lines[0]:
            lines = self._lines[start] = lines[0].removesuffix(b"\n").split(b"\n")
        return lines
