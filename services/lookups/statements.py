"""Statements that were read before, so that a lookup that comes again is not parsed again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from services.lookups.follower import PlanFollower
from stairwise.lookups.statement import Lookup, Signature, read_lookup

MOST = 4096


class Statements:
    """The lookups of the texts that came last, as the newest plan version understands them."""

    def __init__(self, plans: PlanFollower) -> None:
        self._plans = plans
        self._version = -1
        self._known: OrderedDict[str, Lookup] = OrderedDict()
        self._signatures: dict[Signature, Signature] = {}

    def read(self, text: str) -> Lookup:
        catalogue = self._plans.catalogue
        if catalogue.version != self._version:
            self._known.clear()
            self._signatures.clear()
            self._version = catalogue.version
        lookup = self._known.get(text)
        if lookup is None:
            lookup = read_lookup(text, catalogue.streams)
            # Those that are equal are one: to look one up is quicker than to compare two.
            signature = self._signatures.setdefault(lookup.signature, lookup.signature)
            lookup = replace(lookup, signature=signature)
            self._known[text] = lookup
            if len(self._known) > MOST:
                self._known.popitem(last=False)
            if len(self._signatures) > MOST:
                self._signatures.clear()
        return lookup
