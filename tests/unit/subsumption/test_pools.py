"""The pools that the benchmarks draw: within the seed's limits, the same every time."""

from __future__ import annotations

import pytest

from bench.pools import ABRUPT, HOUR, MEDIUM, SECOND, SETTINGS, SMOOTH, Setting


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_slides_and_ranges_keep_to_the_limits_and_reach_them(setting: Setting) -> None:
    pool = setting.pool(5_000, unit=1)
    assert {w.slide for w in pool} == set(range(1, setting.coarsest + 1))
    assert max(w.range for w in pool) == 60
    assert all(w.slide < w.range and w.lag == w.offset == 0 for w in pool)


def test_the_limits_are_the_seeds() -> None:
    assert [(s.name, s.coarsest, s.widest) for s in (SMOOTH, MEDIUM, ABRUPT)] == [
        ("smooth", 10, 60),
        ("medium", 20, 60),
        ("abrupt", 30, 60),
    ]


def test_a_pool_is_the_same_every_time_and_grows_at_its_end() -> None:
    assert SMOOTH.pool(100) == SMOOTH.pool(200)[:100]
    assert SMOOTH.pool(100, seed=1) != SMOOTH.pool(100)
    assert all(w.slide % SECOND == 0 for w in SMOOTH.pool(100))


def test_different_windows_are_all_different_as_far_as_there_are_any() -> None:
    assert len(set(HOUR.different(2_000))) == 2_000
    assert len(set(SMOOTH.different(545))) == 545
    with pytest.raises(ValueError, match="only 545"):
        SMOOTH.different(546)
