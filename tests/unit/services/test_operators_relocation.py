"""A checkpoint that lies elsewhere than it did names itself by where it is; what is missing of it is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from services.operators.checkpoint import claim
from services.operators.relocation import relocate
from stairwise.errors import ConfigError


def write(path: Path, text: str = "v1") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.with_name(f".{path.name}.crc").write_bytes(b"crc")


def schema_of(checkpoint: Path, name: str) -> Path:
    return checkpoint / "state" / "0" / "_stateSchema" / "default" / name


def note_of(checkpoint: Path, number: int) -> Path:
    return checkpoint / "state" / "0" / "_metadata" / "v2" / str(number)


def noted(checkpoint: Path, number: int) -> list[str]:
    version, text = note_of(checkpoint, number).read_text().split("\n")
    assert version == "v2"
    said = json.loads(text)
    assert said["operatorInfo"] == {"operatorId": 0}
    (store,) = said["stateStoreInfo"]
    paths: list[str] = store["stateSchemaFilePaths"]
    return paths


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """What Spark leaves of three micro-batches, between which it was started again."""
    checkpoint = tmp_path / "first place" / "checkpoint"
    claim(checkpoint, 1)
    write(checkpoint / "metadata", "{}")
    for name in ("0_9f3c", "2_77aa"):
        write(schema_of(checkpoint, name))
    for number in range(3):
        write(checkpoint / "offsets" / str(number))
        write(checkpoint / "commits" / str(number))
    for number, names in ((0, ["0_9f3c"]), (2, ["0_9f3c", "2_77aa"])):
        paths = [f"file:{schema_of(checkpoint, name)}" for name in names]
        stores = [{"storeName": "default", "stateSchemaFilePaths": paths}]
        text = json.dumps({"operatorInfo": {"operatorId": 0}, "stateStoreInfo": stores})
        write(note_of(checkpoint, number), f"v2\n{text}")
    return checkpoint


def start(checkpoint: Path) -> None:
    claim(checkpoint, 1)
    relocate(checkpoint)


def test_where_it_was_written_nothing_is_touched(written: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in written.rglob("*")}
    start(written)
    assert {path: path.stat().st_mtime_ns for path in written.rglob("*")} == before


def test_moved_it_names_itself_by_where_it_is_now(written: Path, tmp_path: Path) -> None:
    for place in ("second", "third/_stateSchema/state"):
        moved = tmp_path / place / "checkpoint"
        moved.parent.mkdir(parents=True)
        shutil.move(written, moved)
        start(moved)
        assert noted(moved, 0) == [f"file:{schema_of(moved, '0_9f3c')}"]
        assert noted(moved, 2) == [f"file:{schema_of(moved, name)}" for name in ("0_9f3c", "2_77aa")]
        assert {path.name for path in note_of(moved, 0).parent.iterdir()} == {"0", "2"}, "without outdated checksums"
        written = moved


def test_a_relative_directory_is_made_absolute(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written.parent)
    before = noted(written, 2)
    start(Path("checkpoint"))
    assert noted(written, 2) == before


@pytest.mark.parametrize("missing", ["metadata", "offsets", "commits", "commits/2", "offsets/2", "state"])
def test_a_part_that_is_missing_is_named_with_what_to_do(written: Path, missing: str) -> None:
    if missing == "commits/2":
        (written / "commits" / "1").unlink()
    path = written / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ConfigError, match="is not whole") as refused:
        start(written)
    assert "restore all of it from one snapshot" in refused.value.hint


def test_a_schema_that_is_missing_is_named(written: Path) -> None:
    schema_of(written, "2_77aa").unlink()
    with pytest.raises(ConfigError, match=r"2_77aa is missing"):
        start(written)


def test_a_micro_batch_that_was_begun_and_not_committed_is_no_harm(written: Path) -> None:
    write(written / "offsets" / "3")
    start(written)


def test_a_note_of_another_release_is_refused(written: Path) -> None:
    note_of(written, 2).write_text("v3\nnothing")
    with pytest.raises(ConfigError, match="by another release"):
        start(written)
