"""Keys keep their numbers from batch to batch, whatever they are made of."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stairwise.state.key_table import KeyTable

LONG = "a key that is longer than two words"


@pytest.mark.parametrize("name", ["short", LONG])
def test_keys_keep_their_numbers(name: str) -> None:
    table = KeyTable([pa.string(), pa.float64()])
    for _ in range(3):
        names = pa.array([name, name, name, None])
        numbers = pa.array([float("nan"), 1.5, None, float("nan")])
        assert len(set(table.numbers([names, numbers], 4).tolist())) == 4
        assert len(table) == 4
