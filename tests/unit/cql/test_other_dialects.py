"""Statements from other systems' manuals, over streams of the same names: the error says what the word is here."""

from __future__ import annotations

import pytest

from stairwise.cql.script import Catalogue
from stairwise.errors import StatementError

DECLARATIONS = """
CREATE STREAM orders (ts TIMESTAMP, id BIGINT, customer STRING, price DOUBLE, quantity BIGINT, paid BOOLEAN)
  TIMESTAMP BY ts;
CREATE STREAM shipments (ts TIMESTAMP, id BIGINT, order_id BIGINT) TIMESTAMP BY ts;
CREATE TABLE rates (currency STRING, rate DOUBLE) KEY (currency);
"""

FLINK = [
    ("CREATE TABLE o (id BIGINT, ts TIMESTAMP(3))", "types have no length"),
    ("CREATE TABLE o (id BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)", "LATENESS 5 SECONDS"),
    ("CREATE TABLE o (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)", "KEY (column, ...) behind its columns"),
    ("CREATE TABLE o (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'orders')", "there is no WITH (...)"),
    ("CREATE TABLE o (id BIGINT) PARTITIONED BY (id)", "PARTITION BY column"),
    ("CREATE TABLE o (id BIGINT METADATA FROM 'offset')", "a type and perhaps NOT NULL"),
    ("CREATE TABLE o (tags ARRAY<STRING>)", "split lists and objects"),
    ("CREATE TABLE o (p DECIMAL(10, 2))", "types have no length"),
    ("CREATE TEMPORARY TABLE o (id BIGINT)", "CREATE STREAM or CREATE TABLE"),
    ("CREATE VIEW v AS SELECT id FROM orders", "CREATE QUERY name AS SELECT"),
    ("CREATE TEMPORARY VIEW v AS SELECT id FROM orders", "CREATE QUERY name AS SELECT"),
    ("CREATE CATALOG c", "one name space"),
    ("CREATE DATABASE d", "one name space"),
    ("CREATE FUNCTION f AS 'com.F'", "docs/cql.md"),
    ("USE CATALOG c", "one name space"),
    ("SET 'table.exec.state.ttl' = '1 h'", "nothing to set"),
    ("INSERT INTO sink SELECT id FROM orders", "stairwise publish"),
    (
        "SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTES))",
        "[TUMBLE 1 MINUTE]",
    ),
    (
        "SELECT * FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' MINUTES))",
        "SLIDE 10 SECONDS",
    ),
    ("SELECT * FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' MINUTES))", "there is no CUMULATE"),
    ("SELECT * FROM TABLE(SESSION(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' MINUTES))", "no session windows"),
    ("SELECT COUNT(*) FROM orders [NOW] GROUP BY TUMBLE(ts, 60000)", "[TUMBLE 1 MINUTE]"),
    ("SELECT TUMBLE_START(ts, 5) FROM orders [NOW]", "write WINDOW_START"),
    ("SELECT window_time, COUNT(*) FROM orders [NOW] GROUP BY id", "write WINDOW_END"),
    ("SELECT id FROM orders WHERE ts > ts - INTERVAL '1' HOUR", "write the duration alone"),
    ("SELECT SUM(price) OVER (PARTITION BY id ORDER BY ts) FROM orders", "not behind an aggregate"),
    ("SELECT ROW_NUMBER() AS n FROM orders", "not behind an aggregate"),
    ("SELECT SUM(price) OVER w FROM orders WINDOW w AS (PARTITION BY id)", "not behind an aggregate"),
    ("SELECT * FROM orders MATCH_RECOGNIZE (PATTERN (A B))", "no patterns of rows"),
    ("SELECT id FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON TRUE", "NON RETROACTIVE"),
    ("SELECT id FROM orders [NOW] LEFT JOIN shipments [NOW] ON TRUE", "joins are inner"),
    ("SELECT id FROM orders [NOW] FULL OUTER JOIN shipments [NOW] ON TRUE", "joins are inner"),
    ("SELECT id FROM orders CROSS JOIN UNNEST(tags) AS t", "split lists and objects"),
    ("SELECT COUNT(*) FROM orders [NOW] GROUP BY GROUPING SETS ((id), ())", "a query for each set of keys"),
    ("SELECT COUNT(*) FROM orders [NOW] GROUP BY ROLLUP (id)", "a query for each set of keys"),
    ("SELECT PROCTIME() AS t FROM orders", "a query sees no clock"),
    ("SELECT CURRENT_TIMESTAMP AS t FROM orders", "a query sees no clock"),
    ("SELECT id FROM orders WHERE id IN (SELECT id FROM shipments)", "does not stand inside another"),
    ("SELECT id FROM (SELECT id FROM orders) [ROWS 3]", "does not stand inside another"),
    ("WITH o AS (SELECT id FROM orders) SELECT id FROM o", "no common table expressions"),
    ("SELECT LISTAGG(customer, ',') FROM orders [NOW]", "write STRING_AGG(s, separator)"),
    ("SELECT id FROM orders [NOW] INTERSECT SELECT id FROM shipments [NOW]", "there is no INTERSECT"),
    ("SELECT id FROM orders [NOW] UNION SELECT id FROM shipments [NOW]", "only UNION ALL"),
    ("SELECT id FROM orders [NOW] ORDER BY id", "inside a report is fixed"),
    ("SELECT TRY_CAST(customer AS BIGINT) AS x FROM orders", "CAST gives NULL"),
    ("SELECT TIMESTAMPDIFF(1, ts, ts) AS d FROM orders", "calculate in milliseconds"),
]
KSQLDB = [
    ("CREATE STREAM o (id INT KEY, v DOUBLE) WITH (kafka_topic='o', value_format='json')", "KEY (column, ...)"),
    ("CREATE STREAM o (id BIGINT) WITH (kafka_topic='o', value_format='json')", "there is no WITH (...)"),
    ("CREATE STREAM o (v INT)", "write BIGINT"),
    ("CREATE STREAM o (v VARCHAR)", "write STRING"),
    ("CREATE STREAM o (v STRUCT<a INT>)", "split lists and objects"),
    ("CREATE TABLE t (id BIGINT PRIMARY KEY, v DOUBLE)", "KEY (column, ...)"),
    ("CREATE STREAM d AS SELECT id FROM orders EMIT CHANGES", "CREATE QUERY name AS SELECT"),
    ("CREATE TABLE c AS SELECT id, COUNT(*) FROM orders GROUP BY id", "CREATE QUERY name AS SELECT"),
    ("CREATE OR REPLACE STREAM o (id BIGINT)", "only queries are replaced"),
    ("CREATE SOURCE CONNECTOR c", "CREATE STREAM or CREATE TABLE"),
    ("SELECT id, COUNT(*) FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id", "[TUMBLE 1 MINUTE]"),
    ("SELECT id FROM orders WINDOW HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS)", "SLIDE 10 SECONDS"),
    ("SELECT id FROM orders WINDOW SESSION (60 SECONDS) GROUP BY id", "no session windows"),
    ("SELECT o.id FROM orders o JOIN shipments s WITHIN 1 HOUR ON o.id = s.order_id", "its own window"),
    ("SELECT COUNT(*) FROM orders [NOW] EMIT FINAL", "every report is final"),
    ("SELECT WINDOWSTART FROM orders [NOW]", "write WINDOW_START"),
    ("SELECT ROWTIME FROM orders", "the column of TIMESTAMP BY"),
    ("SELECT LATEST_BY_OFFSET(price) FROM orders [NOW]", "write LAST(x)"),
    ("SELECT TOPK(price, 3) FROM orders [NOW]", "write TOP(x, k)"),
    ("SELECT UCASE(customer) AS c FROM orders", "write UPPER(s)"),
    ("SELECT IFNULL(price, 0) AS p FROM orders", "write COALESCE"),
    ("SELECT STRINGTOTIMESTAMP(customer, 'yyyy') AS t FROM orders", "write TO_TIMESTAMP"),
    ("SELECT EXTRACTJSONFIELD(customer, '$.a') AS a FROM orders", "split lists and objects"),
    ("SELECT customer->name FROM orders", "split lists and objects"),
    ("SHOW TOPICS", "STREAMS, TABLES or QUERIES"),
    ("LIST STREAMS", "SHOW STREAMS"),
    ("PRINT orders FROM BEGINNING", "stairwise subscribe"),
    ("DESCRIBE EXTENDED orders", "write DESCRIBE name"),
    ("TERMINATE q1", "DROP QUERY name"),
    ("INSERT INTO orders (id) VALUES (1)", "stairwise publish"),
]
MATERIALIZE_AND_RISINGWAVE = [
    ("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders", "CREATE QUERY name AS SELECT"),
    ("CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC 't')", "CREATE STREAM or CREATE TABLE"),
    ("CREATE SINK s FROM v INTO KAFKA CONNECTION k", "stairwise subscribe"),
    ("CREATE INDEX i ON orders (id)", "there are no indexes"),
    ("SUBSCRIBE TO v", "stairwise subscribe NAME"),
    ("DROP MATERIALIZED VIEW v", "CREATE QUERY name AS SELECT"),
    ("SELECT * FROM TUMBLE(orders, ts, INTERVAL '1 MINUTE')", "[TUMBLE 1 MINUTE]"),
    ("SELECT * FROM HOP(orders, ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)", "SLIDE 10 SECONDS"),
    ("SELECT id FROM orders [NOW] EMIT ON WINDOW CLOSE", "every report is final"),
    ("SELECT id FROM orders [NOW] ORDER BY price DESC LIMIT 10", "[ROWS n] holds the last n rows"),
    ("SELECT id FROM orders [NOW] LIMIT 10", "[ROWS n] holds the last n rows"),
    ("SELECT id, COUNT(*) FROM orders [NOW] GROUP BY id ORDER BY id NULLS LAST", "NULLs come first"),
    ("SELECT DISTINCT ON (id) id FROM orders [NOW]", ""),
    ("SELECT ARRAY_AGG(id) FROM orders [NOW]", "write STRING_AGG"),
    ("SELECT id FROM orders WHERE EXISTS (SELECT id FROM shipments)", "does not stand inside another"),
    ("DELETE FROM orders WHERE id = 1", "publish a new row"),
    ("UPDATE rates SET rate = 1", "publish a new row"),
]
POSTGRES_AND_DUCKDB = [
    ('SELECT id FROM orders WHERE customer = "Ann"', "strings stand in 'single' quotes"),
    ("SELECT `id` FROM orders", "double"),
    ("SELECT id FROM orders WHERE customer ILIKE 'a%'", "LOWER(s) LIKE"),
    ("SELECT id FROM orders WHERE customer ~ '^a'", "REGEXP_MATCH"),
    ("SELECT id FROM orders WHERE customer SIMILAR TO 'a%'", "REGEXP_MATCH"),
    ("SELECT id FROM orders WHERE id == 1", "a single ="),
    ("SELECT id FROM orders WHERE paid && paid", "write AND"),
    ("SELECT id FROM orders WHERE paid IS TRUE", "the condition alone"),
    ("SELECT id FROM orders WHERE id IS DISTINCT FROM 1", "IS NULL AND"),
    ("SELECT id FROM orders WHERE id ISNULL", "IS NULL or IS NOT NULL"),
    ("SELECT id::int FROM orders", "write BIGINT"),
    ("SELECT CAST(id AS VARCHAR) FROM orders", "write STRING"),
    ("SELECT CAST(id AS VARCHAR(20)) FROM orders", "types have no length"),
    ("SELECT DATE_PART('hour', ts) AS h FROM orders", "write EXTRACT(hour FROM t)"),
    ("SELECT EXTRACT('hour' FROM ts) AS h FROM orders", "without quotes"),
    ("SELECT TO_CHAR(ts, 'YYYY') AS y FROM orders", "write FORMAT_TIMESTAMP"),
    ("SELECT strftime(ts, '%Y') AS y FROM orders", "write FORMAT_TIMESTAMP"),
    ("SELECT NOW() AS t FROM orders", "a query sees no clock"),
    ("SELECT ts AT TIME ZONE 'UTC' AS t FROM orders", "instants are in UTC"),
    ("SELECT TRIM(BOTH ' ' FROM customer) AS c FROM orders", "TRIM(s), LTRIM(s) or RTRIM(s)"),
    ("SELECT SUBSTR(customer, 1) AS c FROM orders", "write SUBSTRING(s, from, count)"),
    ("SELECT arg_max(id, price) FROM orders [NOW]", "write MAX_BY(x, y)"),
    ("SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY price) FROM orders [NOW]", ""),
    ("SELECT approx_distinct(id) FROM orders [NOW]", "write APPROX_COUNT_DISTINCT(x)"),
    ("SELECT * EXCLUDE (id) FROM orders", "name the columns"),
    ("SELECT id FROM orders [NOW] QUALIFY id > 1", "not behind an aggregate"),
    ("SELECT id FROM orders USING SAMPLE 10", "USING LOOKUPS"),
    ("SELECT id FROM orders [NOW] a ASOF JOIN rates b ON TRUE", "NON RETROACTIVE"),
    ("SELECT TOP 10 id FROM orders", "TOP(x, k)"),
    ("SELECT IIF(paid, 1, 0) AS x FROM orders", "CASE WHEN"),
    ("SELECT ISNULL(price, 0) AS p FROM orders", "write COALESCE"),
    ("SELECT LEN(customer) AS n FROM orders", "write LENGTH(s)"),
    ("SELECT GETDATE() AS t FROM orders", "a query sees no clock"),
    ("BEGIN", "as a whole or not at all"),
]
WINDOWS = [
    ("SELECT COUNT(*) FROM orders [TUMBLE 1 MIN]", "write MINUTE"),
    ("SELECT COUNT(*) FROM orders [TUMBLE 30 SEC]", "write SECOND"),
    ("SELECT COUNT(*) FROM orders [TUMBLE 2 HR]", "write HOUR"),
    ("SELECT COUNT(*) FROM orders [TUMBLE 1 MONTH]", "MINUTES, HOURS and DAYS"),
    ("SELECT COUNT(*) FROM orders [TUMBLING 1 MINUTE]", "[TUMBLE 1 MINUTE]"),
    ("SELECT COUNT(*) FROM orders [HOPPING 1 MINUTE]", "SLIDE 10 SECONDS"),
    ("SELECT COUNT(*) FROM orders [SLIDING 1 MINUTE]", "SLIDE 10 SECONDS"),
    ("SELECT COUNT(*) FROM orders [SESSION 1 MINUTE]", "no session windows"),
    ("SELECT COUNT(*) FROM orders [SIZE 1 MINUTE]", "[TUMBLE 1 MINUTE]"),
    ("SELECT COUNT(*) FROM orders [RANGE UNBOUNDED]", "[FROM '2026-01-31T00:00:00Z']"),
    ("SELECT COUNT(*) FROM orders [RANGE 1 MINUTE PRECEDING]", "not behind an aggregate"),
    ("SELECT COUNT(*) FROM orders [RANGE 1 MINUTE SLIDE BY 10 SECONDS]", "write SLIDE 10 SECONDS"),
    ("ISTREAM(SELECT id FROM orders [NOW])", "EMIT stands at the end"),
    ("SELECT ISTREAM id FROM orders [NOW]", "EMIT stands at the end"),
    ("SELECT id FROM orders\nSELECT id FROM shipments", "put one before SELECT"),
    ("CREATE STREAM o (id BIGINT)\nCREATE QUERY q AS SELECT id FROM o", "put one before CREATE"),
    ("CREATE STREAM o (id BIGINT) TIMESTAMP BY id LATENESS 1 MIN", "write MINUTE"),
]


@pytest.mark.parametrize(
    ("statement", "hint"), [*FLINK, *KSQLDB, *MATERIALIZE_AND_RISINGWAVE, *POSTGRES_AND_DUCKDB, *WINDOWS]
)
def test_a_statement_of_another_system_is_refused_with_what_it_is_here(statement: str, hint: str) -> None:
    catalogue = Catalogue()
    catalogue.execute(DECLARATIONS)
    with pytest.raises(StatementError) as caught:
        catalogue.execute(statement)
    assert hint in caught.value.hint, str(caught.value)
