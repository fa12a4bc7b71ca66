"""What runs at each node of a query's tree: the operators that evaluate it, asked themselves.

    Project ticker, volume                          taken by each query out of what the operator says
    └─ Group SUM(qty) BY ticker                     slices and stair                 ◀─ the operator's root
       └─ Window [RANGE 60s SLIDE 10s]              what stands below it is in the operator

A query with a signature (``signature``) runs on one operator, which other queries may share. Any other one has an
operator for each SELECT, whose answers are put together at every report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from stairwise.algebra.query import Emit, Query, Relation, Select, Widen
from stairwise.changes.changing_groups import change_by_group, is_subtractable
from stairwise.plan import logical
from stairwise.plan.logical import Plan, children, logical_plan
from stairwise.plan.parts import operator_for
from stairwise.plan.rewrite import Rewritten, rewrite
from stairwise.plan.shared import AnySignature, shared_operator, shared_signature
from stairwise.recompute.recompute import Recompute
from stairwise.state.store import MemoryStore
from stairwise.windows.spec import LandmarkWindow


@dataclass(frozen=True)
class Physical:
    """A query's tree as it runs, and what runs at its nodes."""

    query: Query
    rewritten: Rewritten
    signature: AnySignature | None
    """What its one operator may share with others; None where each SELECT has its own."""

    @cached_property
    def algorithms(self) -> dict[int, str]:
        """By the identity of a node of the tree, the operator whose root stands there."""
        return dict(self._roots())

    def _roots(self) -> Iterator[tuple[int, str]]:
        tree = self.rewritten.plan
        if self.query.by_lookups:
            alone = operator_for(self.query, MemoryStore()).algorithm
            yield id(_root(tree)), f"lookups' structures in a running system, {alone} in run"
        elif self.signature is not None:
            yield id(_root(tree)), shared_operator(self.signature, [self.query], MemoryStore()).algorithm
        else:
            names = iter(operator_for(self.query, MemoryStore()).algorithms)
            yield from _put_together(self.query, self.query.relation, tree, names)


def physical_plan(query: Query) -> Physical:
    """What runs for a query, on every engine."""
    return Physical(query, rewrite(logical_plan(query.relation)), shared_signature(query))


def _root(tree: Plan) -> Plan:
    """The topmost node that one operator evaluates: what stands above it each query does for itself."""
    match tree:
        case logical.Distinct(logical.Project(logical.Window() | logical.Select())):
            return tree
        case logical.Distinct() | logical.Project():
            return _root(tree.input)
        case logical.Select() if isinstance(tree.input, logical.Group):
            return tree.input
        case _:
            return tree


def _put_together(query: Query, relation: Relation, tree: Plan, names: Iterator[str]) -> Iterator[tuple[int, str]]:
    if isinstance(relation, Select):
        name = next(names)
        because = f": {_because(query, relation)}" if name == Recompute.algorithm else ""
        yield id(_root(tree)), name + because
        return
    if isinstance(relation, Widen):
        yield from _put_together(query, relation.input, children(tree)[0], names)
        return
    yield id(tree), "answers put together at every report"
    for side, below in zip((relation.left, relation.right), children(tree), strict=True):
        yield from _put_together(query, side, below, names)


def _because(query: Query, select: Select) -> str:
    """Why a SELECT is recomputed at every report."""
    windows = [source.window for source in select.inputs]
    if query.emit is Emit.RSTREAM:
        return "EMIT RSTREAM shows whole answers"
    if any(isinstance(window, LandmarkWindow) for window in windows):
        return "a landmark shows its rows"
    if select.is_grouped and not change_by_group(select):
        return "its groups cannot be told apart by what they show"
    if len(windows) > 1 and select.is_grouped and not is_subtractable(select):
        return "rows that leave a join cannot be taken out of its aggregates"
    return "no quicker operator takes its windows together"
