"""The supervisor over small real processes: order, restarts, giving up, stopping."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import pytest

from stairwise.system import state
from stairwise.system import supervised as supervised_parts
from stairwise.system.processes import Identity
from stairwise.system.supervised import Backoff, describe_exit
from stairwise.system.system_part import Check, SystemPart, stop_waves
from tests.unit.system.small_parts import READY, WAIT, fake_part, part_of, supervised

CRASH_UNTIL_THIRD = """
count = sys.argv[1] + '.count'
open(count, 'a').write('x')
if len(open(count).read()) < 3:
    sys.exit('not yet')
"""


def note(path: Path) -> str:
    """Statements that write the part's name into a file when SIGTERM comes."""
    return (
        "def end(*_):\n"
        f"    open({str(path)!r}, 'a').write(os.path.basename(sys.argv[1]) + ' ')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)"
    )


def test_a_part_starts_when_those_before_it_are_healthy(tmp_path: Path) -> None:
    first = fake_part(tmp_path, "first", READY, WAIT)
    second = fake_part(tmp_path, "second", READY, WAIT, after=("first",))
    third = fake_part(tmp_path, "third", READY, WAIT, after=("first", "second"))
    with supervised(tmp_path, third, second, first) as system:
        running = system.until_running()
        for name, before in (("second", ("first",)), ("third", ("first", "second"))):
            begun = system.until(lambda s, name=name: part_of(s, name).phase == "starting")
            assert all(part_of(begun, other).phase == "healthy" for other in before)
    assert [part.restarts for part in running.parts] == [0, 0, 0]


def test_parts_stop_in_the_reverse_order(tmp_path: Path) -> None:
    ends = tmp_path / "ends"
    first = fake_part(tmp_path, "first", note(ends), READY, WAIT)
    second = fake_part(tmp_path, "second", note(ends), READY, WAIT, after=("first",))
    third = fake_part(tmp_path, "third", note(ends), READY, WAIT, after=("second",))
    with supervised(tmp_path, first, second, third) as system:
        system.until_running()
    assert ends.read_text().split() == ["third.ready", "second.ready", "first.ready"]
    assert state.read(tmp_path) == system.states[-1]
    assert {part.phase for part in system.states[-1].parts} == {"stopped"}
    assert {part.process for part in system.states[-1].parts} == {None}


def test_a_part_that_is_killed_is_started_again_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="stairwise.system")
    with supervised(tmp_path, fake_part(tmp_path, "one", "print('last words', flush=True)", READY, WAIT)) as system:
        before = part_of(system.until_running(), "one").process
        assert before is not None
        before.signal(signal.SIGKILL)
        again = system.until(lambda s: part_of(s, "one").restarts == 1 and part_of(s, "one").phase == "healthy")
        after = part_of(again, "one").process
        assert after is not None
        assert after != before
        assert after.is_alive()
    assert "one was ended by SIGKILL" in caplog.text
    assert "last words" in caplog.text
    assert "one is healthy again" in caplog.text
    assert (tmp_path / "logs" / "one.log.1").exists()


def test_a_part_that_hangs_is_killed_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised_parts, "LOOK_EVERY", 0.05)
    with supervised(tmp_path, fake_part(tmp_path, "one", READY, WAIT)) as system:
        before = part_of(system.until_running(), "one").process
        assert before is not None
        before.signal(signal.SIGSTOP)
        hung = system.until(lambda s: part_of(s, "one").phase == "restarting")
        assert part_of(hung, "one").reason == "hangs: it has not answered 3 times in a row (it is stopped)"
        again = system.until(lambda s: part_of(s, "one").restarts == 1 and part_of(s, "one").phase == "healthy")
        assert part_of(again, "one").process != before
        assert not before.is_alive()


def test_a_part_that_needs_some_attempts_gets_them(tmp_path: Path) -> None:
    with supervised(tmp_path, fake_part(tmp_path, "slow", CRASH_UNTIL_THIRD, READY, WAIT)) as system:
        running = system.until_running()
    assert part_of(running, "slow").restarts == 2


def test_a_start_is_given_up_when_a_part_ends_again_and_again(tmp_path: Path) -> None:
    good = fake_part(tmp_path, "good", READY, WAIT)
    bad = fake_part(tmp_path, "bad", "sys.exit('no such setting')", after=("good",))
    never = fake_part(tmp_path, "never", READY, WAIT, after=("bad",))
    with supervised(tmp_path, good, bad, never) as system:
        last = system.until_ended()
    assert last.phase == "failed"
    assert "bad exited with code 1" in last.reason
    assert {part.name: part.phase for part in last.parts} == {
        "good": "stopped",
        "bad": "failed",
        "never": "stopped",
    }
    assert "no such setting" in (tmp_path / "logs" / "bad.log").read_text()
    assert not any(part_of(s, "never").process for s in system.states)


