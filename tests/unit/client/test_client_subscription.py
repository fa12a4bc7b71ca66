"""A subscription over real gRPC: it puts reports together, reconnects, resumes, gives up."""

from __future__ import annotations

import grpc
import pytest

from stairwise.client import Update, receiver
from stairwise.errors import ConfigError, StairwiseError
from stairwise.v1 import results_pb2 as pb
from tests.unit.client.scripted_results import END, HEADER, progress, served, update

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def rows(updates: list[Update]) -> list[tuple[int, list[object]]]:
    return [(u.time, [c.row["k"] for c in u.changes]) for u in updates]


def test_the_pieces_of_a_report_come_as_one_update() -> None:
    pieces = [HEADER, update(10, ("a", 1), ("b", 2)), update(10, ("c", 3)), progress(10, b"t10"), progress(20), END]
    with served(pieces) as (client, _):
        subscription = client.subscribe("q")
        updates = list(subscription)
    assert rows(updates) == [(10, ["a", "b", "c"]), (20, [])]
    assert updates[0].token == b"t10"
    assert updates[0].changes[2].row == {"k": "c", "n": 3}
    assert subscription.end == "sealed"


def test_a_broken_subscription_resumes_after_the_last_message_that_came() -> None:
    first = [HEADER, update(10, ("a", 1)), progress(10), update(20, ("b", 1), token=b"within 20"), UNAVAILABLE]
    second = [HEADER, update(20, ("c", 1)), progress(20), END]
    with served(first, second) as (client, server):
        updates = list(client.subscribe("q", "earliest"))
    assert rows(updates) == [(10, ["a"]), (20, ["b", "c"])]
    assert server.requests[0].WhichOneof("from") == "earliest"
    assert server.requests[1].token == b"within 20"


def test_a_server_that_is_not_ready_yet_is_asked_again() -> None:
    with served([UNAVAILABLE], [UNAVAILABLE], [HEADER, progress(10), END]) as (client, server):
        assert rows(list(client.subscribe("q", 5))) == [(10, [])]
    assert [r.time_ms for r in server.requests] == [5, 5, 5]


def test_a_server_that_says_that_it_starts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "FIRST_PATIENCE", 0.0)
    starting = ConfigError("it is starting", hint="try again")
    with served([starting], [HEADER, progress(10), END]) as (client, _):
        assert rows(list(client.subscribe("q"))) == [(10, [])]
    with served([UNAVAILABLE], [HEADER, progress(10), END]) as (client, _), pytest.raises(ConfigError):
        list(client.subscribe("q"))


def test_who_comes_back_with_a_token_waits_as_if_the_connection_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "FIRST_PATIENCE", 0.0)
    with served([UNAVAILABLE], [HEADER, progress(10), END]) as (client, _):
        assert rows(list(client.subscribe("q", b"token"))) == [(10, [])]


def test_a_server_that_stays_away_is_given_up_after_the_patience() -> None:
    with (
        served([HEADER, progress(10), UNAVAILABLE], [UNAVAILABLE]) as (client, _),
        pytest.raises(ConfigError, match="no answer"),
    ):
        list(client.subscribe("q", patience=0.5))


def test_a_refusal_is_raised_at_once() -> None:
    with served([grpc.StatusCode.NOT_FOUND]) as (client, server):
        with pytest.raises(StairwiseError, match="as the script says"):
            next(client.subscribe("q"))
        assert len(server.requests) == 1


def test_a_token_is_handed_back_as_it_came() -> None:
    with served([HEADER, END]) as (client, server):
        assert list(client.subscribe("q", b"\x00token")) == []
    assert server.requests == [pb.SubscribeRequest(query="q", token=b"\x00token")]


def test_closing_ends_the_iteration() -> None:
    with served([HEADER, progress(10), progress(20), END]) as (client, _):
        subscription = client.subscribe("q")
        next(subscription)
        subscription.close()
        assert len(list(subscription)) <= 1


def test_a_start_that_is_none_is_refused() -> None:
    with served([HEADER]) as (client, _), pytest.raises(ValueError, match="'latest', 'earliest'"):
        client.subscribe("q", "yesterday")  # type: ignore[arg-type]
