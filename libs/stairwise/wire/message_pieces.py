"""A report as messages of ``results``: one where it is small, pieces of it where it is not.

    report      ████████████████████                     no message is longer than the broker takes
    messages    a:0/5  a:1/5   ✗                         operators was killed: write a is never complete
                b:0/5  b:1/5  b:2/5  b:3/5  b:4/5        the replay is another write, and may have other bytes

All pieces of a write go to one partition, in order. So who has seen its last piece, and its first, has seen them all.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

HEADER = "piece"
"""The header of a message that holds a piece; empty or absent where the message holds the whole."""


@dataclass(frozen=True)
class MessagePiece:
    """Which part of which write of a report a message holds."""

    write: str
    """Unlike that of any other write, of the same report too."""
    number: int
    count: int

    @property
    def is_last(self) -> bool:
        return self.number + 1 == self.count

    def encode(self) -> bytes:
        return f"{self.write}/{self.number}/{self.count}".encode()

    @staticmethod
    def decode(headers: Mapping[str, bytes]) -> MessagePiece | None:
        """What a message's headers say; None: it holds the whole."""
        said = headers.get(HEADER)
        if not said:
            return None
        write, number, count = said.decode().split("/")
        piece = MessagePiece(write, int(number), int(count))
        if not 0 <= piece.number < piece.count:
            raise ValueError(f"there is no piece {number} of {count}")
        return piece


def cut(value: bytes, most: int) -> Iterator[tuple[bytes, bytes]]:
    """The messages of one write of a report: what the header says, and the bytes, so many at the most."""
    if len(value) <= most:
        yield b"", value
        return
    write, count = uuid.uuid4().hex, -(-len(value) // most)
    for number in range(count):
        yield MessagePiece(write, number, count).encode(), value[number * most : (number + 1) * most]
