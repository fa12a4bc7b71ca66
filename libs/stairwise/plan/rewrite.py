"""Rewrites of a logical plan that never change an answer, and those that would and are therefore refused.

    what it answers      an equivalent plan that filters early and carries little
    from                 seed 002 section 5 (windows commute with selection, projection and duplicate elimination;
                         joins let selection and projection through)
    cost                 a few passes over the plan

A window that takes rows by their time alone (RANGE, TUMBLE, NOW, landmarks, RANGES) holds the same rows whether a
filter stands above or below it. One that counts rows (ROWS, PARTITION BY, RETAIN) does not:

    stream      a1  b2  a3  b4                 [ROWS 2], then only a's:   a3
    filtered    a1      a3                     only a's, then [ROWS 2]:   a1  a3

Every rule leaves a ``Step`` that says what was done, or why not. The rewritten plan is what runs (``lowering``). The
order in which the inputs of a join are asked follows from their rows while it runs (``join.order``), not from here.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from stairwise.algebra.spelling import spell_window
from stairwise.expressions.conditions import all_of, conjuncts, places
from stairwise.expressions.tree import Expr, Field
from stairwise.plan import logical
from stairwise.plan.logical import Plan, reach, scans
from stairwise.windows.spec import LandmarkWindow, PartitionedWindow, RelationWindow, TimeWindow, Window, counts_rows


class Rule(enum.Enum):
    SELECTION_BELOW_JOIN = "selection below the join"
    SELECTION_BELOW_WINDOW = "selection below the window"
    PROJECTION_BELOW_WINDOW = "projection below the window"
    DISTINCT_BELOW_WINDOW = "duplicate elimination below the window"
    DIFFERENCE_BELOW_WINDOW = "difference below the window"


@dataclass(frozen=True)
class Step:
    """A rule that was applied, or refused, at one place; ``subject`` says where."""

    rule: Rule
    applied: bool
    subject: str
    reason: str


@dataclass(frozen=True)
class Rewritten:
    plan: Plan
    steps: tuple[Step, ...]


def rewrite(plan: Plan) -> Rewritten:
    """The plan after all rules, bottom-up where they depend on each other: filters, then sets, then columns."""
    steps: list[Step] = []
    plan = _filters(plan, steps)
    plan = _sets(plan, steps)
    plan = _columns(plan, steps)
    return Rewritten(plan, tuple(steps))


# ── which windows let what through ─────────────────────────────────────────────────────────────────────


def hides_recent_rows(window: Window) -> str:
    """The clause by which a window does not see the most recent rows, or nothing."""
    match window:
        case TimeWindow() if window.lag:
            return "LAG"
        case LandmarkWindow() if window.end is not None:
            return "UNTIL"
        case _:
            return ""


def _names(plan: Plan) -> str:
    return ", ".join(scan.alias for scan in scans(plan))


# ── selections ─────────────────────────────────────────────────────────────────────────────────────────


def _filters(plan: Plan, steps: list[Step]) -> Plan:
    match plan:
        case logical.Select(logical.Join() as join, condition):
            return _filtered_join(join, list(conjuncts(condition)), steps)
        case logical.Select(logical.Window() as window, condition):
            return _filtered_window(window, list(conjuncts(condition)), steps)
        case logical.Join():
            return _filtered_join(plan, (), steps)
        case logical.Scan() | logical.Window():
            return plan
        case logical.Union() | logical.Except():
            return replace(plan, left=_filters(plan.left, steps), right=_filters(plan.right, steps))
        case _:
            return replace(plan, input=_filters(plan.input, steps))


def _filtered_window(plan: logical.Window, conditions: Sequence[Expr], steps: list[Step]) -> Plan:
    """σ(W(S)) = W(σ(S)) for windows that take rows by their time."""
    if counts_rows(plan.window):
        reason = f"the last rows of {spell_window(plan.window)} are not the last rows that pass the filter"
        steps.append(Step(Rule.SELECTION_BELOW_WINDOW, False, _names(plan), reason))
        return logical.Select(plan, all_of(conditions))
    reason = "a row is in this window by its time alone, so what the filter drops need not be kept"
    steps.append(Step(Rule.SELECTION_BELOW_WINDOW, True, _names(plan), reason))
    return replace(plan, input=logical.Select(plan.input, all_of(conditions)))


def _filtered_join(plan: logical.Join, conditions: Sequence[Expr], steps: list[Step]) -> Plan:
    """Conditions of one input go to it, those that link inputs into the join, constants stay above."""
    leaves = [
        _filtered_leaf(leaf, [c for c in conditions if places(c) and places(c) <= reach(leaf)], steps)
        for leaf in _leaves(plan)
    ]
    linking = [c for c in conditions if not any(places(c) <= reach(leaf) for leaf in leaves)]
    joined, *others = leaves
    for other in others:
        within = reach(joined) | reach(other)
        here = [c for c in linking if places(c) <= within]
        linking = [c for c in linking if c not in here]
        joined = logical.Join(joined, other, all_of(here) if here else None)
    constant = [c for c in conditions if not places(c)]
    return logical.Select(joined, all_of(constant)) if constant else joined


def _leaves(plan: Plan) -> list[Plan]:
    """The inputs of a chain of joins: ⋈ is associative."""
    if isinstance(plan, logical.Join):
        return [*_leaves(plan.left), *_leaves(plan.right)]
    return [plan]


def _filtered_leaf(leaf: Plan, conditions: Sequence[Expr], steps: list[Step]) -> Plan:
    if not conditions:
        return leaf
    reason = "a pair passes only if its row of this input does"
    steps.append(Step(Rule.SELECTION_BELOW_JOIN, True, _names(leaf), reason))
    if isinstance(leaf, logical.Window):
        return _filtered_window(leaf, conditions, steps)
    return logical.Select(leaf, all_of(conditions))


# ── duplicate elimination, difference ───────────────────────────────────────────────────────────


def _sets(plan: Plan, steps: list[Step]) -> Plan:
    match plan:
        case logical.Distinct():
            return _distinct(plan, steps)
        case logical.Union():
            return logical.Union(_sets(plan.left, steps), _sets(plan.right, steps))
        case logical.Except():
            reason = "a row that only one of the windows holds would cancel one that the other does not hold"
            steps.append(Step(Rule.DIFFERENCE_BELOW_WINDOW, False, _names(plan), reason))
            return logical.Except(_sets(plan.left, steps), _sets(plan.right, steps))
        case _:
            return plan


def _distinct(plan: logical.Distinct, steps: list[Step]) -> Plan:
    """δ(W(S)) = W(δ(S)): a window that reaches up to now holds a value iff it holds its latest appearance."""
    below = plan.input
    assert isinstance(below, logical.Project), "DISTINCT stands above a list"
    window = below.input
    if not isinstance(window, logical.Window):
        refusal = (
            "the window counts rows before the filter"
            if isinstance(window, logical.Select) and isinstance(window.input, logical.Window)
            else "it is about the results of a join or of groups, not about the rows of one window"
        )
        steps.append(Step(Rule.DISTINCT_BELOW_WINDOW, False, _names(plan), refusal))
        return plan
    hidden = hides_recent_rows(window.window)
    if counts_rows(window.window):
        refusal = f"the last rows of {spell_window(window.window)} are not the last distinct ones"
    elif hidden:
        refusal = f"the latest appearance, hidden from the window by {hidden}, would stand for one that it holds"
    else:
        reason = "one table of latest appearances serves every window that reaches up to now"
        steps.append(Step(Rule.DISTINCT_BELOW_WINDOW, True, _names(plan), reason))
        return replace(window, input=logical.Distinct(replace(below, input=window.input)))
    steps.append(Step(Rule.DISTINCT_BELOW_WINDOW, False, _names(plan), refusal))
    return plan


# ── projections ────────────────────────────────────────────────────────────────────────────────────────


def _columns(plan: Plan, steps: list[Step]) -> Plan:
    """Find the operators that make new rows; below them only what they and the filters look at is needed."""
    match plan:
        case logical.Group():
            looked_at = [*plan.keys, *(arg for aggregate in plan.aggregates for arg in aggregate.args)]
            return replace(plan, input=_needed(plan.input, _all_places(looked_at), steps))
        case logical.Project() if not _is_over_groups(plan):
            looked_at = [output.expr for output in plan.outputs]
            return replace(plan, input=_needed(plan.input, _all_places(looked_at), steps))
        case logical.Scan() | logical.Window() | logical.Join() | logical.Narrow():
            return plan
        case logical.Union() | logical.Except():
            return replace(plan, left=_columns(plan.left, steps), right=_columns(plan.right, steps))
        case _:
            return replace(plan, input=_columns(plan.input, steps))


def _is_over_groups(plan: Plan) -> bool:
    match plan:
        case logical.Project() | logical.Select():
            return _is_over_groups(plan.input)
        case _:
            return isinstance(plan, logical.Group)


def _all_places(exprs: Iterable[Expr]) -> frozenset[int]:
    return frozenset().union(*map(places, exprs))


def _needed(plan: Plan, needed: frozenset[int], steps: list[Step]) -> Plan:
    """The plan with every window's input reduced to the columns that are needed above it."""
    match plan:
        case logical.Select():
            return replace(plan, input=_needed(plan.input, needed | places(plan.condition), steps))
        case logical.Join():
            if plan.condition is not None:
                needed |= places(plan.condition)
            return replace(plan, left=_needed(plan.left, needed, steps), right=_needed(plan.right, needed, steps))
        case logical.Window():
            return _narrowed(plan, needed, steps)
        case _:
            return plan


