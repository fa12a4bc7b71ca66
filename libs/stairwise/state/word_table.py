"""Keys as fixed numbers of 64-bit words, and a hash table over them that is asked for a whole batch at once.

    "AB"      ┌ 'A' 'B' 0 0 0 0 0 0 ┐ ┌ 0 0 0 0 0 0 0 2 ┐      up to 15 bytes, and the length in the 16th
    NULL      ┌ 0 ................. ┐ ┌ 0 ......... 255 ┐
    42        ┌ 42 ................ ┐                           NULLs of numbers are bits of one more word

Equal words are equal keys, so nothing has to be compared but words.

    answers        the number of each row's key
    update         O(1) a row, in a few vectorised passes; rows that collide go round again by themselves
    space          slots of 4 bytes, at least four times as many as keys, and the words of each key
    order          none
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions.views import Bools, Ints, Words, bool_values, canonical, float64_view, int64_view, validity

LONGEST = 15
"""Bytes of a string that still is two words."""

_Entries = npt.NDArray[np.int32]

_MULTIPLIERS = [np.uint64(m) for m in (0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F, 0xD6E8_FEB8_6659_FD93)]
_LENGTH_PLACE = np.uint64(56)
_WORD = 8
_OWN_BYTES = np.array([(1 << 8 * length) - 1 for length in range(_WORD + 1)], np.uint64)
"""By length: the bytes of a word that belong to a string that begins there."""
_NULL_LENGTH = np.uint64(255)
_FEWEST_BITS = 10
_SPARE_BITS, _CACHED_BITS = 5, 18
"""A table that stays in the cache has far more slots than keys: hardly any two meet, so few rows go round again."""
_HALF = np.uint64(32)
_FEW_KEYS, _MOST_TRIES = 4096, 32
"""Few keys are placed by other and other hashes until no two of them meet: then no row ever goes round again."""


def _offsets(strings: pa.Array) -> np.ndarray:
    return np.frombuffer(strings.buffers()[1], np.int32, len(strings) + 1, strings.offset * 4)


def is_short(columns: Sequence[pa.Array]) -> Bools:
    """Which rows have only short strings."""
    short = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        if pa.types.is_string(column.type) and len(column):
            short &= np.diff(_offsets(column)) <= LONGEST
    return short


def short_words(columns: Sequence[pa.Array]) -> list[Words] | None:
    """The words of each row's key; None where one has a longer string."""
    for column in columns:
        if pa.types.is_string(column.type) and len(column):
            offsets = _offsets(column)
            if (offsets[1:] - offsets[:-1]).max() > LONGEST:
                return None
    return words_of(columns)


def words_of(columns: Sequence[pa.Array]) -> list[Words]:
    """The words of each row's key; all strings are short."""
    words: list[Words] = []
    flags = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        valid = validity(column)
        if pa.types.is_string(column.type):
            words += _string_words(column, valid)
            continue
        flags <<= np.uint64(2)
        if valid is not None:
            flags |= (~valid).astype(np.uint64)
        if pa.types.is_boolean(column.type):
            flags |= bool_values(column).astype(np.uint64) << np.uint64(1)
            continue
        if pa.types.is_floating(column.type):
            value = canonical(float64_view(column)).view(np.uint64)
        else:
            value = int64_view(column).view(np.uint64)
        words.append(value if valid is None else np.where(valid, value, np.uint64(0)))
    if _has_flags([column.type for column in columns]):
        words.append(flags)
    return words


def _has_flags(types: Sequence[pa.DataType]) -> bool:
    return any(not pa.types.is_string(t) for t in types)


def _width(types: Sequence[pa.DataType]) -> int:
    per_type = (2 if pa.types.is_string(t) else 0 if pa.types.is_boolean(t) else 1 for t in types)
    return sum(per_type) + _has_flags(types)


