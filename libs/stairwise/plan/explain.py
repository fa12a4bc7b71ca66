"""EXPLAIN with all that a query has to do with others: what it shares with whom, its group, how far back it sees.

    plan, patterns, algorithms, rewrites                ``tree_drawing``, ``physical``
    join: ...                                           how partners are found (``join.explain``)
    shards: ...                                         by which column its rows are spread (``distribution``)
    sharing: 3 queries over trades, one slice store     the queries of its signature
    group 1: ...                                        its window among theirs, as nested bars (``drawing``)
    horizon: ...                                        where it joined a stream that had begun (``horizon_line``)

The groups are those that the queries of the signature have when they are put together at once, so the picture depends
on what is registered and not on who came first. A multi-granular window stands in it with each of its levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from stairwise.algebra.query import Query, Select, selects
from stairwise.algebra.spelling import spell_expr
from stairwise.join.explain import explain_join
from stairwise.operators.signature import FlowSignature, JoinSignature, Signature
from stairwise.plan.distribution import shard_key
from stairwise.plan.physical import physical_plan
from stairwise.plan.signature import published_signature_of
from stairwise.plan.tree_drawing import draw_plan
from stairwise.schema import DAWN, Instant
from stairwise.subsumption.drawing import draw, level_of
from stairwise.subsumption.grouping import WindowGroups
from stairwise.windows.spec import MultiWindow, TimeWindow

_UNNAMED = "this query"


def explain(query: Query, registered: Mapping[str, Query]) -> str:
    """The plan of a query, and its place among the registered ones, of which it need not be one."""
    physical = physical_plan(query)
    moves = isinstance(physical.signature, FlowSignature)
    joins = [line for select in selects(query.relation) for line in explain_join(select, moves=moves)]
    joins += [_ordering(select) for select in selects(query.relation) if select.is_ordered]
    return "\n".join([draw_plan(physical), *joins, _spread(query), *_sharing(query, registered)])


def _ordering(select: Select) -> str:
    by = ", ".join(f"{spell_expr(expr)}{' DESC' if down else ''}" for expr, down in select.order)
    first = "all groups" if select.limit is None else f"the first {select.limit:,} groups"
    return f"order: {first} of each report{f' by {by}' if by else ''}, taken where the query is read"


def _spread(query: Query) -> str:
    key = shard_key(query)
    return "shards: whole, on one of them" if key is None else f"shards: by {key}, on all of them"


def horizon_line(horizon: Instant | None) -> str:
    """Where a running query's view ends: DAWN if it sees every row, None where that is not known (yet)."""
    if horizon is None:
        return "horizon: not known, the query has not taken effect on every partition yet"
    if horizon == DAWN:
        return "horizon: none, it has seen its streams from their first row on"
    moment = datetime.fromtimestamp(horizon / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    return f"horizon: {horizon} ({moment}), it joined late and sees rows above that"


def _sharing(query: Query, registered: Mapping[str, Query]) -> Iterator[str]:
    signature = published_signature_of(query)
    if signature is None:
        return
    name = query.name or _UNNAMED
    sharers = {other: q for other, q in registered.items() if published_signature_of(q) == signature} | {name: query}
    count = "1 query" if len(sharers) == 1 else f"{len(sharers)} queries"
    if isinstance(signature, JoinSignature):
        streams = ", ".join(dict.fromkeys(stream.name for stream in signature.streams))
        yield f"sharing: {count} over {streams}, every row looks for its partners once ({signature.name})"
        return
    kept = f"one slice store of {signature.kind}" if isinstance(signature, Signature) else "one log of appearances"
    yield f"sharing: {count} over {signature.stream.name}, {kept} ({signature.name})"
    grouping = WindowGroups.of({member: w for n, q in sharers.items() for member, w in _members(n, q).items()})
    own = _members(name, query)
    for group in dict.fromkeys(grouping.group_of(member).number for member in own):
        here = [member for member in own if grouping.group_of(member).number == group]
        yield draw(grouping.group_of(here[0]), *here)


def _members(name: str, query: Query) -> dict[str, TimeWindow]:
    """A query's windows as members of groups: itself, or its levels."""
    assert isinstance(query.relation, Select)
    window = query.relation.inputs[0].window
    if isinstance(window, TimeWindow):
        return {name: window}
    assert isinstance(window, MultiWindow)
    if window.horizon is not None:
        return {name: TimeWindow(window.horizon, window.granule)}
    return {level_of(name, i): TimeWindow(level.range, level.slide) for i, level in enumerate(window.levels)}
