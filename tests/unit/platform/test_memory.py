"""A process that keeps its freed memory does not ask the system for the same again."""

from __future__ import annotations

import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
from stairwise.platform import memory
if sys.argv[1] == "keep":
    memory.keep(64 << 20)
blocks = [bytearray(20 << 20) for _ in range(3)]
del blocks
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    blocks = [bytearray(20 << 20) for _ in range(3)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of the GNU C library")
def test_blocks_that_come_and_go_are_kept() -> None:
    assert faults("keep") * 10 < faults("do not")
