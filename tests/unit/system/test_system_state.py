"""DIR/system.json: what other verbs learn from it, and who may write it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stairwise.errors import ConfigError, ConflictError
from stairwise.system import state
from stairwise.system.state import Addresses, Lock, NotRunningError, PartState
from stairwise.system.system_part import Check
from tests.unit.system.small_parts import empty_state


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = empty_state(
        ports={"broker": 1, "windows": 2},
        parts=(PartState("broker", Check("kafka", "127.0.0.1:1"), phase="healthy", since=1.5, restarts=3),),
    )
    state.write(tmp_path, written)
    assert state.read(tmp_path) == written
    assert [path.name for path in tmp_path.iterdir()] == ["system.json"]


def test_a_directory_without_a_system_has_no_state(tmp_path: Path) -> None:
    assert state.read(tmp_path / "nowhere") is None


def test_a_state_that_can_not_be_read_says_which_file_and_what_to_do(tmp_path: Path) -> None:
    state.state_path(tmp_path).write_text('{"version": "of the future"}')
    with pytest.raises(ConfigError, match=r"system\.json can't be read") as error:
        state.read(tmp_path)
    assert "delete that file" in error.value.hint


def test_a_system_runs_in_its_directory_wherever_that_is_moved_and_not_in_a_copy(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "first")
    process = empty_state().supervisor
    part = PartState("broker", Check("kafka", "127.0.0.1:1"), phase="healthy", process=process)
    state.write(tmp_path / "first", empty_state(phase="running", parts=(part,), lock=lock.identity))
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    (tmp_path / "first").rename(tmp_path / "moved")
    moved, copy = state.read(tmp_path / "moved"), state.read(tmp_path / "copy")
    lock.release()
    assert moved is not None
    assert moved.is_running
    assert copy is not None
    assert not copy.is_running
    assert copy.phase == "stopped"
    assert [part.process for part in copy.parts] == [None]


def test_a_running_system_is_found_by_its_directory(tmp_path: Path) -> None:
    running = empty_state()
    state.write(tmp_path, running)
    assert state.find(tmp_path, {}) == running.addresses
    assert state.find(None, {"STAIRWISE_DIR": str(tmp_path)}) == running.addresses


def test_the_environment_comes_before_the_directory(tmp_path: Path) -> None:
    state.write(tmp_path, empty_state())
    found = state.find(tmp_path, {"STAIRWISE_RESULTS": "far.away:1"})
    assert found == Addresses("127.0.0.1:1", "127.0.0.1:2", "far.away:1", "127.0.0.1:4")


def test_with_a_variable_alone_the_other_addresses_are_the_defaults(tmp_path: Path) -> None:
    found = state.find(tmp_path, {"STAIRWISE_REGISTRY": "far.away:1"})
    assert found == Addresses("127.0.0.1:9092", "far.away:1", "127.0.0.1:7071", "127.0.0.1:7072")


def test_no_system_and_no_variable_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError, match="no system is running") as error:
        state.find(tmp_path, {})
    assert "stairwise up --detach" in error.value.hint


@pytest.mark.parametrize(
    ("phase", "reason", "told"),
    [
        ("running", "", "was killed"),
        ("failed", "broker exited with code 1", "the last one failed: broker exited with code 1"),
        ("stopped", "", "no system is running in"),
    ],
)
def test_a_system_that_is_gone_is_not_found_and_its_end_is_told(
    tmp_path: Path, phase: str, reason: str, told: str
) -> None:
    gone = replace(empty_state().supervisor, started="another boot:1")
    state.write(tmp_path, empty_state(supervisor=gone, phase=phase, reason=reason))
    with pytest.raises(NotRunningError, match=told):
        state.find(tmp_path, {})


def test_a_second_supervisor_is_kept_out_and_told_how_to_stop_the_first(tmp_path: Path) -> None:
    state.write(tmp_path, empty_state(phase="running"))
    lock = Lock(tmp_path)
    with pytest.raises(ConflictError, match=rf"already running in {tmp_path} \(supervisor \d+, running\)") as error:
        Lock(tmp_path)
    assert "stairwise down" in error.value.hint
    lock.release()
    Lock(tmp_path).release()
