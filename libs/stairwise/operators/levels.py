"""What a multi-granular window asks of the slices that it shares with others.

    RANGES 24, 12, 4  SLIDES 12, 4, 4             at τ = 24         at τ = 28
    levels                                        24, 12, 4             12, 4       each at its own slide
    CONTINUOUS HORIZON 18                         18                18              at every granule
    steps of a level (WEIGHTED BY, RECURRING)     24, 12, 4             12, 4       at the slide of the level: also
                                                                                    those of levels that are not due

A step is what a level adds beyond the finer one: it lies between two rears, so a query that looks at steps asks for
the nested windows that end where its level does, and takes them apart (``stepped``). It needs them as partials: what
is rounded cannot be weighted exactly, and what was counted cannot be told apart by item.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from stairwise.algebra.query import Select
from stairwise.expressions.tree import Aggregate
from stairwise.schema import Duration
from stairwise.windows.spec import Level, MultiWindow, TimeWindow


@dataclass(frozen=True)
class SteppedWindow(MultiWindow):
    """A multi-granular window whose steps are asked for one by one."""

    def steps(self) -> list[list[Level]]:
        """For each level that reports, the nested windows whose differences are its steps, finest first."""
        if self.horizon is not None:
            finer = [level.range for level in self.levels if level.range < self.horizon]
            return [_nested([*finer, self.horizon], self.granule)]
        ranges = [level.range for level in self.levels]
        return [_nested(ranges[: number + 1], level.slide) for number, level in enumerate(self.levels)]


@dataclass(frozen=True)
class Partial(Aggregate):
    """An aggregate that is asked for as its partial, not as its answer. SUM and AVG have the same one."""


def asked_window(select: Select) -> TimeWindow | MultiWindow:
    """The window of a SELECT that shares, as its operator sees it."""
    window = select.inputs[0].window
    assert isinstance(window, TimeWindow | MultiWindow)
    if not isinstance(window, MultiWindow) or not asks_for_steps(select):
        return window
    return SteppedWindow(**{field.name: getattr(window, field.name) for field in fields(window)})


def asked_aggregates(select: Select) -> tuple[Aggregate, ...]:
    """The aggregates of a SELECT that shares, as its operator sees them."""
    if not asks_for_steps(select):
        return select.aggregates
    return tuple(_partial(aggregate) for aggregate in select.aggregates)


def asked_levels(window: MultiWindow) -> list[Level]:
    """All that is asked for, each as a range that is due at every multiple of its slide."""
    if isinstance(window, SteppedWindow):
        return [asked for steps in window.steps() for asked in steps]
    if window.horizon is not None:
        return [Level(window.horizon, window.granule)]
    return list(window.levels)


def _nested(ranges: list[Duration], slide: Duration) -> list[Level]:
    return [Level(wide, slide) for wide in ranges]


def _partial(aggregate: Aggregate) -> Partial:
    function = "SUM" if aggregate.function == "AVG" else aggregate.function
    return Partial(function, aggregate.args, aggregate.type, aggregate.distinct)


def asks_for_steps(select: Select) -> bool:
    """Is it weighted by levels, or does it look for items that recur over them?"""
    window = select.inputs[0].window
    if not isinstance(window, MultiWindow) or not select.aggregates:
        return False
    return window.weights is not None or select.aggregates[0].function == "RECURRING"
