"""Update patterns: how the results of an operator come and go, and where results have to be revoked.

    monotonic   results stay for ever
    WKS         weakest: results leave in the order in which they came (first in, first out)
    WK          weak: results leave out of order, but when (or after how many rows) is known as they come
    STR         strict: a result can be revoked by what comes later; a negative tuple has to say so

    what it answers      the pattern on the edge above each operator of a plan
    from                 seed 002 Table 1 and Propositions 2 to 9; seed 001 section 3.5.1, rules 1 to 4
    cost                 one pass over the plan

Where the papers leave a choice, or disagree:

- Count-based windows are WKS (seed 002: the order of expiry is known), not STR (seed 001: the time is not). A join of
  one with another window is STR: a joined row ends with the first of its rows, and the orders in which two streams
  expel rows cannot be compared, so nobody can tell its end when it comes about.
- Aggregates are WK over every window: a new value replaces its group's old one, which needs no negative tuple.
  Table 1 calls them monotonic over landmarks, but the text beside it (section 4.2) does not, and a count that
  grows does withdraw its older value.
- A union is WKS only if both sides live equally long. With unequal lifetimes a younger row can leave before an
  older one, so it is WK, one step stronger than Proposition 9 asks for.
"""

from __future__ import annotations

import enum

from stairwise.plan import logical
from stairwise.plan.logical import Plan, children, windows
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
    Window,
    counts_rows,
)


class Pattern(enum.IntEnum):
    """From the simplest to the most demanding."""

    MONOTONIC = 0
    WKS = 1
    WK = 2
    STR = 3

    def __str__(self) -> str:
        return self.name.lower() if self is Pattern.MONOTONIC else self.name


def window_pattern(window: Window) -> Pattern:
    """How rows come into and go out of a window (seed 002 section 3)."""
    match window:
        case TimeWindow():
            # Of a tumbling window all rows leave at once, whenever they came (after Proposition 3).
            return Pattern.WKS if window.slide < window.range else Pattern.WK
        case LandmarkWindow():
            return Pattern.MONOTONIC if window.retain is None else Pattern.WKS
        case RowsWindow():
            return Pattern.WKS
        case PartitionedWindow():
            return Pattern.WK
        case RelationWindow():
            # An update of a relation revokes what was joined with the row that it replaces (seed 001 section 3.3.1);
            # one of a non-retroactive relation changes nothing that is there.
            return Pattern.STR if window.retroactive else Pattern.MONOTONIC
        case MultiWindow():
            slides = window.horizon is not None or all(level.slide < level.range for level in window.levels)
            return Pattern.WKS if slides else Pattern.WK


def pattern(plan: Plan) -> Pattern:
    """The update pattern of what comes out of an operator."""
    below = [pattern(child) for child in children(plan)]
    match plan:
        case logical.Scan():
            return Pattern.MONOTONIC
        case logical.Window():
            # Below a window only duplicate elimination changes what is there: a value that appears again lives on.
            changed = Pattern.WK if _renews(plan.input) else Pattern.MONOTONIC
            return max(changed, window_pattern(plan.window))
        case logical.Select() | logical.Narrow() | logical.Project():
            return below[0]
        case logical.Union():
            return _union(plan, below)
        case logical.Join() if (alone := _beside_fixed_relation(plan)) is not None:
            return pattern(alone)
        case logical.Join() if any(map(_expels, windows(plan))):
            return Pattern.STR
        case logical.Join() | logical.Distinct():
            strongest = max(below)
            return strongest if strongest is Pattern.MONOTONIC else max(strongest, Pattern.WK)
        case logical.Group():
            return max(below[0], Pattern.WK)
        case logical.Except():
            return Pattern.STR


def _beside_fixed_relation(plan: logical.Join) -> Plan | None:
    """The other side of a join with a non-retroactive relation, whose rows come and go as its pattern says."""
    for table, other in ((plan.left, plan.right), (plan.right, plan.left)):
        held = list(windows(table))
        if len(held) == 1 and isinstance(held[0], RelationWindow) and not held[0].retroactive:
            return other
    return None


def _expels(window: Window) -> bool:
    """Does a row leave the window because others come, rather than with time?"""
    return isinstance(window, RowsWindow | PartitionedWindow | LandmarkWindow) and counts_rows(window)


def _renews(plan: Plan) -> bool:
    return isinstance(plan, logical.Distinct) or any(map(_renews, children(plan)))


def _union(plan: logical.Union, below: list[Pattern]) -> Pattern:
    strongest = max(below)
    if strongest is Pattern.WKS and not _equal_lifetimes(plan):
        return Pattern.WK
    return strongest


def _equal_lifetimes(plan: logical.Union) -> bool:
    """Do the rows of both sides stay for the same time? Rows of count windows do not: each counts its own stream."""
    left, right = set(windows(plan.left)), set(windows(plan.right))
    return left == right and len(left) == 1 and isinstance(left.pop(), TimeWindow)
