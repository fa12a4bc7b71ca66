"""Old rows are caught up with in few micro-batches; rows that happen now are not kept waiting."""

from __future__ import annotations

import pytest

from services.operators.pace import APART, MANY_ROWS, Pace
from services.operators.parcel import Parcel
from stairwise.platform.batches import BatchHeaders


def parcel(rows: int = MANY_ROWS, age: int = 60_000, messages: int = 4) -> Parcel:
    """Whose rows had happened ``age`` milliseconds before they came."""
    at = 1_700_000_000_000
    return Parcel("s.s.1", 0, 7, messages, at + age, BatchHeaders(1, 0, rows, at - 1, at - 2, at - 1, at), [], [])


def test_the_next_micro_batch_of_old_rows_waits() -> None:
    pace = Pace(400)
    assert pace.pause([parcel()]) == 0.0, "the first one has waited long enough"
    assert pace.pause([parcel()]) == pytest.approx(APART, abs=0.5)


@pytest.mark.parametrize(
    "following",
    [
        pytest.param(parcel(age=1_000), id="rows that happen now"),
        pytest.param(parcel(rows=MANY_ROWS - 1), id="few rows"),
        pytest.param(parcel(messages=100), id="a full micro-batch"),
        pytest.param(parcel(rows=0), id="none"),
    ],
)
def test_no_other_waits(following: Parcel) -> None:
    pace = Pace(400)
    pace.pause([parcel()])
    assert pace.pause([following]) == 0.0
