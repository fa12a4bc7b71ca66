"""What ingest tells on its metrics page, and whether ingest and operators answer at all."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

TIMEOUT = 1.0
"""How long a page may take, in seconds."""
ROWS, FAILED = "stairwise_ingest_rows_total", "stairwise_ingest_stream_failed"


@dataclass(frozen=True)
class Scraped:
    absent: frozenset[str] = frozenset()
    """Parts whose page does not come."""
    late: Mapping[str, int] = field(default_factory=dict)
    """Rows by stream, since ingest was started."""
    dead: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    """Streams that ingest has set aside, with the reason."""
    counts: bool = False
    """Has ingest told?"""


def read(pages: Mapping[str, str]) -> Scraped:
    """Ask all pages at once; they are given by part, as ``host:port``."""
    if not pages:
        return Scraped()
    with ThreadPoolExecutor(len(pages)) as threads:
        texts = dict(zip(pages, threads.map(_text, pages.values()), strict=True))
    absent = frozenset(part for part, text in texts.items() if text is None)
    return _scraped(absent, texts.get("ingest"))


def _text(address: str) -> str | None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://{address}/metrics", timeout=TIMEOUT) as page:
            text: str = page.read().decode()
    except OSError:
        return None
    return text


def _scraped(absent: frozenset[str], ingest: str | None) -> Scraped:
    if ingest is None:
        return Scraped(absent)
    late: dict[str, int] = {}
    dead: dict[str, int] = {}
    failed: dict[str, str] = {}
    for sample in _samples(ingest):
        stream = sample.labels["stream"]
        if sample.name == FAILED and sample.value:
            failed[stream] = sample.labels.get("reason", "its log says why")
        elif sample.labels.get("outcome") == "late":
            late[stream] = int(sample.value)
        elif sample.labels.get("outcome") == "dead":
            dead[stream] = int(sample.value)
    return Scraped(absent, late, dead, failed, counts=True)


def _samples(page: str) -> Iterator[Sample]:
    """Only the lines that are asked for are parsed: a page has thousands."""
    lines = [line for line in page.splitlines() if line.startswith((ROWS, FAILED))]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        yield from family.samples
