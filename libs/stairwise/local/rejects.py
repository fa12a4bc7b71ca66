"""Where the rows go that are not in the stream: late ones and bad ones, as JSON lines with the reason."""

from __future__ import annotations

from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.local.chunks import Rejected
from stairwise.local.engine import Late
from stairwise.reports.lines import texts, to_bytes
from stairwise.schema import Stream

_ENCODER = msgspec.json.Encoder()


def late_lines(stream: Stream, late: Late) -> bytes:
    """{"stream": ..., "partition": ..., "watermark": ..., "row": {...}} for each row that came too late."""
    head = f'{{"stream": {_quoted(stream.name)}, "partition": {late.partition}, "watermark": '
    parts: list[object] = [head, pc.cast(pa.array(late.watermarks), pa.string())]
    separator = ', "row": {'
    for name, column in zip(late.rows.schema.names, late.rows.columns, strict=True):
        parts += [f"{separator}{_quoted(name)}: ", texts(column)]
        separator = ", "
    return to_bytes(pc.binary_join_element_wise(*parts, "}}\n", ""))


def bad_lines(stream: Stream, file: str, rejected: list[Rejected]) -> bytes:
    """{"stream": ..., "file": ..., "number": ..., "code": ..., "field": ..., "message": ..., "raw": ...}."""
    return _ENCODER.encode_lines(
        [
            {
                "stream": stream.name,
                "file": file,
                "number": bad.number,
                "code": bad.code.value,
                "field": bad.field,
                "message": bad.message,
                "raw": bad.raw,
            }
            for bad in rejected
        ]
    )


class Rejects:
    """The files of late and bad rows, where there are any; of bad rows that no file keeps, the first of each source."""

    def __init__(self, late: BinaryIO | None, bad: BinaryIO | None) -> None:
        self._late = late
        self._bad = bad
        self.unkept: dict[str, tuple[int, Rejected]] = {}
        """By source: how many bad rows it has, and the first."""

    def take_late(self, stream: Stream, late: list[Late]) -> None:
        if self._late is not None:
            for some in late:
                self._late.write(late_lines(stream, some))

    def take_bad(self, stream: Stream, file: str, rejected: list[Rejected]) -> None:
        if not rejected:
            return
        if self._bad is not None:
            self._bad.write(bad_lines(stream, file, rejected))
        else:
            count, first = self.unkept.get(file, (0, rejected[0]))
            self.unkept[file] = count + len(rejected), first


def _quoted(text: str) -> str:
    return _ENCODER.encode(text).decode()