def _narrowed(plan: logical.Window, needed: frozenset[int], steps: list[Step]) -> Plan:
    """π(W(S)) = W(π(S)) for every window, as long as it keeps what it partitions by."""
    (scan,) = scans(plan)
    keys = plan.window.keys if isinstance(plan.window, PartitionedWindow | RelationWindow) else ()
    kept = tuple(f for f in scan.fields if f.index in needed or f.name in keys)
    for field in kept:
        if field.index not in needed:
            reason = f"{field.name} is not asked for, but the window partitions by it"
            steps.append(Step(Rule.PROJECTION_BELOW_WINDOW, False, scan.alias, reason))
    if kept == scan.fields:
        reason = "every column is needed"
        steps.append(Step(Rule.PROJECTION_BELOW_WINDOW, False, scan.alias, reason))
        return plan
    reason = f"only {_columns_in_words(kept)} needed above the window"
    steps.append(Step(Rule.PROJECTION_BELOW_WINDOW, True, scan.alias, reason))
    return replace(plan, input=logical.Narrow(plan.input, kept))


def _columns_in_words(fields: Sequence[Field]) -> str:
    names = ", ".join(field.name for field in fields)
    if not fields:
        return "a row's being there is"
    return f"{names} {'is' if len(fields) == 1 else 'are'}"
