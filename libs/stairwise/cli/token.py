"""`stairwise token`: a new bearer token, and its hash for the tokens file."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import click

from stairwise.platform.security.scopes import TokenScope
from stairwise.platform.security.tokens import digest_of, new_token, read


@click.command()
@click.argument("principal")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in TokenScope]),
    multiple=True,
    required=True,
    help="What it allows; may be given several times.",
)
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="It expires after N days.")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="STAIRWISE_TOKENS_FILE",
    show_envvar=True,
    help="The tokens file to add it to; made if it is not there.  [default: the entry is shown on stderr]",
)
def token(principal: str, scopes: tuple[str, ...], days: int | None, file: Path | None) -> None:
    """Make a bearer token for PRINCIPAL and print it: this once, since only its hash is kept.

    \b
    stairwise token dashboards --scope read --file tokens.toml > dashboards.token
    stairwise token deployer --scope define --scope read --days 90 --file tokens.toml
    """
    if not principal.isprintable() or not 0 < len(principal) <= 200:
        raise click.BadParameter("a principal is a name in printable characters", param_hint="PRINCIPAL")
    made = new_token()
    entry = _entry(principal, made, scopes, days)
    if file is None:
        click.echo(entry, err=True)
    else:
        _add(file, entry)
    click.echo(made)


def _entry(principal: str, made: str, scopes: tuple[str, ...], days: int | None) -> str:
    quoted = principal.replace("\\", "\\\\").replace('"', '\\"')
    lines = ["[[token]]", f'principal = "{quoted}"', f'sha256 = "{digest_of(made)}"']
    lines.append("scopes = [" + ", ".join(f'"{scope}"' for scope in dict.fromkeys(scopes)) + "]")
    if days is not None:
        expires = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
        lines.append(f"expires = {expires:%Y-%m-%dT%H:%M:%SZ}")
    return "\n".join(lines) + "\n"


def _add(file: Path, entry: str) -> None:
    """The whole file is replaced at once: a server that looks at it never sees half of it."""
    before = ""
    if file.exists():
        read(file)
        before = file.read_text(encoding="utf-8").rstrip("\n") + "\n\n"
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(
        unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file.stat().st_mode & 0o777 if before else 0o600
    )
    with os.fdopen(descriptor, "w", encoding="utf-8") as output:
        output.write(before + entry)
    os.replace(unfinished, file)
