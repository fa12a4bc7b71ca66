"""The golden cases are what the oracle says, and they cover the language."""

from __future__ import annotations

import pytest

from stairwise.algebra.query import Except, Union, inputs, selects
from stairwise.cql.script import Catalogue
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
)
from tests.golden.cases import GoldenCase, golden_cases
from tests.oracle import run

CASES = golden_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_expected_lines_are_those_of_the_oracle(case: GoldenCase) -> None:
    assert run(case.script, case.messages) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_an_input_for_each_stream_and_no_other(case: GoldenCase) -> None:
    catalogue = Catalogue()
    catalogue.execute(case.script)
    assert set(case.inputs) == set(catalogue.streams)


def test_the_cases_cover_every_window_aggregate_and_emit() -> None:
    catalogue = Catalogue()
    windows, aggregates, emits, operations = set(), set(), set(), set()
    for case in CASES:
        catalogue = Catalogue()
        catalogue.execute(case.script)
        for query in catalogue.queries.values():
            windows |= {type(source.window) for source in inputs(query.relation)}
            aggregates |= {spec.function for select in selects(query.relation) for spec in select.aggregates}
            emits.add(query.emit.value)
            operations.add(type(query.relation))
    exact = {"COUNT", "SUM", "AVG", "MIN", "MAX", "VARIANCE", "STDDEV", "QUANTILE", "FIRST", "LAST"}
    exact |= {"REGR_SLOPE", "REGR_INTERCEPT", "TOP", "FREQUENT", "RECURRING"}
    assert len(CASES) >= 60
    assert windows >= {type(None), TimeWindow, LandmarkWindow, RowsWindow, PartitionedWindow, MultiWindow}
    assert RelationWindow in windows
    assert aggregates >= exact
    assert emits == {"RSTREAM", "ISTREAM", "DSTREAM", "CHANGES"}
    assert operations >= {Union, Except}
