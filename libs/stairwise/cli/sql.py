"""`stairwise sql`: statements to a running system, from the command line, a file, a pipe or a prompt."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click
import msgspec
from rich.console import Console
from rich.table import Table

from stairwise.algebra.spelling import spell_retention
from stairwise.cli.live import LiveAnswer
from stairwise.cli.prompt import scripts
from stairwise.cli.session import Connection, connected, connection_options
from stairwise.cli.subscribe import show_live
from stairwise.client import Client, QueryInfo, StreamInfo
from stairwise.client.request import From
from stairwise.cql import ast
from stairwise.cql.completion import Known
from stairwise.cql.parser import parse_script
from stairwise.errors import StairwiseError
from stairwise.schema import Stream

COMMANDS = ("\\explain", "\\help", "\\q", "\\queries", "\\streams", "\\subscribe")
HELP = """Tab completes, the arrow keys find what was typed before.
  SELECT ...;                  shows results as they become final, until Ctrl-C
  CREATE QUERY name AS ...;    registers a query that stays
  \\streams  \\queries          list what there is
  \\subscribe NAME              shows the results of a query, until Ctrl-C
  \\explain NAME                shows how a query is evaluated
  \\q or Ctrl-D                 ends"""


@click.command()
@click.option("-e", "--execute", "statements", metavar="STATEMENTS", help="Run these statements.")
@click.option("--streams", is_flag=True, help="List the streams and tables.")
@click.option("--queries", is_flag=True, help="List the queries.")
@click.argument("file", type=click.File("r"), required=False)
@connection_options
def sql(statements: str | None, streams: bool, queries: bool, file: TextIO | None, connection: Connection) -> None:
    """Run CQL statements against a running system: those of -e, of FILE (- for stdin), or typed at a prompt.

    \b
    stairwise sql                                      a prompt, with history and completion
    stairwise sql -e "DROP QUERY volumes;"
    stairwise sql declarations.cql

    A script takes effect as a whole or not at all. At the prompt, a SELECT shows its results until Ctrl-C.
    """
    if statements is not None and file is not None:
        raise click.UsageError("give statements either by -e or by FILE, not both")
    with connected(connection) as client:
        if statements is not None:
            _run(client, statements)
        elif file is not None:
            _run(client, file.read())
        elif not (streams or queries):
            _interact(client) if sys.stdin.isatty() else _run(client, sys.stdin.read())
        if streams:
            _list_streams(client.streams())
        if queries:
            _list_queries(client.queries())


def _run(client: Client, script: str) -> None:
    for result in client.execute(script):
        click.echo(result.explanation or result.summary)


def _interact(client: Client) -> None:
    """Answer what is typed at a terminal. An error is shown and forgotten."""
    click.echo(f"Statements end with a semicolon; {HELP}")
    for script in scripts(COMMANDS, lambda: _known(client)):
        try:
            if script.startswith("\\"):
                _command(client, *script.split(maxsplit=1))
            elif is_select(script):
                _show_select(client, script)
            else:
                _run(client, script)
        except StairwiseError as error:
            click.echo(str(error), err=True)
        except KeyboardInterrupt:
            click.echo()


def _command(client: Client, command: str, argument: str = "") -> None:
    match command:
        case "\\streams":
            _list_streams(client.streams())
        case "\\queries":
            _list_queries(client.queries())
        case "\\subscribe" if argument:
            _show(client, argument.strip(), "latest")
        case "\\explain" if argument:
            click.echo(client.explain(argument.strip()))
        case _:
            click.echo(HELP)


def _show_select(client: Client, script: str) -> None:
    """A SELECT at a prompt is a question: its query lives as long as somebody looks at the answers."""
    (result,) = client.execute(script)
    try:
        _show(client, result.query, "earliest")
    finally:
        client.execute(f'DROP QUERY "{result.query}";')
    click.echo(f"{result.query} is dropped; CREATE QUERY name AS SELECT ... keeps a query")


def _show(client: Client, query: str, from_: From) -> None:
    """Results as they come, until Ctrl-C."""
    click.echo("Ctrl-C ends it")
    with client.subscribe(query, from_) as subscription:
        try:
            show_live(client, subscription, LiveAnswer(query))
        except KeyboardInterrupt:
            click.echo()


def _known(client: Client) -> Known:
    """The names that Tab offers; none while the registry does not answer."""
    try:
        streams = {stream.name: [c.name for c in stream.declaration.columns] for stream in client.streams()}
        return Known(streams, [query.name for query in client.queries()])
    except StairwiseError:
        return Known()


def is_select(script: str) -> bool:
    """Is it one SELECT and nothing else?"""
    try:
        statements = parse_script(script)
    except StairwiseError:
        return False  # the registry says what is wrong with it
    return len(statements) == 1 and isinstance(statements[0], ast.SelectStatement)


def _list_streams(streams: list[StreamInfo]) -> None:
    if not sys.stdout.isatty():
        for stream in streams:
            declared: dict[str, Any] = msgspec.to_builtins(stream.declaration)
            click.echo(
                msgspec.json.encode(
                    {stream.declaration.kind: declared.pop("name"), **declared, "sealed": stream.sealed}
                )
            )
        return
    rows = []
    for stream in streams:
        types = (f"{c.name} {c.type.value}" + ("" if c.nullable else " NOT NULL") for c in stream.declaration.columns)
        rows.append(
            (
                stream.declaration.kind,
                stream.name,
                ", ".join(types),
                _options(stream.declaration),
                "sealed" if stream.sealed else "open",
            )
        )
    _print_table(("", "name", "columns", "options", "input"), rows)


def _options(stream: Stream) -> str:
    """How the stream or table was declared, as CQL says it."""
    said = [f"KEY ({', '.join(stream.keys)})"] if stream.is_table else []
    said += [f"TIMESTAMP BY {stream.timestamp_by}"] if stream.timestamp_by else []
    said += [f"IN {stream.unit.value}"] if stream.unit is not None else []
    said += ["NON RETROACTIVE"] if not stream.retroactive else []
    said += [f"LATENESS {stream.lateness} ms"] if stream.lateness and not stream.is_table else []
    said += [f"IDLE AFTER {stream.idle_after} ms"] if stream.idle_after is not None else []
    said += [f"FUTURE {stream.future} ms"] if stream.future is not None else []
    said += ["REJECT UNKNOWN FIELDS"] if stream.reject_unknown else []
    said += [spell_retention(stream)] if stream.retain_time is not None or stream.retain_bytes is not None else []
    said += [f"PARTITION BY {stream.partition_by}"] if stream.partition_by and not stream.is_table else []
    return " ".join([*said, f"PARTITIONS {stream.partitions}"])


def _list_queries(queries: list[QueryInfo]) -> None:
    if not sys.stdout.isatty():
        for query in queries:
            said = {"query": query.name, "text": query.text, "streams": query.streams, "version": query.version}
            click.echo(msgspec.json.encode(said))
        return
    _print_table(("query", "text"), [(query.name, query.text) for query in queries])


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table if rows else "there is none yet")
