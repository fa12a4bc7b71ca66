"""A script over files through the real pipeline: a system of its own, in a directory that goes away afterwards.

    start the system ─▶ declare ─▶ publish the files ─▶ seal ─▶ subscribe to every query ─▶ one order ─▶ output

Tables are published first: what their files hold was there before the streams began. Broker, ingest, Spark and results
do what they do for anyone; the lines are those of the local engine, in its order. Whatever becomes of it, the system is
stopped; if it did not start, its logs stay.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from stairwise.algebra.query import Query
from stairwise.algebra.spelling import spell_stream
from stairwise.cli.session import traced
from stairwise.client import Client, Publisher, Subscription
from stairwise.client.dead_letters import DeadLetters
from stairwise.errors import ConfigError, StairwiseError
from stairwise.expressions.faults import Faults
from stairwise.local.driver import StreamSummary, Summary, check_data
from stairwise.local.merge import Merge
from stairwise.local.output import LineWriter
from stairwise.local.rejects import Rejects
from stairwise.local.running import QueryCounts
from stairwise.local.sources import FileSource
from stairwise.platform import channels, kafka_security
from stairwise.platform.security import settings as security
from stairwise.reports.emission import Emissions
from stairwise.schema import DUSK, Duration, Instant, Stream
from stairwise.system import logs, state
from stairwise.system.background import await_running, fork_supervisor
from stairwise.system.die_with_parent import tie_to
from stairwise.system.display import Display, display_on
from stairwise.system.installation import find_installation
from stairwise.system.shutdown import stop_system
from stairwise.system.startup import PreparedSystem, Wishes, log_to_file, prepare, supervise
from stairwise.system.state import Addresses, SystemState
from stairwise.system.temporary import state_directory

NEEDED = frozenset({"broker", "windows", "ingest", "operators", "results"})
FOR_FILTERS = frozenset({"lookups"})
"""Needed beside them where a query says USING LOOKUPS."""
PATIENCE = 120.0
"""For how long a subscription tries to get its connection back, in seconds."""
MOST_RESTARTS = 3
"""A part that has ended so often is broken."""
NEVER: Duration = 36_500 * 86_400_000
"""After so many milliseconds nothing is idle: a hundred years."""
LOOK_EVERY = 0.5
LINES_OF_LOG = 15


def run_pipeline(
    streams: Mapping[str, Stream],
    queries: Sequence[Query],
    data: Mapping[str, Sequence[str]],
    output: LineWriter,
    *,
    partitions: int,
    rejects: Rejects,
    quiet: bool = False,
) -> Summary:
    """Run queries over the files of their streams, on Spark."""
    used = check_data(streams, queries, data)
    declared = {name: _as_replayed(stream, partitions) for name, stream in streams.items()}
    sources = {name: [FileSource(declared[name], file) for file in data[name]] for name in used}
    display = _Silent() if quiet else display_on(sys.stderr)
    needed = NEEDED | (FOR_FILTERS if any(query.by_lookups for query in queries) else frozenset())
    with ExitStack() as stack:
        directory = stack.enter_context(state_directory("stairwise-run-"))
        addresses = stack.enter_context(_system(directory, needed, display))
        stack.enter_context(traced(addresses))
        client = stack.enter_context(Client(addresses))
        watch = stack.enter_context(_Watch(directory))
        display.say("publishing")
        client.execute(";\n".join([*map(spell_stream, declared.values()), *map(_create, queries)]))
        in_order = sorted(sources, key=lambda name: not declared[name].is_table)
        published = {
            name: _publish(client.publisher(name), declared[name], sources[name], rejects) for name in in_order
        }
        counts = [published[name] for name in used]
        client.execute(";".join(f'SEAL {declared[name].kind.upper()} "{name}"' for name in used))
        display.say(f"published {sum(count.rows_in - count.bad for count in counts):,} rows, evaluating")
        answered = [QueryCounts() for _ in queries]
        subscriptions = [client.subscribe(query.name, "earliest", patience=PATIENCE) for query in queries]
        watch.over(subscriptions)
        answers = {i: _answers(s, answered[i], watch) for i, s in enumerate(subscriptions)}
        for pieces in Merge(len(queries)).drain(answers, [DUSK] * len(queries)):
            output.write(pieces)
        for count in counts:
            if not declared[count.stream].is_table:  # no update of a table is late
                count.late = sum(
                    letter.rows for letter in DeadLetters(addresses.brokers, count.stream, late=True).read()
                )
            count.on_time = count.rows_in - count.bad - count.late
    return Summary(counts, [(query, count, Faults()) for query, count in zip(queries, answered, strict=True)])


def _as_replayed(stream: Stream, partitions: int) -> Stream:
    """The stream as files are its input: when a row arrives says nothing, so nothing is idle, not even a partition that
    never has a row, and how far ahead a row may be was judged when its file was read.

    Nobody looks anything up either.
    """
    replayed = replace(
        stream, partitions=partitions, idle_after=NEVER, retain_time=None, retain_bytes=None, future=None
    )
    return replace(replayed, live=stream.timestamp_by is None and not stream.is_table, incarnation=1)


def _create(query: Query) -> str:
    return f'CREATE QUERY "{query.name}" AS {query.text}'


def _publish(publisher: Publisher, stream: Stream, sources: Sequence[FileSource], rejects: Rejects) -> StreamSummary:
    """Every file of a stream, in order."""
    summary = StreamSummary(stream.name)
    for source in sources:
        for chunk in source.chunks():
            publisher.send_decoded(chunk.rows)
            rejects.take_bad(stream, source.name, chunk.rejected)
            summary.bad += len(chunk.rejected)
            summary.rows_in += chunk.rows.num_rows + len(chunk.rejected)
    publisher.flush()
    return summary


def _answers(subscription: Subscription, counts: QueryCounts, watch: _Watch) -> Iterator[tuple[Instant, Emissions]]:
    """A query's lines, a report at a time, until its streams' end."""
    for update in subscription:
        lines = update.emission()
        counts.reports += 1
        counts.lines += lines.rows.num_rows
        ordinals = np.zeros(lines.rows.num_rows, np.int64)
        yield update.time, Emissions(lines.times, ordinals, lines.diff, lines.rows, 1)
    if subscription.end is None:
        raise watch.failure or ConfigError(f"the results of {subscription.query!r} ended before their time")


@contextmanager
def _system(directory: Path, needed: Set[str], display: Display) -> Iterator[Addresses]:
    """The parts that evaluate, on free ports of loopback, for as long as this is open."""
    for variable in (*security.PATHS, *channels.PATHS, *kafka_security.VARIABLES):
        os.environ.pop(variable, None)  # those are for systems that others can reach
    os.environ.setdefault("STAIRWISE_TRIGGER_MS", "100")  # somebody waits for all of it to be done
    prepared = prepare(directory, Wishes(port_base=0, needed=needed), find_installation(os.environ), display.say)
    log = log_to_file(directory)
    # The supervisor is forked before this process has any thread.
    parent = os.getpid()
    pid = fork_supervisor(lambda: _supervise(prepared, parent), log)
    try:
        yield await_running(directory, pid, display).addresses
    finally:
        stop_system(directory, display)


def _supervise(prepared: PreparedSystem, parent: int) -> None:
    tie_to(parent)
    supervise(prepared, lambda _: None)


class _Watch:
    """Ends the subscriptions when the system cannot answer any more: else they would wait for ever."""

    def __init__(self, directory: Path) -> None:
        self.failure: StairwiseError | None = None
        self._directory = directory
        self._over: list[Subscription] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        for subscription in self._over:
            subscription.close()

    def over(self, subscriptions: Sequence[Subscription]) -> None:
        self._over = list(subscriptions)

    def _look(self) -> None:
        while self.failure is None and not self._ending.wait(LOOK_EVERY):
            self.failure = self._trouble()
        if self.failure is not None:
            for subscription in self._over:
                subscription.close()

    def _trouble(self) -> StairwiseError | None:
        now = state.read(self._directory)
        if now is None or not now.is_running:
            return ConfigError("the system ended while it was needed", hint="run it again; did anyone stop it?")
        for part in now.parts:
            if part.restarts >= MOST_RESTARTS:
                tail = "\n    ".join(logs.tail(logs.log_path(self._directory, part.name), LINES_OF_LOG))
                return ConfigError(f"{part.name} {part.reason}, again and again; the end of its log:\n    {tail}")
        return None


class _Silent:
    """For those who asked for quiet."""

    def update(self, state: SystemState) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...
