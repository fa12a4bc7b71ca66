"""A full disk ends nobody: it is noticed, and everything goes on when there is room again."""

from __future__ import annotations

import signal
from pathlib import Path

from stairwise.cli.overview import Volume
from stairwise.platform.free_space import FreeSpace, free_bytes
from stairwise.system import state
from tests.small_volume import fill, small_volume
from tests.unit.system.small_parts import READY, WAIT, fake_part, part_of, supervised

MEGABYTE = 1 << 20


def test_a_supervisor_survives_a_full_disk_and_writes_its_state_when_there_is_room(tmp_path: Path) -> None:
    with small_volume(tmp_path / "volume", 4) as directory:
        part = fake_part(tmp_path, "one", READY, WAIT)
        with supervised(directory, part) as system:
            running = part_of(system.until_running(), "one").process
            for time in range(1, 4):
                filling = fill(directory)
                assert running is not None
                running.signal(signal.SIGKILL)
                again = system.until(
                    lambda s, time=time: part_of(s, "one").restarts >= time and part_of(s, "one").phase == "healthy"
                )
                running = part_of(again, "one").process
                filling.unlink()
                system.until_on_disk(directory, lambda s, now=running: part_of(s, "one").process == now)
            assert not list(directory.glob("system.json.*")), "nothing half written stays"
        assert state.read(directory) == system.states[-1]


def test_too_little_room_is_noticed_and_enough_of_it_as_well(tmp_path: Path) -> None:
    told: list[bool] = []
    with small_volume(tmp_path / "volume", 8) as directory:
        space = FreeSpace(directory, 2 * MEGABYTE, lambda is_low, free: told.append(is_low))
        assert not space.look(0.0)
        for time in (10.0, 20.0, 30.0):
            filling = fill(directory)
            assert space.look(time)
            assert "0 MB free, ingest pauses below 268 MB" in Volume.of(directory).remark
            filling.write_bytes(b"x" * (free_bytes(directory) + filling.stat().st_size - 2 * MEGABYTE - 8192))
            assert space.look(time + 2), "a little more than the limit is not enough to go on"
            filling.unlink()
            assert not space.look(time + 4)
    assert told == [True, False] * 3


def test_a_directory_that_is_not_there_yet_is_on_the_volume_of_the_one_above(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "there") > 0