def _string_words(strings: pa.Array, valid: Bools | None) -> list[Words]:
    if len(strings) == 0:
        return [np.empty(0, np.uint64), np.empty(0, np.uint64)]
    offsets = _offsets(strings)
    lengths = offsets[1:] - offsets[:-1]
    sealed = lengths.astype(np.uint64)
    sealed <<= _LENGTH_PLACE
    if valid is None and lengths.max() <= _WORD:
        return [_single_words(strings, offsets, lengths), sealed]
    if valid is None and (lengths == lengths[0]).all():
        first, last = _padded_alike(strings, int(lengths[0]))
    elif valid is None:
        first, last = _padded(strings).T.copy()
    else:
        words = np.zeros((len(valid), 2), np.uint64)
        words[valid] = _padded(strings.drop_null())
        first, last = words.T.copy()
        sealed = np.where(valid, sealed, _NULL_LENGTH << _LENGTH_PLACE)
    last |= sealed
    return [first, last]


def _single_words(strings: pa.Array, offsets: np.ndarray, lengths: np.ndarray) -> Words:
    """Strings of at most a word: each is read where it lies, with what follows, which is masked out."""
    start, stop = int(offsets[0]), int(offsets[-1])
    octets = np.zeros(stop - start + _WORD, np.uint8)
    if stop > start:
        octets[:-_WORD] = np.frombuffer(strings.buffers()[2], np.uint8, stop - start, start)
    at = offsets[:-1].astype(np.int64)
    at -= start
    words: Words = np.ndarray((stop - start + 1,), np.uint64, octets, strides=(1,))[at]
    words &= _OWN_BYTES.take(lengths)
    return words


def _padded(strings: pa.Array) -> Words:
    padded = pc.ascii_rpad(strings, 16, padding="\0")
    return np.frombuffer(padded.buffers()[2], np.uint64, 2 * len(strings)).reshape(-1, 2)


def _padded_alike(strings: pa.Array, length: int) -> list[Words]:
    """Strings of one length lie as a table of bytes already: words are read out of it where they lie."""
    rows = len(strings)
    if not length:
        return [np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)]
    start = int(_offsets(strings)[0])
    octets = np.frombuffer(strings.buffers()[2], np.uint8)[start : start + rows * length]
    if length < 8:
        octets = np.concatenate([octets, np.zeros(8, np.uint8)])
    first: Words = np.ndarray((rows,), np.uint64, octets, strides=(length,)).copy()
    if length < 8:
        first &= np.uint64((1 << 8 * length) - 1)
    if length <= 8:
        return [first, np.zeros(rows, np.uint64)]
    last_eight: Words = np.ndarray((rows,), np.uint64, octets, offset=length - 8, strides=(length,))
    return [first, last_eight >> np.uint64(8 * (16 - length))]


