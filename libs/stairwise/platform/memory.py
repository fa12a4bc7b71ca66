"""How a process gets its memory from the system."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
LARGEST = 32 << 20
"""The largest block that can be kept: what is larger is mapped and unmapped each time."""


def keep(size: int) -> None:
    """Have the allocator keep up to so many bytes that were freed, instead of giving them back to the system.

    Blocks of megabytes come and go with every batch. Each time the system hands one out anew it has to clear it page by
    page when it is first touched, a tenth of the time of a process that does little more than pass such blocks on.
    Where the C library has no such setting, nothing is changed.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_MMAP_THRESHOLD, LARGEST)
    mallopt(M_TRIM_THRESHOLD, size)
