"""The gRPC face: ``stairwise.v1.Lookups``."""

from __future__ import annotations

import grpc
import numpy as np
import pyarrow as pa

from services.lookups import metrics
from services.lookups.coordinator import Coordinator, Owners, When
from services.lookups.holdings import Holdings
from services.lookups.lookup_steps import WATERMARK, KeyedLookup, answer_step, step_from_proto
from services.lookups.peers import Peers
from services.lookups.plan_follower import PlanFollower
from services.lookups.slice_runner import SliceRunner
from services.lookups.statements import Statements
from services.lookups.worker import Worker
from stairwise.cql.grants import Privilege, stream_target
from stairwise.errors import NotFoundError, NotReadyError, StairwiseError
from stairwise.lookups.lookup_explain import explained
from stairwise.platform.security.caller import CALLER
from stairwise.schema import DAWN, Stream
from stairwise.state.pages import from_page, to_plain_page
from stairwise.v1 import lookups_pb2, lookups_pb2_grpc
from stairwise.wire import topics
from stairwise.wire.authority import Rights

SERVICE = lookups_pb2.DESCRIPTOR.services_by_name["Lookups"].full_name

PATIENCE = 30.0
"""How long a lookup waits for its time where the call has no deadline, in seconds."""
SPARE = 0.1
"""What of a call's deadline is left for the answer, in seconds."""


