"""Groups by the slide of their seed: where a new carrier may find a place.

answers        the groups whose base slide divides a slide or is divided by it; no other group can take the window
cost           update O(s) moves in one block for s different base slides; lookup one vectorised pass over them
from           seed 000 section 3.3, Algorithm 1, line 32
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from stairwise.schema import Duration
from stairwise.subsumption.group import Group


class Bases:
    """The groups of one lag."""

    def __init__(self) -> None:
        self._groups: dict[Duration, dict[int, Group]] = {}
        self._slides: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        """The different base slides, ascending."""

    def __len__(self) -> int:
        return len(self._slides)

    @contextmanager
    def refiling(self, group: Group) -> Iterator[None]:
        """Around every change to the chain of a group: its seed may be another one afterwards, or none."""
        before = group.seed.slide if group.chain else None
        yield
        after = group.seed.slide if group.chain else None
        if before == after:
            return
        if before is not None:
            self._remove(group, before)
        if after is not None:
            self._add(group, after)

    def _add(self, group: Group, base: Duration) -> None:
        if base not in self._groups:
            self._groups[base] = {}
            self._slides = np.insert(self._slides, np.searchsorted(self._slides, base), base)
        self._groups[base][group.number] = group

    def _remove(self, group: Group, base: Duration) -> None:
        del self._groups[base][group.number]
        if not self._groups[base]:
            del self._groups[base]
            self._slides = np.delete(self._slides, np.searchsorted(self._slides, base))

    def related(self, slide: Duration) -> Iterator[Group]:
        bases = self._slides
        for base in bases[(slide % bases == 0) | (bases % slide == 0)].tolist():
            yield from self._groups[base].values()
