"""One shard of stage 2: takes parcels in, drives the evaluation of its signatures, hands reports out.

    parcel ──▶ watermark and plan version of its partition ──▶ rows to the signatures that read its stream
    end of batch: every signature advances to the minimum watermark of its partitions

**Queries come and go at a turn**, version v of the plans. The partitions of a signature are aligned there: what a
partition brings from its first batch with v on is held until every partition has come so far.

    partition 0     v6  v6  v7 ┆ v7 v7            held from ┆ on
    partition 1     v6  v6  v6  v6  v6
    partition 2     v6  v7 ┆ v7

Then all rows of before v are in and none of after. M is the highest watermark that a partition has there, m the
lowest. Reports up to m are made by the queries of before; those who leave made their last. Those who join report
from the first τ above M. The batches say how high the rows of before v reach (M + LATENESS + 1, unless LATENESS was
altered), so rows above that are all seen by a query that joins, and more where its signature has kept what came before
(its horizon). So everything that is reported is a function of the topics, and not of which partition was read first.

**A fault stays at home.** Where a signature's operator raises, the shard sets it aside: it drops its state, says so
with a mark and takes no more rows for it. That is part of the shard's state, so a replay tells the same.

**Tables** have partitions like streams. Their time is that of the streams which a query joins them with, as their marks
tell it (``BatchHeaders.follows``). A query that joins sees a table whole: what came before is kept (``updates``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import msgspec

from services.operators.costs import Costs
from services.operators.distribution import distribution_of
from services.operators.evaluation import Alignment, Evaluation, evaluation_of
from services.operators.memory import UNLIMITED, SignatureMemory
from services.operators.pacing import MOST_ROWS, Budget, SignatureProgress
from services.operators.parcel import Parcel, Place, TraceContext, place_of
from services.operators.reading import Reading
from services.operators.table_updates import TableUpdates
from services.operators.work_mark import WorkMark
from stairwise.expressions.faults import Faults
from stairwise.platform.telemetry import MAX_LINKS, fields
from stairwise.reports.contract import Batch, Report
from stairwise.reports.runs import Reach, reports_and_runs
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.state.store import Store, Within
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.costs import Cost, ShardCosts
from stairwise.wire.failures import Failure, reason_of
from stairwise.wire.plans import PlanLog, Turn
from stairwise.wire.reports import LifeRecord, Mark, ReportHeaders

log = logging.getLogger(__name__)

HEADER = b"shard"


class _Partition(msgspec.Struct):
    """How far a topic partition has come."""

    offset: int = -1
    version: int = 0
    rows: int = 0
    """How many have come."""
    watermark: Instant = DAWN
    seen: Instant | None = None
    """The highest time of a row, where its batches say it."""
    sealed: bool = False
    follows: dict[str, Instant] = {}
    """Of a table: how far its streams had come."""


class _Course(msgspec.Struct):
    """How far a signature has come on this shard."""

    name: str
    version: int
    """The name and the version of one of its queries: they all read the same streams."""
    turned: int
    """The version of the last turn."""
    reached: dict[Place, Instant] = {}
    """The watermarks of what is in; empty while there is no query."""
    held: dict[Place, list[bytes]] = {}
    """What came from partitions that have come to the next turn."""
    contexts: list[TraceContext] = []
    """Traces of rows that no report has shown yet."""
    way: SignatureProgress = msgspec.field(default_factory=SignatureProgress)
    failed: str = ""
    """Why it was set aside; empty while it runs."""


class _State(msgspec.Struct):
    """All that a shard keeps beside its evaluations' pages."""

    partitions: dict[Place, _Partition] = {}
    courses: dict[str, _Course] = {}


@dataclass(frozen=True)
class ShardReport:
    """A report, or a mark between or after a signature's reports."""

    headers: ReportHeaders
    report: Report | None = None
    contexts: Sequence[str] = ()
    lives: dict[str, LifeRecord] = field(default_factory=dict)
    """Of the queries that have joined."""
    failure: Failure | None = None
    """Why the signature ends here."""


