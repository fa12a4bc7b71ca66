"""The local engine and shards say what the oracle says: for generated scripts and streams, however they are cut up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import run
from tests.oracle.streams import Stream
from tests.property.generate import Case, cases
from tests.shard_lines import place_in, shard_lines
from tests.unit.local.lines import engine_lines


@given(cases(), st.randoms(use_true_random=False))
def test_engine_gives_the_oracles_lines_however_rows_are_cut_into_batches(case: Case, chance: Any) -> None:
    assert engine_lines(case.script, case.messages, chance=chance) == run(case.script, case.messages)


@given(cases(), st.randoms(use_true_random=False))
def test_operators_go_on_from_their_stores_after_every_batch(case: Case, chance: Any) -> None:
    lines = engine_lines(case.script, case.messages, chance=chance, remake=True)
    assert lines == run(case.script, case.messages)


@given(cases(), st.randoms(use_true_random=False))
def test_queries_evaluated_by_themselves_say_the_same(case: Case, chance: Any) -> None:
    lines = engine_lines(case.script, case.messages, chance=chance, remake=True, sharing=False)
    assert lines == run(case.script, case.messages)


@given(cases(), st.randoms(use_true_random=False))
def test_three_partitions_change_lateness_only(case: Case, chance: Any) -> None:
    lines = engine_lines(case.script, case.messages, chance=chance, partitions=3)
    assert lines == run(case.script, case.messages, place=_in_turn)


@given(cases(), st.randoms(use_true_random=False), st.sampled_from([1, 3]), st.sampled_from([1, 3]))
def test_shards_that_start_again_say_the_same(case: Case, chance: Any, partitions: int, shards: int) -> None:
    lines = shard_lines(case.script, case.messages, chance=chance, partitions=partitions, shards=shards)
    assert lines == run(case.script, case.messages, place=place_in(partitions))


def _in_turn(stream: Stream, number: int, message: Mapping[str, object]) -> int:
    """Without PARTITION BY rows go round in turn."""
    return number % 3
