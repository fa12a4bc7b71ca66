"""Requests that are random or mutated: each gets a status that says what is wrong, and the service lives on."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator

import grpc
import pytest

from stairwise.system.health import Check, probe
from stairwise.v1 import results_pb2 as pb
from tests.integration.results_system import Service, Writer, counts, running

pytestmark = pytest.mark.jvm

FAULTS = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
AT_ONCE = 50


@pytest.fixture(scope="module")
def service(broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(broker.bootstrap, tmp_path_factory.mktemp("results") / "results.log") as service:
        yield service


@pytest.fixture(scope="module")
def seeds(broker, service: Service) -> dict[str, list[bytes]]:
    """Requests that are well-formed, of each method."""
    writer = Writer(broker.bootstrap)
    query = counts(writer, "CHANGES")
    for time in (10, 20, 30):
        writer.report(query, time, [("a", time, 1), (f"k{time}", 1, 2**70)])
    writer.end(query)
    writer.flush()
    writer.close()
    name = query.query.name
    with service.client() as client:
        token = next(client.subscribe(name, "earliest")).token
        client.snapshot(name)
    where = [pb.Match(column="k", values=[pb.Value(string="a"), pb.Value()])]
    subscribe = [
        pb.SubscribeRequest(query=name),
        pb.SubscribeRequest(query=name, earliest=pb.Earliest(), encoding=pb.ENCODING_ARROW, filter=where),
        pb.SubscribeRequest(query=name, time_ms=20, heartbeat_ms=1000),
        pb.SubscribeRequest(query=name, token=token),
    ]
    snapshot = [
        pb.SnapshotRequest(query=name, time_ms=25, encoding=pb.ENCODING_ARROW),
        pb.SnapshotRequest(query=name, filter=where),
        pb.SnapshotRequest(query=name, page=token),
    ]
    return {
        "Subscribe": [request.SerializeToString() for request in subscribe],
        "Snapshot": [request.SerializeToString() for request in snapshot],
    }


NUMBERS = (0, 1, -1, 10, 20, 25, 2**31, 2**62, -(2**62), 2**63 - 1, -(2**63))


def forged(chance: random.Random, method: str, seed: bytes) -> bytes:
    """A well-formed request with a token of well-formed nonsense."""
    request = (pb.SubscribeRequest if method == "Subscribe" else pb.SnapshotRequest).FromString(seed)
    said = request.token if method == "Subscribe" else request.page
    token = pb.ResumeToken.FromString(said) if said else pb.ResumeToken(query=request.query, version=1)
    for field in chance.sample(["version", "time_ms", "ordinal", "sent", "offset"], chance.randint(0, 3)):
        setattr(token, field, chance.choice(NUMBERS))
    token.complete, token.snapshot = chance.random() < 0.5, chance.random() < 0.5
    setattr(request, "token" if method == "Subscribe" else "page", token.SerializeToString())
    request.encoding = chance.choice([0, 1, 2, 7])  # type: ignore[assignment]
    return request.SerializeToString()


def mutated(chance: random.Random, method: str, seed: bytes) -> bytes:
    """Fields with other values; bytes changed, cut out, put in; or all of them random."""
    if chance.random() < 0.1:
        return chance.randbytes(chance.randint(0, 60))
    if chance.random() < 0.5:
        return forged(chance, method, seed)
    said = bytearray(seed)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(said))
        match chance.randrange(4):
            case 0 if at < len(said):
                said[at] = chance.randrange(256)
            case 1:
                del said[at : at + chance.randint(1, 5)]
            case 2:
                said[at:at] = chance.randbytes(chance.randint(1, 10))
            case _:
                said[at:at] = chance.choice([b"\xff" * 9 + b"\x01", b"\x80" * 11, seed])
    return bytes(said)


async def answered(call: grpc.aio.Call, *, stream: bool) -> grpc.StatusCode:
    """The status of a call; of a stream that goes on, OK when three messages have come."""
    try:
        if not stream:
            await call
        else:
            async with asyncio.timeout(0.5):
                for _ in range(3):
                    if await call.read() is grpc.aio.EOF:
                        break
    except TimeoutError:
        pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    finally:
        call.cancel()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("requests", [200, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("method", ["Subscribe", "Snapshot"])
def test_no_request_is_answered_by_a_fault(
    service: Service, seeds: dict[str, list[bytes]], method: str, requests: int
) -> None:
    chance = random.Random(requests)

    async def scenario() -> Counter[grpc.StatusCode]:
        places = asyncio.Semaphore(AT_ONCE)
        async with grpc.aio.insecure_channel(service.address) as channel:
            path = f"/stairwise.v1.Results/{method}"
            ask = channel.unary_stream(path) if method == "Subscribe" else channel.unary_unary(path)

            async def one(said: bytes) -> grpc.StatusCode:
                async with places:
                    return await answered(ask(said, timeout=30), stream=method == "Subscribe")

            asked = [one(mutated(chance, method, chance.choice(seeds[method]))) for _ in range(requests)]
            return Counter(await asyncio.gather(*asked))

    codes = asyncio.run(scenario())
    print(f"results: {method}, {requests} mutated requests:", {code.name: n for code, n in codes.most_common()})
    assert not FAULTS & set(codes)
    assert grpc.StatusCode.INVALID_ARGUMENT in codes
    assert probe(Check("grpc", service.address), 5).healthy