class WordTable:
    """Words to numbers, by open addressing: a key that finds its slot taken by another goes on to the next."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._width = _width(types)
        self._bits = _FEWEST_BITS
        self._slots = np.full(1 << self._bits, -1, np.int32)
        """Which of the known words stand there."""
        self._known = [np.zeros(1, np.uint64) for _ in range(self._width)]
        self._numbers = np.zeros(1, np.int64)
        """Of the known words: keys that are not words are numbered too."""
        self._are_places = True
        """Is the number of all known words their place?"""
        self._count = 0
        self._seed, self._tries = _MULTIPLIERS[0], 0

    def numbers(self, words: Sequence[Words], next_number: int) -> tuple[Ints, Ints]:
        """The number of each row's key, and the rows that are the first of a key not known before.

        New keys are numbered from ``next_number`` on, in the order of those rows.
        """
        slot = self._slot(words)
        entry = self._slots.take(slot)
        missed = np.flatnonzero(~self._equal(entry, words))
        if not len(missed):
            return self._numbers_at(entry), missed
        if 2 * (self._count + len(missed)) > len(self._slots):
            self._grow(self._count + len(missed))
            slot = self._slot(words)
        new_rows = self._find_or_add(entry, slot, missed, words, next_number)
        if not len(new_rows) and self._count <= _FEW_KEYS and self._tries < _MOST_TRIES:
            self._tries += 1
            self._seed = np.uint64(int(self._seed) * int(_MULTIPLIERS[1]) % 2**64)
            self._place()
        return self._numbers_at(entry), new_rows

    @property
    def size_bytes(self) -> int:
        return self._slots.nbytes + self._numbers.nbytes + sum(column.nbytes for column in self._known)

    def find(self, words: Sequence[Words]) -> Ints:
        """The number of each row's key, −1 where it is not known; nothing is added."""
        at = self._slot(words)
        found = np.full(len(at), -1, np.int64)
        rows, last = np.arange(len(at)), len(self._slots) - 1
        mine = list(words)
        while len(rows):
            there = self._slots[at]
            equal = self._equal(there, mine)
            found[rows[equal]] = self._numbers_at(there[equal])
            others = ~equal & (there >= 0)
            rows, at = rows[others], (at[others] + 1) & last
            mine = [column[others] for column in mine]
        return found

    def _numbers_at(self, entry: _Entries) -> Ints:
        return entry.astype(np.int64) if self._are_places else self._numbers.take(entry)

    def _find_or_add(self, entry: _Entries, slot: Ints, rows: Ints, words: Sequence[Words], next_number: int) -> Ints:
        """Settle ``entry`` of these rows, which go from slot to slot until they find their key or an empty one."""
        last = len(self._slots) - 1
        added: list[Ints] = []
        mine = [column[rows] for column in words]
        at = slot[rows]
        while len(rows):
            there = self._slots[at]
            empty = np.flatnonzero(there < 0)
            if len(empty):
                # Of the rows that want the same slot the last one written gets it; the others look again.
                self._slots[at[empty]] = empty
                winners = empty[self._slots[at[empty]] == empty]
                self._add(winners, at, mine, next_number)
                next_number += len(winners)
                added.append(rows[winners])
                there = self._slots[at]
            equal = self._equal(there, mine)
            entry[rows[equal]] = there[equal]
            others = ~equal
            rows, at = rows[others], (at[others] + 1) & last
            mine = [column[others] for column in mine]
        return np.concatenate(added) if added else np.empty(0, np.int64)

    def _add(self, winners: Ints, at: Ints, words: Sequence[Words], next_number: int) -> None:
        start, stop = self._count, self._count + len(winners)
        if stop > len(self._numbers):
            room = max(stop, 2 * len(self._numbers))
            self._known = [np.resize(column, room) for column in self._known]
            self._numbers = np.resize(self._numbers, room)
        for known, column in zip(self._known, words, strict=True):
            known[start:stop] = column[winners]
        self._numbers[start:stop] = np.arange(next_number, next_number + len(winners))
        self._are_places &= next_number == start
        self._slots[at[winners]] = np.arange(start, stop)
        self._count = stop

    def _equal(self, entry: _Entries, words: Sequence[Words]) -> Bools:
        equal: Bools = entry >= 0
        for known, column in zip(self._known, words, strict=True):
            equal &= known.take(entry, mode="clip") == column
        return equal

    def _slot(self, words: Sequence[Words]) -> Ints:
        mixed = words[0] * self._seed
        for column in words[1:]:
            mixed ^= mixed >> _HALF
            mixed += column
            mixed *= _MULTIPLIERS[1]
        mixed ^= mixed >> _HALF
        mixed *= _MULTIPLIERS[2]
        mixed >>= np.uint64(64 - self._bits)
        return mixed.view(np.int64)

    def _grow(self, keys: int) -> None:
        """Make room for this many keys."""
        fewest = (4 * keys - 1).bit_length()
        self._bits = max(self._bits, min(fewest + _SPARE_BITS, _CACHED_BITS), fewest)
        self._tries = 0
        self._place()

    def _place(self) -> None:
        """Find a slot for every key that is known, in an empty table."""
        self._slots = np.full(1 << self._bits, -1, np.int32)
        last = len(self._slots) - 1
        entries = np.arange(self._count)
        at = self._slot([column[: self._count] for column in self._known])
        while len(entries):
            empty = np.flatnonzero(self._slots[at] < 0)
            self._slots[at[empty]] = entries[empty]
            others = self._slots[at] != entries
            entries, at = entries[others], (at[others] + 1) & last
