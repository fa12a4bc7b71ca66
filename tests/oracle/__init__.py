"""The naive oracle: what every query must say, recomputed from the definitions for each report.

It is plain Python over single values, exact rationals where there is arithmetic, and shares nothing with the
engines but the resolved query. Where an engine and the oracle differ, docs/semantics.md says who is right.

    rows         a row and its place in the order of its stream
    lateness     which of the arriving rows are on time
    windows      when a window reports and which rows it holds
    expressions  one expression over one row
    aggregates   one aggregate over one group
    relations    a query's whole answer at one moment
    query        all result lines of a query
    script       all result lines of a script over raw rows
"""

from tests.oracle.lateness import on_time
from tests.oracle.query import Line, evaluate
from tests.oracle.rows import OracleRow, from_json

__all__ = ["Line", "OracleRow", "evaluate", "from_json", "on_time"]
