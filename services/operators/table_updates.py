"""What has come of the tables, so that a query that joins later finds them whole.

    t.companies.1/0    ▣ ▣ ▣ ▣ ▣ ┆ ▣ ▣        a query joins at ┆: it is given what stands before, and takes the rest

Each partition is a list of parcels, as they came. Where a table declares no time, an update makes an earlier one of its
key worthless, and now and then those are dropped. With TIMESTAMP BY all updates stay: which of them counts depends on
the time that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa

from services.operators.parcel import Parcel, Place, portion_of
from stairwise.expressions.codes import encode
from stairwise.schema import Stream
from stairwise.state.store import Store
from stairwise.wire.batches import decode_rows

PREFIX = b"t/"
FEW = 4096
"""Up to how many rows are kept as they came."""


class TableUpdates:
    """The parcels of tables, by partition, in the order of their offsets."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[Place, int] = {}
        self._kept: dict[Place, int] = {}
        """How many rows a partition has, and how many it had when it was last compacted."""
        for place, parcel in ((_place(key), Parcel.decode(page)) for key, page in store.scan(PREFIX)):
            self._rows[place] = self._rows.get(place, 0) + parcel.headers.rows

    def add(self, parcel: Parcel, table: Stream, *, may_compact: bool) -> None:
        place = parcel.place
        self._store.put(_key(place, parcel.offset), parcel.encode())
        self._rows[place] = self._rows.get(place, 0) + parcel.headers.rows
        is_grown = self._rows[place] > 2 * self._kept.get(place, 0) + FEW
        if table.timestamp_by is None and is_grown and may_compact:
            self._compact(place, table)

    def before(self, place: Place, offset: int | None) -> Iterator[Parcel]:
        """What came before a parcel; all, where it is the end."""
        for _, page in self._store.scan(_prefix(place)):
            parcel = Parcel.decode(page)
            if offset is None or parcel.offset < offset:
                yield parcel

    def forget(self, place: Place) -> None:
        """The table is gone."""
        if self._rows.pop(place, None) is not None:
            self._kept.pop(place, None)
            for key in self._store.keys(_prefix(place)):
                self._store.delete(key)

    def _compact(self, place: Place, table: Stream) -> None:
        """Keep the last row of each key."""
        parcels = list(self.before(place, None))
        rows = [decode_rows(portion.rows, table) for parcel in parcels for portion in parcel.portions]
        codes, _ = encode(pa.concat_batches(rows).select(list(table.keys)).columns)
        _, last = np.unique(codes[::-1], return_index=True)
        is_last = np.zeros(len(codes), bool)
        is_last[len(codes) - 1 - last] = True
        start = 0
        for parcel, some in zip(parcels, rows, strict=True):
            chosen = np.flatnonzero(is_last[start : start + some.num_rows])
            start += some.num_rows
            if len(chosen) == some.num_rows:
                continue
            key = _key(place, parcel.offset)
            if not len(chosen):
                self._store.delete(key)
                continue
            numbers = parcel.batch(parcel.portions[0], table).sequence
            portion = portion_of(parcel.portions[0].distribution, some, chosen, 0)
            portion = msgspec.structs.replace(portion, sequence=np.ascontiguousarray(numbers[chosen]).tobytes())
            headers = replace(parcel.headers, rows=len(chosen))
            self._store.put(key, msgspec.structs.replace(parcel, headers=headers, portions=[portion]).encode())
        self._rows[place] = self._kept[place] = int(is_last.sum())


def _prefix(place: Place) -> bytes:
    return PREFIX + place.encode() + b"/"


def _key(place: Place, offset: int) -> bytes:
    return _prefix(place) + b"%020d" % offset


def _place(key: bytes) -> Place:
    return key[len(PREFIX) :].rpartition(b"/")[0].decode()
