"""A load of connections: a process that keeps taking ports of this machine, and giving them back, at random."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# About 1,500 connections a second, 3,000 of them open at a time. Each has a port from the half of the kernel's range
# from which programs that ask for any port are given theirs. They are reset, since closed ones would linger by the
# ten thousands.
LOAD = """
import collections, resource, socket, struct, time
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
most = min(3000, limit // 2 - 100)
server = socket.create_server(("127.0.0.1", 0), backlog=128)
reset = struct.pack("ii", 1, 0)
connections = collections.deque()
is_full = False
while True:
    for _ in range(15):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client.bind(("127.0.0.1", 0))
        client.connect(server.getsockname())
        connections.append((client, server.accept()[0]))
    while len(connections) > most:
        for end in connections.popleft():
            end.close()
    if len(connections) == most and not is_full:
        is_full = True
        print("full", flush=True)
    time.sleep(0.01)
"""


@contextmanager
def load_of_connections() -> Iterator[None]:
    """Ports are taken by chance as long as this is open."""
    with subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE) as load:
        try:
            assert load.stdout is not None
            assert load.stdout.readline() == b"full\n"
            yield
            assert load.poll() is None
        finally:
            load.kill()
