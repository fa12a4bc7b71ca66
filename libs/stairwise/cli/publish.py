"""`stairwise publish`: the rows of a file, or of stdin, onto a stream or into a table, and what became of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import cast

import click
import msgspec
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from stairwise.cli.file_rows import INPUT_FORMATS, FilePortion, FileRows, cut
from stairwise.cli.session import Connection, complete_stream, connected, connection_options
from stairwise.client import Confirmation, Publisher, PublishError
from stairwise.client.confirmation import PATIENCE
from stairwise.client.publisher import TABLE_ROWS
from stairwise.errors import ConfigError
from stairwise.local.chunks import Rejected

BEATS = 20
"""How many times a second a given rate is kept."""
LINES_ROWS = 1_000
"""Rows to a message of lines, unless told otherwise."""


@click.command()
@click.argument("stream", shell_complete=complete_stream)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True))
@click.option(
    "--input-format",
    "told",
    type=click.Choice(INPUT_FORMATS),
    metavar="FORMAT",
    help="What FILE holds, where its name does not say it: jsonl, csv or parquet, with .gz or .zst behind it.",
)
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N rows a second.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "ndjson", "arrow"]),
    help="What goes onto Kafka: a message for each row, or many rows to a message, as lines or as Arrow batches.  "
    "[default: json; arrow for csv and parquet]",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 16_384),
    metavar="N",
    help=f"At most N rows to a message, for ndjson and arrow.  [default: {LINES_ROWS:,}; {TABLE_ROWS:,} for csv and "
    "parquet]",
)
@click.option("--seal", is_flag=True, help="Then end its input: SEAL STREAM, or SEAL TABLE.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=PATIENCE,
    show_default=True,
    metavar="SECONDS",
    help="How long ingest may stand still before the outcome is given up.",
)
@click.option("--no-wait", is_flag=True, help="Do not ask what became of the rows.")
@click.option("--allow-rejects", is_flag=True, help="Exit with 0 although rows were late or dead.")
@connection_options
def publish(
    stream: str,
    file: str,
    told: str | None,
    rate: float | None,
    format_: str | None,
    batch: int | None,
    seal: bool,
    wait: float,
    no_wait: bool,
    allow_rejects: bool,
    connection: Connection,
) -> None:
    """Publish the rows of FILE (- for stdin) to STREAM, which may be a table.

    \b
    stairwise publish trades trades.jsonl --seal          and say that nothing follows
    stairwise publish trades trades.csv.gz                csv, parquet and jsonl, also packed by gzip or zstd
    stairwise publish trades trades.jsonl --rate 1000     at most a thousand a second
    tail -f trades.jsonl | stairwise publish trades -     as they come
    stairwise publish companies companies.jsonl --seal    a table: its updates, one to a message whatever the format

    At its end it says how many rows were taken, late or dead, as ingest committed it; late ones are in late.STREAM,
    dead ones in dlq.STREAM with the reason. Exit code 0 means that Kafka has all of them and that none was refused.
    """
    with connected(connection) as client:
        publisher = client.publisher(stream, tracked=not no_wait)
        source = FileRows(publisher.stream, file, told)
        send = _sender(publisher, source, format_, batch)
        rows, begun = 0, time.monotonic()
        with _Bar(stream, source) as bar:
            try:
                for portion in _paced(source.portions(), rate):
                    send(portion)
                    rows += len(portion)
                    bar.update(rows)
            except ConfigError as error:
                publisher.flush()
                hint = f"{rows:,} rows before that are published; {error.hint}"
                raise ConfigError(error.message, hint=hint if rows else error.hint) from error
            publisher.flush()
        seconds = time.monotonic() - begun
        if seal:
            client.execute(f'SEAL {publisher.stream.kind.upper()} "{stream}";')
        outcome = publisher.confirm(wait) if not no_wait else None
    _summarise(stream, rows, seconds, seal, outcome)
    _complain(stream, wait, outcome, allow_rejects)


def _sender(
    publisher: Publisher, source: FileRows, format_: str | None, batch: int | None
) -> Callable[[FilePortion], None]:
    """What sends a portion of the source."""
    if source.format != "jsonl":
        if format_ not in (None, "arrow"):
            raise click.UsageError(f"--format {format_} is for JSON lines: {source.format} goes as arrow")

        def send(portion: FilePortion) -> None:
            if isinstance(portion, pa.RecordBatch):
                publisher.send_decoded(portion, batch or TABLE_ROWS)
            else:
                source.send_rejected(publisher, cast(list[Rejected], portion))

        return send
    at_most = batch or LINES_ROWS
    match format_:
        case "arrow":
            return lambda lines: publisher.send_columns(cast(list[bytes], lines), at_most)
        case "ndjson":
            return lambda lines: publisher.send_blocks(cast(list[bytes], lines), at_most)
        case _:
            return lambda lines: publisher.send_lines(cast(list[bytes], lines))


def _paced(portions: Iterator[FilePortion], rate: float | None) -> Iterator[FilePortion]:
    """The same rows, cut and held back so that no more than ``rate`` go in a second."""
    if rate is None:
        yield from portions
        return
    at_once = max(1, int(rate / BEATS))
    due = time.monotonic()
    for portion in portions:
        for some in cut(portion, at_once):
            time.sleep(max(0.0, due - time.monotonic()))
            yield some
            due = max(due, time.monotonic() - 1.0) + len(some) / rate


class _Bar:
    """How far it is, on a terminal; nothing in a pipe."""

    def __init__(self, stream: str, source: FileRows) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rows]:,} rows  {task.fields[rate]:,.0f} rows/s"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._source = source
        self._task: TaskID = self._progress.add_task(stream, total=source.size or None, rows=0, rate=0.0)
        self._begun = time.monotonic()

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, rows: int) -> None:
        rate = rows / max(1e-6, time.monotonic() - self._begun)
        self._progress.update(self._task, completed=self._source.position(), rows=rows, rate=rate)


def _summarise(stream: str, rows: int, seconds: float, sealed: bool, outcome: Confirmation | None) -> None:
    if sys.stdout.isatty():
        rate = rows / max(1e-6, seconds)
        said = f"published {rows:,} rows to {stream} ({rate:,.0f} rows/s)" + (", and sealed it" if sealed else "")
        if outcome is not None and outcome.taken is not None:
            said += f": {outcome.taken:,} taken, {outcome.late:,} late, {outcome.dead:,} dead"
            said += f", {outcome.waiting:,} waiting" if outcome.waiting else ""
        click.echo(said)
        return
    line: dict[str, object] = {"stream": stream, "rows": rows, "seconds": round(seconds, 3), "sealed": sealed}
    for name in ("taken", "late", "dead", "waiting", "reason"):
        line[name] = getattr(outcome, name, None)
    click.echo(msgspec.json.encode(line))


def _complain(stream: str, wait: float, outcome: Confirmation | None, allow_rejects: bool) -> None:
    """What is not as it should be, on stderr; rows that were refused end the verb, unless they may be."""
    if outcome is None:
        return
    if outcome.untold is not None:
        click.echo(f"stairwise: what became of the rows is not known: {outcome.untold}", err=True)
    if outcome.waiting:
        text = f"ingest has judged {outcome.judged:,} of {outcome.rows:,} rows so far, and none in the last {wait:g} s"
        click.echo(
            f"stairwise: {text}\n  hint: Kafka has all of them; `stairwise status` tells how ingest is", err=True
        )
    if not outcome.refused:
        return
    refused = f"{outcome.refused:,} of {outcome.rows:,} rows were refused: {outcome.late:,} late, {outcome.dead:,} dead"
    error = PublishError(
        f"{refused}; the first: {outcome.reason}",
        hint=f"see them by `stairwise dlq show {stream}{'' if outcome.dead else ' --late'}`"
        + ("" if allow_rejects else "; --allow-rejects lets them be"),
    )
    if not allow_rejects:
        raise error
    click.echo(f"stairwise: {error}", err=True)
