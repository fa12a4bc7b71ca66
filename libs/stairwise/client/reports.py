"""A report as a whole: its pages asked for one by one and put together. Does no I/O."""

from __future__ import annotations

from stairwise.client.request import Encoding, Where, encoding_number, matches
from stairwise.client.update import ArrowChanges, Change, Update, read_arrow, read_value
from stairwise.schema import Instant
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.schemas import column_from_proto


class ReportPages:
    """Ask with ``request`` as long as there is one, and hand every answer to ``take``."""

    def __init__(self, query: str, time: Instant | None, where: Where | None, encoding: Encoding) -> None:
        self.request: pb.SnapshotRequest | None = pb.SnapshotRequest(
            query=query, time_ms=time, encoding=encoding_number(encoding), filter=matches(where)
        )
        self._query = query
        self._is_arrow = encoding == "arrow"
        self._answers: list[pb.SnapshotResponse] = []

    def take(self, answer: pb.SnapshotResponse) -> None:
        assert self.request is not None
        self._answers.append(answer)
        self.request.page = answer.next
        if not answer.next:
            self.request = None

    def report(self) -> Update:
        first = self._answers[0]
        columns = tuple(column_from_proto(c) for c in first.header.columns)
        names = [column.name for column in columns]
        changes: list[Change] | ArrowChanges
        if self._is_arrow:
            changes = read_arrow([(answer.arrow, ()) for answer in self._answers], columns)
        else:
            rows = (row for answer in self._answers for row in answer.rows)
            changes = [Change(1, dict(zip(names, map(read_value, row.values), strict=True))) for row in rows]
        return Update(self._query, first.time_ms, changes, first.token, columns, snapshot=True)
