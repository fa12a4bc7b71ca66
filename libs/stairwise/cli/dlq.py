"""`stairwise dlq`: what ingest could not take, and taking it once more."""

from __future__ import annotations

import base64
import datetime
import itertools
import sys

import click
import msgspec
from rich.console import Console
from rich.table import Table

from stairwise.cli.session import Connection, complete_stream, connected, connection_options
from stairwise.client.dead_letters import DeadLetter, DeadLetters
from stairwise.streams.reason_codes import Code

SHOWN = 60
"""How many bytes of a letter a table shows."""

code_option = click.option(
    "--code",
    "codes",
    multiple=True,
    type=click.Choice([code.name for code in Code], case_sensitive=False),
    help="Only those with this reason; may be given several times.",
)


@click.group()
def dlq() -> None:
    """Dead letters: rows that are not rows of their stream, with the reason."""


@dlq.command()
@click.argument("stream", shell_complete=complete_stream)
@code_option
@click.option("--late", is_flag=True, help="The rows that came too late instead.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N of them.")
@connection_options
def show(stream: str, codes: tuple[str, ...], late: bool, limit: int | None, connection: Connection) -> None:
    """Show the dead letters of STREAM: a table on a terminal, JSON lines in a pipe.

    In JSON lines `value` is the text as it came, or `base64` its bytes where it is none.
    """
    with connected(connection) as client:
        letters = itertools.islice(DeadLetters(client.addresses.brokers, stream, late=late).read(codes), limit)
        if not sys.stdout.isatty():
            for letter in letters:
                click.echo(msgspec.json.encode(as_line(letter)))
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("time", "at", "code", "field", "reason", "rows", "value"):
            table.add_column(heading, overflow="fold")
        for letter in letters:
            table.add_row(*as_row(letter))
        Console(highlight=False, markup=False).print(table if table.row_count else "there is none")


@dlq.command()
@click.argument("stream", shell_complete=complete_stream)
@code_option
@click.option("--again", is_flag=True, help="Also those that were published again before.")
@connection_options
def replay(stream: str, codes: tuple[str, ...], again: bool, connection: Connection) -> None:
    """Publish the dead letters of STREAM to it again, each once, say after it was declared anew.

    Those that were too large are not kept, and so are passed over.
    """
    with connected(connection) as client:
        done = DeadLetters(client.addresses.brokers, stream).replay(codes, again=again)
    if sys.stdout.isatty():
        passed = f", passed over {done.skipped:,} that were too large" if done.skipped else ""
        click.echo(f"published {done.published:,} dead letters of {stream} again{passed}")
    else:
        said = {"stream": stream, "published": done.published, "skipped": done.skipped}
        click.echo(msgspec.json.encode(said))


def as_line(letter: DeadLetter) -> dict[str, object]:
    line: dict[str, object] = {
        "partition": letter.partition,
        "offset": letter.offset,
        "time": letter.time,
        "code": letter.code,
        "field": letter.field or None,
        "reason": letter.reason,
        "rows": letter.rows,
        "size": letter.size,
    }
    try:
        line["value"] = letter.value.decode()
    except UnicodeDecodeError:
        line["base64"] = base64.b64encode(letter.value).decode()
    return line


def as_row(letter: DeadLetter) -> tuple[str, ...]:
    time = datetime.datetime.fromtimestamp(letter.time / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
    text = letter.value[: SHOWN + 1].decode("utf-8", "replace")
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    return (
        time,
        f"{letter.partition}/{letter.offset}",
        letter.code,
        letter.field,
        letter.reason,
        str(letter.rows),
        shown,
    )
