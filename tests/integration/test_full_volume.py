"""Ingest pauses while its volume has little room, and goes on by itself, exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.ingest_system import START, ingest_system, wait_for
from tests.small_volume import fill, small_volume

pytestmark = pytest.mark.jvm


def test_ingest_pauses_on_a_full_volume_and_misses_nothing(tmp_path: Path) -> None:
    (tmp_path / "system").mkdir()
    with small_volume(tmp_path / "volume", 8) as volume, ingest_system(tmp_path / "system") as system:
        settings = {"STAIRWISE_DIR": str(volume), "STAIRWISE_MIN_FREE_BYTES": str(2 << 20)}
        with system.running(**settings) as instance:
            streams = [system.declare("PARTITIONS 1")]

            def has_said(text: str, times: int) -> bool:
                return instance.log.read_text().count(text) == times

            for time in range(1, 4):
                system.publish(streams[0], [{"ts": START + 100 * time - 1, "n": time}])
                system.await_read(streams[0])
                filling = fill(volume)
                wait_for(lambda time=time: has_said("ingest pauses", time), "it pauses")
                # A stream that is declared meanwhile pauses as well.
                streams.append(system.declare("PARTITIONS 2"))
                for stream in streams:
                    system.publish(stream, [{"ts": START + 100 * time + n, "n": 100 * time + n} for n in range(50)])
                assert system.lag(streams[0]) == 50
                filling.unlink()
                wait_for(lambda time=time: has_said("ingest goes on", time), "it goes on")
                for stream in streams:
                    system.await_read(stream)
            for first, stream in enumerate(streams):
                expected = [100 * time + n for time in range(max(1, first), 4) for n in range(50)]
                singles = [1, 2, 3] if first == 0 else []
                assert sorted(row["n"] for row in system.rows(stream)) == sorted(expected + singles)
                assert system.late(stream) == []
