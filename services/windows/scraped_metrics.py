"""What ingest tells on its metrics page, and whether ingest and operators answer at all."""

from __future__ import annotations

import socket
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from stairwise.platform.variables import host_and_port

TIMEOUT = 1.0
"""How long a page may take, in seconds."""
MOST_AT_ONCE = 16
ROWS, FAILED = "stairwise_ingest_rows_total", "stairwise_ingest_stream_failed"


@dataclass(frozen=True)
class Scraped:
    absent: frozenset[str] = frozenset()
    """Parts of which a page does not come."""
    late: Mapping[str, int] = field(default_factory=dict)
    """Rows by stream, since the instances of ingest were started."""
    dead: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    """Streams that ingest has set aside, with the reason."""
    counts: bool = False
    """Has every instance of ingest told?"""


def read(pages: Mapping[str, str]) -> Scraped:
    """Ask all pages at once; they are given by part, as ``host:port``.

    A host with several addresses, such as a headless service of Kubernetes, stands for as many instances of the part.
    A part is absent if one of them is.
    """
    asked = {part: _instances(page) for part, page in pages.items()}
    addresses = sorted({address for instances in asked.values() for address in instances})
    with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
        texts = dict(zip(addresses, threads.map(_text, addresses), strict=True))
    told = {part: [texts[address] for address in instances] for part, instances in asked.items()}
    absent = frozenset(part for part, answers in told.items() if not answers or None in answers)
    counts = "ingest" in told and "ingest" not in absent
    return _scraped(absent, [text for text in told.get("ingest", []) if text is not None], counts)


def _instances(page: str) -> list[str]:
    """The addresses of a host, of one family: an instance with two is asked once."""
    host, port = host_and_port(page)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    family = min(each[0] for each in found)  # IPv4 where there are both
    hosts = [str(each[4][0]) for each in found if each[0] == family]
    return [f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}" for host in hosts]


def _text(address: str) -> str | None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://{address}/metrics", timeout=TIMEOUT) as page:
            text: str = page.read().decode()
    except OSError:
        return None
    return text


def _scraped(absent: frozenset[str], ingest: Iterable[str], counts: bool) -> Scraped:
    late: Counter[str] = Counter()
    dead: Counter[str] = Counter()
    failed: dict[str, str] = {}
    for sample in chain.from_iterable(map(_samples, ingest)):
        stream = sample.labels["stream"]
        if sample.name == FAILED and sample.value:
            failed[stream] = sample.labels.get("reason", "its log says why")
        elif sample.labels.get("outcome") == "late":
            late[stream] += int(sample.value)
        elif sample.labels.get("outcome") == "dead":
            dead[stream] += int(sample.value)
    return Scraped(absent, late, dead, failed, counts)


def _samples(page: str) -> Iterator[Sample]:
    """Only the lines that are asked for are parsed: a page has thousands."""
    lines = [line for line in page.splitlines() if line.startswith((ROWS, FAILED))]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        yield from family.samples
