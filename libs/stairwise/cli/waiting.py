"""While nothing comes of a query, say what it waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from stairwise.client import Client, Subscription, Update
from stairwise.errors import StairwiseError
from stairwise.wire.waiting import Waiting

AFTER = 3.0
"""After how long without a report it is first asked, in seconds."""
EVERY = 2.0
"""And how often from there on."""
AGAIN_AFTER = 10.0
"""When figures alone have changed, how long it is before a line says so, in seconds."""

Say = Callable[[Waiting | StairwiseError], None]


class Watch:
    """Asks in a thread of its own, as long as nothing comes; tells what it heard, and again when that has changed."""

    def __init__(self, client: Client, query: str, say: Say) -> None:
        self._client = client
        self._query = query
        self._say = say
        self._came = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="waiting", daemon=True)

    def updates(self, subscription: Subscription) -> Iterator[Update]:
        """A subscription's updates, with an eye on how long they take."""
        self._thread.start()
        try:
            for update in subscription:
                self._came.set()
                yield update
                self._came.set()  # to take it in may have been what took so long
        finally:
            self._ended = True
            self._came.set()

    def _run(self) -> None:
        wait, before = AFTER, ""
        while not self._ended:
            if self._came.wait(wait):
                self._came.clear()
                wait, before = AFTER, ""
                continue
            heard = self._ask()
            wait = EVERY
            if str(heard) != before and not self._came.is_set():
                before = str(heard)
                self._say(heard)

    def _ask(self) -> Waiting | StairwiseError:
        try:
            found = self._client.status(self._query).waiting
        except StairwiseError as error:
            return error
        assert found is not None
        return found


class WaitingLines:
    """Says it on stderr, a line at a time; that a figure has changed is worth one now and then."""

    def __init__(self) -> None:
        self._subject: object = None
        self._said_at = 0.0

    def __call__(self, heard: Waiting | StairwiseError) -> None:
        subject = (heard.cause, heard.stream, heard.partition) if isinstance(heard, Waiting) else type(heard)
        if subject != self._subject or time.monotonic() - self._said_at >= AGAIN_AFTER:
            self._subject, self._said_at = subject, time.monotonic()
            click.echo(words(heard), err=True)


def words(heard: Waiting | StairwiseError) -> str:
    return heard.sentence if isinstance(heard, Waiting) else f"what it waits for is not known: {heard}"


@contextmanager
def watched(client: Client, subscription: Subscription, say: Say | None) -> Iterator[Iterator[Update]]:
    """The updates of a subscription; ``say`` hears what they wait for, unless it is None."""
    if say is None:
        yield subscription
        return
    updates = Watch(client, subscription.query, say).updates(subscription)
    try:
        yield updates
    finally:
        updates.close()  # type: ignore[attr-defined]
