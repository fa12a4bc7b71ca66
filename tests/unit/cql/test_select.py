"""SELECT as a whole: inputs, groups, aggregates, names of columns, EMIT, set operations, and what is refused."""

from __future__ import annotations

import pytest

from stairwise.algebra.query import Emit, Except, Input, Select, Union, Widen
from stairwise.algebra.spelling import spell_aggregate, spell_expr
from stairwise.expressions.tree import Aggregate, Call, Const, Field, Output
from stairwise.schema import Type
from stairwise.windows.spec import TimeWindow
from tests.unit.cql.market import STREAMS, expect_refusal, query, relation, select

TRADES, QUOTES = STREAMS["trades"], STREAMS["quotes"]


def names(text: str) -> list[str]:
    return [output.name for output in relation(text).outputs]


def test_a_grouped_query_in_full() -> None:
    text = """SELECT ticker, SUM(qty) AS volume, AVG(price) FROM trades [RANGE 60 SECONDS SLIDE 10 SECONDS]
      WHERE price > 10 GROUP BY ticker HAVING SUM(qty) > 1000"""
    found = query(text)
    assert found.relation == Select(
        inputs=(Input(TRADES, TimeWindow(60_000, 10_000), "trades"),),
        outputs=(
            Output("ticker", Field(0, "ticker", Type.STRING)),
            Output("volume", Field(1, "agg0", Type.HUGEINT)),
            Output("AVG(price)", Field(2, "agg1", Type.DOUBLE)),
        ),
        where=Call(">", (Field(2, "price", Type.DOUBLE), Const(10.0, Type.DOUBLE)), Type.BOOLEAN),
        keys=(Field(1, "ticker", Type.STRING),),
        aggregates=(
            Aggregate("SUM", (Field(3, "qty", Type.BIGINT),), Type.HUGEINT),
            Aggregate("AVG", (Field(2, "price", Type.DOUBLE),), Type.DOUBLE),
        ),
        having=Call(
            ">",
            (
                Field(1, "agg0", Type.HUGEINT),
                Call("to_hugeint", (Const(1000, Type.BIGINT),), Type.HUGEINT),
            ),
            Type.BOOLEAN,
        ),
    )
    assert (found.name, found.emit, found.text) == ("q1", Emit.RSTREAM, text)
    assert found.streams == (TRADES,)


def test_a_join_puts_the_columns_of_its_inputs_side_by_side() -> None:
    found = select(
        """SELECT a.ticker, a.price AS trade, b.price AS quote FROM trades [RANGE 30s] a
           JOIN quotes [RANGE 10s] AS b ON a.ticker = b.ticker WHERE level > 0"""
    )
    assert [i.alias for i in found.inputs] == ["a", "b"]
    assert [o.expr for o in found.outputs] == [
        Field(1, "ticker", Type.STRING),
        Field(2, "price", Type.DOUBLE),
        Field(7, "price", Type.DOUBLE),
    ]
    assert found.where == Call(
        "and",
        (
            Call("=", (Field(1, "ticker", Type.STRING), Field(6, "ticker", Type.STRING)), Type.BOOLEAN),
            Call(">", (Field(8, "level", Type.BIGINT), Const(0, Type.BIGINT)), Type.BOOLEAN),
        ),
        Type.BOOLEAN,
    )


