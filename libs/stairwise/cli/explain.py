"""`stairwise explain`: how a query is evaluated."""

from __future__ import annotations

import click

from stairwise.cli.session import Connection, complete_query, connected, connection_options


@click.command()
@click.argument("query", shell_complete=complete_query)
@connection_options
def explain(query: str, connection: Connection) -> None:
    """Show how QUERY, a name or a SELECT, is evaluated: its plan, its update pattern, and whom it shares with.

    \b
    stairwise explain volumes
    stairwise explain "SELECT COUNT(*) FROM trades [RANGE 60 SECONDS]"
    """
    with connected(connection) as client:
        click.echo(client.explain(query))
