"""`stairwise status`: each part and each stream of the system on this machine."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stairwise.cli.overview import Looking, Overview, StreamLine, Volume
from stairwise.cli.up import directory_option
from stairwise.schema import Instant
from stairwise.system import state
from stairwise.system.part_status import PartStatus
from stairwise.system.state import NotRunningError, SystemState
from stairwise.wire.waiting import duration, moment

EVERY = 2.0
"""How often --watch looks, in seconds."""


@click.command()
@directory_option
@click.option("--format", "format_", type=click.Choice(["table", "jsonl"]), help="[default: table on a terminal]")
@click.option("--json", "as_document", is_flag=True, help="One JSON document with all of it.")
@click.option("--watch", is_flag=True, help="Look every two seconds, until Ctrl-C; in a pipe one document a line.")
def status(directory: Path | None, format_: str | None, as_document: bool, watch: bool) -> None:
    """Show each part (health, process, restarts, address, metrics, lag) and each stream (rows, watermark, what it waits
    for). Exit code 1 if a part is not healthy, or the volume is full.

    \b
    stairwise status                   two tables; JSON lines in a pipe, a part or a stream on each
    stairwise status --watch           the same, redrawn every two seconds
    stairwise status --json | jq '.streams[] | select(.waits_for != "")'
    """
    chosen = state.directory_of(directory, os.environ)
    is_table = (format_ or ("table" if sys.stdout.isatty() else "jsonl")) == "table" and not as_document
    with Looking(_running(chosen)) as looking:
        if watch:
            _watch(looking, chosen, is_table)
            return
        seen = replace(looking.look(_running(chosen)), volume=Volume.of(chosen))
    if is_table:
        Console(highlight=False).print(drawn(seen))
    elif as_document:
        click.echo(msgspec.json.encode(seen.as_json()))
    else:
        for line in (
            *(asdict(part) for part in seen.parts),
            *(stream.as_json() for stream in seen.streams),
            *({"volume": each.directory, "full": each.remark} for each in [seen.volume] if each and each.is_full),
            *({"query": query.name, "failed": query.reason, "reported": query.reported} for query in seen.failed),
        ):
            click.echo(msgspec.json.encode(line))
    sys.exit(0 if seen.is_healthy else 1)


def _running(directory: Path) -> SystemState:
    current = state.read(directory)
    if current is None or not current.is_running:
        raise NotRunningError(directory, current)
    return current


def _watch(looking: Looking, directory: Path, is_table: bool) -> None:
    def looks() -> Iterator[Overview]:
        while True:
            due = time.monotonic() + EVERY
            yield replace(looking.look(_running(directory)), volume=Volume.of(directory))
            time.sleep(max(0.0, due - time.monotonic()))

    try:
        if not is_table:
            for seen in looks():
                click.echo(msgspec.json.encode(seen.as_json()))
            return
        with Live(console=Console(highlight=False), auto_refresh=False, vertical_overflow="crop") as live:
            for seen in looks():
                live.update(drawn(seen), refresh=True)
    except KeyboardInterrupt:
        return


def drawn(seen: Overview) -> Group:
    """The tables, and below each what there is to remark. What is too wide is folded, never cut off."""
    open_ = [line for line in seen.streams if not _is_over(line)]
    pieces: list[RenderableType] = [_parts(seen.parts), *_remarks((p.part, p.reason) for p in seen.parts)]
    if open_:
        pieces += [Text(), _streams(open_, seen.clock)]
        pieces += _remarks((line.status.name, line.status.waits_for) for line in open_)
    over = len(seen.streams) - len(open_)
    if over:
        pieces += [Text(), Text(f"{over} sealed stream{'s' if over > 1 else ''} with nothing left to do", style="dim")]
    if seen.volume is not None and seen.volume.is_full:
        pieces += [Text(), Text(seen.volume.remark, style="red")]
    if seen.failed:
        pieces += [Text(), Text(_counted(len(seen.failed)), style="red")]
        pieces += _remarks((query.name, query.reason) for query in seen.failed)
    if seen.trouble:
        pieces += [Text(), Text(f"streams are not shown: {seen.trouble}")]
    return Group(*pieces)


def _counted(queries: int) -> str:
    many = "1 query has" if queries == 1 else f"{queries} queries have"
    return f"{many} FAILED; RESTART QUERY tries again, DROP QUERY gives up"


def _is_over(line: StreamLine) -> bool:
    of = line.status
    return of.sealed and not (of.unread or of.untaken or of.failed) and of.watermark is None


def _parts(parts: Sequence[PartStatus]) -> Table:
    table = _table(("part", "health"), ("pid", "up", "restarts"), ("address", "metrics"), ("lag",))
    for row in parts:
        up = None if row.uptime_seconds is None else duration(int(row.uptime_seconds) * 1000)
        page = row.metrics and row.metrics[row.metrics.rindex(":") :].removesuffix("/metrics")  # the host is the same
        lag = None if row.lag is None else f"{row.lag:,}"
        health = Text(row.health, style="green" if row.is_healthy else "red")
        table.add_row(row.part, health, *map(_cell, (row.pid, up, row.restarts, row.address, page, lag)))
    return table


def _streams(lines: Sequence[StreamLine], clock: Instant) -> Table:
    table = _table(("stream",), ("rows/s", "rows", "late", "dead", "watermark", "behind", "unread"))
    for line in lines:
        of = line.status
        rate = None if line.rows_per_second is None else f"{line.rows_per_second:,.0f}"
        mark = None if of.watermark is None else moment(of.watermark // 1000 * 1000, clock)
        behind = None if line.behind_clock_ms is None else _ahead_or_behind(line.behind_clock_ms)
        counts = (None if count is None else f"{count:,}" for count in (of.rows, of.late, of.dead))
        table.add_row(of.name, *map(_cell, (rate, *counts, mark, behind, f"{of.unread:,}")))
    return table


def _ahead_or_behind(milliseconds: int) -> str:
    """Time may be ahead of the clock, where a producer's is or where somebody made it up."""
    return duration(milliseconds) if milliseconds >= 0 else f"-{duration(-milliseconds)}"


def _remarks(said: Iterator[tuple[str, str]]) -> Iterator[Text]:
    return (Text.assemble((name, "bold"), f": {text}") for name, text in said if text)


def _table(*headings: tuple[str, ...]) -> Table:
    """A table whose columns are left and right by turns of groups."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for number, group in enumerate(headings):
        for heading in group:
            table.add_column(heading, justify="right" if number % 2 else "left", overflow="fold")
    return table


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
