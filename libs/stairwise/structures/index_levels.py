"""The levels of a collective index: positions counted from a substream's end, in steps that grow with the distance.

    p = 2        level (size, number)       distances from the end
                 (1, 0) (1, 1)              1 │ 2
                 (2, 0) (2, 1)              3 4 │ 5 6
                 (4, 0) (4, 1)              7 8 9 10 │ 11 12 13 14

Of each level one position is marked, the one that is a multiple of the level's size: a mark moves once in so many
rows. To find keys with n rows or more in a window, the last level is asked that lies within the n newest: if the
n-th is in the window, so is the mark. The mark may be closer to the end than n, by less than 2n/p: that is the
error. (Seed 004 sections 4.1.1 and 4.1.2.)
"""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.expressions.views import Ints

FINE = 32
"""The usual p: an error below a sixteenth."""


@dataclass(frozen=True)
class IndexLevel:
    """Distances above ``behind`` and up to behind + size, one of which is marked."""

    behind: int
    size: int

    def marks(self, length: Ints) -> Ints:
        """The marked position of substreams of these lengths, counted from 1; 0 or less where there is none."""
        return (length - self.behind) // self.size * self.size


def level_for(least: int, p: int = FINE) -> IndexLevel:
    """The last level that lies within the ``least`` newest positions (at least one).

    Every key that has ``least`` positions in a window has the mark there; a key that has the mark there has more
    than ``behind`` positions in it, which is more than least · (1 − 2/p).
    """
    size = 1 << (((least + p) // (p + 1)).bit_length() - 1)
    before = p * (size - 1)
    number = min(p - 1, (least - before) // size - 1)
    return IndexLevel(before + number * size, size)
