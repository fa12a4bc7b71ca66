"""Statements that were read before, so that a lookup that comes again is not parsed again."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

from services.lookups.plan_follower import PlanFollower
from stairwise.cql.grants import Privilege, stream_target
from stairwise.errors import StairwiseError
from stairwise.lookups.statement import Lookup, read_lookup
from stairwise.wire.authority import Rights

MOST = 4096


class Statements:
    """The lookups of the texts that came last, as the newest plan version understands them."""

    def __init__(self, plans: PlanFollower) -> None:
        self._plans = plans
        self._version = -1
        self._known: OrderedDict[str, Lookup] = OrderedDict()

    def read(self, text: str) -> Lookup:
        catalogue = self._plans.catalogue
        if catalogue.version != self._version:
            self._known.clear()
            self._version = catalogue.version
        lookup = self._known.get(text)
        if lookup is None:
            lookup = self._known[text] = read_lookup(text, catalogue.streams)
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return lookup

    def readable(self, text: str, rights: Rights) -> Lookup:
        """The same for somebody who may not read every stream: what it does not see is not there."""
        if not rights.principal.is_limited:
            return self.read(text)
        with suppress(StairwiseError):
            lookup = self.read(text)
            if rights.may(Privilege.READ, stream_target(lookup.stream.name)):
                return lookup
        streams = self._plans.catalogue.streams
        lookup = read_lookup(text, {name: streams[name] for name in rights.seen(stream_target, streams)})
        rights.check(stream_target(lookup.stream.name), streams, Privilege.READ)
        return lookup
