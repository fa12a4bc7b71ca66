"""`stairwise up` and `down`: the whole system on this machine."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from stairwise.platform.config import Settings
from stairwise.system import state
from stairwise.system.background import await_running, failure, fork_supervisor
from stairwise.system.display import Display, display_on
from stairwise.system.installation import find_installation
from stairwise.system.layout import PORT_OPTIONS, PORTS
from stairwise.system.shutdown import stop_system
from stairwise.system.startup import PreparedSystem, Wishes, log_to_file, prepare, supervise
from stairwise.system.state import SystemState

PORT = click.IntRange(1, 65535)

directory_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the system keeps its state and logs.  [default: $STAIRWISE_DIR, else .stairwise]",
)


def port_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """One option per port of the system."""
    for name in reversed(list(PORTS)):
        text = f"[default: as last time, else {PORTS[name]}]"
        command = click.option(PORT_OPTIONS[name], f"port_{name}", type=PORT, metavar="PORT", help=text)(command)
    return command


@click.command()
@click.option("--detach", "-d", is_flag=True, help="Go on in the background; `stairwise down` stops it.")
@directory_option
@click.option(
    "--shards",
    type=click.IntRange(1, 4096),
    metavar="N",
    envvar="STAIRWISE_SHARDS",
    help="Shards of the operators.  [default: $STAIRWISE_SHARDS, as last time, else 1]",
)
@click.option(
    "--port-base",
    type=click.IntRange(0, 65535 - len(PORTS)),
    metavar="N",
    help=f"Take the ports from N to N+{len(PORTS) - 1}; 0: any that are free.",
)
@port_options
@click.option(
    "--spark-ui-port",
    type=PORT,
    metavar="PORT",
    help="Show Spark's own page there.  [default: $STAIRWISE_SPARK_UI, else off]",
)
@click.option("--tracing", is_flag=True, help="Start Zipkin as well: every service sends its traces there.")
def up(
    detach: bool,
    directory: Path | None,
    shards: int | None,
    port_base: int | None,
    spark_ui_port: int | None,
    tracing: bool,
    **ports: int | None,
) -> None:
    """Start the whole system on this machine: Kafka broker and all services.

    \b
    stairwise up --detach                    in the background; `stairwise down` stops it
    stairwise up --dir /srv/s --port-base 0  a second one, on any free ports

    It runs until Ctrl-C, or in the background with --detach. A part that dies is started again. Everything is
    kept in one directory; starting again there goes on where it stopped.
    """
    chosen = {name: number for name in PORTS if (number := ports[f"port_{name}"]) is not None}
    settings = Settings.from_environment(os.environ)
    wishes = Wishes(chosen, port_base, shards, spark_ui_port or settings.spark_ui_port, tracing)
    display = display_on(sys.stderr)
    installation = find_installation(os.environ)
    prepared = prepare(state.directory_of(directory, os.environ), wishes, installation, display.say)
    if detach:
        _run_detached(prepared, display)
    else:
        _run_here(prepared, display)


def _run_here(prepared: PreparedSystem, display: Display) -> None:
    log_to_file(prepared.directory)
    logging.getLogger("stairwise.system").addHandler(_Remarks(display))
    before = "starting"

    def changed(now: SystemState) -> None:
        nonlocal before
        display.update(now)
        if now.phase == "running" and before != "running":
            _show_addresses(now, prepared.directory, "Ctrl-C stops it")
        before = now.phase

    last = supervise(prepared, changed)
    display.close()
    if last.phase == "failed":
        raise failure(prepared.directory, last)
    display.say("stopped; `stairwise up` goes on from here")


def _run_detached(prepared: PreparedSystem, display: Display) -> None:
    log = log_to_file(prepared.directory)
    pid = fork_supervisor(lambda: _run_in_background(prepared), log)
    running = await_running(prepared.directory, pid, display)
    _show_addresses(running, prepared.directory, "`stairwise down` stops it")


def _run_in_background(prepared: PreparedSystem) -> None:
    supervise(prepared, lambda _: None)


class _Remarks(logging.Handler):
    """Shows what the supervisor warns of between the states."""

    def __init__(self, display: Display) -> None:
        super().__init__(level=logging.WARNING)
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        self._display.say(record.getMessage())


def _show_addresses(running: SystemState, directory: Path, how_to_stop: str) -> None:
    addresses = running.addresses
    zipkin = [f"http://{part.check.address}/zipkin/" for part in running.parts if part.name == "zipkin"]
    click.echo(
        "Stairwise is running.\n"
        f"  registry  {addresses.registry}\n"
        f"  results   {addresses.results}\n"
        f"  lookups   {addresses.lookups}\n"
        f"  Kafka     {addresses.brokers}\n"
        + "".join(f"  traces    {page}\n" for page in zipkin)
        + f"  logs      {directory / 'logs'}\n"
        f"`stairwise status` shows each part, {how_to_stop}."
    )


@click.command()
@directory_option
def down(directory: Path | None) -> None:
    """Stop the system that runs in a directory. Its state stays: `stairwise up` goes on from there."""
    chosen = state.directory_of(directory, os.environ)
    stopped = stop_system(chosen, display_on(sys.stderr))
    if not stopped:
        click.echo(f"nothing is running in {chosen}" + ("" if chosen.exists() else ": there is no such directory"))
    for part in stopped:
        click.echo(f"stopped {part.part} (process {part.pid})")
