"""From the name of a file to its rows: which format it has, how it is packed, how far it has been read."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from stairwise.errors import ConfigError
from stairwise.local.chunks import Chunk, Clock
from stairwise.local.csv import CommaSeparated
from stairwise.local.jsonl import JsonLines
from stairwise.local.parquet import Parquet
from stairwise.schema import Stream
from stairwise.streams.times import EARLIEST

JSON_LINES = (".jsonl", ".ndjson", ".json")
PACKINGS = {".gz": "gzip", ".zst": "zstd"}
STDIN = "-"


def clock() -> int:
    """Now, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _beginning() -> int:
    """The time of the rows of a table that declares none: they have held for ever."""
    return EARLIEST


class Source:
    """One file as rows of a stream, read a bounded piece at a time."""

    def __init__(self, stream: Stream, name: str, now: Clock = clock) -> None:
        if stream.is_table:
            now = _beginning
        self.name = name
        self.size = 0
        """In bytes as they lie on the disk; 0 where that is not known."""
        self._raw: BinaryIO | None = None
        self._parquet: Parquet | None = None
        if name == STDIN:
            self._chunks = JsonLines(stream, sys.stdin.buffer, now).chunks()
            return
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"there is no file {name}", hint="give --data STREAM=FILE, or STREAM=- for stdin")
        self.size = path.stat().st_size
        format_, packing = format_of(path)
        if format_ == "parquet":
            self._parquet = Parquet(stream, name, now)
            self._chunks = self._parquet.chunks()
            return
        self._raw = path.open("rb")
        file = self._raw if packing is None else _unpacked(self._raw, packing)
        if format_ == "csv":
            self._chunks = CommaSeparated(stream, file, now, name).chunks()
        else:
            self._chunks = JsonLines(stream, file, now).chunks()

    def chunks(self) -> Iterator[Chunk]:
        try:
            yield from self._chunks
        except (OSError, EOFError) as error:
            raise ConfigError(f"{self.name} cannot be read: {error}") from error
        finally:
            if self._raw is not None:
                self._raw.close()

    def position(self) -> int:
        """How many of its bytes have been read, or about."""
        if self._parquet is not None:
            return self.size * self._parquet.rows_read // max(1, self._parquet.rows)
        if self._raw is None:
            return 0
        return self.size if self._raw.closed else self._raw.tell()


def format_of(path: Path) -> tuple[str, str | None]:
    """The format and the packing that a file's name says: trades.csv.gz is csv in gzip."""
    packing = PACKINGS.get(path.suffix)
    suffix = Path(path.stem).suffix if packing else path.suffix
    if suffix in JSON_LINES:
        return "jsonl", packing
    if suffix == ".csv":
        return "csv", packing
    if suffix == ".parquet" and packing is None:
        return "parquet", None
    raise ConfigError(
        f"{path}: the name does not say what the file holds",
        hint="names end in .jsonl, .csv or .parquet; the first two also in .gz or .zst behind that",
    )


def _unpacked(raw: BinaryIO, packing: str) -> BinaryIO:
    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(raw, "r"), packing))
