"""The golden cases on shards that start again from their stores, by the classes that the local engine runs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from services.operators.evaluation import evaluation_of
from stairwise.flow.counted import SharedCounted
from stairwise.local.running import running
from stairwise.plan.published import rows_tell_ends
from stairwise.schema import DAWN
from stairwise.state.store import MemoryStore
from stairwise.wire.plans import Registered
from tests.golden.cases import GoldenCase, golden_cases
from tests.oracle.script import run
from tests.plans import plan_log
from tests.shard_lines import place_in, shard_lines

CASES = [case for case in golden_cases() if "USING LOOKUPS" not in case.script]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_shard_says_the_expected_lines(case: GoldenCase) -> None:
    assert shard_lines(case.script, case.messages, chance=random.Random(1)) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_three_shards_say_what_the_oracle_says_over_several_partitions(case: GoldenCase) -> None:
    lines = shard_lines(case.script, case.messages, chance=random.Random(2), partitions=3, shards=3)
    assert lines == run(case.script, case.messages, place=place_in(3))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_shard_runs_the_classes_of_the_local_engine(case: GoldenCase) -> None:
    for registered in plan_log(case.script).newest.queries.values():
        evaluation: Any = evaluation_of(registered, [registered], MemoryStore())
        operators, expansion = _on_the_local_engine(registered)
        assert _operators(evaluation.operator) == operators
        list(evaluation.advance(DAWN))
        if hasattr(evaluation, "_reports"):  # all others are expanded by who reads them
            expected = (
                "LifetimeExpansion" if rows_tell_ends(registered.query) else expansion
            )  # nobody leaves on the wire
            assert type(evaluation._reports._expansion).__name__ == expected


def _on_the_local_engine(registered: Registered) -> tuple[list[str], str]:
    runners: list[Any]
    queries: list[Any]
    runners, queries = running([registered.query], MemoryStore, lambda run: None, sharing=True)
    return _operators(runners[0]._way.operator), type(queries[0]._expansion).__name__


def _operators(operator: Any) -> list[str]:
    """The class of an operator, and of the one by numbers inside it."""
    inside = _operators(operator._operator) if isinstance(operator, SharedCounted) else []
    return [type(operator).__name__, *inside]
