"""A file system of a few megabytes, to be filled. Where none can be mounted, its tests say that they do not run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_volume(directory: Path, megabytes: int) -> Iterator[Path]:
    """A directory on a file system of its own."""
    directory.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(directory)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"NOT TESTED on a full disk: no file system can be mounted here ({done.stderr.strip()})")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(directory: Path) -> Path:
    """Take all the room that there is; what to delete to have it back."""
    filling = directory / "filling"
    with filling.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                return filling
