"""kill -9 of the results service, of the client and of both, at random: the stream is the undisturbed one, exactly."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stairwise.wire.plans import Registered
from tests.integration import results_client
from tests.integration.results_system import Service, Writer, counts, running, until

pytestmark = pytest.mark.jvm

SHARDS = 2
Line = tuple[int, list[list[object]]]


class Source:
    """Writes reports of changes steadily, sometimes again as a replayed micro-batch does, until it is told to end."""

    def __init__(self, writer: Writer, query: Registered, seed: int) -> None:
        self._writer = writer
        self._query = query
        self._random = random.Random(seed)
        self._ending = threading.Event()
        self._answers: list[list[int]] = []
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def end(self) -> list[Line]:
        """Ends the query; what a subscriber must have seen."""
        self._ending.set()
        self._thread.join()
        expected: list[Line] = []
        before: set[int] = set()
        for number, answer in enumerate(self._answers, 1):
            left = sorted(f"k{k}" for k in before - set(answer))
            come = sorted(f"k{k}" for k in set(answer) - before)
            expected.append((10 * number, [*([-1, key, 1] for key in left), *([1, key, 1] for key in come)]))
            before = set(answer)
        return expected

    def _write(self) -> None:
        while not self._ending.wait(0.01):
            self._answers.append(sorted(self._random.sample(range(300), self._random.choice([0, 3, 200]))))
            again = 1 if self._random.random() < 0.1 else 0
            for number in range(max(1, len(self._answers) - 3 * again), len(self._answers) + 1):
                for shard in range(SHARDS):
                    mine = [(f"k{k}", 1, 1) for k in self._answers[number - 1] if k % SHARDS == shard]
                    self._writer.report(self._query, 10 * number, mine, shard, SHARDS)
            self._writer.flush()
        for shard in range(SHARDS):
            self._writer.end(self._query, shard=shard, shards=SHARDS)
        self._writer.flush()


@pytest.fixture(scope="module")
def writer(broker) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    yield writer
    writer.close()


def subscriber(service: Service, query: Registered, kept: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.integration.results_client", service.address, query.query.name, str(kept)]
    return subprocess.Popen(command)


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.long)])
@pytest.mark.timeout(900)
def test_the_stream_is_the_undisturbed_one_whoever_is_killed(
    broker, writer: Writer, tmp_path: Path, kills: int
) -> None:
    chance = random.Random(kills)
    query = counts(writer, "CHANGES")
    kept = tmp_path / "kept.jsonl"
    victims = chance.sample(["service", "client", "both"] * ((kills + 2) // 3), kills)
    with running(broker.bootstrap, tmp_path / "results.log") as service:
        source = Source(writer, query, kills)
        client = subscriber(service, query, kept)
        for victim in victims:
            seen, more = len(results_client.read(kept)), chance.randint(1, 40)
            until(lambda seen=seen, more=more: len(results_client.read(kept)) >= seen + more)
            if victim != "client":
                service.kill()
            if victim != "service":
                client.kill()
                client.wait(30)
                client = subscriber(service, query, kept)
            if victim != "client":
                service.start()
        expected = source.end()
        assert client.wait(120) == 0
    got = [(line["time"], line["changes"]) for line in results_client.read(kept)]
    times = [time for time, _ in got]
    lost, repeated = len({t for t, _ in expected} - set(times)), len(times) - len(set(times))
    wrong = sum(a != b for a, b in zip(got, expected, strict=False))
    print(f"results: kills {len(victims)}, reports {len(expected)}, lost {lost}, repeated {repeated}, wrong {wrong}")
    assert got == expected