def test_a_comma_and_join_on_mean_the_same() -> None:
    comma = select("SELECT a.qty FROM trades [NOW] a, quotes [NOW] b WHERE a.ticker = b.ticker")
    assert comma == select("SELECT a.qty FROM trades [NOW] a INNER JOIN quotes [NOW] b ON a.ticker = b.ticker")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM trades", ["ts", "ticker", "price", "qty", "odd"]),
        ("SELECT b.*, a.qty FROM trades [NOW] a, halted [NOW] b", ["at", "ticker", "qty"]),
        ("SELECT *, n + 1 FROM words [NOW], halted [NOW]", ["word", "n", "at", "ticker", "n + 1"]),
        ("SELECT qty+1, (qty), qty AS q, trades.price, -  qty FROM trades", ["qty+1", "qty", "q", "price", "- qty"]),
        ("SELECT COUNT(*), count(*) FROM trades [NOW]", ["COUNT(*)", "count(*)"]),
        ("SELECT AVG(\n  price ) FROM trades [NOW]", ["AVG( price )"]),
        ('SELECT qty "a b", price "from" FROM trades', ["a b", "from"]),
        ("SELECT TOP(qty, 3), ticker FROM trades [NOW] GROUP BY ticker", ["item", "count", "ticker"]),
        ("SELECT qty AS a FROM trades [NOW] UNION ALL SELECT level AS b FROM quotes [NOW]", ["a"]),
    ],
)  # fmt: skip
def test_columns_are_named_by_alias_by_column_or_by_text(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_group_rows_are_keys_then_aggregates_each_once() -> None:
    found = select(
        """SELECT SUM(qty) / COUNT(*) + level AS x, UPPER(r.ticker) AS t, COUNT(*) AS n, SUM(qty) + SUM( qty )
           FROM quotes [NOW] q, trades [NOW] r WHERE q.ticker = r.ticker
           GROUP BY level, UPPER(r.ticker), level"""
    )
    assert [spell_expr(k) for k in found.keys] == ["level", "UPPER(ticker)"]
    assert [spell_aggregate(a) for a in found.aggregates] == ["SUM(qty)", "COUNT(*)"]
    x, t, n, twice = (o.expr for o in found.outputs)
    assert spell_expr(x) == "(TO_DOUBLE(agg0) / TO_DOUBLE(agg1)) + TO_DOUBLE(level)"
    assert t == Field(1, "key1", Type.STRING)
    assert n == Field(3, "agg1", Type.BIGINT)
    assert spell_expr(twice) == "TO_DOUBLE(agg0) + TO_DOUBLE(agg0)"


def test_aliases_of_the_list_serve_in_group_by_and_having_but_a_column_goes_first() -> None:
    found = select(
        """SELECT FLOOR(price) AS bucket, SUM(qty) AS volume, COUNT(*) AS qty FROM trades [NOW]
           GROUP BY bucket HAVING volume > 5 AND MAX(qty) > 1"""
    )
    assert [spell_expr(k) for k in found.keys] == ["FLOOR(price)"]
    assert [spell_aggregate(a) for a in found.aggregates] == ["SUM(qty)", "COUNT(*)", "MAX(qty)"]
    assert found.having is not None
    assert spell_expr(found.having) == "(agg0 > TO_HUGEINT(5)) AND (agg2 > 1)"


AGGREGATES = [
    ("COUNT(*)", "COUNT(*)", Type.BIGINT),
    ("COUNT(price)", "COUNT(price)", Type.BIGINT),
    ("COUNT(DISTINCT ticker)", "COUNT(DISTINCT ticker)", Type.BIGINT),
    ("SUM(qty)", "SUM(qty)", Type.HUGEINT),
    ("SUM(price)", "SUM(price)", Type.DOUBLE),
    ("sum(qty * 2)", "SUM(qty * 2)", Type.HUGEINT),
    ("SUM(CASE WHEN odd THEN 1 ELSE 0 END)", "SUM(CASE WHEN odd THEN 1 ELSE 0 END)", Type.HUGEINT),
    ("AVG(qty)", "AVG(qty)", Type.DOUBLE),
    ("MIN(qty)", "MIN(qty)", Type.BIGINT),
    ("MAX(ts)", "MAX(ts)", Type.TIMESTAMP),
    ("MIN(ticker)", "MIN(ticker)", Type.STRING),
    ("VARIANCE(qty)", "VARIANCE(qty)", Type.DOUBLE),
    ("STDDEV(price)", "STDDEV(price)", Type.DOUBLE),
    ("QUANTILE(qty, 0.99)", "QUANTILE(qty, 0.99)", Type.DOUBLE),
    ("QUANTILE(qty, 1)", "QUANTILE(qty, 1)", Type.DOUBLE),
    ("MEDIAN(price)", "QUANTILE(price, 0.5)", Type.DOUBLE),
    ("FIRST(odd)", "FIRST(odd)", Type.BOOLEAN),
    ("LAST(ticker)", "LAST(ticker)", Type.STRING),
    ("REGR_SLOPE(price)", "REGR_SLOPE(price)", Type.DOUBLE),
    ("REGR_INTERCEPT(qty)", "REGR_INTERCEPT(qty)", Type.DOUBLE),
    ("APPROX_QUANTILE(price, 0)", "APPROX_QUANTILE(price, 0)", Type.DOUBLE),
    ("APPROX_COUNT_DISTINCT(ticker)", "APPROX_COUNT_DISTINCT(ticker)", Type.BIGINT),
]  # fmt: skip


@pytest.mark.parametrize(("call", "spelled", "type_"), AGGREGATES)
def test_an_aggregate_has_its_type(call: str, spelled: str, type_: Type) -> None:
    found = select(f"SELECT {call} AS x FROM trades [NOW]")
    (aggregate,) = found.aggregates
    assert (spell_aggregate(aggregate), aggregate.type) == (spelled, type_)
    assert found.outputs == (Output("x", Field(0, "agg0", type_)),)


@pytest.mark.parametrize(
    ("call", "spelled", "type_"),
    [
        ("TOP(ticker, 3)", "TOP(ticker, 3)", Type.STRING),
        ("FREQUENT(qty, 0.1)", "FREQUENT(qty, 0.1)", Type.BIGINT),
        ("RECURRING(ts)", "RECURRING(ts)", Type.TIMESTAMP),
    ],
)
def test_item_functions_yield_keys_item_and_count(call: str, spelled: str, type_: Type) -> None:
    found = select(f"SELECT odd AS o, {call} FROM trades [RANGES 2s, 1s SLIDES 1s, 1s] GROUP BY odd")
    (aggregate,) = found.aggregates
    assert (spell_aggregate(aggregate), aggregate.type) == (spelled, type_)
    assert found.outputs == (
        Output("o", Field(0, "odd", Type.BOOLEAN)),
        Output("item", Field(1, "item", type_)),
        Output("count", Field(2, "count", Type.BIGINT)),
    )


def test_weighted_aggregates_are_doubles() -> None:
    window = "[RANGES 2s, 1s SLIDES 1s, 1s WEIGHTED BY (1, .5)]"
    found = select(f"SELECT COUNT(*) AS n, SUM(qty) AS s, AVG(qty) AS a FROM trades {window}")
    assert {a.type for a in found.aggregates} == {Type.DOUBLE}


@pytest.mark.parametrize(
    ("text", "emit"),
    [
        ("SELECT COUNT(*) FROM trades [NOW]", Emit.RSTREAM),
        ("SELECT ticker FROM trades [NOW] GROUP BY ticker", Emit.RSTREAM),
        ("SELECT DISTINCT ticker FROM trades [NOW]", Emit.CHANGES),
        ("SELECT ticker FROM trades [NOW]", Emit.CHANGES),
        ("SELECT a.qty FROM trades [NOW] a, trades [NOW] b", Emit.CHANGES),
        ("SELECT COUNT(*) AS n FROM trades [NOW] UNION ALL SELECT COUNT(*) FROM quotes [NOW]", Emit.CHANGES),
        ("SELECT ticker FROM trades [NOW] EXCEPT SELECT ticker FROM quotes [NOW]", Emit.CHANGES),
        ("SELECT ticker FROM trades", Emit.RSTREAM),
        ("SELECT ticker FROM trades EMIT ISTREAM", Emit.RSTREAM),
        ("SELECT ticker FROM trades EMIT CHANGES", Emit.RSTREAM),
        ("SELECT COUNT(*) FROM trades [NOW] emit dstream", Emit.DSTREAM),
        ("SELECT COUNT(*) FROM trades [NOW] EMIT CHANGES", Emit.CHANGES),
        ("SELECT ticker FROM trades [NOW] EMIT ISTREAM", Emit.ISTREAM),
        ("(SELECT ticker FROM trades [NOW]) EMIT RSTREAM", Emit.RSTREAM),
    ],
)
def test_emit_and_its_default(text: str, emit: Emit) -> None:
    assert query(text).emit is emit


def test_distinct_is_marked() -> None:
    assert select("SELECT DISTINCT ticker FROM trades [NOW]").distinct
    assert not select("SELECT ticker FROM trades [NOW]").distinct


def test_set_operations_group_from_the_left_unless_brackets_say_otherwise() -> None:
    a, b, c = (f"SELECT {x} FROM trades [NOW]" for x in ("qty", "qty + 1", "qty + 2"))
    left = relation(f"{a} UNION ALL {b} EXCEPT {c}")
    assert isinstance(left, Except)
    assert isinstance(left.left, Union)
    right = relation(f"{a} UNION ALL ({b} EXCEPT ALL {c})")
    assert isinstance(right, Union)
    assert isinstance(right.right, Except)


def test_both_sides_of_a_set_operation_meet_in_the_wider_type() -> None:
    found = relation(
        """SELECT qty, NULL AS x, SUM(qty) AS s FROM trades [NOW] GROUP BY qty
           UNION ALL SELECT level, ticker, level AS l FROM quotes [NOW]
           UNION ALL SELECT price, NULL, qty FROM trades [NOW]"""
    )
    assert isinstance(found, Union)
    assert [o.type for o in found.left.outputs] == [Type.DOUBLE, Type.STRING, Type.HUGEINT]
    assert [o.type for o in found.right.outputs] == [Type.DOUBLE, Type.STRING, Type.HUGEINT]
    assert isinstance(found.left, Union)
    assert [o.type for o in found.left.right.outputs] == [Type.DOUBLE, Type.STRING, Type.HUGEINT]


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT DISTINCT qty FROM trades [NOW]",
        "SELECT DISTINCT MAX(qty) FROM trades [NOW] GROUP BY ticker",
        "SELECT qty FROM trades [NOW] EXCEPT SELECT level FROM quotes [NOW]",
    ],
)
def test_what_distinct_and_except_have_compared_is_widened_behind_them(inner: str) -> None:
    found = relation(f"({inner}) UNION ALL SELECT price FROM trades [NOW]")
    assert isinstance(found, Union)
    assert isinstance(found.left, Widen)
    assert found.left.input == relation(inner)
    assert [o.type for o in found.outputs] == [Type.DOUBLE]


