"""Which of several groups suits a window best.

    answers        an order on the places that a window could take
    cost           O(1) for a place
    from           seed 000 sections 3.2 and 3.3 (base slide); section 6 asks for a score (nearest slide)

``BASE_SLIDE`` is the seed's: the group whose seed slides the slowest. ``NEAREST_SLIDE`` looks at the windows that would
be neighbours instead, and takes the place where one of them slides most nearly as slowly:

    <9, 4> joins     base 2:  <4, 2>  <6, 2>  ▲                    ratio 2, and every <w, 2> to come is shut out
                     base 1:  <5, 1>  <8, 4>  ▲  <12, 8>           ratio 1, nothing is shut out: the nearest

The group counts of both are in the table of ``bench/groups.py``; the nearest slide makes fewer groups.
"""

from __future__ import annotations

import enum

from stairwise.schema import Duration


class Suitability(enum.Enum):
    """How to choose between groups. Ties go to the other order, then to the older group."""

    BASE_SLIDE = enum.auto()
    NEAREST_SLIDE = enum.auto()

    def rank(self, base: Duration, ratio: int) -> tuple[int, int]:
        """The best place has the smallest: ``base`` is the slide of the group's seed, ``ratio`` the smaller quotient
        of the slides of the window and a neighbour."""
        return (-base, ratio) if self is Suitability.BASE_SLIDE else (ratio, -base)
