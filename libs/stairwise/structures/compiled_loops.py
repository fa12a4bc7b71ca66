"""Loops, compiled: where a row goes depends on how many of its key came before it, and a search on what it has met.

Vectorised, an update is a sort of every batch by key and a dozen passes over it, and a search as many passes as the
longest ring needs. The compiled code is kept on disk beside the sources, or where NUMBA_CACHE_DIR or the user's own
cache is if nothing can be written there, so that it is compiled once and not whenever a process starts.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

_READ = types.Array(types.int64, 1, "C", readonly=True)
_WRITE = types.Array(types.int64, 1, "C")
_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_BOUNDS = types.Array(types.int32, 1, "C", readonly=True)


def _crc_table() -> np.ndarray:
    """What CRC-32 makes of each byte."""
    table = np.arange(256, dtype=np.int64)
    for _ in range(8):
        table = np.where(table & 1, 0xEDB88320 ^ (table >> 1), table >> 1)
    return table


_CRC = _crc_table()


@njit(types.boolean(_READ, _READ, _READ, _READ, _WRITE), cache=True, nogil=True)
def have_room(key, first, end, mask, came):  # type: ignore[no-untyped-def]
    """Do the rings take in a row more of each of these keys? ``came`` has a zero for each key, also afterwards."""
    room = True
    for row in range(len(key)):
        k = key[row]
        came[k] += 1
        if end[k] + came[k] - first[k] > mask[k]:
            room = False
    for row in range(len(key)):
        came[key[row]] = 0
    return room


@njit(types.void(_READ, _READ, _READ, _READ, _WRITE, _WRITE, _WRITE, _WRITE), cache=True, nogil=True)
def place(key, times, start, mask, end, ring, position, slot):  # type: ignore[no-untyped-def]
    """Give rows their positions and slots, put their times there, and move the ends of their keys on."""
    for row in range(len(key)):
        k = key[row]
        here = end[k]
        at = start[k] + (here & mask[k])
        position[row] = here
        slot[row] = at
        ring[at] = times[row]
        end[k] = here + 1


@njit(types.void(_READ, _READ, _READ, _WRITE, _WRITE), cache=True, nogil=True)
def run_on(values, key, slot, column, last):  # type: ignore[no-untyped-def]
    """Write running sums of values; ``last`` has the last of each key."""
    for row in range(len(slot)):
        total = last[key[row]] + values[row]
        last[key[row]] = total
        column[slot[row]] = total


@njit(types.void(_READ, _READ, _READ, _READ, _READ, _READ, _WRITE), cache=True, nogil=True)
def rank(column, start, mask, first, end, bound, found):  # type: ignore[no-untyped-def]
    """Of each ring, the first position in [first, end) whose value is above its bound, else the end."""
    for ring in range(len(bound)):
        low, high = first[ring], end[ring]
        while low < high:
            middle = (low + high) >> 1
            if column[start[ring] + (middle & mask[ring])] <= bound[ring]:
                low = middle + 1
            else:
                high = middle
        found[ring] = low


@njit(types.void(_BOUNDS, _BYTES, types.int64, _WRITE), cache=True, nogil=True)
def spread(bounds, data, parts, found):  # type: ignore[no-untyped-def]
    """Into which of so many parts each text goes, by its CRC-32."""
    for row in range(len(found)):
        crc = 0xFFFFFFFF
        for place in range(bounds[row], bounds[row + 1]):
            crc = _CRC[(crc ^ data[place]) & 0xFF] ^ (crc >> 8)
        found[row] = (crc ^ 0xFFFFFFFF) % parts
