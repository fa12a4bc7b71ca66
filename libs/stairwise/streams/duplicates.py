"""Rows in which a declared field comes twice, found at a price that rows without one hardly notice.

A JSON decoder keeps the last of two equal keys and says nothing, so the keys are counted in the text:

  1. Every key has a colon. If there are no more colons than values, no key came twice: one pass over all rows.
  2. Else (a colon in a string, a null, a field that is not declared) they are counted by some hundred rows, and where
     there are too many, row by row.
  3. If that is most rows, each name in quotes is counted over all of them: no more than there are values of that
     column, and it did not come twice.
  4. What is left, the rows in which a name stands twice or could be spelled with an escape, is read again with all
     its keys.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_COLON = ord(":")
_SHORT_ESCAPES = frozenset('"\\/\b\f\n\r\t')
"""What JSON can spell with a backslash and one letter."""
STEP = 256
"""How many rows are counted together where not all can be."""
MOST = 8
"""If one row in so many is suspect, the names are counted over all rows first."""


class DuplicateFinder:
    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name: json.dumps(name, ensure_ascii=False).encode() for name in names}
        has_short_escape = any(_SHORT_ESCAPES.intersection(name) for name in self._names)
        self._escape = b"\\" if has_short_escape else b"\\u"
        """What stands in a row that may spell a name with an escape."""

    def find(self, text: bytes, raw: Callable[[], Sequence[bytes]], columns: Sequence[pa.Array]) -> dict[int, str]:
        """By number of row, a field that it has twice. ``columns`` are those of the names, in their order."""
        columns = columns[: len(self._names)]
        values = [len(column) - column.null_count for column in columns]
        if _colons(text) <= sum(values):
            return {}
        rows = raw()
        suspects = _suspects(rows, _values(columns, len(rows)))
        doubtful = list(self._names.values())
        if len(suspects) * MOST > len(rows):
            doubtful = [name for name, count in zip(doubtful, values, strict=True) if text.count(name) > count]
            if not doubtful and self._escape not in text:
                return {}
        found = {}
        for number in suspects:
            row = rows[number]
            if any(row.count(quoted) > 1 for quoted in doubtful) or self._escape in row:
                name = self._twice(row)
                if name is not None:
                    found[number] = name
        return found

    def _twice(self, row: bytes) -> str | None:
        """The first declared name that the object has twice."""
        try:
            pairs = json.loads(row, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            return None
        seen: set[str] = set()
        for name, _ in pairs if isinstance(pairs, _Pairs) else ():
            if name in seen and name in self._names:
                return str(name)
            seen.add(name)
        return None


def _colons(text: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _COLON))


def _suspects(rows: Sequence[bytes], values: np.ndarray) -> list[int]:
    """The rows with more colons than values."""
    found: list[int] = []
    for start in range(0, len(rows), STEP):
        some, expected = rows[start : start + STEP], values[start : start + STEP]
        if _colons(b"".join(some)) > expected.sum():
            colons = np.fromiter(map(bytes.count, some, itertools.repeat(b":")), np.int64, len(some))
            found += (np.flatnonzero(colons > expected) + start).tolist()
    return found


def _values(columns: Sequence[pa.Array], count: int) -> np.ndarray:
    """How many values each row has."""
    values = np.zeros(count, np.int64)
    for column in columns:
        values += column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else 1
    return values


class _Pairs(list[tuple[str, Any]]):
    """An object as its keys and values, none of them gone."""
