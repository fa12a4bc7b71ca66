"""How much room a volume has left: those who write watch it, so that it never becomes full."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

LOOK_EVERY = 1.0
"""How often the volume is looked at, in seconds."""
AGAIN = 1.25
"""There is room again when so many times the limit is free: whoever goes on writes at once."""


def free_bytes(directory: Path) -> int:
    """What is free on the volume of a directory, or where it would be made, for whoever is not root."""
    found = os.statvfs(next(each for each in (directory, *directory.parents) if each.exists()))
    return found.f_bavail * found.f_frsize


class FreeSpace:
    """Watches the volume of a directory; less than ``least`` bytes free is too little."""

    def __init__(self, directory: Path, least: int, told: Callable[[bool, int], None]) -> None:
        """``told`` hears when it becomes too little and when it is enough again, with how much is free."""
        self._directory, self._least, self._told = directory, least, told
        self._looked = float("-inf")
        self.is_low = False

    def look(self, now: float) -> bool:
        """Is there too little room? ``now`` is a clock in seconds that never goes back."""
        if now - self._looked >= LOOK_EVERY:
            self._looked = now
            free = free_bytes(self._directory)
            is_low = free < (self._least * AGAIN if self.is_low else self._least)
            if is_low != self.is_low:
                self.is_low = is_low
                self._told(is_low, free)
        return self.is_low
