"""`stairwise subscribe`: a query's results as they become final."""

from __future__ import annotations

import sys

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from stairwise.cli.live import LiveAnswer
from stairwise.cli.plot import Plot
from stairwise.cli.session import Connection, complete_query, connected, connection_options
from stairwise.cli.waiting import WaitingLines, watched, words
from stairwise.client import Client, Subscription
from stairwise.client.request import From
from stairwise.cql.literals import parse_timestamp
from stairwise.errors import StairwiseError
from stairwise.reports.lines import json_lines, to_bytes
from stairwise.wire.waiting import Waiting


class Start(click.ParamType):
    """earliest, latest, or a time."""

    name = "start"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> From:
        if value in ("earliest", "latest"):
            return value  # type: ignore[return-value]
        if value.removeprefix("-").isdecimal():
            return int(value)
        time = parse_timestamp(value)
        if time is None:
            self.fail(f"{value!r} is not earliest, latest, milliseconds or a time such as 2026-01-31T12:00:00Z")
        return time


@click.command()
@click.argument("query", shell_complete=complete_query)
@click.option(
    "--from",
    "from_",
    type=Start(),
    default="latest",
    show_default=True,
    metavar="earliest|latest|TIME",
    help="Where to begin; TIME in milliseconds or RFC 3339.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="End after N result lines.")
@click.option("--format", "format_", type=click.Choice(["table", "jsonl"]), help="[default: table on a terminal]")
@click.option(
    "--plot",
    is_flag=False,
    flag_value="",
    metavar="[COLUMN]",
    help="Draw a column over time, a line for each group; the first that is a number if none is named.",
)
@click.option("--until", is_flag=True, help="Lines that show each row once, with the time from which it is gone.")
@click.option("--quiet", "-q", is_flag=True, help="Do not say what the query waits for while nothing comes.")
@connection_options
def subscribe(
    query: str,
    from_: From,
    limit: int | None,
    format_: str | None,
    plot: str | None,
    until: bool,
    quiet: bool,
    connection: Connection,
) -> None:
    """Show the results of QUERY as they become final: a live table, or JSON lines in a pipe.

    \b
    stairwise subscribe volumes --from earliest
    stairwise subscribe volumes --plot volume
    stairwise subscribe volumes --limit 10 | jq .row

    It ends when the query's streams are sealed or the query is dropped, after --limit, or on Ctrl-C. When nothing comes
    for some seconds, it says on stderr what the query waits for.
    """
    if until and (plot is not None or format_ == "table"):
        raise click.UsageError("--until shows lines: leave out --plot and --format table")
    with connected(connection) as client, client.subscribe(query, from_, lifetimes=until) as subscription:
        try:
            if plot is not None:
                show_live(client, subscription, Plot(query, plot or None), limit, quiet=quiet)
            elif not until and (format_ or ("table" if sys.stdout.isatty() else "jsonl")) == "table":
                show_live(client, subscription, LiveAnswer(query), limit, quiet=quiet)
            else:
                print_lines(client, subscription, limit, until=until, quiet=quiet)
        except KeyboardInterrupt:
            return


def print_lines(
    client: Client, subscription: Subscription, limit: int | None, *, until: bool = False, quiet: bool = False
) -> None:
    """One JSON object per change, as everywhere; each report is flushed as it comes."""
    left = limit
    with watched(client, subscription, None if quiet else WaitingLines()) as updates:
        for update in updates:
            lines = json_lines(update.query, update.emission(), until=until)[:left]
            sys.stdout.buffer.write(to_bytes(lines))
            sys.stdout.buffer.flush()
            if left is not None:
                left -= len(lines)
                if left == 0:
                    return


class _Noted:
    """A picture, and below it what the next report waits for."""

    def __init__(self, picture: LiveAnswer | Plot) -> None:
        self.note = ""
        self._picture = picture

    def __rich__(self) -> Group:
        return Group(self._picture, *([Text(self.note, style="dim")] if self.note else []))


def show_live(
    client: Client,
    subscription: Subscription,
    picture: LiveAnswer | Plot,
    limit: int | None = None,
    *,
    quiet: bool = False,
) -> None:
    """A picture that takes in each report; where there is no terminal, only as it was at the end."""
    console, shown, noted = Console(), 0, _Noted(picture)
    is_drawn = console.is_terminal and not console.is_dumb_terminal
    with Live(noted, console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def note(heard: Waiting | StairwiseError) -> None:
            noted.note = words(heard)
            live.refresh()

        if console.is_terminal:
            live.refresh()
        with watched(client, subscription, None if quiet else note if is_drawn else WaitingLines()) as updates:
            for update in updates:
                picture.apply(update, subscription.emit)
                noted.note = ""
                if console.is_terminal:
                    live.refresh()
                shown += len(update.changes)
                if limit is not None and shown >= limit:
                    break
        noted.note = ""
    console.print(f"ended: {subscription.end}" if subscription.end else "", style="dim")
