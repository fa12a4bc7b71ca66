"""From the name of a file to its rows: which format it has, how it is packed, how far it has been read."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from stairwise.errors import ConfigError
from stairwise.local.chunks import Chunk, Clock
from stairwise.local.csv import CommaSeparated
from stairwise.local.jsonl import BLOCK as JSON_BLOCK
from stairwise.local.jsonl import JsonLines
from stairwise.local.parquet import Parquet
from stairwise.schema import EARLIEST, Stream

JSON_LINES = (".jsonl", ".ndjson", ".json")
PACKINGS = {".gz": "gzip", ".zst": "zstd"}
STDIN = "-"


def clock() -> int:
    """Now, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _beginning() -> int:
    """The time of the rows of a table that declares none: they have held for ever."""
    return EARLIEST


class Bytes:
    """A file's bytes, unpacked, and how far they have been read."""

    def __init__(self, name: str, told: str | None = None) -> None:
        """``told`` names the format, such as csv.gz, where the file's name does not or is not to be asked."""
        path = Path(name)
        if name != STDIN and (path.is_dir() or not path.exists()):
            raise ConfigError(f"there is no file {name}", hint="give the name of a file, or - for stdin")
        self.name = name
        self.format, self.packing = _format(path, told or ("jsonl" if name == STDIN else None))
        self.size = path.stat().st_size if path.is_file() else 0
        """In bytes as they lie on the disk; 0 where that is not known."""
        try:
            self._raw = sys.stdin.buffer if name == STDIN else path.open("rb")
        except OSError as error:
            raise unreadable(name, error) from error
        self.file = self._raw if self.packing is None else _unpacked(self._raw, self.packing)

    def seekable(self) -> BinaryIO:
        """The same as a file in which one can go back; what cannot is copied into one that goes away when closed."""
        if self.packing is None and self._raw.seekable():
            return self._raw
        copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  whoever reads it closes it
        try:
            shutil.copyfileobj(self.file, copy)
        except (OSError, EOFError) as error:
            raise unreadable(self.name, error) from error
        return copy

    def position(self) -> int:
        """How many of its bytes have been read, or about."""
        if self.size == 0:
            return 0
        return self.size if self._raw.closed else self._raw.tell()

    def close(self) -> None:
        if self.name != STDIN:
            self._raw.close()


class FileSource:
    """One file as rows of a stream, read a bounded piece at a time."""

    def __init__(self, stream: Stream, name: str, now: Clock = clock, told: str | None = None) -> None:
        if stream.is_table:
            now = _beginning
        self.name = name
        self._bytes = Bytes(name, told)
        self.size = self._bytes.size
        self._parquet: Parquet | None = None
        match self._bytes.format:
            case "parquet":
                self._parquet = Parquet(stream, self._bytes.seekable(), now, name)
                self._chunks = self._parquet.chunks()
            case "csv":
                self._chunks = CommaSeparated(stream, self._bytes.file, now, name).chunks()
            case _:
                self._chunks = JsonLines(stream, self._bytes.file, now).chunks()

    @property
    def unit(self) -> str:
        """What the number of a bad row counts."""
        return "line" if self._parquet is None else "row"

    def chunks(self) -> Iterator[Chunk]:
        try:
            yield from self._chunks
        except (OSError, EOFError, pa.ArrowException) as error:
            raise unreadable(self.name, error) from error
        finally:
            self._bytes.close()

    def check(self) -> None:
        """Read a parquet file to its end, so that a broken one is known before any of it is used."""
        if self._parquet is not None:
            try:
                self._parquet.check()
            except (OSError, pa.ArrowException) as error:
                raise unreadable(self.name, error) from error

    def position(self) -> int:
        """How many of its bytes have been read, or about."""
        if self._parquet is not None:
            return self.size * self._parquet.rows_read // max(1, self._parquet.rows)
        return self._bytes.position()


def unreadable(name: str, error: Exception) -> ConfigError:
    return ConfigError(f"{name} cannot be read: {error}", hint="is it whole? write or fetch it again")


def check_packing(name: str, told: str | None = None) -> None:
    """Unpack a file to its end, so that one that is cut short or broken is known before any of it is used."""
    packed = Bytes(name, told)
    if packed.packing is None or packed.format == "parquet":
        return  # a packed parquet file is unpacked before it is opened
    try:
        while packed.file.read(JSON_BLOCK):
            pass
    except (OSError, EOFError) as error:
        raise unreadable(name, error) from error
    finally:
        packed.close()


def _format(path: Path, told: str | None) -> tuple[str, str | None]:
    return format_of(path if told is None else Path(f"{path}.{told}"))


def format_of(path: Path) -> tuple[str, str | None]:
    """The format and the packing that a file's name says: trades.csv.gz is csv in gzip."""
    packing = PACKINGS.get(path.suffix)
    suffix = Path(path.stem).suffix if packing else path.suffix
    if suffix in JSON_LINES:
        return "jsonl", packing
    if suffix in (".csv", ".parquet"):
        return suffix.removeprefix("."), packing
    raise ConfigError(
        f"{path}: the name does not say what the file holds",
        hint="names end in .jsonl, .csv or .parquet, and in .gz or .zst behind that",
    )


def _unpacked(raw: BinaryIO, packing: str) -> BinaryIO:
    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(raw, "r"), packing))
