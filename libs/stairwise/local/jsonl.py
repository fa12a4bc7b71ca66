"""JSON lines: one object per line. Empty lines are passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from stairwise.local.chunks import Chunk, Clock, Rejected
from stairwise.schema import Stream
from stairwise.state.pages import concat
from stairwise.streams.rows import RowDecoder
from stairwise.streams.times import latest_in_files

BLOCK = 2**19
"""Bytes decoded at a time: their rows are Python objects for a while, and these should stay in the cache."""
ROWS = 131_072
"""Rows that make a chunk, unless a pipe has no more for now."""
LONGEST_LINE = 64 * 2**20
"""A line that is longer cannot be a row: it is cut up, and its pieces are bad rows."""
SHOWN = 10_000
"""How much of a bad line is kept."""


def line_blocks(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Whole lines of a file, about a block at a time, and whether that is all there is for now."""
    rest = b""
    read = getattr(file, "read1", file.read)
    while block := read(BLOCK):
        is_all = len(block) < BLOCK
        block = rest + block
        end = block.rfind(b"\n") + 1
        if end == 0 and len(block) > LONGEST_LINE:
            block += b"\n"
            end = len(block)
        rest = block[end:]
        if end:
            yield block[:end], is_all
    if rest:
        yield rest + b"\n", True


class JsonLines:
    """Rows from a binary file of JSON lines."""

    def __init__(self, stream: Stream, file: BinaryIO, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._decoder = RowDecoder(stream, latest_in_files(stream))
        self._timed_by_clock = stream.timestamp_by is None

    def chunks(self) -> Iterator[Chunk]:
        number = 1
        waiting: list[Chunk] = []
        for block, is_all in line_blocks(self._file):
            waiting.append(self._decoded(block, number))
            number += block.count(b"\n")
            if is_all or sum(chunk.rows.num_rows for chunk in waiting) >= ROWS:
                yield _together(waiting)
                waiting = []
        if waiting:
            yield _together(waiting)

    def _decoded(self, block: bytes, number: int) -> Chunk:
        times = self._times(block) if self._timed_by_clock else None
        decoded = self._decoder.decode_lines(block, times)
        return Chunk(decoded.rows) if decoded is not None else self._line_by_line(block, number)

    def _times(self, block: bytes) -> np.ndarray:
        return np.full(block.count(b"\n"), self._clock(), np.int64)

    def _line_by_line(self, block: bytes, first: int) -> Chunk:
        lines = block.split(b"\n")[:-1]
        numbers: Sequence[int] = range(first, first + len(lines))
        if not all(map(bytes.strip, lines)):
            filled = [i for i, line in enumerate(lines) if line.strip()]
            numbers, lines = [numbers[i] for i in filled], [lines[i] for i in filled]
        times = self._times(block)[: len(lines)] if self._timed_by_clock else None
        decoded = self._decoder.decode(lines, times)
        rejected = [Rejected(numbers[b.index], b.code, b.field, b.message, _shown(lines[b.index])) for b in decoded.bad]
        return Chunk(decoded.rows, rejected)


def _shown(line: bytes) -> str:
    return line[:SHOWN].decode("utf-8", "replace")


def _together(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    rejected = [bad for chunk in chunks for bad in chunk.rejected]
    return Chunk(concat([chunk.rows for chunk in chunks]), rejected)
