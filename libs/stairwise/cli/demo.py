"""`stairwise demo`: the whole system at work on synthetic trades, with live results."""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from stairwise.cli.live import LiveAnswer, plain_line
from stairwise.cli.session import traced
from stairwise.client import Client, Credentials, Publisher, Subscription, Update
from stairwise.errors import ConfigError, StairwiseError
from stairwise.system import state
from stairwise.system.background import await_running, fork_supervisor
from stairwise.system.display import display_on
from stairwise.system.installation import find_installation
from stairwise.system.shutdown import stop_system
from stairwise.system.startup import PreparedSystem, Wishes, log_to_file, prepare, supervise
from stairwise.system.state import Addresses

TICKERS = ("ASTER", "BIRCH", "CEDAR", "DELTA", "EMBER")
ROWS_PER_SECOND = 100
PATIENCE = 300.0
"""For how long no report may come, in seconds."""


@dataclass(frozen=True)
class Names:
    """What the demo declares. A second demo in the same directory takes names of its own."""

    number: int

    @property
    def stream(self) -> str:
        return self._numbered("trades")

    @property
    def queries(self) -> dict[str, str]:
        """The queries by name; the first one's reports are counted."""
        grouped = "SELECT ticker, COUNT(*) AS trades, SUM(qty) AS volume FROM {} [TUMBLE {}] GROUP BY ticker"
        return {
            self._numbered("volumes"): grouped.format(self.stream, "2 SECONDS"),
            self._numbered("volumes_10s"): grouped.format(self.stream, "10 SECONDS"),
            self._numbered("all_trades"): f"SELECT COUNT(*) AS trades FROM {self.stream} [TUMBLE 1 SECOND]",
        }

    @property
    def script(self) -> str:
        statements = [
            f"CREATE STREAM {self.stream} (ts TIMESTAMP, ticker STRING NOT NULL, price DOUBLE, qty BIGINT)\n"
            "  TIMESTAMP BY ts LATENESS 1 SECOND IDLE AFTER 2 SECONDS PARTITION BY ticker",
            *(f"CREATE QUERY {name} AS\n  {text}" for name, text in self.queries.items()),
        ]
        return ";\n".join(statements) + ";"

    def _numbered(self, name: str) -> str:
        return name if self.number == 1 else f"{name}_{self.number}"


@click.command()
@click.option(
    "--reports",
    type=click.IntRange(min=1),
    envvar="DEMO_REPORTS",
    metavar="N",
    help="End after N reports.  [default: $DEMO_REPORTS, else on Ctrl-C]",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="The state directory of the demo's system.  [default: demo below that of `stairwise up`]",
)
@click.option(
    "--port-base", type=click.IntRange(0, 65000), default=0, metavar="N", help="Take the ports from N on; 0: free ones."
)
def demo(reports: int | None, directory: Path | None, port_base: int) -> None:
    """Start the whole system, let synthetic trades flow, and show what a few queries say about them.

    It runs until Ctrl-C or for --reports N, and then stops what it has started.

    \b
    stairwise demo --reports 5
    """
    chosen = directory.absolute() if directory is not None else state.directory_of(None, os.environ) / "demo"
    console = Console(highlight=False)
    is_running = _running_in(chosen) is not None
    with (
        _system(chosen, port_base) as addresses,
        traced(addresses),
        Client(addresses, Credentials.from_environment(os.environ)) as client,
    ):
        names = _declare(client)
        _introduce(console, names, chosen)
        try:
            with _trades(client.publisher(names.stream)), _subscribed(client, names) as arrivals:
                _show(console, names, arrivals, reports)
        except KeyboardInterrupt:
            console.print("stopping")
    _say_goodbye(console, names, chosen, is_running)


@contextmanager
def _system(directory: Path, port_base: int) -> Iterator[Addresses]:
    """The system of the directory: the one that runs there, else one that is started and stopped again."""
    running = _running_in(directory)
    if running is not None:
        yield running
        return
    display = display_on(sys.stderr)
    prepared = prepare(directory, Wishes(port_base=port_base), find_installation(os.environ), display.say)
    log = log_to_file(directory)
    # The supervisor is forked before this process has any thread.
    pid = fork_supervisor(lambda: _supervise_quietly(prepared), log)
    try:
        yield await_running(directory, pid, display).addresses
    finally:
        stop_system(directory, display_on(sys.stderr))


def _running_in(directory: Path) -> Addresses | None:
    current = state.read(directory)
    return current.addresses if current is not None and current.is_running else None


def _supervise_quietly(prepared: PreparedSystem) -> None:
    supervise(prepared, lambda _: None)


def _declare(client: Client) -> Names:
    taken = {s.name for s in client.streams()} | {q.name for q in client.queries()}
    number = 1
    while taken & {Names(number).stream, *Names(number).queries}:
        number += 1
    names = Names(number)
    client.execute(names.script)
    return names


