"""The parts' logs: one per start, the last few kept, their ends to be shown."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from stairwise.system import logs
from stairwise.system.background import StartError
from stairwise.system.launch import launch, stop
from stairwise.system.temporary import state_directory
from tests.unit.system.small_parts import READY, WAIT, fake_part


def test_each_start_has_its_own_log_and_the_oldest_falls_off(tmp_path: Path) -> None:
    path = logs.log_path(tmp_path, "broker")
    for start in range(8):
        logs.rotate(path)
        path.write_text(f"start {start}")
    kept = sorted(path.parent.iterdir())
    assert [log.name for log in kept] == ["broker.log", *(f"broker.log.{n}" for n in range(1, 6))]
    assert [log.read_text() for log in kept] == [f"start {n}" for n in (7, 6, 5, 4, 3, 2)]


def test_a_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    running = launch(fake_part(tmp_path, "part", READY, WAIT), tmp_path)
    try:
        assert running.log.stat().st_mode & 0o077 == 0
    finally:
        stop(running)


def test_the_tail_is_the_last_lines_that_say_something(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("first\n\nsecond\n  \nthird\n\n")
    assert logs.tail(log, 2) == ["second", "third"]
    assert logs.tail(log, 10) == ["first", "second", "third"]


def test_the_tail_of_a_huge_log_or_none_is_still_a_tail(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(b"\xff" * 300_000 + b"\nlast\n")
    assert logs.tail(log, 1) == ["last"]
    assert logs.tail(tmp_path / "none.log", 5) == []


def test_the_last_words_are_the_message_of_a_line_of_ours_and_else_the_line(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text('Traceback\n{"level": "error", "message": "cannot listen\\n  hint: another"}\n')
    assert logs.last_words(log) == "cannot listen"
    log.write_text("Traceback\nOSError: no room\n")
    assert logs.last_words(log) == "OSError: no room"
    assert logs.last_words(tmp_path / "none.log") == "its log is empty"


def test_of_a_temporary_system_that_did_not_start_the_logs_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def fail(error: Exception) -> None:
        with state_directory("x-", OSError) as directory:
            for path in (logs.log_path(directory, "results"), directory / "broker" / "data"):
                path.parent.mkdir()
                path.touch()
            raise error

    for error, left in ((StartError("failed"), 1), (ValueError(), 1), (OSError(), 2)):
        with pytest.raises(type(error)):
            fail(error)
        assert len(list(tmp_path.rglob("results.log"))) == left
    assert not list(tmp_path.rglob("data"))
    with state_directory("x-") as directory:
        assert directory.is_dir()
    assert not directory.exists()
