"""The asyncio client over real gRPC: it puts reports together, reconnects, resumes, gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import grpc
import pytest

from stairwise.client import AsyncClient, Update
from stairwise.client.request import matches
from stairwise.errors import ConfigError, StairwiseError
from stairwise.v1 import results_pb2 as pb
from tests.unit.client.scripted_results import END, HEADER, ScriptedResults, Step, progress, served, update

UNAVAILABLE, ABORTED = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED


def asked(
    scripts: Sequence[Sequence[Step]], ask: Callable[[AsyncClient], Awaitable[list[Update]]]
) -> tuple[list[Update], ScriptedResults]:
    async def scenario(client: AsyncClient) -> list[Update]:
        async with client:
            return await ask(client)

    with served(*scripts) as (client, server):
        return asyncio.run(scenario(AsyncClient(client.addresses))), server


async def from_earliest(client: AsyncClient) -> list[Update]:
    return [update async for update in client.subscribe("q", "earliest", patience=0.5)]


def rows(updates: list[Update]) -> list[tuple[int, list[object]]]:
    return [(u.time, [c.row["k"] for c in u.changes]) for u in updates]


def test_the_pieces_of_a_report_come_as_one_update() -> None:
    updates, _ = asked([[HEADER, update(10, ("a", 1)), update(10, ("c", 3)), progress(10), END]], from_earliest)
    assert rows(updates) == [(10, ["a", "c"])]


@pytest.mark.parametrize("code", [UNAVAILABLE, ABORTED])
def test_a_broken_subscription_resumes_after_the_last_message_that_came(code: grpc.StatusCode) -> None:
    first = [HEADER, update(10, ("a", 1)), progress(10), update(20, ("b", 1), token=b"within 20"), code]
    second = [HEADER, update(20, ("c", 1)), progress(20), END]
    updates, server = asked([first, second], from_earliest)
    assert rows(updates) == [(10, ["a"]), (20, ["b", "c"])]
    assert server.requests[1].token == b"within 20"


def test_a_server_that_stays_away_is_given_up_after_the_patience() -> None:
    with pytest.raises(ConfigError, match="no answer"):
        asked([[HEADER, progress(10), UNAVAILABLE], [UNAVAILABLE]], from_earliest)


def test_a_refusal_is_raised_at_once() -> None:
    with pytest.raises(StairwiseError, match="as the script says"):
        asked([[grpc.StatusCode.NOT_FOUND]], from_earliest)


def test_closing_ends_the_iteration() -> None:
    async def ask(client: AsyncClient) -> list[Update]:
        async with client.subscribe("q") as subscription:
            await anext(subscription)
            subscription.close()
            return [update async for update in subscription]

    updates, _ = asked([[HEADER, progress(10), progress(20), END]], ask)
    assert len(updates) <= 1


def test_a_filter_is_said_as_messages() -> None:
    said = matches({"k": "a", "n": [1, 2**70, None], "d": 0.5, "b": True})
    assert said == [
        pb.Match(column="k", values=[pb.Value(string="a")]),
        pb.Match(column="n", values=[pb.Value(integer=1), pb.Value(hugeint=str(2**70)), pb.Value()]),
        pb.Match(column="d", values=[pb.Value(double=0.5)]),
        pb.Match(column="b", values=[pb.Value(boolean=True)]),
    ]
    with pytest.raises(TypeError, match="not with dict"):
        matches({"k": [{}]})  # type: ignore[list-item]
