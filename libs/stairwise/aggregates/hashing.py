"""A 64-bit hash of each value of a column, vectorised, the same on every machine and in every version.

Numbers go through one mixing function (the finaliser of SplitMix64). A string's hash adds up a mixed number for
each of its bytes at its place, so the bytes of all strings are hashed in one sweep:

    "ab"  "b"       a@0 + b@1    b@0        then mixed again with the length
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Words, bool_values, canonical, float64_view, int32_view, int64_view, validity

_GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)


def hash_column(column: pa.Array) -> Words:
    """The hash of each value, anything where it is NULL. Equal values have equal hashes: −0.0 and 0.0, all NaNs."""
    if pa.types.is_floating(column.type):
        return mix(canonical(float64_view(column)).view(np.uint64))
    if pa.types.is_int64(column.type):
        return mix(int64_view(column).view(np.uint64))
    if pa.types.is_boolean(column.type):
        return mix(bool_values(column).astype(np.uint64))
    encoded = column.dictionary_encode()
    hashes = np.append(_hash_strings(encoded.dictionary), np.uint64(0))
    indices, valid = int32_view(encoded.indices), validity(column)
    return hashes[indices if valid is None else np.where(valid, indices, -1)]


def mix(words: Words) -> Words:
    """A permutation of 64-bit words in which every bit depends on every bit."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return words ^ (words >> np.uint64(31))


def _hash_strings(strings: pa.Array) -> Words:
    if len(strings) == 0:
        return np.empty(0, np.uint64)
    _, offsets_buffer, data = strings.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, len(strings) + 1, strings.offset * 4).astype(np.int64)
    octets = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data else np.empty(0, np.uint8)
    offsets -= offsets[0]
    lengths = np.diff(offsets)
    place = np.arange(len(octets)) - np.repeat(offsets[:-1], lengths)
    mixed = mix((place.view(np.uint64) << np.uint64(8)) + octets)
    ends = np.append(np.uint64(0), np.cumsum(mixed, dtype=np.uint64))
    return mix((ends[offsets[1:]] - ends[offsets[:-1]]) ^ mix(lengths.view(np.uint64)))
