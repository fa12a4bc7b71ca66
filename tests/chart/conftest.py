"""The chart, rendered once for each set of values."""

from __future__ import annotations

import pytest

from tests.chart.rendering import VALUE_SETS, Chart


@pytest.fixture(scope="session", params=VALUE_SETS)
def chart(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chart:
    return Chart(VALUE_SETS[request.param], tmp_path_factory.mktemp("chart"))
