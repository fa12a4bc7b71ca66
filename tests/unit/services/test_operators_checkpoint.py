"""A checkpoint of another release or of another number of shards is refused, with what to do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from services.operators import checkpoint, shard, stage2
from services.operators.checkpoint import claim, reach
from services.operators.segments import Ledger
from stairwise.errors import ConfigError
from stairwise.platform.config import Settings


def test_a_new_checkpoint_is_marked_and_can_be_gone_on_from(tmp_path: Path) -> None:
    claim(tmp_path / "checkpoint", 2)
    (tmp_path / "checkpoint" / checkpoint.OF_SPARK).write_text("{}")
    claim(tmp_path / "checkpoint", 2)


def test_another_number_of_shards_is_refused(tmp_path: Path) -> None:
    claim(tmp_path, 2)
    with pytest.raises(ConfigError, match="is of 2 shards, not 3") as refused:
        claim(tmp_path, 3)
    assert str(tmp_path) in str(refused.value)
    assert "move the directory away" in refused.value.hint


@pytest.mark.parametrize(
    "mark", [None, b"{}", b"nothing", b'{"format": 1, "shards": 2}', b'{"format": 2, "shards": 2}']
)
def test_another_release_is_refused(tmp_path: Path, mark: bytes | None) -> None:
    (tmp_path / checkpoint.OF_SPARK).write_text("{}")
    if mark is not None:
        (tmp_path / checkpoint.OURS).write_bytes(mark)
    with pytest.raises(ConfigError, match="by another release") as refused:
        claim(tmp_path, 2)
    assert str(tmp_path) in str(refused.value)
    assert "move the directory away" in refused.value.hint


def test_state_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """The pages of a release whose shards keep something else, in Spark's state."""
    processor = stage2.ShardProcessor(Settings(), tmp_path, claim(tmp_path, 1))
    stamp = SimpleNamespace(get=lambda: ("committed", msgspec.msgpack.encode(Ledger())))
    pages = SimpleNamespace(iterator=lambda: iter([((shard.HEADER,), (b"\x81\xa5other", False))]))
    handle = SimpleNamespace(getValueState=lambda *_: stamp, getMapState=lambda *_: pages)
    processor.init(handle)
    with pytest.raises(ConfigError, match="by another release") as refused:
        processor._shard(0)
    assert str(tmp_path) in str(refused.value)


@pytest.mark.parametrize("there", ["nothing", "another"])
def test_a_worker_that_does_not_share_the_checkpoint_is_told_so(tmp_path: Path, there: str) -> None:
    identity = claim(tmp_path / "driver", 1)
    reach(tmp_path / "driver", identity)
    if there == "another":
        claim(tmp_path / "worker", 1)
    with pytest.raises(ConfigError, match="is not the checkpoint of the driver") as refused:
        reach(tmp_path / "worker", identity)
    assert "STAIRWISE_DIR" in refused.value.hint