@contextmanager
def _trades(publisher: Publisher) -> Iterator[None]:
    """Trades flow from a thread as long as this is open."""
    ending = threading.Event()
    thread = threading.Thread(target=_generate, args=(publisher, ending), name="trades", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _generate(publisher: Publisher, ending: threading.Event) -> None:
    prices = dict.fromkeys(TICKERS, 100.0)
    while not ending.wait(1 / ROWS_PER_SECOND):
        ticker = random.choices(TICKERS, weights=range(len(TICKERS), 0, -1))[0]
        prices[ticker] = round(max(1.0, prices[ticker] * random.gauss(1, 0.001)), 2)
        row = {"ts": int(time.time() * 1000), "ticker": ticker, "price": prices[ticker], "qty": random.randint(1, 500)}
        publisher.send(row)
    publisher.flush()


Arrival = tuple[Subscription, Update] | StairwiseError


@contextmanager
def _subscribed(client: Client, names: Names) -> Iterator[queue.Queue[Arrival]]:
    """The updates of all queries as they arrive, read by a thread each."""
    arrivals: queue.Queue[Arrival] = queue.Queue()
    subscriptions = [client.subscribe(query, "earliest") for query in names.queries]

    def read(subscription: Subscription) -> None:
        try:
            for update in subscription:
                arrivals.put((subscription, update))
        except StairwiseError as error:
            arrivals.put(error)

    threads = [threading.Thread(target=read, args=(s,), daemon=True) for s in subscriptions]
    for thread in threads:
        thread.start()
    try:
        yield arrivals
    finally:
        for subscription in subscriptions:
            subscription.close()
        for thread in threads:
            thread.join()


def _show(console: Console, names: Names, arrivals: queue.Queue[Arrival], reports: int | None) -> None:
    """Draw the answers until Ctrl-C, or until enough reports of the first query have been shown."""
    answers = {query: LiveAnswer(query) for query in names.queries}
    first = answers[next(iter(names.queries))]
    tables = Group(*(Padding(answer, (1, 0, 0, 2)) for answer in answers.values()))
    live = Live(tables, console=console, auto_refresh=False) if console.is_terminal else None
    if live is not None:
        live.start(refresh=True)
    try:
        while reports is None or first.reports < reports:
            try:
                arrival = arrivals.get(timeout=PATIENCE)
            except queue.Empty:
                hint = "the parts' logs, below the directory of the demo, say why"
                raise ConfigError(f"no report has come for {PATIENCE:.0f} s", hint=hint) from None
            if isinstance(arrival, StairwiseError):
                raise arrival
            subscription, update = arrival
            answers[update.query].apply(update, subscription.emit)
            if live is not None:
                live.refresh()
            else:
                for change in update.changes:
                    console.print(plain_line(update.query, update.time, list(change.row.values())), soft_wrap=True)
    finally:
        if live is not None:
            live.stop()


def _introduce(console: Console, names: Names, directory: Path) -> None:
    console.print(Text("\nStairwise demo", style="bold"))
    console.print(
        f"A generator publishes {ROWS_PER_SECOND} synthetic trades a second to the Kafka topic of a stream. "
        f"{len(names.queries)} continuous queries, evaluated in Spark, report on them at the end of each of their "
        "windows, and the results below come from a gRPC subscription. A report is final: it comes one second "
        "after its window, since trades may be that late.\n"
    )
    console.print(Text(names.script, style="cyan"))
    console.print(
        f"\nCtrl-C ends it. Meanwhile, in another terminal:\n{_suggestions(names, directory)}\n", soft_wrap=True
    )


def _say_goodbye(console: Console, names: Names, directory: Path, is_running: bool) -> None:
    up = f"  stairwise up --detach --dir {_shown(directory)}"
    how = "The system still runs:\n" if is_running else f"Start the system again, and go on from here:\n{up}\n"
    console.print(
        f"\nThat was the demo. {how}{_suggestions(names, directory)}\n  stairwise down --dir {_shown(directory)}",
        soft_wrap=True,
    )


def _suggestions(names: Names, directory: Path) -> str:
    first, where = next(iter(names.queries)), f"--dir {_shown(directory)}"
    select = f"SELECT ticker, MAX(price) AS high FROM {names.stream} [TUMBLE 5 SECONDS] GROUP BY ticker"
    lines = (
        f"stairwise status {where}",
        f"stairwise subscribe {first} --from earliest {where}",
        f"stairwise sql {where} -e 'CREATE QUERY highs AS {select};'",
    )
    return "\n".join(f"  {line}" for line in lines)


def _shown(directory: Path) -> str:
    """A directory as one would type it here."""
    try:
        return str(directory.relative_to(Path.cwd()))
    except ValueError:
        return str(directory)
