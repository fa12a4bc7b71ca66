"""Large pages lie in files that are written once, emptied when they are mostly dead, and removed when nobody asks."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from services.operators import segments
from services.operators.segments import RETAINED
from services.operators.spark_pages import LARGE, ROW_BYTES, TINY, TOGETHER
from stairwise.errors import ConfigError
from tests.committed import State


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path)


def large(text: str, times: int = 1) -> bytes:
    return text.encode() * LARGE * times


def batches(state: State, count: int) -> None:
    """Micro-batches on one worker, in which only a small page changes."""
    pages = state.read()
    for number in range(count):
        pages.put(b"small", b"%d" % number)
        state.save(pages)
        pages.collect()


def test_small_pages_stay_in_the_state_and_large_ones_lie_in_one_file(state: State) -> None:
    pages = state.read()
    pages.put(b"small", b"s")
    pages.put(b"a", large("a"))
    pages.put(b"b", large("b", 3))
    assert pages.get(b"a") == large("a")
    state.save(pages)
    assert [file.stat().st_size for file in state.files()] == [4 * LARGE]
    assert sum(len(page) for page, _ in state.versions[-1][0].rows.values()) < 200
    assert list(state.read().scan(b"")) == [(b"a", large("a")), (b"b", large("b", 3)), (b"small", b"s")]
    assert state.read().keys(b"s") == [b"small"]


def test_a_page_that_is_put_as_it_was_is_not_written_again(state: State) -> None:
    for _ in range(2):
        pages = state.read()
        pages.put(b"a", large("a"))
        state.save(pages)
    assert len(state.files()) == 1


def test_a_file_stays_as_long_as_spark_can_go_back_to_a_state_that_names_it(state: State) -> None:
    pages = state.read()
    pages.put(b"a", large("a"))
    state.save(pages)
    pages.delete(b"a")
    state.save(pages)
    batches(state, RETAINED - 1)
    assert state.look(RETAINED)[b"a"] == large("a")
    batches(state, 1)
    assert state.files() == []


def test_what_an_attempt_left_that_was_never_committed_is_removed_later(state: State) -> None:
    batches(state, 1)
    killed = state.read()
    killed.put(b"a", large("x"))
    state.save(killed, is_committed=False)
    pages = state.read()
    pages.put(b"a", large("a"))
    state.save(pages)
    assert len(state.files()) == 2
    batches(state, 2 * RETAINED)
    (file,) = state.files()
    assert file.read_bytes() == large("a")
    assert state.read().get(b"a") == large("a")


def test_what_drivers_left_that_were_killed_at_one_place_again_and_again_does_not_pile_up(state: State) -> None:
    for _ in range(5):
        pages = state.read()
        pages.put(b"a", large("x"))
        state.save(pages, is_committed=False)
        state.restart()
    assert len(state.files()) == 1
    state.read()
    assert state.files() == []


def test_a_file_that_finds_no_room_is_not_left_behind(state: State) -> None:
    pages = state.read()
    pages.put(b"a", large("a"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGE // 2, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            state.save(pages)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert state.files() == []


def test_what_lives_of_a_file_that_is_mostly_dead_is_moved(state: State) -> None:
    pages = state.read()
    pages.put(b"stays", large("s"))
    pages.put(b"changes", large("a", 3))
    state.save(pages)
    (first,) = state.files()
    pages.put(b"changes", large("b", 3))
    state.save(pages)
    batches(state, RETAINED + 2)
    assert first not in state.files()
    assert sum(file.stat().st_size for file in state.files()) == 4 * LARGE
    assert list(state.read().scan(b"")) == [(b"changes", large("b", 3)), (b"small", b"11"), (b"stays", large("s"))]


def test_of_many_small_pages_the_oldest_lie_in_files(state: State) -> None:
    pages = state.read()
    wanted = {b"%05d" % number: b"%d" % (number % 10) * 8 * TINY for number in range(1000)}
    for key, page in wanted.items():
        pages.put(key, page)
        if int(key) % 10 == 9:
            state.save(pages)
            pages.collect()
    in_rows = {key: page for key, (page, is_extent) in state.versions[-1][0].rows.items() if not is_extent}
    assert ROW_BYTES / 2 < sum(map(len, in_rows.values())) <= ROW_BYTES
    assert sorted(in_rows) == sorted(wanted)[-len(in_rows) :]
    assert len(state.files()) <= 1000 / TOGETHER
    assert dict(state.read().scan(b"")) == wanted


def test_many_files_are_made_fewer(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MANY", 16)
    monkeypatch.setattr(segments, "TOGETHER", 8)
    pages = state.read()
    for number in range(60):
        pages.put(b"%03d" % number, large(chr(33 + number)))
        state.save(pages)
        pages.collect()
    batches(state, RETAINED + 1)
    assert len(state.files()) <= 17
    assert [page for _, page in state.read().scan(b"0")] == [large(chr(33 + number)) for number in range(60)]


@pytest.mark.parametrize("loss", ["missing", "too short"])
def test_a_checkpoint_that_is_not_whole_is_refused(state: State, loss: str) -> None:
    pages = state.read()
    pages.put(b"a", large("a"))
    state.save(pages)
    (file,) = state.files()
    if loss == "missing":
        file.unlink()
    else:
        file.write_bytes(b"a")
    with pytest.raises(ConfigError, match=f"is not whole.*{loss}") as refused:
        state.read().get(b"a")
    assert str(file) in str(refused.value)
    assert "move the directory away" in refused.value.hint
