"""What remains of a supervisor that was killed: found without doubt, stopped, and nothing else touched."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from stairwise.system.launch import RunningPart, launch, stop
from stairwise.system.orphans import find_orphans, stop_orphans
from stairwise.system.processes import Identity
from stairwise.system.state import PartState, SystemState
from stairwise.system.system_part import Check
from tests.unit.system.small_parts import DEADLINE, READY, WAIT, empty_state, fake_part, file_is_there


def started(directory: Path, name: str, *statements: str) -> RunningPart:
    """A part that runs, as if a supervisor that is gone now had started it."""
    running = launch(fake_part(directory, name, *statements), directory)
    while not file_is_there(running.part.check, 0).healthy:
        assert not running.identity.wait(0.01), running.log.read_text()
    return running


def left_behind(*running: RunningPart) -> SystemState:
    parts = tuple(PartState(r.part.name, r.part.check, process=r.identity) for r in running)
    return empty_state(parts=parts)


def test_parts_that_outlived_their_supervisor_are_stopped(tmp_path: Path) -> None:
    one, two = started(tmp_path, "one", READY, WAIT), started(tmp_path, "two", READY, WAIT)
    stopped = stop_orphans(left_behind(one, two), tmp_path)
    assert {(orphan.part, orphan.process.pid) for orphan in stopped} == {
        ("one", one.identity.pid),
        ("two", two.identity.pid),
    }
    assert [one.collect(), two.collect()] == [-signal.SIGTERM, -signal.SIGTERM]


def test_a_process_that_has_the_pid_by_chance_is_left_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"]
    environ = {"STAIRWISE_DIR": str(tmp_path)}  # as a shell may have it
    with subprocess.Popen(command, start_new_session=True, env=environ) as bystander:
        process = Identity.of(bystander.pid)
        assert process is not None
        for changes in ({"started": "earlier boot:1"}, {"command": "something else"}):
            part = PartState("part", Check("grpc", ""), process=replace(process, **changes))
            assert stop_orphans(empty_state(parts=(part,)), tmp_path) == []
        assert process.is_alive()
        bystander.kill()


def test_what_a_dead_part_had_started_is_found_by_its_session_and_directory(tmp_path: Path) -> None:
    child = "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', 'import signal; signal.pause()'])"
    tell = "open(sys.argv[1] + '.child', 'w').write(str(child.pid))"
    parent = started(tmp_path, "parent", child, tell, READY, WAIT)
    grandchild = Identity.of(int((tmp_path / "parent.ready.child").read_text()))
    assert grandchild is not None
    parent.tell(signal.SIGKILL)
    parent.process.wait()  # reaped without its group, as init would
    state = left_behind(parent)
    assert find_orphans(state, tmp_path / "elsewhere") == []
    assert [orphan.process for orphan in stop_orphans(state, tmp_path)] == [grandchild]
    assert grandchild.wait(DEADLINE)


def test_no_process_and_no_pid_means_no_orphan(tmp_path: Path) -> None:
    done = started(tmp_path, "done", READY, WAIT)
    stop(done)
    never = PartState("never", Check("grpc", ""))
    state = left_behind(done)
    assert find_orphans(replace(state, parts=(*state.parts, never)), tmp_path) == []


def test_a_part_is_told_to_end_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; sys.path[:0] = [sys.argv[1]]\n"
        "from small_parts import fake_part, READY, WAIT\n"
        "from stairwise.system.launch import launch\n"
        "directory = pathlib.Path(sys.argv[2])\n"
        "print(launch(fake_part(directory, 'part', READY, WAIT), directory).identity.pid, flush=True)\n"
        "import signal; signal.pause()\n"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        part = Identity.of(int(supervisor.stdout.readline()))
        supervisor.kill()
    assert part is None or part.wait(DEADLINE)


def test_an_identity_signals_and_waits_for_that_process_only() -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"]) as process:
        identity = Identity.of(process.pid)
        assert identity is not None
        other = replace(identity, started="another:1")
        assert not other.is_alive()
        assert not other.signal(signal.SIGKILL)
        assert other.wait(0.0)
        assert not identity.wait(0.0)
        assert identity.signal(signal.SIGTERM)
        assert identity.wait(DEADLINE)
        assert not identity.is_alive()  # a zombie, not yet reaped
    assert not identity.signal(signal.SIGTERM)
    assert identity.wait(0.0)
