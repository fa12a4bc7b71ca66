"""`stairwise lookup`: one ad-hoc window over the recent past of a stream."""

from __future__ import annotations

import sys

import click
import pyarrow as pa
from rich.console import Console, JustifyMethod
from rich.table import Table

from stairwise.cli.session import Connection, connected, connection_options
from stairwise.client.lookups import TIMEOUT, Answer
from stairwise.cql.literals import parse_timestamp
from stairwise.reports.lines import json_lines, texts, to_bytes
from stairwise.schema import Instant


class Time(click.ParamType):
    """Milliseconds or RFC 3339."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Instant:
        time = int(value) if value.removeprefix("-").isdecimal() else parse_timestamp(value)
        if time is None:
            self.fail(f"{value!r} is not milliseconds or a time such as 2026-01-31T12:00:00Z")
        return time


@click.command()
@click.argument("selects", metavar="SELECT...", nargs=-1, required=True)
@click.option("--at", type=Time(), metavar="TIME", help="Answer at TIME, as a query's report of that time.")
@click.option(
    "--at-least", type=Time(), metavar="TIME", help="Wait until the answer is true at TIME (milliseconds or RFC 3339)."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long the lookup may take, with all that it waits for.",
)
@click.option("--format", "format_", type=click.Choice(["table", "jsonl"]), help="[default: table on a terminal]")
@connection_options
def lookup(
    selects: tuple[str, ...],
    at: Instant | None,
    at_least: Instant | None,
    timeout: float,
    format_: str | None,
    connection: Connection,
) -> None:
    """Answer SELECT at once, from the recent past of its stream, without registering a query.

    Several SELECTs are answered in one call, all at the same time.

    \b
    stairwise lookup "SELECT ticker, SUM(qty) FROM trades [RANGE 300 SECONDS] GROUP BY ticker HAVING SUM(qty) > 1000"
    stairwise lookup "SELECT AVG(price) FROM trades [RANGE 60 SECONDS LAG 60 SECONDS] WHERE ticker = 'AB'"
    stairwise lookup "EXPLAIN SELECT ..."          how it is answered

    The time of the answer is the stream's watermark, or TIME: the window ends there.
    """
    with connected(connection) as client:
        if len(selects) == 1:
            answers = [client.lookup(selects[0], at_least=at_least, at=at, timeout=timeout)]
        else:
            answers = client.lookup_many(selects, at_least=at_least, at=at, timeout=timeout)
    for number, answer in enumerate(answers, 1):
        name = "lookup" if len(answers) == 1 else f"lookup{number}"
        if answer.explanation:
            click.echo(answer.explanation)
        elif (format_ or ("table" if sys.stdout.isatty() else "jsonl")) == "table":
            show_table(answer)
        else:
            sys.stdout.buffer.write(to_bytes(json_lines(name, answer.emission())))
            sys.stdout.buffer.flush()


def show_table(answer: Answer) -> None:
    """Numbers to the right; T below the table, in one line however narrow the table is."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, name in zip(answer.table.columns, answer.table.schema.names, strict=True):
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        justify: JustifyMethod = "right" if is_number or pa.types.is_decimal(column.type) else "left"
        table.add_column(name, overflow="fold", justify=justify)
    for row in zip(*(texts(column).to_pylist() for column in answer.table.columns), strict=True):
        table.add_row(*row)
    console = Console(highlight=False)
    console.print(table)
    console.print(f"at {answer.time}", style="italic", soft_wrap=True)
