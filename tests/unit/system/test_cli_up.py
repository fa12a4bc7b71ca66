"""`stairwise up`, `down` and `status` where they end before anything is started: no JVM is needed for that."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from stairwise.cli.main import main
from stairwise.system import state
from stairwise.system.ports import free_ports
from stairwise.system.state import Lock
from tests.unit.system.small_parts import empty_state
from tests.unit.system.test_installation import installed


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with everything installed, as far as anyone looks; commands are typed in an empty directory."""
    for name, value in installed(tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("STAIRWISE_DIR", "STAIRWISE_SHARDS", "STAIRWISE_SPARK_UI"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    return home


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


def test_a_taken_port_ends_the_start_before_anything_is_made(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        ports = ["--port-base", "0", "--lookups-port", str(taken)]
        code, out, err = typed(capsys, "up", "--detach", *ports)
    assert (code, out) == (1, "")
    assert f"port {taken}, which lookups needs, is taken by process" in err
    assert "stairwise up --lookups-port" in err
    assert [path.name for path in (machine / ".stairwise").iterdir()] == ["lock"]


def test_two_parts_on_one_port_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports(1)
    same = ["--results-port", str(port), "--lookups-port", str(port)]
    code, _, err = typed(capsys, "up", "--port-base", "0", *same)
    assert code == 1
    assert f"port {port} is given to both results and lookups" in err


def test_missing_jars_are_named_first(tmp_path: Path, machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jvm" / "broker" / "some.jar").unlink()
    code, _, err = typed(capsys, "up")
    assert code == 1
    assert "make setup" in err
    assert not (machine / ".stairwise").exists()


def test_a_second_system_in_one_directory_is_refused(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = Lock(machine / "there")
    code, _, err = typed(capsys, "up", "--dir", "there", "--port-base", "0")
    lock.release()
    assert code == 1
    assert f"already running in {machine / 'there'}" in err


@pytest.mark.parametrize("words", [["--port-base", "65535"], ["--shards", "0"], ["--results-port", "x"]])
def test_a_wrong_call_has_exit_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = typed(capsys, "up", *words)
    assert code == 2
    assert words[0] in err


def test_down_where_nothing_runs_says_so_and_is_content(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = f"nothing is running in {machine / '.stairwise'}"
    assert typed(capsys, "down") == (0, f"{nothing}: there is no such directory\n", "")
    (machine / ".stairwise").mkdir()
    assert typed(capsys, "down") == (0, f"{nothing}\n", "")


def test_status_where_nothing_runs_is_an_error_that_says_how_to_start(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = typed(capsys, "status")
    assert (code, out) == (1, "")
    assert "there is no such directory" in err
    assert "stairwise up --detach" in err


def test_the_directory_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STAIRWISE_DIR", str(tmp_path / "elsewhere"))
    assert typed(capsys, "down")[1].startswith(f"nothing is running in {tmp_path / 'elsewhere'}")


def test_a_directory_that_lacks_the_brokers_data_is_not_started_in(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / "half" / "operators" / "checkpoint").mkdir(parents=True)
    code, _, err = typed(capsys, "up", "--dir", "half", "--port-base", "0")
    assert code == 1
    assert f"{machine / 'half'} is not whole: it has no {machine / 'half' / 'broker' / 'data'}" in err
    assert "restore all of it from one backup" in err


def test_status_shows_a_part_that_does_not_run_and_why(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    part = state.PartState(
        "results", state.Check("grpc", address), phase="restarting", restarts=4, reason="exited with code 1"
    )
    (machine / ".stairwise").mkdir()
    state.write(machine / ".stairwise", empty_state(phase="running", parts=(part,)))
    code, out, _ = typed(capsys, "status")
    assert code == 1
    assert out == (
        '{"part":"results","health":"unhealthy","pid":null,"uptime_seconds":null,"restarts":4,'
        f'"address":"{address}","metrics":null,"lag":null,"lag_seconds":null,'
        '"reason":"restarting: exited with code 1"}\n'
    )