def test_a_null_in_the_list_of_distinct_takes_the_type_of_the_other_side() -> None:
    found = relation("SELECT DISTINCT NULL AS n FROM trades [NOW] UNION ALL SELECT price FROM trades [NOW]")
    assert isinstance(found, Union)
    assert isinstance(found.left, Select)
    assert [o.type for o in found.outputs] == [Type.DOUBLE]


REFUSED = [
    # statement with the offending text marked, message, hint
    ("SELECT a FROM «trade»", "no stream 'trade'", "did you mean 'trades'?"),
    ("SELECT «ticker» FROM trades [NOW] a, quotes [NOW] b", "several columns", "write a.ticker or b.ticker"),
    ("SELECT «trades».qty FROM trades a", "no 'trades' in FROM", "it is called 'a' here"),
    ("SELECT «b».* FROM trades a", "no 'b' in FROM", "known: a"),
    ("SELECT 1 AS x FROM trades [NOW], «trades» [NOW]", "two inputs are called 'trades'", "AS trades2"),
    ("SELECT 1 AS x FROM trades [NOW] a, quotes [NOW] «a»", "two inputs are called 'a'", "AS a2"),
    ("SELECT 1 AS x FROM trades [NOW] «left» JOIN quotes [NOW] b ON TRUE", "no LEFT JOIN", "joins are inner"),
    ("SELECT a.qty FROM trades [NOW] a JOIN quotes [NOW] b ON a.ticker = «c».ticker JOIN halted [NOW] c ON TRUE",
     "no 'c' in FROM", ""),
    ("SELECT a.qty FROM trades [NOW] a JOIN quotes [NOW] b ON «b.level»", "ON needs a condition", ""),
    ("SELECT a.qty FROM trades [NOW] a JOIN quotes [NOW] b ON «SUM(qty)» > 1", "no place in ON", ""),
    ("SELECT qty, «qty» FROM trades", "two columns are called 'qty'", "AS"),
    ("SELECT qty AS a, price AS «a» FROM trades", "two columns are called 'a'", "as a2"),
    ("SELECT «*» FROM trades [NOW] a, quotes [NOW] b", "two columns are called 'ts'", "AS"),
    ("SELECT 1 AS x FROM trades WHERE «qty»", "WHERE needs a condition", ""),
    ("SELECT 1 AS x FROM trades [NOW] WHERE «SUM(qty)» > 1", "the aggregate SUM has no place in WHERE", "HAVING"),
    ("SELECT SUM(«MAX(qty)») FROM trades [NOW]", "MAX has no place in an aggregate", "do not nest"),
    ("SELECT 1 AS x FROM trades [NOW] GROUP BY «COUNT(*)»", "no place in GROUP BY", ""),
    ("SELECT «COUNT(*)» AS n FROM trades [NOW] GROUP BY n", "no place in GROUP BY", ""),
    ("SELECT COUNT(*) FROM trades [NOW] GROUP BY «1»", "GROUP BY a constant", "name a column"),
    ("SELECT «price», COUNT(*) FROM trades [NOW]", "'price' is neither in GROUP BY nor", "LAST(price)"),
    ("SELECT ticker, qty + «price» FROM trades [NOW] GROUP BY ticker, qty", "'price' is neither", "add price"),
    ("«SELECT» * FROM trades [NOW] GROUP BY ticker", "'ts' is neither in GROUP BY", ""),
    ("SELECT COUNT(*) FROM trades [NOW] HAVING «price» > 1", "'price' is neither", ""),
    ("SELECT ticker FROM trades [NOW] HAVING «qty > 1»", "HAVING without groups", "WHERE"),
    ("SELECT COUNT(*) FROM trades [NOW] HAVING «COUNT(*)»", "HAVING needs a condition", ""),
    ("SELECT «SUM(*)» FROM trades [NOW]", "SUM needs a column", "COUNT(*)"),
    ("SELECT «SUM(DISTINCT qty)» FROM trades [NOW]", "SUM takes no DISTINCT", ""),
    ("SELECT «SUM()» FROM trades [NOW]", "SUM takes one argument, not 0", ""),
    ("SELECT «COUNT(qty, price)» FROM trades [NOW]", "COUNT takes one argument, not 2", ""),
    ("SELECT SUM(«ticker») FROM trades [NOW]", "SUM needs a number, and this is of type STRING", ""),
    ("SELECT AVG(«ts») FROM trades [NOW]", "AVG needs a number", "CAST"),
    ("SELECT MIN(«odd») FROM trades [NOW]", "MIN needs a number, a STRING or a TIMESTAMP", ""),
    ("SELECT SUM(«NULL») FROM trades [NOW]", "SUM of NULL", ""),
    ("SELECT «QUANTILE(qty)» FROM trades [NOW]", "QUANTILE takes two arguments, not 1", ""),
    ("SELECT QUANTILE(qty, «1.5») FROM trades [NOW]", "cannot be 1.5", ""),
    ("SELECT QUANTILE(qty, «price») FROM trades [NOW]", "not a constant", ""),
    ("SELECT TOP(qty, «0») FROM trades [NOW]", "cannot be 0", ""),
    ("SELECT TOP(qty, «2.5») FROM trades [NOW]", "cannot be 2.5", ""),
    ("SELECT FREQUENT(qty, «1») FROM trades [NOW]", "cannot be 1", ""),
    ("SELECT TOP(qty, 3) AS «t» FROM trades [NOW]", "two columns, item and count", ""),
    ("SELECT 1 + «TOP(qty, 3)» FROM trades [NOW]", "stands alone", ""),
    ("SELECT TOP(qty, 3), «COUNT(*)» FROM trades [NOW]", "no place in a list with TOP", "group keys"),
    ("SELECT TOP(qty, 3), «TOP(price, 3)» FROM trades [NOW]", "no place in a list with TOP", ""),
    ("SELECT TOP(qty, 3), «*» FROM trades [NOW]", "only group keys", ""),
    ("SELECT TOP(qty, 3), «ticker» FROM trades [NOW]", "'ticker' is neither", ""),
    ("SELECT TOP(qty, 3) FROM trades [NOW] HAVING «COUNT(*) > 1»", "HAVING has no place beside TOP", ""),
    ("SELECT TOP(qty, 3), odd AS «count» FROM trades [NOW] GROUP BY odd", "two columns are called 'count'", ""),
    ("SELECT COUNT(*) FROM «trades»", "aggregates and GROUP BY without a window", "FROM trades [RANGE"),
    ("SELECT ticker FROM «trades» GROUP BY ticker", "without a window", ""),
    ("SELECT DISTINCT ticker FROM «trades»", "DISTINCT without a window", ""),
    ("SELECT a.qty FROM «trades» a, quotes b", "a join without a window", ""),
    ("SELECT a.qty FROM trades [NOW] a, «quotes» b", "'quotes' has no window", "quotes [RANGE"),
    ("SELECT qty FROM trades EMIT «DSTREAM»", "nothing ever leaves", "ISTREAM"),
    ("SELECT qty FROM trades «EXCEPT» SELECT qty FROM trades", "EXCEPT without windows", ""),
    ("SELECT qty FROM trades [NOW] «UNION» ALL SELECT qty FROM trades", "with a window and one without", ""),
    ("SELECT qty FROM trades [NOW] «UNION» ALL SELECT qty, price FROM trades [NOW]",
     "the left side has 1 and the right side 2 columns", ""),
    ("SELECT qty FROM trades [NOW] «EXCEPT» SELECT ticker FROM trades [NOW]", "column 1, 'qty', is BIGINT", ""),
    ("SELECT ticker FROM trades «[FROM 0]»", "grows without end", "RETAIN"),
    ("SELECT DISTINCT ticker FROM trades «[FROM 0]»", "grows without end", "RETAIN"),
    ("SELECT COUNT(*) FROM trades [NOW] a, quotes «[UNTIL 5]» b", "grows without end", "RETAIN"),
    ("SELECT COUNT(*) FROM trades «[FROM 0 RETAIN 5 ROWS]»", "RETAIN keeps rows", ""),
    ("SELECT COUNT(*) FROM trades [NOW] a, quotes «[RANGES 2s SLIDES 1s]» b", "no place in a join", ""),
    ("SELECT ticker FROM trades [RANGES 2s SLIDES 1s] «UNION» ALL SELECT ticker FROM quotes [NOW]", "no place", ""),
    ("SELECT ticker FROM trades «[RANGES 2s SLIDES 1s WEIGHTED BY (1)]»", "WEIGHTED BY needs an aggregate", ""),
    ("SELECT «MAX(qty)» FROM trades [RANGES 2s SLIDES 1s WEIGHTED BY (1)]", "MAX cannot be weighted", "COUNT"),
    ("SELECT «level» FROM quotes [RANGES 2s SLIDES 1s]", "adds a column 'level' by itself", "as level2"),
    ("SELECT «level», COUNT(*) FROM trades [RANGES 2s SLIDES 1s]", "no column 'level'", ""),
    ("SELECT COUNT(*) FILTER (WHERE «qty») FROM trades [NOW]", "FILTER needs a condition", ""),
    ("SELECT COUNT_IF(«qty») FROM trades [NOW]", "COUNT_IF needs a condition, and this is of type BIGINT", ""),
    ("SELECT «CORR(qty)» FROM trades [NOW]", "CORR takes two arguments, not 1", ""),
    ("SELECT MAX_BY(qty, «odd») FROM trades [NOW]", "MAX_BY needs a number, a STRING or a TIMESTAMP", ""),
    ("SELECT STRING_AGG(ticker, «qty») FROM trades [NOW]", "STRING_AGG takes a constant here", ""),
    ("SELECT STRING_AGG(«qty», ',') FROM trades [NOW]", "STRING_AGG needs a STRING", ""),
    ("SELECT COUNT(*), «WINDOW_END» FROM trades [ROWS 5]", "WINDOW_END is of one time window", ""),
    ("SELECT COUNT(*) FROM trades [NOW] GROUP BY «window_start»", "no place in GROUP BY", "need no GROUP BY"),
    ("SELECT COUNT(*) FROM trades [NOW] WHERE «window_start» > 0", "no place in WHERE", ""),
    ("SELECT «WINDOW_END() FILTER (WHERE odd)» FROM trades [NOW]", "whatever the rows", "leave FILTER out"),
    ("SELECT «MAX_BY(qty, ts)» FROM trades [RANGES 2s SLIDES 1s WEIGHTED BY (1)]", "cannot be weighted", "COUNT"),
    ("SELECT qty FROM trades [NOW] «ORDER BY» qty", "choose among the groups", "[ROWS n]"),
    ("SELECT DISTINCT COUNT(*) AS n FROM trades [NOW] «LIMIT» 3", "choose among the groups", ""),
    ("SELECT TOP(qty, 3) FROM trades [NOW] «ORDER BY» item", "choose among the groups", ""),
    ("SELECT COUNT(*) AS n FROM trades [NOW] ORDER BY «qty»", "'qty' is neither in GROUP BY", ""),
    ("SELECT COUNT(*) AS n FROM trades [NOW] ORDER BY «1»", "a constant orders nothing", "name a column"),
    ("SELECT COUNT(*) AS n FROM trades [NOW] ORDER BY n «down»", "'down' does not fit here", ""),
    ("SELECT COUNT(*) AS n FROM trades [NOW] LIMIT «0»", "LIMIT cannot be 0", ""),
    ("SELECT qty FROM trades [NOW] UNION ALL SELECT qty FROM trades [NOW] «LIMIT» 3", "of a single SELECT", ""),
    ("SELECT odd, COUNT(*) FROM trades [NOW] GROUP BY odd HAVING COUNT(*) > 1 LIMIT 5 EMIT CHANGES «USING LOOKUPS»",
     "is for the keys", ""),
    ("SELECT qty AS «_time» FROM trades", "the time of the report stands under that name", "as time"),
    ("SELECT COUNT(*) AS «_diff» FROM trades [NOW]", "cannot be called '_diff'", "as diff"),
    ("SELECT RECURRING(qty) FROM «trades» [RANGE 1m]", "at every level, and this window has none", "TOP(x, k)"),
    ("SELECT RECURRING(a.qty) FROM «trades» [NOW] a, quotes [NOW] b", "this window has none", ""),
    ("SELECT ticker FROM trades [NOW] EMIT CHANGES «USING LOOKUPS»", "USING LOOKUPS is for the keys", "leave"),
    ("SELECT ticker, COUNT(*) FROM trades [ROWS 9] GROUP BY ticker HAVING COUNT(*) > 1 EMIT CHANGES «USING LOOKUPS»",
     "over a sliding window", ""),
    ("SELECT ticker, COUNT(*) FROM trades [NOW] GROUP BY ticker EMIT CHANGES «USING LOOKUPS»", "that meet HAVING", ""),
    ("SELECT COUNT(*) FROM trades [NOW] HAVING COUNT(*) > 1 EMIT CHANGES «USING LOOKUPS»", "is for the keys", ""),
    ("SELECT ticker FROM trades [NOW] UNION ALL SELECT ticker FROM quotes [NOW] EMIT CHANGES «USING LOOKUPS»",
     "of one stream", ""),
    ("SELECT ticker, COUNT(*) FROM trades [NOW] GROUP BY ticker HAVING COUNT(*) > 1 EMIT RSTREAM «USING LOOKUPS»",
     "shows changes, not RSTREAM", "EMIT CHANGES"),
    ("SELECT ticker, COUNT(*) FROM trades [NOW] GROUP BY ticker HAVING COUNT(*) > 1 «USING» LOOKUPS",
     "does not fit here", "behind EMIT CHANGES"),
]  # fmt: skip


