"""The indexes of a partition: which there are, which are being made, and what each is worth.

    looked at      a signature has no index at first: its lookups look through the rows. When they have looked at as
                   many rows as are kept, an index of them pays, and is made
    unasked        an index, finished or not, that took in many times the rows that are kept without being asked goes
    worth          lookups that asked for it for each byte that it takes; those of long ago count less and less. Where
                   memory is short the one that is worth least goes first

So whoever asks often pays for updates, and whoever asks once does not (seed 004 section 1.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stairwise.lookups.index_making import IndexMaking
from stairwise.lookups.settled_rows import SettledRows
from stairwise.lookups.signature_index import SignatureIndex
from stairwise.lookups.statement import Bound, Lookup, LookupSignature, Need
from stairwise.schema import Instant, Stream

FEW = 1 << 14
"""Rows for which no index is given up, and over which lookups count in full."""
PATIENCE = 8
"""An index that took in so many times the rows that are kept, without being asked, is given up."""
MANY = 8
"""Lookups from which on an index may take the place of rows, where memory is short."""
MOST_USES = 1024
"""Signatures whose use is remembered and that can have indexes."""


@dataclass
class IndexUse:
    """How a signature is used."""

    looked_at: int = 0
    """Rows that lookups without an index have looked at."""
    asks: float = 0
    """Lookups; halved whenever as many rows came in as are kept."""
    since: int = 0
    """Rows that came in since it was halved."""
    unasked: int = 0
    """Rows that came in since it was last asked."""
    index: SignatureIndex | None = None
    making: IndexMaking | None = None
    size_bytes: int = 0
    """Of the index, when it was last updated."""

    @property
    def bytes_in_all(self) -> int:
        return self.size_bytes + (0 if self.making is None else self.making.size_bytes)

    @property
    def worth(self) -> float:
        return self.asks / max(1, self.bytes_in_all)


class IndexShelf:
    """Indexes by signature."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._time: int = stream.arrow_schema.get_field_index(stream.time_column)
        self._uses: dict[LookupSignature, IndexUse] = {}
        """The one that was asked last comes last."""

    @property
    def size_bytes(self) -> int:
        return sum(use.bytes_in_all for use in self._uses.values())

    @property
    def makings(self) -> list[IndexMaking]:
        """What is to be made, the signature first that was asked last."""
        return [use.making for use in reversed(self._uses.values()) if use.making is not None]

    def __len__(self) -> int:
        """Signatures that are remembered."""
        return len(self._uses)

    def __iter__(self) -> Iterator[SignatureIndex]:
        return iter([use.index for use in self._uses.values() if use.index is not None])

    def ask(self, lookup: Lookup) -> IndexUse:
        """The use of a lookup's signature, which is asked now."""
        use = self._uses.pop(lookup.signature, None) or IndexUse()
        self._uses[lookup.signature] = use
        use.unasked = 0
        use.asks += 1
        if len(self._uses) > MOST_USES:
            self._forget_use(next(iter(self._uses)))
        return use

    def use_of(self, lookup: Lookup) -> IndexUse:
        """The same without asking."""
        return self._uses.get(lookup.signature, IndexUse())

    def begin(self, lookup: Lookup) -> IndexMaking:
        """The making of an index that serves a lookup, and what others of its signature were made for."""
        use = self._uses[lookup.signature]
        if use.making is None or not use.making.index.serves(lookup):
            before = [] if use.index is None else [use.index]
            if use.making is not None:
                before.append(use.making.index)
                use.making.is_given_up = True
            use.making = IndexMaking(lookup.signature, self._planned(lookup, before), self._time)
        return use.making

    def finish(self, making: IndexMaking) -> None:
        """It has all rows: it is asked and updated from now on."""
        use = self._uses[making.signature]
        use.index, use.making, use.size_bytes = making.index, None, making.index.size_bytes

    def update(self, settled: SettledRows, first: int, kept: int) -> None:
        """Rows came; ``kept`` there are now."""
        for signature, use in list(self._uses.items()):
            use.unasked += len(settled)
            use.since += len(settled)
            if use.since > max(kept, FEW):
                use.asks, use.since = use.asks / 2, 0
            if use.unasked > PATIENCE * max(kept, FEW):
                self._forget_use(signature)  # asked again, it starts over
            elif use.index is not None:
                use.index.update(settled, first)
                use.size_bytes = use.index.size_bytes

    def forget(self, horizon: Instant, *, give_back: bool = False) -> None:
        for use in self._uses.values():
            if use.index is None:
                continue
            use.index.forget(horizon, give_back=give_back)
            use.size_bytes = use.index.size_bytes
            if use.index.is_crowded:  # the next lookups make it anew, of the keys that there are
                use.index, use.size_bytes = None, 0

    def give_up_least(self, kept: int, *, most_asks: float = float("inf")) -> bool:
        """Give up what is worth least, if it was asked fewer times than that; is anything given up?"""
        there = [use for use in self._uses.values() if use.bytes_in_all]
        least = min(there, key=lambda use: use.worth, default=None)
        if least is None or least.asks >= most_asks:
            return False
        _empty(least)
        least.looked_at = -PATIENCE * kept  # not again at once
        return True

    def has_room(self, *, has_room: bool) -> None:
        """May indexes take more room than they must, to be quicker?"""
        for index in self:
            index.has_room = has_room

    def _forget_use(self, signature: LookupSignature) -> None:
        _empty(self._uses.pop(signature))

    def _planned(self, lookup: Lookup, others: list[SignatureIndex]) -> SignatureIndex:
        indexed = lookup.needs_numbers
        needs: set[Need] = set() if lookup.must_look_through else set(lookup.needs)
        bounds = [] if lookup.bound is None else [lookup.bound]
        for other in others:
            needs |= other.needs
            indexed |= other.is_indexed
            bounds += [Bound(function, args, 0, strict=False) for function, args in other.filtered]
        return SignatureIndex(self._stream, lookup.signature, needs, bounds, indexed=indexed)


def _empty(use: IndexUse) -> None:
    if use.making is not None:
        use.making.is_given_up = True
    use.index, use.making, use.size_bytes = None, None, 0
