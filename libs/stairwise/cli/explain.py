"""`stairwise explain`: how a query is evaluated."""

from __future__ import annotations

import click

from stairwise.cli.session import Connection, complete_query, connected, connection_options


@click.command()
@click.argument("query", shell_complete=complete_query)
@click.option("--analyze", is_flag=True, help="Also show what the running query costs: rows, CPU, state, lateness.")
@connection_options
def explain(query: str, analyze: bool, connection: Connection) -> None:
    """Show how QUERY, a name or a SELECT, is evaluated: what runs at each step, and whom it shares with.

    \b
    stairwise explain volumes
    stairwise explain volumes --analyze
    stairwise explain "SELECT COUNT(*) FROM trades [RANGE 60 SECONDS]"
    """
    with connected(connection) as client:
        click.echo(client.explain(query, analyze=analyze))