class LookupsServicer(lookups_pb2_grpc.LookupsServicer):
    def __init__(self, plans: PlanFollower, worker: Worker, holdings: Holdings, peers: Peers) -> None:
        self._plans = plans
        self._worker = worker
        self._holdings = holdings
        self._statements = Statements(plans)
        self._owners = Owners(holdings, worker.address)
        self._runner = SliceRunner()
        self._coordinator = Coordinator(holdings, self._owners, peers, self._runner)

    async def Lookup(
        self, request: lookups_pb2.LookupRequest, context: grpc.aio.ServicerContext
    ) -> lookups_pb2.LookupResponse:
        lookup = self._statements.readable(request.select, self._rights())
        metrics.lookups.add(1, {"stream": lookup.stream.name})
        self._owners.elsewhere = self._worker.owners
        at, (rows,) = await self._coordinator.answers([KeyedLookup(lookup)], _when(request), _patience(context))
        if lookup.explain:
            held = [p.history for key, p in self._holdings if key[0] == topics.sequenced(lookup.stream)]
            return lookups_pb2.LookupResponse(watermark_ms=at, explanation=explained(lookup, at, held))
        return lookups_pb2.LookupResponse(watermark_ms=at, rows=to_plain_page(rows))

    async def LookupMany(
        self, request: lookups_pb2.LookupManyRequest, context: grpc.aio.ServicerContext
    ) -> lookups_pb2.LookupManyResponse:
        if not request.lookups:
            raise StairwiseError("there is no lookup in the request", hint="send at least one")
        asked = [self._asked(item) for item in request.lookups]
        for one in asked:
            count = 1 if one.keys is None else one.keys.num_rows
            metrics.lookups.add(count, {"stream": one.lookup.stream.name})
        self._owners.elsewhere = self._worker.owners
        at, answers = await self._coordinator.answers(asked, _when(request), _patience(context))
        return lookups_pb2.LookupManyResponse(watermark_ms=at, rows=[to_plain_page(rows) for rows in answers])

    async def Part(
        self, request: lookups_pb2.PartRequest, context: grpc.aio.ServicerContext
    ) -> lookups_pb2.PartResponse:
        stream = self._stream(request.stream)
        if stream.incarnation != request.incarnation:
            raise NotReadyError(f"this worker knows another incarnation of {stream.name}")
        lookup = None if request.step == WATERMARK else self._statements.read(request.select)
        step = step_from_proto(request, stream, lookup)
        return (await answer_step(step, request.partitions, self._holdings, self._runner)).to_proto()

    async def Owners(
        self, request: lookups_pb2.OwnersRequest, context: grpc.aio.ServicerContext
    ) -> lookups_pb2.OwnersResponse:
        """Every partition of the stream, or of all; one that nobody holds yet has no address."""
        rights, streams = self._rights(), self._streams()
        if request.stream:
            rights.check(stream_target(request.stream), streams, Privilege.READ)
        names = [request.stream] if request.stream else sorted(rights.seen(stream_target, streams))
        asked = [self._stream(name) for name in names]
        addresses = self._worker.owners
        response = lookups_pb2.OwnersResponse()
        for stream in asked:
            for number in range(stream.partitions):
                key = (topics.sequenced(stream), number)
                owner = response.owners.add(stream=stream.name, partition=number, address=addresses.get(key, ""))
                held = self._holdings.get(key)
                if held is None:
                    continue
                owner.address = self._worker.address
                owner.ready = held.is_ready
                owner.rows = held.rows
                owner.memory_bytes = held.history.size_bytes
                if held.watermark > DAWN:
                    owner.watermark_ms = held.watermark
        return response

    def close(self) -> None:
        """No work goes on beside the loop from here on."""
        self._runner.close()

    def _rights(self) -> Rights:
        return self._plans.catalogue.rights(CALLER.get().principal)

    def _streams(self) -> dict[str, Stream]:
        """Those whose past is held: tables are joined with, not looked up."""
        return {name: stream for name, stream in self._plans.catalogue.streams.items() if not stream.is_table}

    def _stream(self, name: str) -> Stream:
        streams = self._streams()
        if name not in streams:
            raise NotFoundError("stream", name, streams)
        return streams[name]

    def _asked(self, item: lookups_pb2.ManyItem) -> KeyedLookup:
        lookup = self._statements.readable(item.select, self._rights())
        if lookup.explain:
            raise StairwiseError("EXPLAIN is asked by itself, not among many", hint="ask for it in a Lookup of its own")
        if not item.keys:
            if item.ranges_ms:
                raise StairwiseError("ranges are for keys that are asked one by one", hint="send keys, or no ranges")
            return KeyedLookup(lookup)
        keys = _keys(item.keys, [key.type.arrow for key in lookup.select.keys])
        if not lookup.select.keys or lookup.asked is not None:
            raise StairwiseError(
                "keys are asked one by one of a SELECT with GROUP BY that does not choose keys itself",
                hint="write GROUP BY, and leave the keys out of WHERE",
            )
        ranges = np.array(item.ranges_ms, np.int64)
        if not len(ranges):
            return KeyedLookup(lookup, keys)
        if len(ranges) != keys.num_rows or int(ranges.min()) <= 0:
            raise StairwiseError(
                f"{keys.num_rows} keys and {len(ranges)} ranges", hint="give each key a range above 0, or none at all"
            )
        lookup.ranged()
        return KeyedLookup(lookup, keys, ranges)


def _keys(page: bytes, types: list[pa.DataType]) -> pa.RecordBatch:
    """Keys from outside: an Arrow stream with the columns of GROUP BY."""
    try:
        keys = from_page(page)
        keys.validate(full=True)
    except (pa.ArrowInvalid, OSError, StopIteration) as error:
        raise StairwiseError(f"the keys are no Arrow IPC stream: {error}", hint="send one record batch") from error
    if [field.type for field in keys.schema] != types:
        raise StairwiseError(
            f"the keys have the types {', '.join(str(f.type) for f in keys.schema)}",
            hint=f"GROUP BY has {', '.join(map(str, types))}",
        )
    return keys


def _when(request: lookups_pb2.LookupRequest | lookups_pb2.LookupManyRequest) -> When:
    at_least = request.at_least_ms if request.HasField("at_least_ms") else None
    exactly = request.at_ms if request.HasField("at_ms") else None
    if at_least is not None and exactly is not None:
        raise StairwiseError("a lookup is answered at a time, or at least at one", hint="give one of the two")
    return When(at_least, exactly)


def _patience(context: grpc.aio.ServicerContext) -> float:
    left: float | None = context.time_remaining()
    return PATIENCE if left is None else left - SPARE