def test_a_standing_filter_is_a_query_that_lookups_evaluate() -> None:
    grouped = "GROUP BY ticker HAVING COUNT(*) > 1 EMIT CHANGES"
    text = f"SELECT ticker, COUNT(*) AS using FROM trades [RANGE 9s] lookups {grouped}"
    plain, filtered = query(text), query(f"{text} using lookups")
    assert (plain.by_lookups, filtered.by_lookups) == (False, True)
    assert filtered.relation == plain.relation


@pytest.mark.parametrize(("text", "message", "hint"), REFUSED)
def test_a_query_that_makes_no_sense_is_refused(text: str, message: str, hint: str) -> None:
    expect_refusal(text, message, hint)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ticker FROM trades [FROM 0 RETAIN 5 ROWS]",
        "SELECT COUNT(*) FROM trades [FROM 0]",
        "SELECT COUNT(*) FROM trades [NOW] a, quotes [UNTIL 5 RETAIN 9 ROWS] b",
        "SELECT COUNT(*) FROM trades [NOW] HAVING TRUE",
        "SELECT level FROM quotes [RANGES 2s SLIDES 1s CONTINUOUS HORIZON 1s]",
        "SELECT ticker FROM trades UNION ALL SELECT ticker FROM quotes WHERE level > 1",
        "SELECT 1 AS x, COUNT(*) FROM trades [NOW]",
        "SELECT DISTINCT COUNT(*) FROM trades [NOW] GROUP BY ticker",
    ],
)
def test_a_query_that_makes_sense_is_taken(text: str) -> None:
    query(text)