def test_a_part_that_never_answers_is_killed_and_the_start_given_up(tmp_path: Path) -> None:
    with supervised(tmp_path, fake_part(tmp_path, "mute", WAIT, patience=0.1)) as system:
        last = system.until_ended()
    assert last.phase == "failed"
    assert last.reason == "mute was not healthy after 0 s (its file is not there)"


def test_a_command_that_does_not_exist_is_a_failed_start(tmp_path: Path) -> None:
    missing = SystemPart("missing", ("/nowhere/at-all",), Check("grpc", "nothing"))
    with supervised(tmp_path, missing) as system:
        last = system.until_ended()
    assert last.phase == "failed"
    assert "missing exited with code 1" in last.reason
    log = (tmp_path / "logs" / "missing.log").read_text()
    assert log == "/nowhere/at-all can't be started: No such file or directory\n"


def test_a_directory_that_was_moved_away_is_not_made_again_by_a_restart(tmp_path: Path) -> None:
    directory = tmp_path / "system"
    directory.mkdir()
    with supervised(directory, fake_part(tmp_path, "one", READY, WAIT)) as system:
        process = part_of(system.until_running(), "one").process
        assert process is not None
        directory.rename(tmp_path / "moved")
        process.signal(signal.SIGKILL)
        system.until(lambda s: part_of(s, "one").reason.startswith("could not be started: "))
        assert not directory.exists()


def test_a_part_that_ignores_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    part = fake_part(tmp_path, "deaf", deaf, READY, "while True: signal.pause()", grace=0.1)
    with supervised(tmp_path, part) as system:
        process = part_of(system.until_running(), "deaf").process
    assert process is not None
    assert not process.is_alive()
    assert system.states[-1].phase == "stopped"


def test_a_second_request_to_stop_kills_at_once(tmp_path: Path) -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    part = fake_part(tmp_path, "deaf", deaf, READY, "while True: signal.pause()", grace=3600.0)
    with supervised(tmp_path, part) as system:
        system.until_running()
        system.supervisor.request_stop()
        system.until(lambda s: part_of(s, "deaf").phase == "stopping")
        system.supervisor.request_stop()
        assert system.until_ended().phase == "stopped"


def test_a_stop_while_starting_stops_what_was_started(tmp_path: Path) -> None:
    ready = fake_part(tmp_path, "ready", READY, WAIT)
    mute = fake_part(tmp_path, "mute", WAIT, after=("ready",))
    with supervised(tmp_path, ready, mute) as system:
        system.until(lambda s: part_of(s, "mute").phase == "starting")
        system.supervisor.request_stop()
        last = system.until_ended()
    assert last.phase == "stopped"
    assert not any(s.phase == "running" for s in system.states)


def test_what_a_dead_part_had_started_is_ended_with_it(tmp_path: Path) -> None:
    child = (
        "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', 'import signal; signal.pause()'],"
        " process_group=0)"  # a group of its own, as Spark's Python daemon has
    )
    tell = "open(sys.argv[1] + '.child', 'w').write(str(child.pid))"
    with supervised(tmp_path, fake_part(tmp_path, "parent", child, tell, READY, WAIT)) as system:
        parent = part_of(system.until_running(), "parent").process
        grandchild = Identity.of(int((tmp_path / "parent.ready.child").read_text()))
        assert parent is not None
        assert grandchild is not None
        parent.signal(signal.SIGKILL)
        assert grandchild.wait(30.0)


def test_restarts_wait_twice_as_long_each_time_up_to_a_limit() -> None:
    backoff = Backoff(first=0.5, longest=4.0)
    assert [backoff.delay(n) for n in range(1, 7)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert backoff.delay(10_000) == 4.0


def test_a_part_that_was_healthy_long_enough_begins_the_back_off_anew(tmp_path: Path) -> None:
    always_calm = Backoff(first=0.01, longest=3600.0, calm=0.0)
    with supervised(tmp_path, fake_part(tmp_path, "one", READY, WAIT), backoff=always_calm) as system:
        for restarts in range(12):  # the twelfth wait would be 20 seconds
            running = system.until(
                lambda s, n=restarts: part_of(s, "one").restarts == n and part_of(s, "one").phase == "healthy"
            )
            process = part_of(running, "one").process
            assert process is not None
            process.signal(signal.SIGKILL)


def test_parts_that_wait_for_each_other_are_refused() -> None:
    one = SystemPart("one", (), Check("grpc", ""), after=("two",))
    two = SystemPart("two", (), Check("grpc", ""), after=("one",))
    with pytest.raises(ValueError, match="one, two"):
        stop_waves([one, two])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (1, "exited with code 1"),
        (-9, "was ended by SIGKILL"),
        (143, "exited with code 143 (SIGTERM)"),
        (-64, "was ended by SIGRTMAX"),
        (255, "exited with code 255 (signal 127)"),
    ],
)
def test_an_exit_code_is_told_in_words(code: int, words: str) -> None:
    assert describe_exit(code) == words