class Shard:
    def __init__(self, number: int, shards: int, store: Store, query_bytes: int = UNLIMITED) -> None:
        """``query_bytes``: so much memory a signature may take."""
        self._number = number
        self._shards = shards
        self._store = store
        page = store.get(HEADER)
        self._state = _State() if page is None else msgspec.msgpack.decode(page, type=_State)
        self._updates = TableUpdates(store)
        self._evaluations: dict[str, Evaluation] = {}
        self._reaches: dict[str, Reach | None] = {}
        self._readings: dict[str, Reading] = {}
        self._costs = Costs()
        self._memory = SignatureMemory(query_bytes)
        self._behind: dict[str, None] = {}
        """Signatures whose reports were carried over, the one that has waited longest first."""
        self._broken: set[str] = set()
        """Signatures that were set aside in this micro-batch, and of which that is not told yet."""

    @property
    def is_behind(self) -> bool:
        """Is there something left to do that needs no more messages?"""
        return bool(self._behind)

    def note_work(self, mark: WorkMark) -> None:
        """From now on it is noted who is at work; what is condemned there is set aside."""
        self._memory.mark = mark

    def take(self, parcel: Parcel, plans: PlanLog) -> None:
        """What follows in a partition; what was taken before is passed over."""
        if parcel.topic == topics.CARRIED:
            return
        partition = self._state.partitions.setdefault(parcel.place, _Partition())
        if parcel.offset <= partition.offset:
            return
        if parcel.headers.version > partition.version:
            self._meet(partition.version, parcel, plans)
        partition.offset, partition.version = parcel.offset, parcel.headers.version
        partition.rows = parcel.headers.sequence + parcel.headers.rows
        partition.watermark, partition.sealed = parcel.headers.watermark, parcel.headers.sealed
        partition.seen = None if parcel.headers.seen is None else max(parcel.headers.seen, parcel.headers.highest)
        partition.follows = parcel.headers.follows
        for signature, course in self._state.courses.items():
            if not course.failed and parcel.place in self._reading(signature, plans).streams:
                try:
                    self._receive(signature, course, parcel, plans)
                except Exception as error:
                    self._set_aside(signature, error)
        self._keep(parcel, plans)

    def advance(self, plans: PlanLog, seconds: float = float("inf")) -> Iterator[ShardReport]:
        """Every report that is final now, in order of time for each signature, as far as the time suffices."""
        return chain.from_iterable(self.rounds(plans, seconds))

    def rounds(self, plans: PlanLog, seconds: float = float("inf")) -> Iterator[Iterator[ShardReport]]:
        """The same in rounds, each to be handed on before the next begins, so that nobody waits for one that is dear.

        Every signature makes some reports; those that were not done last time come after the others, the one that has
        waited longest first, and each by itself.
        """
        budget = Budget(seconds)
        behind = [signature for signature in self._behind if signature in self._state.courses]
        on_time = [signature for signature in self._state.courses if signature not in self._behind]
        for together in [*self._costs.rounds(on_time), *([signature] for signature in behind)]:
            yield chain.from_iterable(self._work(signature, plans, budget) for signature in together)

    def _work(self, signature: str, plans: PlanLog, budget: Budget) -> Iterator[ShardReport]:
        """What a signature has to say now, and what that costs."""
        if self._state.courses[signature].failed and signature not in self._broken:
            self._forget_failed(signature, plans)
        else:
            yield from self._costs.making(signature, self._contained(signature, plans, budget), _rows_of)

    def _contained(self, signature: str, plans: PlanLog, budget: Budget) -> Iterator[ShardReport]:
        """What a signature makes, and writes to its pages; whatever it raises ends this signature alone."""
        if signature not in self._broken:
            try:
                yield from self._memory.making(signature, self._advance(signature, plans, budget))
                if signature in self._evaluations:
                    with self._memory.at_work(signature):
                        self._evaluations[signature].flush()
            except Exception as error:
                self._set_aside(signature, error)
        if signature in self._broken:
            self._broken.discard(signature)
            course = self._state.courses[signature]
            failure = Failure(signature, course.failed, course.way.reported)
            headers = replace(self._headers(signature, course), time=failure.reported, mark=Mark.FAILED)
            self._costs.forget(signature)
            yield ShardReport(headers, failure=failure)

    def _advance(self, signature: str, plans: PlanLog, budget: Budget) -> Iterator[ShardReport]:
        course = self._state.courses[signature]
        self._behind.pop(signature, None)
        while (turn := plans.turn_after(signature, course.turned)) and self._is_aligned(signature, course, plans):
            yield from self._turn(signature, course, turn, plans, budget)
            if course.turned < turn.version:
                return
        if course.reached:
            limit = min(course.reached.values())
            yield from self._reports(signature, course, limit, plans, budget)
            if limit == DUSK and signature not in self._behind:
                yield ShardReport(replace(self._headers(signature, course), time=DUSK, mark=Mark.SEALED))
                self._end(signature, plans)

    def costs(self) -> ShardCosts | None:
        """What the signatures have cost, where it is time to tell."""
        if not self._costs.due():
            return None
        sizes = self._sizes()
        return self._costs.tell(lambda signature, cost: self._complete(cost, signature, sizes.get(signature, 0)))

    def _sizes(self) -> dict[str, int]:
        """How many bytes the pages of each signature have, in one pass over all."""
        signatures = {_prefix(signature): signature for signature in self._state.courses}
        found = dict.fromkeys(self._state.courses, 0)
        for key, size in self._store.sizes():
            end = key.find(b"/", 2) + 1
            while end and key[:end] not in signatures:  # a signature's name may have slashes, too
                end = key.find(b"/", end) + 1
            if end:
                found[signatures[key[:end]]] += size
        return found

    def _complete(self, cost: Cost, signature: str, state: int) -> None:
        cost.state = state
        course = self._state.courses.get(signature)
        if course is not None and course.reached:
            cost.watermark = min(course.reached.values())
            cost.reported = course.way.reported if signature in self._behind else cost.watermark

    def faults(self) -> dict[str, Faults]:
        """What went wrong in the expressions of each signature on this shard, all told."""
        return {signature: evaluation.faults for signature, evaluation in self._evaluations.items()}

    def flush(self) -> None:
        """Write what is kept beside the pages of evaluations, which are written as each signature is done."""
        self._store.put(HEADER, msgspec.msgpack.encode(self._state))

    # ── what comes in ───────────────────────────────────────────────────────────────────────────────────

    def _meet(self, before: int, parcel: Parcel, plans: PlanLog) -> None:
        """A partition moves to a newer plan version, where there may be signatures that have no course yet."""
        stream, incarnation = topics.parse_sequenced(parcel.topic)
        for registered in plans.registered(stream, before, parcel.headers.version):
            spread = distribution_of(registered, self._shards).shards(self._shards)
            reads = any((s.name, s.incarnation) == (stream, incarnation) for s in registered.query.streams)
            if self._number in spread and reads and not registered.query.by_lookups:
                course = _Course(registered.query.name, registered.version, registered.version - 1)
                self._state.courses.setdefault(registered.signature, course)

    def _keep(self, parcel: Parcel, plans: PlanLog) -> None:
        """The updates of a table stay for queries that join later, as long as the table is there."""
        table = self._table(parcel.place, plans)
        if table is None:
            self._forget(parcel.place, plans)
        elif table.is_table and parcel.portions:
            self._updates.add(parcel, table, may_compact=not self._is_awaited(parcel.place))

    def _table(self, place: Place, plans: PlanLog) -> Stream | None:
        """The table, or stream, of a partition; None if it is gone where the partition stands."""
        name, incarnation = topics.parse_sequenced(place.rpartition("/")[0])
        found = plans.at(self._state.partitions[place].version).streams.get(name)
        return found if found is not None and found.incarnation == incarnation else None

    def _is_awaited(self, place: Place) -> bool:
        """Is there someone who will look at a table as it stood before what is held?"""
        return any(place in course.held for course in self._state.courses.values())

    def _forget(self, place: Place, plans: PlanLog) -> None:
        """Let go of a table that is gone, and that nobody waits for."""
        if self._table(place, plans) is None and not self._is_awaited(place):
            self._updates.forget(place)

    def _receive(self, signature: str, course: _Course, parcel: Parcel, plans: PlanLog) -> None:
        turn = plans.turn_after(signature, course.turned)
        if course.held.get(parcel.place) or (turn is not None and parcel.headers.version >= turn.version):
            mine = parcel.only(self._readings[signature].distribution)
            course.held.setdefault(parcel.place, []).append(mine.encode())
        elif course.reached:
            self._give(signature, course, parcel, plans)

    def _give(self, signature: str, course: _Course, parcel: Parcel, plans: PlanLog) -> None:
        """Take a parcel in: its rows, its watermark and its trace."""
        reading = self._reading(signature, plans)
        for portion in parcel.only(reading.distribution).portions:
            self._insert(signature, course, reading.batch(parcel, portion), plans)
            course.contexts += parcel.contexts[: MAX_LINKS - len(course.contexts)]
        mark = reading.watermark(parcel.place, parcel.headers)
        course.reached[parcel.place] = DUSK if parcel.headers.sealed else mark

    def _insert(self, signature: str, course: _Course, batch: Batch, plans: PlanLog) -> None:
        evaluation = self._evaluation(signature, course, plans)
        if signature not in self._reaches:
            self._reaches[signature] = evaluation.reach()
        with self._memory.at_work(signature):
            self._costs.took(signature, batch.rows.num_rows, lambda: evaluation.insert(batch))
        course.way.take(batch, self._readings[signature].time_columns[batch.stream], self._reaches[signature])

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────────

    def _is_aligned(self, signature: str, course: _Course, plans: PlanLog) -> bool:
        """Has every partition come to the next turn? One that is sealed comes no further."""
        if not course.held:
            return False
        places = self._reading(signature, plans).streams
        return all(course.held.get(place) or self._is_sealed(place) for place in places)

    def _is_sealed(self, place: Place) -> bool:
        return place in self._state.partitions and self._state.partitions[place].sealed

    def _turn(
        self, signature: str, course: _Course, turn: Turn, plans: PlanLog, budget: Budget
    ) -> Iterator[ShardReport]:
        """Every partition stands at the turn: queries leave and join, when all reports before it are made."""
        heads = {place: Parcel.decode(blobs[0]) for place, blobs in course.held.items()}
        reading = self._reading(signature, plans)
        streams = reading.streams
        watermarks = {place: reading.watermark(place, head.headers, before=True) for place, head in heads.items()}
        over = [place for place in streams if place not in heads]
        highest = max(*watermarks.values(), *(self._last_watermark(reading, place) for place in over), DAWN)
        at = Alignment(
            lowest=min(watermarks.values()),
            highest=highest,
            seen=max(highest + 1, *self._seen_before(streams, heads)) if highest > DAWN else DAWN,
            before=self._rows_before(streams, heads),
        )
        if course.reached:
            yield from self._reports(signature, course, at.lowest, plans, budget)
            if signature in self._behind:
                return
        lives = self._evaluation(signature, course, plans).turn(turn, at)
        self._reaches.pop(signature, None)
        course.way.turned(turn, at)
        for place in [place for place, stream in streams.items() if stream.is_table and turn.joined]:
            for parcel in self._updates.before(place, heads[place].offset if place in heads else None):
                for portion in parcel.portions:
                    self._insert(signature, course, reading.batch(parcel, portion), plans)
        course.turned = turn.version
        course.reached = watermarks | dict.fromkeys(over, DUSK)
        headers = replace(self._headers(signature, course), time=at.lowest, ordinal=turn.version, mark=Mark.TURN)
        is_shared = self._readings[signature].registered.shared is not None
        if not plans.members(signature, turn.version):
            course.reached = {}
            self._clear(signature)
            if not is_shared:
                headers = replace(headers, time=DUSK, ordinal=0, mark=Mark.LEFT)
            yield ShardReport(headers)
        elif is_shared:
            yield ShardReport(headers, lives=lives)
        self._release(signature, course, plans)

    def _last_watermark(self, reading: Reading, place: Place) -> Instant:
        """How far a partition had come that is sealed; a table may have been left behind by its streams since."""
        mark = reading.watermark(place, self._last_headers(place))
        return mark if mark < DUSK else DAWN

    def _last_headers(self, place: Place) -> BatchHeaders:
        """What the last batch of a partition said."""
        last = self._state.partitions[place]
        return BatchHeaders(0, 0, 0, last.watermark, last.watermark, follows=last.follows, seen=last.seen)

    def _seen_before(self, streams: Mapping[Place, Stream], heads: Mapping[Place, Parcel]) -> Iterator[Instant]:
        """Of each partition of a stream, how high its rows of before the turn reach."""
        for place, stream in streams.items():
            if not stream.is_table:
                headers = heads[place].headers if place in heads else self._last_headers(place)
                yield headers.seen_before(stream)

    def _rows_before(self, streams: Mapping[Place, Stream], heads: Mapping[Place, Parcel]) -> dict[str, int]:
        """How many rows of each stream came before the turn: all of them, of a partition that is sealed."""
        before: dict[str, int] = {}
        for place, stream in streams.items():
            rows = heads[place].headers.sequence if place in heads else self._state.partitions[place].rows
            before[stream.name] = before.get(stream.name, 0) + rows
        return before

    def _release(self, signature: str, course: _Course, plans: PlanLog) -> None:
        """Take in what was held, up to the next turn."""
        following = plans.turn_after(signature, course.turned)
        held, course.held = course.held, {}
        for place, blobs in held.items():
            for number, blob in enumerate(blobs):
                parcel = Parcel.decode(blob)
                if following is not None and parcel.headers.version >= following.version:
                    course.held[place] = blobs[number:]
                    break
                if course.reached:
                    self._give(signature, course, parcel, plans)
        if not course.reached and not course.held:
            self._end(signature, plans)

    # ── what goes out ───────────────────────────────────────────────────────────────────────────────────

    def _reports(
        self, signature: str, course: _Course, limit: Instant, plans: PlanLog, budget: Budget
    ) -> Iterator[ShardReport]:
        """The reports up to a limit; where the time does not suffice, the signature is behind afterwards."""
        evaluation = self._evaluation(signature, course, plans)
        headers = replace(self._headers(signature, course), horizon=evaluation.horizon)
        reach, way = evaluation.reach(), course.way
        for leg in way.parts(evaluation.operator, reach, limit):
            for report in reports_and_runs(evaluation.operator, evaluation.advance, leg):
                shown: list[str] = []
                if course.contexts:
                    shown = [c.traceparent for c in course.contexts if c.lowest <= report.time]
                    course.contexts = [c for c in course.contexts if c.lowest > report.time]
                yield ShardReport(headers.of(report), report, shown)
            way.passed(leg, limit)
            if way.reported < limit and budget.is_spent and way.rows < MOST_ROWS:
                self._behind[signature] = None
                return

    def _headers(self, signature: str, course: _Course) -> ReportHeaders:
        spread = self._readings[signature].shards
        return ReportHeaders(signature, self._number - spread.start, len(spread), DAWN, version=course.turned)

    # ── what is at work ─────────────────────────────────────────────────────────────────────────────────

    def _end(self, signature: str, plans: PlanLog) -> None:
        """Nothing follows, as far as any partition has come."""
        self._clear(signature)
        self._state.courses.pop(signature, None)
        reading = self._readings.pop(signature, None)
        for place, stream in reading.streams.items() if reading is not None else ():
            if stream.is_table and place in self._state.partitions:
                self._forget(place, plans)

    def _set_aside(self, signature: str, error: Exception) -> None:
        """Drop what a signature has, for good: its operator may stand anywhere in what it was doing."""
        log.error("a signature is set aside", exc_info=error, extra=fields(signature=signature, shard=self._number))
        before = self._state.courses[signature]
        self._clear(signature)
        self._behind.pop(signature, None)
        way = SignatureProgress(reported=before.way.reported)
        course = _Course(before.name, before.version, before.turned, way=way, failed=reason_of(error))
        self._state.courses[signature] = course
        self._broken.add(signature)

    def _forget_failed(self, signature: str, plans: PlanLog) -> None:
        """A signature that was set aside is forgotten when all partitions have come to where its last query is gone."""
        streams = self._reading(signature, plans).streams
        there = (self._state.partitions[place] for place in streams)
        versions = [partition.version for partition in there if not partition.sealed]
        if not versions or not plans.members(signature, min(versions)):
            self._end(signature, plans)

    def _clear(self, signature: str) -> None:
        self._costs.forget(signature)
        self._memory.forget(signature)
        self._evaluations.pop(signature, None)
        self._reaches.pop(signature, None)
        pages = Within(self._store, _prefix(signature))
        for key in pages.keys(b""):
            pages.delete(key)

    def _evaluation(self, signature: str, course: _Course, plans: PlanLog) -> Evaluation:
        if signature not in self._evaluations:
            members = plans.members(signature, course.turned) if course.reached else []
            pages = Within(self._store, _prefix(signature))
            registered = self._reading(signature, plans).registered
            self._evaluations[signature] = evaluation_of(registered, members, pages)
        return self._evaluations[signature]

    def _reading(self, signature: str, plans: PlanLog) -> Reading:
        if signature not in self._readings:
            course = self._state.courses[signature]
            registered = plans.at(course.version).queries[course.name]
            places = ((s, p) for s in registered.query.streams for p in range(s.partitions))
            streams = {place_of(topics.sequenced(stream), p): stream for stream, p in places}
            distribution = distribution_of(registered, self._shards)
            beside = tuple(s for s in registered.query.streams if not s.is_table)
            spread = distribution.shards(self._shards)
            reading = Reading(registered, streams, beside, distribution.name, spread)
            self._readings[signature] = reading
        return self._readings[signature]


def _prefix(signature: str) -> bytes:
    return b"q/" + signature.encode() + b"/"


def _rows_of(made: ShardReport) -> int | None:
    return None if made.report is None else made.report.rows.num_rows
