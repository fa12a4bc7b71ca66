"""How the whole system does at a moment: its parts as they answer, its streams as the registry tells of them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from stairwise.client import Client
from stairwise.client.status import FailedQuery, Status, StreamStatus
from stairwise.errors import StairwiseError
from stairwise.platform.channels import Credentials
from stairwise.platform.config import Settings
from stairwise.platform.free_space import free_bytes
from stairwise.schema import Instant
from stairwise.system.part_status import PartStatus, ask_all
from stairwise.system.state import SystemState
from stairwise.wire.waiting import LONG, duration

TIMEOUT = 3.0
"""How long the registry may take to tell, in seconds."""
APART = 1.0
"""How far two looks are apart that tell how many rows come, in seconds."""


@dataclass(frozen=True)
class StreamLine:
    """A stream, and how many rows a second were on time between two looks; None where there was one only."""

    status: StreamStatus
    rows_per_second: float | None
    behind_clock_ms: int | None
    """How far its watermark is behind the clock."""

    def as_json(self) -> dict[str, Any]:
        said = asdict(self.status)
        own = {"rows_per_second": self.rows_per_second, "behind_clock_ms": self.behind_clock_ms}
        return {"stream": said.pop("name"), **own, **said}


@dataclass(frozen=True)
class Volume:
    """The volume that the system's directory is on."""

    directory: str
    free: int
    """Bytes."""
    least: int
    """Below this, ingest pauses."""

    @property
    def is_full(self) -> bool:
        return self.free < self.least

    @property
    def remark(self) -> str:
        """What is said of a volume that is full."""
        if not self.is_full:
            return ""
        limit = f"{self.least / 1e6:,.0f} MB"
        return f"the volume of {self.directory} is full: {self.free / 1e6:,.0f} MB free, ingest pauses below {limit}"

    @staticmethod
    def of(directory: Path) -> Volume:
        return Volume(str(directory), free_bytes(directory), Settings.from_environment(os.environ).min_free_bytes)


@dataclass(frozen=True)
class Overview:
    parts: tuple[PartStatus, ...]
    clock: Instant
    look: Status | None
    """What the registry told; None where it did not."""
    streams: tuple[StreamLine, ...] = ()
    trouble: str = ""
    """Why nothing is known of the streams."""
    volume: Volume | None = None

    @property
    def failed(self) -> tuple[FailedQuery, ...]:
        """The queries that operators has set aside."""
        return () if self.look is None else self.look.failed

    @property
    def is_healthy(self) -> bool:
        return all(part.is_healthy for part in self.parts) and not (self.volume and self.volume.is_full)

    def as_json(self) -> dict[str, Any]:
        parts, streams = [asdict(part) for part in self.parts], [stream.as_json() for stream in self.streams]
        failed = [asdict(query) for query in self.failed]
        said = {"clock": self.clock, "parts": parts, "streams": streams, "failed": failed, "trouble": self.trouble}
        return said if self.volume is None else {**said, "volume": asdict(self.volume) | {"full": self.volume.is_full}}


class Looking:
    """Looks at one system, again and again; each look tells the rates since the one before."""

    def __init__(self, state: SystemState) -> None:
        self._client = Client(state.addresses, Credentials.from_environment(os.environ))
        self._before: Status | None = None

    def __enter__(self) -> Looking:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def look(self, state: SystemState) -> Overview:
        """The first look takes a second longer, as there is none before it."""
        begun = time.monotonic()
        with ThreadPoolExecutor(1) as aside:
            asked = aside.submit(ask_all, state)
            try:
                if self._before is None:
                    self._before = self._client.status(timeout=TIMEOUT)
                    time.sleep(max(0.0, begun + APART - time.monotonic()))
                before, self._before = self._before, self._client.status(timeout=TIMEOUT)
            except StairwiseError as error:
                return Overview(tuple(asked.result()), int(time.time() * 1000), None, trouble=str(error))
            return overview(asked.result(), self._before, before)


def overview(parts: Sequence[PartStatus], look: Status, before: Status) -> Overview:
    """Put together what the parts and two looks say."""
    earlier = {stream.name: stream.rows for stream in before.streams}
    apart = (look.clock - before.clock) / 1000
    lines = []
    for stream in look.streams:
        rows = stream.rows - earlier.get(stream.name, 0)
        rate = round(rows / apart, 1) if apart > 0 and stream.name in earlier and rows >= 0 else None
        behind = None if stream.watermark is None else look.clock - stream.watermark
        lines.append(StreamLine(stream, rate, behind))
    return Overview(tuple(_explained(part, look, lines) for part in parts), look.clock, look, tuple(lines))


def _explained(part: PartStatus, look: Status, lines: Sequence[StreamLine]) -> PartStatus:
    """The part with about how long it is behind, and a reason where that is long: health alone would hide it."""
    if not part.lag:
        return part
    if part.part == "operators":
        longest = max((s.untaken_ms for s in look.streams if s.untaken_ms is not None), default=None)
        seconds, unit = None if longest is None else longest / 1000, "batches"
    elif part.part == "ingest":
        rate = sum(line.rows_per_second or 0.0 for line in lines)
        seconds, unit = part.lag / rate if rate else None, "messages"
    else:
        return part
    part = replace(part, lag_seconds=None if seconds is None else round(seconds, 1))
    is_long = seconds is not None and seconds * 1000 >= LONG
    if part.reason or not (is_long or part.part in look.absent):
        return part
    about = "" if seconds is None else f", about {duration(int(seconds) * 1000)}"
    mute = ", and does not answer" if part.part in look.absent else ""
    return replace(part, reason=f"{part.lag:,} {unit} behind{about}{mute}")
