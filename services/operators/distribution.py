"""How a query's rows are spread over the shards.

A query that groups by a key runs on every shard, each with the keys that hash to it; DISTINCT with a column among its
values does too. One without runs whole on one shard, which its signature chooses, and where there is but one shard, all
do. Queries with the same distribution share the rows that are sent.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from stairwise.plan.distribution import shard_key
from stairwise.wire.plans import Registered


@dataclass(frozen=True)
class Distribution:
    """By the values of a column over all shards, or whole on one of them."""

    column: str | None
    shard: int | None = None

    @property
    def name(self) -> str:
        return f"by {self.column}" if self.column is not None else "whole"

    def shards(self, count: int) -> range:
        """Which shards take part."""
        return range(count) if self.shard is None else range(self.shard, self.shard + 1)


def distribution_of(registered: Registered, shards: int) -> Distribution:
    column = shard_key(registered.query) if shards > 1 else None
    if column is not None:
        return Distribution(column)
    return Distribution(None, zlib.crc32(registered.signature.encode()) % shards)
