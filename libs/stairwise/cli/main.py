"""The command line: one program, one verb per file, each loaded only when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from stairwise.errors import StairwiseError

VERBS = {
    "up": "stairwise.cli.up:up",
    "down": "stairwise.cli.up:down",
    "status": "stairwise.cli.status:status",
    "run": "stairwise.cli.run:run",
    "sql": "stairwise.cli.sql:sql",
    "publish": "stairwise.cli.publish:publish",
    "dlq": "stairwise.cli.dlq:dlq",
    "explain": "stairwise.cli.explain:explain",
    "subscribe": "stairwise.cli.subscribe:subscribe",
    "lookup": "stairwise.cli.lookup:lookup",
    "token": "stairwise.cli.token:token",
    "completion": "stairwise.cli.shell:completion",
    "demo": "stairwise.cli.demo:demo",
}


class Verbs(click.Group):
    """A group whose verbs are imported when they are needed, so that `run` starts without Kafka, gRPC or Spark."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module, attribute = VERBS[name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="stairwise")
def cli() -> None:
    """Thousands of windowed continuous queries over Kafka streams, for about the price of one.

    \b
    stairwise up --detach                          start the whole system on this machine
    stairwise sql -e "CREATE STREAM ...; ..."      declare streams and queries
    stairwise publish trades trades.jsonl          put events in
    stairwise subscribe volumes                    see results as they become final
    stairwise lookup "SELECT ..."                  any window of the recent past, at once
    stairwise run FILE.cql --data trades=FILE      or all of it over files, without a system
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run a verb. Exit code 0: done; 1: it went wrong; 2: the call itself was wrong."""
    try:
        return cli.main(arguments, prog_name="stairwise", standalone_mode=True)
    except StairwiseError as error:
        click.echo(f"stairwise: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
