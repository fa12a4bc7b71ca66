"""The parts' logs: one per start, the last few kept, their ends to be shown."""

from __future__ import annotations

from pathlib import Path

from stairwise.system import logs


def test_each_start_has_its_own_log_and_the_oldest_falls_off(tmp_path: Path) -> None:
    path = logs.log_path(tmp_path, "broker")
    for start in range(8):
        logs.rotate(path)
        path.write_text(f"start {start}")
    kept = sorted(path.parent.iterdir())
    assert [log.name for log in kept] == ["broker.log", *(f"broker.log.{n}" for n in range(1, 6))]
    assert [log.read_text() for log in kept] == [f"start {n}" for n in (7, 6, 5, 4, 3, 2)]


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
