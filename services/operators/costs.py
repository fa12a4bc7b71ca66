"""What each signature costs this shard, counted as it runs, and told now and then on the topic ``costs``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from heapq import nlargest
from typing import TypeVar

from stairwise.wire.costs import Cost, ShardCosts

EVERY = 5.0
"""Seconds between two messages, at the least."""
MOST = 10_000
"""A message tells of so many signatures: the dearest."""

Made = TypeVar("Made")


class Costs:
    def __init__(self) -> None:
        self._costs: dict[str, Cost] = {}
        self._begun, self._told = time.monotonic(), float("-inf")

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
        while True:
            begin = time.process_time()
            item = next(made, None)
            cost.cpu += time.process_time() - begin
            if item is None:
                return
            rows = rows_of(item)
            if rows is not None:
                cost.reports += 1
                cost.answer_rows += rows
            yield item

    def forget(self, signature: str) -> None:
        self._costs.pop(signature, None)

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
