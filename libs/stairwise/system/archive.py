"""An archive of the broker's classes as the JVM has loaded them once, which halves the time of every later start.

    python -m stairwise.system.archive        part of `make setup`

A JVM that finds the archive to be of another Java or of other jars starts without it, and one that can't write any
goes on as it is.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

from stairwise.system.broker import Broker
from stairwise.system.installation import find_installation
from stairwise.system.launch import await_healthy, launch, stop
from stairwise.system.ports import free_ports


def archive() -> bool:
    """Start a broker and stop it again: at its end it writes down what it has loaded. Has it?"""
    installation = find_installation(os.environ)
    installation.broker_archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(installation, Path(directory) / "broker", *free_ports(2))
        broker.prepare()
        java, *arguments = broker.part().command
        command = (java, f"-XX:ArchiveClassesAtExit={installation.broker_archive}", *arguments)
        running = launch(replace(broker.part(), command=command, grace=60.0), Path(directory))
        try:
            await_healthy(running)
        except TimeoutError:
            return False
        finally:
            stop(running)
    return installation.broker_archive.exists()


if __name__ == "__main__":
    if not archive():
        print("this Java writes no archive of classes: everything works, and the broker starts more slowly")
