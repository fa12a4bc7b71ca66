"""The reports of a query by itself, out of the blocks of its operator: whole answers, as they are published.

    block ──▶ expansion ──┬── whole answers ────────────────────▶ reports
                          └── changes ──▶ standing answer ──────▶ reports

What the expansion and the standing answer hold follows from the rows in the query's windows. When a driver starts again
from the store, the operator gives these rows as a block at the query's last report (its *history*). The changes of that
block are what stood then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from stairwise.algebra.query import Emit, Query, Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.reports.contract import Report
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import output_schema
from stairwise.reports.standing_answer import StandingAnswer
from stairwise.state.store import Store

_FAULTS = b"faults"


class MomentBlock(Protocol):
    """A block that says when each of its reports is."""

    @property
    def times(self) -> Ints: ...

    @property
    def ordinals(self) -> Ints: ...


class BlockExpansion(Protocol):
    """What a query shows of its operator's blocks."""

    faults: Faults

    def expand(self, block: Any) -> Emissions | None: ...


class QueryReports:
    def __init__(self, query: Query, expansion: BlockExpansion, history: MomentBlock | None, store: Store) -> None:
        """``query`` is one whose output rows are those of the reports (``report_query``), and which shows whole answers
        or changes. It goes on from what is in the store, and from what its windows hold, if it has reported already."""
        self._name, self._expansion, self._store = query.name, expansion, store
        self._standing = _standing(query) if query.emit is Emit.CHANGES else None
        if history is not None:
            for _ in self.reports(history):
                pass
        page, again = store.get(_FAULTS), expansion.faults
        before = (0, 0) if page is None else msgspec.msgpack.decode(page, type=tuple[int, int])
        self._before = Faults(before[0] - again.overflow, before[1] - again.division)
        """What was counted before, without what the history has counted again."""

    def reports(self, block: MomentBlock) -> Iterator[Report]:
        """One for each report time of a block at which the query is due."""
        emitted = self._expansion.expand(block)
        if emitted is None:
            return
        found = {(time, ordinal): span for time, ordinal, span in emitted.spans()}
        moments = list(zip(block.times.tolist(), block.ordinals.tolist(), strict=True))
        spans = [found.get(moment) for moment in moments]
        answers = self._whole(emitted, spans) if self._standing is None else self._standing.after(emitted, spans)
        for (time, ordinal), rows in zip(moments, answers, strict=True):
            yield Report(self._name, time, rows, ordinal)

    @staticmethod
    def _whole(emitted: Emissions, spans: list[slice | None]) -> Iterator[Any]:
        for span in spans:
            yield emitted.rows.slice(0, 0) if span is None else emitted.rows.slice(span.start, span.stop - span.start)

    @property
    def faults(self) -> Faults:
        """What went wrong in the expansion's expressions, all told."""
        faults = Faults(self._before.overflow, self._before.division)
        faults.add(self._expansion.faults)
        return faults

    def flush(self) -> None:
        faults = self.faults
        self._store.put(_FAULTS, msgspec.msgpack.encode((faults.overflow, faults.division)))


def _standing(query: Query) -> StandingAnswer:
    schema, relation = output_schema(query), query.relation
    if isinstance(relation, Select) and relation.is_grouped:
        return StandingAnswer(schema, len(relation.keys))
    return StandingAnswer(schema, len(schema))
