"""What each signature costs this shard, counted as it runs, and told now and then on the topic ``costs``.

It also decides who comes first: signatures whose reports cost little come before those whose reports cost much, and
nobody's reports wait for the work of a dear one (``rounds``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest
from typing import TypeVar

from stairwise.wire.costs import Cost, ShardCosts

EVERY = 5.0
"""Seconds between two messages, at the least."""
MOST = 10_000
"""A message tells of so many signatures: the dearest."""
ROUND = 0.02
"""About how many seconds the work of signatures takes whose reports are handed on together."""

Made = TypeVar("Made")


class Costs:
    def __init__(self) -> None:
        self._costs: dict[str, Cost] = {}
        self._lately: dict[str, float] = {}
        """How many seconds the reports of a micro-batch cost each of late."""
        self._begun, self._told = time.monotonic(), float("-inf")

    def rounds(self, signatures: Iterable[str]) -> Iterator[list[str]]:
        """In which order they work, those together whose reports are handed on together: the cheap ones first."""
        together: list[str] = []
        expected = 0.0
        for signature in sorted(signatures, key=self._expected):
            if together and expected + self._expected(signature) > ROUND:
                yield together
                together, expected = [], 0.0
            together.append(signature)
            expected += self._expected(signature)
        if together:
            yield together

    def _expected(self, signature: str) -> float:
        """What its reports of a micro-batch are expected to cost: of one that is not known yet, nothing."""
        return self._lately.get(signature, 0.0)

    def took(self, signature: str, rows: int, take: Callable[[], None]) -> None:
        """Rows are taken in."""
        cost = self._costs.setdefault(signature, Cost())
        begin = time.process_time()
        take()
        cost.cpu += time.process_time() - begin
        cost.rows += rows

    def making(self, signature: str, made: Iterator[Made], rows_of: Callable[[Made], int | None]) -> Iterator[Made]:
        """What a signature makes, while the time that it takes is counted; None is no report."""
        cost = self._costs.setdefault(signature, Cost())
        before = cost.cpu
        while True:
            begin = time.process_time()
            item = next(made, None)
            cost.cpu += time.process_time() - begin
            if item is None:
                self._lately[signature] = (self._expected(signature) + cost.cpu - before) / 2
                return
            rows = rows_of(item)
            if rows is not None:
                cost.reports += 1
                cost.answer_rows += rows
            yield item

    def forget(self, signature: str) -> None:
        self._costs.pop(signature, None)
        self._lately.pop(signature, None)

    def due(self) -> bool:
        """Is it time to tell?"""
        return bool(self._costs) and time.monotonic() - self._told >= EVERY

    def tell(self, complete: Callable[[str, Cost], None]) -> ShardCosts:
        """What there is to tell now; ``complete`` fills in what is not counted here."""
        self._told = time.monotonic()
        named = self._costs.items()
        dearest = dict(named if len(named) <= MOST else nlargest(MOST, named, key=lambda entry: entry[1].cpu))
        for signature, cost in dearest.items():
            complete(signature, cost)
        return ShardCosts(self._told - self._begun, dearest)
