"""What the verbs that talk to a running system share: where it is, who one is, and traces of what they do."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from stairwise.client import Client
from stairwise.errors import StairwiseError
from stairwise.platform import telemetry
from stairwise.system.state import Addresses

_FILE = click.Path(exists=True, dir_okay=False)
_OPTIONS: Mapping[str, tuple[str, str, Any, str]] = {
    "registry": ("STAIRWISE_REGISTRY", "HOST:PORT", str, "The registry, of a system elsewhere."),
    "results": ("STAIRWISE_RESULTS", "HOST:PORT", str, "The results, of a system elsewhere."),
    "brokers": ("STAIRWISE_BROKERS", "HOST:PORT,...", str, "Kafka, of a system elsewhere."),
    "tls-ca": ("STAIRWISE_TLS_CA", "FILE", _FILE, "Speak TLS with servers whose certificates are of this authority."),
    "tls-cert": ("STAIRWISE_TLS_CLIENT_CERT", "FILE", _FILE, "Your own certificate, where servers ask for one."),
    "tls-key": ("STAIRWISE_TLS_CLIENT_KEY", "FILE", _FILE, "The key to it."),
    "token-file": ("STAIRWISE_TOKEN_FILE", "FILE", _FILE, "The file with your token, where servers ask for one."),
}
"""Of each option: the variable that says the same, what to type, its type, and its help."""


@dataclass(frozen=True)
class Connection:
    """How to reach a running system: as options say, else as the environment says."""

    directory: Path | None = None
    said: Mapping[str, str] = field(default_factory=dict)
    """Variables, as the options have them."""

    def client(self) -> Client:
        return Client.connect(directory=self.directory, environ={**os.environ, **self.said})


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a verb its ``connection``, made from options that all such verbs have."""

    @functools.wraps(command)
    def connecting(*args: Any, directory: Path | None, **options: Any) -> Any:
        return command(*args, connection=_connection(directory, options), **options)

    for name, (variable, metavar, type_, text) in reversed(list(_OPTIONS.items())):
        shown = f"{text}  [default: ${variable}]"
        connecting = click.option(f"--{name}", metavar=metavar, type=type_, help=shown)(connecting)
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        help="The state directory of the system.  [default: $STAIRWISE_DIR, else .stairwise]",
    )(connecting)


def _connection(directory: Path | None, options: dict[str, Any]) -> Connection:
    """Takes its options out of a verb's."""
    taken = {variable: options.pop(name.replace("-", "_"), None) for name, (variable, *_) in _OPTIONS.items()}
    return Connection(directory, {name: value for name, value in taken.items() if value is not None})


@contextmanager
def connected(connection: Connection) -> Iterator[Client]:
    """A client of the running system; what it does is traced where the standard variables say where to send it."""
    with connection.client() as client, traced(client.addresses):
        yield client


@contextmanager
def traced(addresses: Addresses) -> Iterator[None]:
    """Send spans where the standard variables say, else to the Zipkin of the system if it has one."""
    if not telemetry.is_traced() and addresses.zipkin is not None:
        os.environ["OTEL_EXPORTER_ZIPKIN_ENDPOINT"] = addresses.zipkin
    if not telemetry.is_traced():
        yield
        return
    telemetry.start("cli")
    try:
        yield
    finally:
        telemetry.stop()


def complete_query(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For the shell: the names of queries, if there is a system to ask."""
    return _complete(ctx, incomplete, lambda client: [(query.name, query.text) for query in client.queries()])


def complete_stream(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For the shell: the names of streams, if there is a system to ask."""
    return _complete(ctx, incomplete, lambda client: [(stream.name, "") for stream in client.streams()])


def _complete(
    ctx: click.Context, incomplete: str, ask: Callable[[Client], list[tuple[str, str]]]
) -> list[CompletionItem]:
    directory = ctx.params.get("directory")
    try:
        with _connection(directory, dict(ctx.params)).client() as client:
            names = ask(client)
    except StairwiseError:
        return []  # nobody to ask: the shell goes on without a word
    return [CompletionItem(name, help=text[:60]) for name, text in names if name.startswith(incomplete)]
