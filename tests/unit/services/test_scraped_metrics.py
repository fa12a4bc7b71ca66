"""What the registry reads off the metrics pages of others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from services.windows import scraped_metrics

PAGE = """# HELP stairwise_ingest_rows_total rows by stream and outcome
# TYPE stairwise_ingest_rows_total counter
stairwise_ingest_rows_total{outcome="on_time",stream="trades"} 7.0
stairwise_ingest_rows_total{outcome="late",stream="trades"} 2.0
stairwise_ingest_rows_total{outcome="dead",stream="trades"} 1.0
stairwise_ingest_rows_in_total{stream="trades"} 10.0
# TYPE stairwise_ingest_stream_failed gauge
stairwise_ingest_stream_failed{reason="no such \\"column\\"",stream="quotes"} 1.0
stairwise_ingest_stream_failed{reason="mended",stream="trades"} 0.0
"""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *_: object) -> None: ...


@contextmanager
def instance(host: str, port: int = 0) -> Iterator[int]:
    """An instance of ingest that has one page; gives its port."""
    server = HTTPServer((host, port), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def ingest() -> Iterator[str]:
    with instance("127.0.0.1") as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture
def name_of_two(monkeypatch: pytest.MonkeyPatch) -> str:
    """A host with two addresses, as that of a headless service over two pods."""

    def resolve(host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        hosts = ("127.0.0.1", "127.0.0.2") if host == "ingest.prod" else (host,)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in hosts]

    monkeypatch.setattr(scraped_metrics.socket, "getaddrinfo", resolve)
    return "ingest.prod"


def test_rows_that_were_refused_streams_that_failed_and_who_does_not_answer(ingest: str) -> None:
    told = scraped_metrics.read({"ingest": ingest, "operators": "127.0.0.1:1"})
    assert told == scraped_metrics.Scraped(
        frozenset({"operators"}), {"trades": 2}, {"trades": 1}, {"quotes": 'no such "column"'}, True
    )


def test_nothing_is_known_where_no_page_is_named() -> None:
    assert scraped_metrics.read({}) == scraped_metrics.Scraped()
    assert scraped_metrics.read({"ingest": "127.0.0.1:1"}) == scraped_metrics.Scraped(frozenset({"ingest"}))


def test_counts_of_several_instances_are_added_up(name_of_two: str) -> None:
    with instance("127.0.0.1") as port, instance("127.0.0.2", port):
        told = scraped_metrics.read({"ingest": f"{name_of_two}:{port}"})
    assert told == scraped_metrics.Scraped(
        frozenset(), {"trades": 4}, {"trades": 2}, {"quotes": 'no such "column"'}, True
    )


def test_counts_are_not_known_while_one_of_several_instances_does_not_answer(name_of_two: str) -> None:
    with instance("127.0.0.1") as port:
        told = scraped_metrics.read({"ingest": f"{name_of_two}:{port}"})
    assert told.absent == {"ingest"}
    assert told.failed == {"quotes": 'no such "column"'}
    assert not told.counts


def test_a_part_whose_name_nobody_knows_does_not_answer() -> None:
    assert scraped_metrics.read({"ingest": "ingest.invalid:7173"}) == scraped_metrics.Scraped(frozenset({"ingest"}))
