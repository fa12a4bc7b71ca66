"""What operators forget only when there is much of it, forgotten at every report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stairwise.changes import changing_groups, copies
from stairwise.flow import kept_rows
from stairwise.join import moving_join
from stairwise.state import key_index


@contextmanager
def forgetful() -> Iterator[None]:
    """Nothing is too little to be looked through for what nobody needs."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (changing_groups, copies, key_index, kept_rows, moving_join):
            patch.setattr(module, "_MANY", -(10**6))
        patch.setattr(moving_join, "_FEW", 2)
        patch.setattr(changing_groups, "WORK", 3)
        yield
