"""`stairwise publish`: lines of a file, or of stdin, onto a stream or into a table."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from stairwise.cli.session import Connection, complete_stream, connected, connection_options
from stairwise.client import Publisher

BLOCK = 1 << 18
"""About how many bytes of lines are taken at a time."""
BEATS = 20
"""How many times a second a given rate is kept."""


@click.command()
@click.argument("stream", shell_complete=complete_stream)
@click.argument("file", type=click.File("rb"))
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N rows a second.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "ndjson", "arrow"]),
    default="json",
    show_default=True,
    help="What goes onto Kafka: a message for each row, or many rows to a message, as lines or as Arrow batches.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 16_384),
    default=1_000,
    show_default=True,
    metavar="N",
    help="At most N rows to a message, for ndjson and arrow.",
)
@click.option("--seal", is_flag=True, help="Then end its input: SEAL STREAM, or SEAL TABLE.")
@connection_options
def publish(
    stream: str, file: BinaryIO, rate: float | None, format_: str, batch: int, seal: bool, connection: Connection
) -> None:
    """Publish the lines of FILE (- for stdin), one JSON object each, to STREAM, which may be a table.

    \b
    stairwise publish trades trades.jsonl --seal          and say that nothing follows
    stairwise publish trades trades.jsonl --rate 1000     at most a thousand a second
    tail -f trades.jsonl | stairwise publish trades -     as they come
    stairwise publish companies companies.jsonl --seal    a table: its updates, one to a message whatever the format

    Lines go as they are: what is wrong with one is found out by the system, which keeps it in dlq.STREAM with the
    reason. Exit code 0 means that Kafka has all of them.
    """
    with connected(connection) as client:
        publisher = client.publisher(stream)
        send = _sender(publisher, format_, batch)
        rows, begun = 0, time.monotonic()
        with _Bar(stream, file) as bar:
            for lines in _paced(_blocks(file), rate):
                send(lines)
                rows += len(lines)
                bar.advance(rows, sum(map(len, lines)) + len(lines))
            publisher.flush()
        seconds = time.monotonic() - begun
        if seal:
            client.execute(f'SEAL {publisher.stream.kind.upper()} "{stream}";')
    _summarise(stream, rows, seconds, seal)


def _sender(publisher: Publisher, format_: str, batch: int) -> Callable[[list[bytes]], None]:
    match format_:
        case "arrow":
            return lambda lines: publisher.send_columns(lines, batch)
        case "ndjson":
            return lambda lines: publisher.send_blocks(lines, batch)
        case _:
            return publisher.send_lines


def _blocks(file: BinaryIO) -> Iterator[list[bytes]]:
    """The lines, some at a time; those of a pipe as they come. Empty ones are no events."""
    if file.seekable():
        while lines := file.readlines(BLOCK):
            yield [line.rstrip(b"\r\n") for line in lines if line.strip()]
    else:
        for line in file:
            if line.strip():
                yield [line.rstrip(b"\r\n")]


def _paced(blocks: Iterator[list[bytes]], rate: float | None) -> Iterator[list[bytes]]:
    """The same lines, cut and held back so that no more than ``rate`` go in a second."""
    if rate is None:
        yield from blocks
        return
    at_once = max(1, int(rate / BEATS))
    due = time.monotonic()
    for block in blocks:
        for start in range(0, len(block), at_once):
            lines = block[start : start + at_once]
            time.sleep(max(0.0, due - time.monotonic()))
            yield lines
            due = max(due, time.monotonic() - 1.0) + len(lines) / rate


class _Bar:
    """How far it is, on a terminal; nothing in a pipe."""

    def __init__(self, stream: str, file: BinaryIO) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rows]:,} rows  {task.fields[rate]:,.0f} rows/s"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        total = os.fstat(file.fileno()).st_size if file.seekable() else None
        self._task: TaskID = self._progress.add_task(stream, total=total, rows=0, rate=0.0)
        self._begun = time.monotonic()

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self, rows: int, size: int) -> None:
        rate = rows / max(1e-6, time.monotonic() - self._begun)
        self._progress.update(self._task, advance=size, rows=rows, rate=rate)


def _summarise(stream: str, rows: int, seconds: float, sealed: bool) -> None:
    rate = rows / max(1e-6, seconds)
    if sys.stdout.isatty():
        click.echo(f"published {rows:,} rows to {stream} ({rate:,.0f} rows/s)" + (", and sealed it" if sealed else ""))
    else:
        said = {"stream": stream, "rows": rows, "seconds": round(seconds, 3), "sealed": sealed}
        click.echo(msgspec.json.encode(said))
