"""The naive oracle: what every query must say, read from its text and recomputed from the definitions for each report.

It is plain Python over single values, exact rationals where there is arithmetic. With the engines it shares the grammar
and nothing behind it: names, types, defaults and windows are its own reading of docs/cql.md and docs/semantics.md.
Where an engine and the oracle differ, those pages say who is right.

    literals     decimals, lengths of time and instants
    streams      what CREATE STREAM and CREATE TABLE declare
    rows         a row and its place in the order of its stream
    lateness     which of the arriving rows are on time
    windows      when a window reports and which rows it holds
    calendar     instants as parts, units and texts
    functions    operators and functions of values that are not NULL
    expressions  one expression: its type, and its value over one row
    aggregates   one aggregate over one group
    relations    SELECT, UNION ALL and EXCEPT: columns, and the whole answer at one moment
    query        all result lines of a query
    script       the way in: a script's text and its rows
"""

from tests.oracle.lateness import on_time
from tests.oracle.query import Line
from tests.oracle.rows import OracleRow, from_json
from tests.oracle.script import answer, evaluate, read, run

__all__ = ["Line", "OracleRow", "answer", "evaluate", "from_json", "on_time", "read", "run"]
