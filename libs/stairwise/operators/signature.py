"""What queries must agree in to share an operator: the identity of each kind of shared operator.

    SELECT ticker, SUM(qty) FROM trades [RANGE 60 SECONDS SLIDE 10 SECONDS] WHERE price > 10 GROUP BY ticker ...
    SELECT ticker, MAX(qty) FROM trades [RANGE 5 MINUTES SLIDE 1 MINUTE]    WHERE 10 < price GROUP BY ticker ...

    stream and incarnation    trades, 1          windows, aggregates, HAVING, projection and EMIT may differ: slices
    filter                    price > 10         serve every window, their partials are the union of what the
    group keys                ticker             aggregates need, and the rest is each query's own affair
    kind of partials          whole numbers      a MEDIAN has slices beside those of the sums

Expressions are in their canonical form (``expressions.canonical``), so spelling keeps no queries apart. Which query has
which signature is for the planner to say.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from stairwise.algebra.query import Input, Select
from stairwise.expressions.tree import Expr, Output
from stairwise.schema import Duration, Stream
from stairwise.windows.spec import TimeWindow, Window

ANY_WINDOW = TimeWindow(1, 1)
"""Stands where a signature leaves the windows open."""


def _digest(spelled: str) -> str:
    """A few letters that stand for a text, the same in every process."""
    return hashlib.sha256(spelled.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Signature:
    stream: Stream
    where: Expr | None
    keys: tuple[Expr, ...]
    kind: str
    """Of the partials: dear ones have slices beside those of cheap ones."""
    tables: tuple[str, ...] = ()
    """The partials that grow with the rows."""

    @property
    def name(self) -> str:
        """A short name that is the same in every process: reports carry it."""
        spelled = f"{self.stream.name}/{self.stream.incarnation}/{self.where!r}/{self.keys!r}/{self.kind}/{self.tables}"
        return f"{self.stream.name}.{self.stream.incarnation}:{_digest(spelled)}"


@dataclass(frozen=True)
class DistinctSignature:
    """What SELECT DISTINCT over time windows has to agree in: stream, filter, values, and the lag of the windows."""

    stream: Stream
    where: Expr | None
    keys: tuple[Expr, ...]
    lag: Duration

    @property
    def select(self) -> Select:
        """What all of its queries read, whatever their windows."""
        return _rows_of(self.stream, self.where, self.keys)

    @property
    def name(self) -> str:
        spelled = f"distinct/{self.stream.name}/{self.stream.incarnation}/{self.where!r}/{self.keys!r}/{self.lag}"
        return f"{self.stream.name}.{self.stream.incarnation}:{_digest(spelled)}"


@dataclass(frozen=True)
class JoinSignature:
    """What joins of time windows have to agree in: the streams in their order, the condition, the columns they ask."""

    streams: tuple[Stream, ...]
    where: Expr | None
    columns: tuple[int, ...]
    select: Select = field(compare=False, repr=False)
    """What all of its queries read, whatever their windows, as it runs."""

    @property
    def name(self) -> str:
        streams = "+".join(f"{stream.name}.{stream.incarnation}" for stream in self.streams)
        spelled = f"join/{streams}/{self.where!r}/{self.columns!r}"
        return f"{streams}:{_digest(spelled)}"


@dataclass(frozen=True)
class LandmarkSignature:
    """What the changes of groups over landmarks have to agree in: everything but EMIT."""

    select: Select

    @property
    def name(self) -> str:
        (source,) = self.select.inputs
        stream = f"{source.stream.name}.{source.stream.incarnation}"
        return f"{stream}:{_digest(f'landmark/{stream}/{self.select!r}')}"


@dataclass(frozen=True)
class FlowInput:
    """The rows of one SELECT, and how its window counts them. ``where`` stands below the window, ``above`` above it."""

    stream: Stream
    where: Expr | None
    above: Expr | None
    values: tuple[Expr, ...]
    window: Window

    @property
    def select(self) -> Select:
        return _rows_of(self.stream, self.where, self.values, self.window, self.above)


@dataclass(frozen=True)
class FlowSignature:
    """What SELECT, UNION ALL and EXCEPT over windows that report by time have to agree in: the rows of each SELECT, by
    what its window counts them, and how these are put together."""

    flows: tuple[FlowInput, ...]
    shape: str

    @property
    def selects(self) -> list[Select]:
        """What all of its queries read, whatever their ranges, rows and slides."""
        return [flow.select for flow in self.flows]

    @property
    def name(self) -> str:
        streams = "+".join(dict.fromkeys(f"{flow.stream.name}.{flow.stream.incarnation}" for flow in self.flows))
        rows = [(flow.where or flow.above, flow.values, flow.window) for flow in self.flows]
        spelled = f"flow/{streams}/{self.shape}/{rows!r}"
        return f"{streams}:{_digest(spelled)}"


def _rows_of(
    stream: Stream,
    where: Expr | None,
    values: tuple[Expr, ...],
    window: Window = ANY_WINDOW,
    above: Expr | None = None,
) -> Select:
    outputs = tuple(Output(f"value{i}", value) for i, value in enumerate(values))
    return Select((Input(stream, window, stream.name, where),), outputs, where=above)
