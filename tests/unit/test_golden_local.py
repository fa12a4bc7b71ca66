"""The golden cases on the local engine: over files as `stairwise run` reads them, split, and torn down in between."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest

from stairwise.cql.script import Catalogue
from stairwise.local.driver import run_files
from stairwise.local.output import JsonOutput
from stairwise.streams.partition import partition_of
from tests.golden.cases import GoldenCase, golden_cases
from tests.oracle import run
from tests.oracle.streams import Stream
from tests.unit.local.lines import engine_lines

CASES = golden_cases()
PARTITIONS = 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_run_prints_the_expected_lines(case: GoldenCase) -> None:
    assert _printed(case, partitions=1) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_run_over_three_partitions_prints_what_the_oracle_says(case: GoldenCase) -> None:
    assert _printed(case, PARTITIONS) == run(case.script, case.messages, place=_place)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operators_made_anew_after_every_batch_print_the_expected_lines(case: GoldenCase) -> None:
    assert engine_lines(case.script, case.messages, chance=random.Random(1), remake=True) == case.expected


def _printed(case: GoldenCase, partitions: int) -> list[dict[str, Any]]:
    catalogue = Catalogue()
    catalogue.execute(case.script)
    queries = list(catalogue.queries.values())
    printed = io.BytesIO()
    data = {stream: [str(path)] for stream, path in case.inputs.items()}
    run_files(catalogue.streams, queries, data, JsonOutput(queries, printed), partitions=partitions)
    return [json.loads(line) for line in printed.getvalue().splitlines()]


def _place(stream: Stream, number: int, message: Any) -> int:
    """As ``streams.partition`` splits: by the key's text, else in turn."""
    if stream.partition_by is None:
        return number % PARTITIONS
    key = message.get(stream.partition_by)
    return partition_of(None if key is None else str(key), PARTITIONS)
