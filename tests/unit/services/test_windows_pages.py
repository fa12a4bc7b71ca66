"""What the registry reads off the metrics pages of others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from services.windows import pages

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


@pytest.fixture
def ingest() -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_rows_that_were_refused_streams_that_failed_and_who_does_not_answer(ingest: str) -> None:
    told = pages.read({"ingest": ingest, "operators": "127.0.0.1:1"})
    assert told == pages.Scraped(
        frozenset({"operators"}), {"trades": 2}, {"trades": 1}, {"quotes": 'no such "column"'}, True
    )


def test_nothing_is_known_where_no_page_is_named() -> None:
    assert pages.read({}) == pages.Scraped()
    assert pages.read({"ingest": "127.0.0.1:1"}) == pages.Scraped(frozenset({"ingest"}))
