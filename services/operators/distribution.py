"""How a query's rows are spread over the shards.

A query that groups by a key runs on every shard, each with the keys that hash to it; DISTINCT with a column among its
values does too. One without runs whole on one shard, which its signature chooses, and where there is but one shard, all
do. Queries with the same distribution share the rows that are sent.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from stairwise.cql.query import Field, Select
from stairwise.platform.plans import Registered
from stairwise.schema import Type
from stairwise.sharing.signature import DistinctSignature
from stairwise.windows.spec import MultiWindow, TimeWindow

HASHED = frozenset({Type.STRING, Type.BIGINT, Type.BOOLEAN, Type.TIMESTAMP})
"""Types whose equal values have equal text. (−0.0 equals 0.0 in a group key, and does not read so.)"""


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
    column = _common_key(registered) if shards > 1 else None
    if column is not None:
        return Distribution(column)
    return Distribution(None, zlib.crc32(registered.signature.encode()) % shards)


def _common_key(registered: Registered) -> str | None:
    """The first group key, or value of DISTINCT, that is a plain column, where rows of one group or value alone decide
    its answer."""
    relation = registered.query.relation
    if not isinstance(relation, Select) or len(relation.inputs) != 1:
        return None
    if not isinstance(relation.inputs[0].window, TimeWindow | MultiWindow):
        return None
    is_distinct = isinstance(registered.shared, DistinctSignature)
    for key in [output.expr for output in relation.outputs] if is_distinct else relation.keys:
        if isinstance(key, Field) and key.type in HASHED:
            return key.name
    return None
