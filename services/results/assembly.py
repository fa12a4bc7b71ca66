"""From messages to reports: repeats go, pieces and shards come together.

    topic      s0:10   s1:10   s0:20   s0:10   s0:20   s1:20        (a replayed micro-batch writes again)
    taken      s0:10   s1:10   s0:20     ✗       ✗     s1:20
    released           10                              20

Every shard writes every report of its signature, in order. So a position at or below a shard's last one is
a repeat, and a report is complete when all shards have it. Where retention has cut the topic, a position may
have lost some of its shards: it is passed over once all shards are beyond it.

A run stands for every report of its shard from its own time until another. Shards need not have the same runs, nor a
replay the same as before: what all of them hold together is released.

    s0         10 until 90 ─────────────────────
    s1         10   20   30 until 70 ───────────
    released   10   20   30 until 70

A shard that has set a signature aside says so, and nothing after. The end is released when all others have come as far:
the reports that all shards have made stand before it.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from services.results.piece_joiner import PieceJoiner
from services.results.report_message import ReportMessage
from stairwise.plan.published import PublishedBlock, block_of
from stairwise.platform.telemetry import fields
from stairwise.reports.contract import Position, Report
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.wire.reports import Mark, ReportHeaders, decode_report

log = logging.getLogger(__name__)

IN_ORDER = frozenset({Mark.REPORT, Mark.TURN, Mark.OVERSIZED})
"""What has a place among the reports of its signature; the others end it."""
END: Position = (DUSK, 0)
"""Where the mark stands that ends a signature: after every report."""


def just_after(position: Position) -> Position:
    """The least position that is greater."""
    return position[0], position[1] + 1


@dataclass(frozen=True)
class Released:
    """A report or a mark that all shards have written."""

    signature: str
    position: Position
    messages: tuple[ReportMessage, ...]
    """In order of shards."""
    mark: Mark = Mark.REPORT
    until: Instant | None = None
    """Of a run: it stands for every report up to here, and ``position`` may lie before the first of them."""

    @property
    def end(self) -> Position:
        """The position of the last report that it stands for, or a later one before the next."""
        return self.position if self.until is None else (self.until, 0)

    def at(self, time: Instant) -> Released:
        """Of a run, the report at one of its times."""
        return replace(self, position=(time, 0), until=None)

    @property
    def horizon(self) -> Instant:
        """The query sees no row at or before this."""
        return max((m.headers.horizon for m in self.messages), default=DAWN)

    @property
    def version(self) -> int:
        """The plan version whose queries it is made for."""
        return self.messages[0].headers.version

    @cached_property
    def blocks(self) -> list[PublishedBlock]:
        """What each shard published for all queries of a shared signature."""
        return [block_of(decode_report(m.headers, m.value)) for m in self.messages]

    @property
    def contexts(self) -> list[str]:
        """The traces that lead here."""
        return [m.traceparent for m in self.messages if m.traceparent]

    @cached_property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return sum(512 + max(len(m.value), m.headers.size) for m in self.messages)

    @property
    def offset(self) -> int:
        """From this offset of the topic on, all of it can be read again."""
        return min(m.offset for m in self.messages)

    def report(self) -> Report:
        """The rows of all shards, which hold disjoint groups."""
        pieces = [decode_report(m.headers, m.value).rows for m in self.messages]
        rows = pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
        return Report(self.signature, self.position[0], rows, self.position[1])


@dataclass
class _Waiting:
    """A message of one shard, and for which reports it still stands."""

    message: ReportMessage
    begin: Position

    @property
    def end(self) -> Position:
        return self.message.headers.end


@dataclass
class _Signature:
    """What is known of a signature between its messages."""

    last: dict[int, Position] = field(default_factory=dict)
    ended: dict[int, ReportMessage] = field(default_factory=dict)
    pending: dict[int, deque[_Waiting]] = field(default_factory=lambda: defaultdict(deque))
    """By shard, what not all shards have come to."""
    joiners: dict[int, PieceJoiner] = field(default_factory=lambda: defaultdict(PieceJoiner))
    over: bool = False
    """Has the mark been released that ends it?"""


class Assembly:
    """Puts the messages of whole partitions together, signature by signature."""

    def __init__(self) -> None:
        self._signatures: dict[str, _Signature] = defaultdict(_Signature)
        self.repeats = 0
        """How many messages were repeats."""

    def take(self, message: ReportMessage) -> Iterator[Released]:
        """The reports that this message completes, in order. To be exhausted before the next one is given."""
        headers = message.headers
        signature = self._signatures[headers.signature]
        if self._is_repeat(signature, headers):
            self.repeats += 1
            return
        whole = signature.joiners[headers.shard].take(message)
        if whole is None:
            return
        message = whole
        if headers.mark in IN_ORDER:
            last = signature.last.get(headers.shard)
            begin = headers.position if last is None else max(headers.position, just_after(last))
            signature.last[headers.shard] = headers.end
            signature.pending[headers.shard].append(_Waiting(message, begin))
        else:
            last = signature.last.get(headers.shard, headers.position)
            signature.last[headers.shard] = max(last, headers.position) if headers.mark is Mark.FAILED else END
            signature.ended[headers.shard] = message
        if len(signature.last) < headers.shards:
            return
        yield from self._release(headers, signature)

    def first_pending(self, signature: str) -> int | None:
        """The offset of the first message of a report that is not complete; None where there is none."""
        known = self._signatures.get(signature)
        if known is None:
            return None
        waiting = [w.message.offset for shard in known.pending.values() for w in shard]
        waiting += [offset for joiner in known.joiners.values() for offset in joiner.offsets]
        if not known.over:
            waiting += [m.offset for m in known.ended.values()]
        return min(waiting, default=None)

    def _is_repeat(self, signature: _Signature, headers: ReportHeaders) -> bool:
        if signature.over or headers.shard in signature.ended:
            return True
        last = signature.last.get(headers.shard)
        return last is not None and headers.mark in IN_ORDER and headers.end <= last

    def _release(self, headers: ReportHeaders, signature: _Signature) -> Iterator[Released]:
        frontier = min(signature.last.values())
        while heads := {shard: waiting[0] for shard, waiting in signature.pending.items() if waiting}:
            begin = min(head.begin for head in heads.values())
            if begin > frontier:
                break
            first = {shard: head for shard, head in heads.items() if head.begin == begin}
            if len(first) == headers.shards:
                released = _together(headers.signature, first)
                yield released
                following = just_after(released.end)
            else:
                others = signature.last.keys() - first.keys()
                after = (heads[s].begin if s in heads else just_after(signature.last[s]) for s in others)
                following = min(after)
                _warn_of_lost(headers, first)
            for shard, head in first.items():
                if head.end < following:
                    signature.pending[shard].popleft()
                else:
                    head.begin = following
        failed = {shard: m for shard, m in signature.ended.items() if m.headers.mark is Mark.FAILED}
        if failed and frontier >= min(signature.last[shard] for shard in failed):
            signature.over = True
            signature.pending.clear()
            yield Released(headers.signature, END, _by_shard(failed), Mark.FAILED)
        elif frontier == END:
            marks = {m.headers.mark for m in signature.ended.values()}
            mark = Mark.SEALED if marks == {Mark.SEALED} else Mark.LEFT
            signature.over = True
            yield Released(headers.signature, END, _by_shard(signature.ended), mark)


def _together(signature: str, waiting: dict[int, _Waiting]) -> Released:
    """What all shards say from one position on: a report, or a run where all of them have one."""
    messages = {shard: w.message for shard, w in waiting.items()}
    marks = {m.headers.mark for m in messages.values()}
    mark = Mark.OVERSIZED if Mark.OVERSIZED in marks else marks.pop()
    is_run = all(m.headers.until is not None for m in messages.values())
    until = min(w.end for w in waiting.values())[0] if is_run else None
    return Released(signature, next(iter(waiting.values())).begin, _by_shard(messages), mark, until)


def _warn_of_lost(headers: ReportHeaders, waiting: dict[int, _Waiting]) -> None:
    """Of a run that is no loss: another shard has no report there."""
    lost = [w for w in waiting.values() if w.message.headers.until is None]
    if lost:
        missing = sorted(set(range(headers.shards)) - waiting.keys())
        told = fields(signature=headers.signature, time=lost[0].begin[0], missing=missing)
        log.warning("a report without some of its shards is passed over", extra=told)


def _by_shard(messages: dict[int, ReportMessage]) -> tuple[ReportMessage, ...]:
    return tuple(messages[shard] for shard in sorted(messages))
