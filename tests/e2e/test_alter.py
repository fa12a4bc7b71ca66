"""ALTER STREAM in the running system: nothing is dropped, and from then on the new declaration holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stairwise.client import Client
from stairwise.client.dead_letters import DeadLetters
from stairwise.errors import StairwiseError
from tests.e2e.conftest import System, wait_for

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(300)]

START = 1_700_000_000_000
COLUMNS = "(ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts PARTITION BY k"


@pytest.fixture
def client(system: System) -> Iterator[Client]:
    with Client.connect(directory=system.directory) as client:
        yield client


def row(second: float, key: str = "a") -> dict[str, Any]:
    return {"ts": START + int(second * 1000), "k": key, "v": 1}


def counts(system: System, query: str) -> dict[int, int]:
    """What a query says until its stream is sealed: by second, how many rows."""
    return {(line["time"] - START) // 1000: line["row"]["n"] for line in system.lines(query)}


def test_more_lateness_takes_rows_that_were_late_and_queries_go_on(system: System, client: Client) -> None:
    client.execute(
        f"CREATE STREAM al_late {COLUMNS} PARTITIONS 1;"
        "CREATE QUERY al_before AS SELECT COUNT(*) AS n FROM al_late [TUMBLE 10 SECONDS]"
    )
    client.publish("al_late", [row(10), row(11), row(5)])
    system.await_ingest()
    assert "altered stream al_late" in system.sql("ALTER STREAM al_late SET LATENESS 30 SECONDS")
    assert "nothing to alter" in system.sql("ALTER STREAM al_late SET LATENESS 30 SECONDS")
    (declared,) = (stream.declaration for stream in client.streams() if stream.name == "al_late")
    assert (declared.lateness, declared.incarnation) == (30_000, 1)
    client.execute("CREATE QUERY al_after AS SELECT COUNT(*) AS n FROM al_late [TUMBLE 10 SECONDS] WHERE v > 0")
    client.publish("al_late", [row(6), row(60), row(35), row(30)])
    system.await_ingest()
    client.execute("ALTER STREAM al_late SET LATENESS DEFAULT")
    client.publish("al_late", [row(59), row(61)])
    client.execute("SEAL STREAM al_late")
    # 5 and 6 are at or below the watermark as it stood, 30 is as late as may be, and 59 is late again.
    assert counts(system, "al_before") == {10: 1, 20: 1, 30: 1, 40: 1, 50: 0, 60: 1, 70: 1}
    assert counts(system, "al_after") == {20: 0, 30: 1, 40: 1, 50: 0, 60: 1, 70: 1}
    assert len(list(DeadLetters(client.addresses.brokers, "al_late", late=True).read())) == 3


def test_idle_after_lets_a_stream_with_a_quiet_partition_report(system: System, client: Client) -> None:
    client.execute(
        f"CREATE STREAM al_idle {COLUMNS} PARTITIONS 2;"
        "CREATE QUERY al_quiet AS SELECT COUNT(*) AS n FROM al_idle [TUMBLE 10 SECONDS]"
    )
    client.publish("al_idle", [row(1, key) for key in "abcdefgh"])
    client.publish("al_idle", [row(25)])
    client.execute("ALTER STREAM al_idle SET IDLE AFTER 500 MILLISECONDS")
    subscription = system.start("subscribe", "al_quiet", "--from", "earliest", "--limit", "1")
    for second in range(26, 56):
        client.publish("al_idle", [row(second)])
        if subscription.poll() is not None:
            break
    out, _ = subscription.communicate(timeout=60)
    assert '"n":8' in out.replace(" ", "")


def test_retain_changes_what_lookups_keep(system: System, client: Client) -> None:
    client.execute(f"CREATE STREAM al_kept {COLUMNS} PARTITIONS 1 RETAIN 1 HOUR")
    client.publish("al_kept", [row(number / 1000) for number in range(1, 5_001)])
    system.await_ingest()
    client.publish("al_kept", [row(100 + number / 1000) for number in range(5_000)])

    def counted(seconds: int) -> Any:
        """How many rows the last seconds hold, or why nobody can tell."""
        try:
            answer = client.lookup(f"SELECT COUNT(*) AS n FROM al_kept [RANGE {seconds} SECONDS]")
        except StairwiseError as error:
            return str(error)
        return answer.rows[0]["n"]

    wait_for(lambda: counted(104) == 9_001, "all rows are there")
    client.execute("ALTER STREAM al_kept SET RETAIN 20 SECONDS")
    refusal = wait_for(lambda: "kept from" in (said := str(counted(104))) and said, "what is too old is gone")
    assert "ALTER STREAM al_kept SET RETAIN" in refusal
    assert counted(10) == 4_999
    client.execute("ALTER STREAM al_kept SET RETAIN DEFAULT")
    client.publish("al_kept", [row(190)])
    wait_for(lambda: counted(89) == 4_000, "what is kept now stays for longer")
