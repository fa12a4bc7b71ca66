"""docs/subscribing.md: its programs run, and its requests are requests."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import json_format

from stairwise.v1 import results_pb2 as pb
from tests.integration.results_system import Service, Writer, running

PAGE = (Path(__file__).parents[2] / "docs" / "subscribing.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REQUESTS = re.findall(r"-d '(\{.*\})' \S+ stairwise.v1.Results/(\w+)$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def service(broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    writer = Writer(broker.bootstrap)
    stream = writer.stream()
    select = f"SELECT k AS ticker, COUNT(*) AS n, SUM(v) AS volume FROM {stream} [ROWS 1000 SLIDE 10 ms] GROUP BY k"
    query = writer.query(select, "volumes")
    for time in (10, 20, 30):
        writer.report(query, time, [("ACME", 1, 5), ("OTHER", 1, time)])
    writer.end(query)
    recent = writer.query(
        f"SELECT k AS ticker, v AS qty FROM {stream} [RANGE 20 ms SLIDE 10 ms] EMIT CHANGES", "recent"
    )
    for time in (10, 20, 30):
        writer.moves(recent, time, [("ACME", time, time + 20)])
    writer.end(recent)
    writer.flush()
    writer.close()
    with running(broker.bootstrap, tmp_path_factory.mktemp("results") / "results.log") as service:
        yield service


@pytest.mark.jvm
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(service: Service, program: str) -> None:
    environment = {**service.environment(), "STAIRWISE_RESULTS": service.address}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if "lifetimes" in program:
        answers = [[10], [10, 20], [20, 30]]
        rows = [[{"ticker": "ACME", "qty": qty} for qty in answer] for answer in answers]
        assert done.stdout.splitlines() == [f"{time} {row}" for time, row in zip((10, 20, 30), rows, strict=True)]


@pytest.mark.parametrize(("request_", "method"), REQUESTS)
def test_a_request_is_one(request_: str, method: str) -> None:
    kind = {"Subscribe": pb.SubscribeRequest, "Snapshot": pb.SnapshotRequest}[method]
    assert json_format.Parse(request_, kind()).query == "volumes"


def test_there_is_something_to_test() -> None:
    assert len(PROGRAMS) == 5
    assert len(REQUESTS) == 3
