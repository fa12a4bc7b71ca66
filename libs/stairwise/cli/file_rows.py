"""The rows of a file on their way to a publisher: lines as they are, columns as `run` reads them.

    jsonl          lines ─────────────────────▶ as they are; ingest says what is wrong with one
    csv, parquet   rows of the stream's types ─▶ Arrow messages
                   rows that are none ─────────▶ with the reason and where they stand, for the dead letters

What is wrong with the whole file is said before anything is sent, wherever reading it once more can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from stairwise.client import Publisher
from stairwise.errors import ConfigError
from stairwise.local.chunks import Rejected
from stairwise.local.jsonl import line_blocks
from stairwise.local.sources import STDIN, Bytes, FileSource, check_packing, format_of, unreadable
from stairwise.schema import Stream

FORMATS = ("jsonl", "csv", "parquet")
INPUT_FORMATS = tuple(f"{format_}{packing}" for packing in ("", ".gz", ".zst") for format_ in FORMATS)
LOOKED_AT = 1 << 16
"""In how many bytes an object is looked for before a file counts as one of JSON lines."""
_MAGIC = {b"\x1f\x8b": "jsonl.gz", b"\x28\xb5\x2f\xfd": "jsonl.zst", b"PAR1": "parquet"}

FilePortion: TypeAlias = Sequence[bytes] | Sequence[Rejected] | pa.RecordBatch
"""Lines, bad rows, or rows in columns."""


class FileRows:
    """One file, checked as far as it can be."""

    def __init__(self, stream: Stream, name: str, told: str | None = None) -> None:
        self.name = name
        is_named = name != STDIN and Path(name).is_file()
        self.format, self.told = _format(name, told)
        if is_named:
            if Path(name).stat().st_size == 0:
                end = f"stairwise sql -e 'SEAL {stream.kind.upper()} {stream.name}'"
                raise ConfigError(f"{name} is empty: there is nothing to publish", hint=f"to end the input: {end}")
            check_packing(name, self.told)
            if self.format == "jsonl" and told is None:
                _check_lines(name, self.told)
        if self.format == "jsonl":
            self._opened: Bytes | FileSource = Bytes(name, self.told)
        else:
            self._opened = FileSource(stream, name, told=self.told)
            if is_named:
                self._opened.check()

    @property
    def size(self) -> int:
        return self._opened.size

    def position(self) -> int:
        return self._opened.position()

    def portions(self) -> Iterator[FilePortion]:
        """What there is, a bounded piece at a time; of a pipe, as it comes. Empty lines are no rows."""
        if isinstance(self._opened, FileSource):
            for chunk in self._opened.chunks():
                yield chunk.rows
                yield chunk.rejected
            return
        try:
            for block, _ in line_blocks(self._opened.file):
                yield [line.rstrip(b"\r") for line in block.split(b"\n") if line.strip()]
        except (OSError, EOFError) as error:
            raise unreadable(self.name, error) from error
        finally:
            self._opened.close()

    def send_rejected(self, publisher: Publisher, some: Sequence[Rejected]) -> None:
        assert isinstance(self._opened, FileSource)
        place = f"{'stdin' if self.name == STDIN else Path(self.name).name}, {self._opened.unit}"
        for bad in some:
            publisher.send_rejected(bad.code, bad.field, f"{place} {bad.number}: {bad.message}", bad.raw)


def cut(portion: FilePortion, rows: int) -> Iterator[FilePortion]:
    """The same, so many rows at a time."""
    for start in range(0, len(portion), rows):
        if isinstance(portion, pa.RecordBatch):
            yield portion.slice(start, rows)
        else:
            yield portion[start : start + rows]


def _format(name: str, told: str | None) -> tuple[str, str | None]:
    """What a file holds, and how to tell so whoever opens it; a name that says nothing may be one of JSON lines."""
    try:
        return format_of(Path(name if told is None else f"file.{told}"))[0], told
    except ConfigError:
        return "jsonl", "jsonl"


def _check_lines(name: str, told: str | None) -> None:
    """Not one object among the first lines of a file: it is something else."""
    opened = Bytes(name, told)
    try:
        beginning = opened.file.read(LOOKED_AT)
    finally:
        opened.close()
    if not beginning.strip() or any(map(_may_be_object, beginning.split(b"\n"))):
        return
    looks = next((format_ for magic, format_ in _MAGIC.items() if beginning.startswith(magic)), "csv")
    shown = repr(beginning[:20])[1:]
    raise ConfigError(
        f"{name} does not look like JSON lines: it begins with {shown}",
        hint=f"say what it holds: --input-format {looks}, or one of {', '.join(FORMATS)}, with .gz or .zst behind it",
    )


def _may_be_object(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.end >= len(line)  # cut in the middle of a character
    return True
