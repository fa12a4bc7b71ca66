"""The command line, typed by the hundred: each command is a process of its own, which need not load everything first.

    a test ──arguments, files──▶ server, which has loaded all verbs ──fork──▶ the command ──exit code──▶ the test

What a command writes goes to files of the test, as it would to a terminal. Loading takes a second, a fork some
milliseconds. The server ends with the process that started it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from stairwise.cli.main import VERBS, main
from stairwise.system.die_with_parent import tie_to

READY = b"ready\n"


def run(
    arguments: tuple[str, ...],
    environ: Mapping[str, str],
    *,
    stdin: str | None = None,
    cwd: Path | None = None,
    within: float,
) -> subprocess.CompletedProcess[str]:
    """Like ``subprocess.run`` of ``stairwise`` with its output captured."""
    call = {"arguments": arguments, "environ": dict(environ), "cwd": str(cwd or Path.cwd())}
    with (
        socket.socket(socket.AF_UNIX) as connection,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write((stdin or "").encode())
        given.seek(0)
        connection.settimeout(within)
        connection.connect(str(_address()))
        socket.send_fds(connection, [b"."], [file.fileno() for file in (given, out, err)])
        connection.sendall(json.dumps(call).encode() + b"\n")
        answers = connection.makefile("rb")
        pid = int(answers.readline())
        try:
            code = int(answers.readline())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read().decode(), err.read().decode())


@cache
def _address() -> Path:
    """Where the server of this process listens; it is started by the first command."""
    directory = tempfile.TemporaryDirectory(prefix="commands-")
    address = Path(directory.name) / "socket"
    command = [sys.executable, "-m", "tests.command_server", str(os.getpid()), str(address)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    atexit.register(directory.cleanup)
    atexit.register(server.wait)
    atexit.register(server.terminate)
    assert server.stdout is not None
    assert server.stdout.readline() == READY
    return address


def serve(address: str) -> None:
    for verb in VERBS.values():
        importlib.import_module(verb.partition(":")[0])
    gc.freeze()  # no command cleans up, at its end, what was loaded here
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the commands
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        os.write(1, READY)
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    _attend(connection)


def _attend(connection: socket.socket) -> None:
    """Run the command that a test asks for, and tell it the process and then the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    call = json.loads(connection.makefile("rb").readline())
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(call, files)
    connection.sendall(b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(call: dict[str, Any], files: list[int]) -> NoReturn:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(call["environ"])
    os.chdir(call["cwd"])
    main(call["arguments"])
    sys.exit()


if __name__ == "__main__":
    tie_to(int(sys.argv[1]))
    serve(sys.argv[2])
