"""Expressions: their types, what sugar is spelled out to, how types meet, and what is refused."""

from __future__ import annotations

import pytest

from stairwise.algebra.spelling import spell_expr
from stairwise.expressions.tree import Call, Const, Expr, Field
from stairwise.schema import Type
from tests.unit.cql.market import expect_refusal, select


def resolved(expression: str) -> Expr:
    (output,) = select(f"SELECT {expression} AS x FROM trades").outputs
    return output.expr


QTY = Field(3, "qty", Type.BIGINT)
PRICE = Field(2, "price", Type.DOUBLE)
TICKER = Field(1, "ticker", Type.STRING)
TS = Field(0, "ts", Type.TIMESTAMP)
ODD = Field(4, "odd", Type.BOOLEAN)


def boolean(op: str, *args: Expr) -> Call:
    return Call(op, args, Type.BOOLEAN)


def widened(expr: Expr) -> Call:
    return Call("to_double", (expr,), Type.DOUBLE)


TREES: list[tuple[str, Expr]] = [
    ("qty", QTY),
    ("trades.qty", QTY),
    ('"qty"', QTY),
    ("5", Const(5, Type.BIGINT)),
    ("-5", Const(-5, Type.BIGINT)),
    ("+5", Const(5, Type.BIGINT)),
    ("-9223372036854775808", Const(-(2**63), Type.BIGINT)),
    ("9223372036854775807", Const(2**63 - 1, Type.BIGINT)),
    ("000000000000000000000007", Const(7, Type.BIGINT)),
    ("1.5", Const(1.5, Type.DOUBLE)),
    (".5", Const(0.5, Type.DOUBLE)),
    ("-1e3", Const(-1000.0, Type.DOUBLE)),
    ("2.5E-1", Const(0.25, Type.DOUBLE)),
    ("'it''s'", Const("it's", Type.STRING)),
    ("''", Const("", Type.STRING)),
    ("'Zürich; -- /*'", Const("Zürich; -- /*", Type.STRING)),
    ("TRUE", Const(True, Type.BOOLEAN)),
    ("false", Const(False, Type.BOOLEAN)),
    ("NULL", Const(None, Type.STRING)),
    ("TIMESTAMP '1970-01-01T00:00:01.5Z'", Const(1_500, Type.TIMESTAMP)),
    ("timestamp '1969-12-31T23:59:59.999Z'", Const(-1, Type.TIMESTAMP)),
    ("qty + 1", Call("+", (QTY, Const(1, Type.BIGINT)), Type.BIGINT)),
    ("qty + 1.5", Call("+", (widened(QTY), Const(1.5, Type.DOUBLE)), Type.DOUBLE)),
    ("price * 2", Call("*", (PRICE, Const(2.0, Type.DOUBLE)), Type.DOUBLE)),
    ("qty / price", Call("/", (widened(QTY), PRICE), Type.DOUBLE)),
    ("qty % 2", Call("%", (QTY, Const(2, Type.BIGINT)), Type.BIGINT)),
    ("qty + NULL", Call("+", (QTY, Const(None, Type.BIGINT)), Type.BIGINT)),
    ("NULL - NULL", Call("-", (Const(None, Type.BIGINT),) * 2, Type.BIGINT)),
    ("-qty", Call("neg", (QTY,), Type.BIGINT)),
    ("- -price", Call("neg", (Call("neg", (PRICE,), Type.DOUBLE),), Type.DOUBLE)),
    ("+qty", QTY),
    ("qty > 1", boolean(">", QTY, Const(1, Type.BIGINT))),
    ("qty != 2.0", boolean("<>", QTY, Const(2, Type.BIGINT))),
    ("ticker = NULL", boolean("=", TICKER, Const(None, Type.STRING))),
    ("NULL = ts", boolean("=", Const(None, Type.TIMESTAMP), TS)),
    ("NULL = NULL", boolean("=", Const(None, Type.BIGINT), Const(None, Type.BIGINT))),
    ("ts > 1700000000000", boolean(">", TS, Const(1_700_000_000_000, Type.TIMESTAMP))),
    ("'1970-01-01T00:00:01Z' <= ts", boolean("<=", Const(1_000, Type.TIMESTAMP), TS)),
    ("odd = TRUE", boolean("=", ODD, Const(True, Type.BOOLEAN))),
    ("NOT odd", boolean("not", ODD)),
    ("NOT NULL", boolean("not", Const(None, Type.BOOLEAN))),
    ("odd AND NULL", boolean("and", ODD, Const(None, Type.BOOLEAN))),
    ("ticker IS NULL", boolean("is_null", TICKER)),
    ("ticker IS NOT NULL", boolean("not", boolean("is_null", TICKER))),
    ("NULL IS NULL", boolean("is_null", Const(None, Type.STRING))),
    ("ticker LIKE 'A%'", boolean("like", TICKER, Const("A%", Type.STRING))),
    ("ticker LIKE NULL", Const(None, Type.BOOLEAN)),
    ("qty IN (1, 2, NULL)", boolean("in", QTY, *(Const(v, Type.BIGINT) for v in (1, 2, None)))),
    ("qty IN (1, 2.5, 3.0)", boolean("in", QTY, Const(1, Type.BIGINT), Const(3, Type.BIGINT))),
    ("price IN (1, 2.5, 9007199254740993)", boolean("in", PRICE, Const(1.0, Type.DOUBLE), Const(2.5, Type.DOUBLE))),
    ("ts IN (5, '1970-01-01T00:00:00Z')", boolean("in", TS, Const(5, Type.TIMESTAMP), Const(0, Type.TIMESTAMP))),
    ("COALESCE(qty, 0.5)", Call("coalesce", (widened(QTY), Const(0.5, Type.DOUBLE)), Type.DOUBLE)),
    ("COALESCE(NULL, ticker)", Call("coalesce", (Const(None, Type.STRING), TICKER), Type.STRING)),
    ("COALESCE(NULL)", Call("coalesce", (Const(None, Type.STRING),), Type.STRING)),
    ("ABS(qty)", Call("abs", (QTY,), Type.BIGINT)),
    ("floor(qty)", Call("floor", (widened(QTY),), Type.DOUBLE)),
    ("LENGTH(ticker)", Call("length", (TICKER,), Type.BIGINT)),
    ("ticker || 'x'", Call("concat", (TICKER, Const("x", Type.STRING)), Type.STRING)),
    ("CONCAT(ticker, 'x', ticker)", Call("concat", (TICKER, Const("x", Type.STRING), TICKER), Type.STRING)),
    ("CAST(qty AS DOUBLE)", widened(QTY)),
    ("CAST(ts AS double)", widened(TS)),
    ("CAST(5 AS DOUBLE)", Const(5.0, Type.DOUBLE)),
    ("CAST(NULL AS DOUBLE)", Const(None, Type.DOUBLE)),
    ("CAST(qty AS BIGINT)", QTY),
    (
        "CASE WHEN odd THEN 1 ELSE 2.5 END",
        Call("case", (ODD, Const(1.0, Type.DOUBLE), Const(2.5, Type.DOUBLE)), Type.DOUBLE),
    ),
    (
        "CASE qty WHEN 1 THEN 'one' END",
        Call(
            "case",
            (boolean("=", QTY, Const(1, Type.BIGINT)), Const("one", Type.STRING), Const(None, Type.STRING)),
            Type.STRING,
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "tree"), TREES)
def test_an_expression_resolves_to(expression: str, tree: Expr) -> None:
    found = resolved(expression)
    assert found == tree
    assert isinstance(getattr(found, "value", None), type(getattr(tree, "value", None)))


SPELLED = [
    # precedence and sugar, spelled out
    ("1 + qty * 2 - 3", "(1 + (qty * 2)) - 3"),
    ("(1 + qty) * 2", "(1 + qty) * 2"),
    ("qty - 1 - 2", "(qty - 1) - 2"),
    ("-qty * 2", "(-qty) * 2"),
    ("qty > 1 AND qty < 5 OR NOT odd", "((qty > 1) AND (qty < 5)) OR (NOT odd)"),
    ("NOT qty = 1 AND odd", "(NOT (qty = 1)) AND odd"),
    ("odd AND odd AND odd AND odd", "(odd AND odd) AND (odd AND odd)"),
    ("qty BETWEEN 1 AND 2 AND odd", "((qty >= 1) AND (qty <= 2)) AND odd"),
    ("qty NOT BETWEEN 1 AND 2.5", "NOT ((qty >= 1) AND (qty <= 2))"),
    ("ticker NOT IN ('a', 'b')", "ticker NOT IN ('a', 'b')"),
    ("qty IN (1, qty + 1)", "(qty = 1) OR (qty = (qty + 1))"),
    ("ticker NOT LIKE '_a'", "NOT (ticker LIKE '_a')"),
    ("price + 1 IS NOT NULL", "(price + 1.0) IS NOT NULL"),
    ("CASE WHEN odd THEN qty WHEN NOT odd THEN 1 END", "CASE WHEN odd THEN qty WHEN NOT odd THEN 1 ELSE NULL END"),
    ("ts BETWEEN 1 AND '1970-01-01T00:00:00.002Z'", "(ts >= TIMESTAMP 1) AND (ts <= TIMESTAMP 2)"),
    ("LOWER(ticker || UPPER('x')) = 'ax'", "LOWER(CONCAT(ticker, UPPER('x'))) = 'ax'"),
    ("SQRT(ABS(-qty)) + ROUND(LN(EXP(CEIL(price))))", "SQRT(TO_DOUBLE(ABS(-qty))) + ROUND(LN(EXP(CEIL(price))))"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "spelled"), SPELLED)
def test_sugar_and_precedence_are_spelled_out(expression: str, spelled: str) -> None:
    assert spell_expr(resolved(expression)) == spelled


EXACT = [
    ("qty > 1.5", "qty > 1"),
    ("1.5 > qty", "qty <= 1"),
    ("qty >= 1.5", "qty > 1"),
    ("qty < -1.5", "qty <= -2"),
    ("qty = 1.5", "qty < -9223372036854775808"),
    ("qty <> 1.5", "qty >= -9223372036854775808"),
    ("qty < 9223372036854775808.0", "qty >= -9223372036854775808"),
    ("qty > -9223372036854775808.0", "qty > -9223372036854775808"),
    ("qty IN (0.5, 1e30)", "qty < -9223372036854775808"),
    ("price > 10", "price > 10.0"),
    ("9007199254740993 > price", "price <= 9007199254740992.0"),
    ("price >= 9007199254740993", "price >= 9007199254740994.0"),
    ("price = 9007199254740993", "price < -inf"),
    ("price <> 9007199254740993", "price >= -inf"),
    ("qty = price", "(TO_DOUBLE(qty) = price) AND ((EXCESS(qty) = 0) OR (price IS NULL))"),
    ("price > qty", "CASE WHEN TO_DOUBLE(qty) = price THEN EXCESS(qty) < 0 ELSE TO_DOUBLE(qty) < price END"),
]


@pytest.mark.parametrize(("expression", "spelled"), EXACT)
def test_an_integer_and_a_double_compare_as_the_numbers_they_are(expression: str, spelled: str) -> None:
    assert spell_expr(resolved(expression)) == spelled


REFUSED = [
    # expression with the offending text marked, message, hint
    ("«prise»", "no column 'prise'", "did you mean 'price'?"),
    ("trades.«nothing»", "stream 'trades' has no column 'nothing'", "known: ts, ticker"),
    ("«trade».price", "no 'trade' in FROM", "did you mean 'trades'?"),
    ("«TICKER»", "no column 'TICKER'", "did you mean 'ticker'?"),
    ("«9223372036854775808»", "does not fit into 64 bits", "1.0e20"),
    ("-«9223372036854775809»", "does not fit into 64 bits", ""),
    ("«1e309»", "too large for a DOUBLE", ""),
    ("1 + «ticker»", "+ needs numbers, and this is of type STRING", ""),
    ("«odd» * 2", "* needs numbers, and this is of type BOOLEAN", ""),
    ("«ts» - 5", "- needs numbers, and this is of type TIMESTAMP", "CAST(... AS DOUBLE)"),
    ("-«ticker»", "the sign - needs numbers", ""),
    ("qty = «ticker»", "BIGINT and STRING do not go together", "single"),
    ("ticker = «5»", "STRING and BIGINT do not go together", "single"),
    ("ts > «qty»", "TIMESTAMP and BIGINT do not go together", "literals"),
    ("ts > «1.5»", "TIMESTAMP and DOUBLE do not go together", "literals"),
    ("ts > «'noon'»", "'noon' is no instant", ""),
    ("«odd» < TRUE", "BOOLEANs have no order", ""),
    ("«qty» AND odd", "AND needs a condition, and this is of type BIGINT", ""),
    ("NOT «'x'»", "NOT needs a condition", ""),
    ("qty IN (1, «'x'»)", "BIGINT and STRING do not go together", ""),
    ("«qty» LIKE 'x'", "LIKE needs a STRING", ""),
    ("ticker LIKE «ticker»", "pattern of LIKE is not a constant", ""),
    ("ticker LIKE «5»", "pattern of LIKE is not a constant", ""),
    ("CASE WHEN «qty» THEN 1 END", "WHEN needs a condition", ""),
    ("CASE WHEN odd THEN 1 ELSE «'x'» END", "results of CASE", ""),
    ("CASE qty WHEN «'x'» THEN 1 END", "do not go together", ""),
    ("COALESCE(qty, «ticker»)", "COALESCE", ""),
    ("«lenght»(ticker)", "no function 'lenght'", "did you mean 'LENGTH'?"),
    ("«COUNTT»(*)", "no function 'COUNTT'", "did you mean 'COUNT'?"),
    ("«LENGTH()»", "LENGTH takes one argument, not 0", ""),
    ("«LENGTH(ticker, ticker)»", "LENGTH takes one argument, not 2", ""),
    ("LENGTH(«qty»)", "LENGTH needs a STRING", ""),
    ("SQRT(«ticker»)", "SQRT needs numbers", ""),
    ("ABS(«ts»)", "ABS needs numbers", "CAST"),
    ("«LENGTH(*)»", "neither DISTINCT nor *", ""),
    ("«LENGTH(DISTINCT ticker)»", "neither DISTINCT nor *", ""),
    ("«qty» || 'x'", "|| needs a STRING, and this is of type BIGINT", ""),
    ("CAST(odd AS «TIMESTAMP»)", "no cast from BOOLEAN to TIMESTAMP", ""),
    ("ts::«BOOLEAN»", "no cast from TIMESTAMP to BOOLEAN", ""),
    ("CAST(price AS «VARCHAR»)", "no type 'VARCHAR' for a value", "STRING"),
    ("price::«INT»", "no type 'INT' for a value", "BIGINT"),
    ("«IFNULL»(price, 0)", "no function 'IFNULL'", "write COALESCE(a, b, …)"),
    ("«strftime»(ts, '%H')", "no function 'strftime'", "write FORMAT_TIMESTAMP"),
    ("«arg_max»(ts, price)", "no function 'arg_max'", "write MAX_BY(x, y)"),
    ("ROUND(price, «qty»)", "ROUND takes a constant here", ""),
    ("ROUND(price, «99»)", "ROUND cannot take 99 here", ""),
    ("«ROUND(price, 1, 2)»", "ROUND takes 1 or 2 arguments, not 3", ""),
    ("DATE_TRUNC(«'fortnight'», ts)", "DATE_TRUNC cannot take 'fortnight' here", ""),
    ("DATE_TRUNC('day', «qty»)", "DATE_TRUNC needs a TIMESTAMP", "CAST(milliseconds AS TIMESTAMP)"),
    ("EXTRACT(«age» FROM ts)", "EXTRACT cannot take age here", ""),
    ("«SUBSTRING(ticker FROM 2)»", "SUBSTRING takes its arguments with commas", ""),
    ("SUBSTRING(ticker, «0»)", "SUBSTRING cannot take 0 here", ""),
    ("REGEXP_MATCH(ticker, «'('»)", "REGEXP_MATCH cannot take '(' here", ""),
    ("TO_TIMESTAMP(ticker, «'%H:%M'»)", "TO_TIMESTAMP cannot take '%H:%M' here", ""),
    ("FORMAT_TIMESTAMP(ts, «'%Q'»)", "FORMAT_TIMESTAMP cannot take '%Q' here", ""),
    ("GREATEST(«odd», odd)", "GREATEST needs a number, a STRING or a TIMESTAMP", ""),
    ("GREATEST(qty, «ticker»)", "BIGINT and STRING do not go together", ""),
    ("«ABS(qty) FILTER (WHERE odd)»", "FILTER is for aggregates", "CASE WHEN"),
    ("«ABS»(qty AS DOUBLE)", "ABS takes no AS", "behind the bracket"),
    ("«DATE '2026-01-31'»", "no literal DATE", "TIMESTAMP"),
    ("TIMESTAMP «'2026-01-31'»", "is no instant", ""),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "message", "hint"), REFUSED)
def test_an_expression_that_makes_no_sense_is_refused(expression: str, message: str, hint: str) -> None:
    expect_refusal(f"SELECT\n  {expression} AS x FROM trades", message, hint)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31t12:00:00.1z", 1_769_860_800_100),
        ("2026-01-31 13:30:00+01:30", 1_769_860_800_000),
        ("2026-01-31T07:00:00-05:00", 1_769_860_800_000),
        ("2024-02-29T23:59:59.999999999Z", 1_709_251_199_999),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ("0001-01-01T00:00:00+23:59", -62_135_683_140_000),
    ],
)
def test_instants_are_rfc_3339(text: str, millis: int) -> None:
    assert resolved(f"TIMESTAMP '{text}'") == Const(millis, Type.TIMESTAMP)
