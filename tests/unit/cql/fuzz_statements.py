"""Good scripts with every clause of the language, to be mutated and to be explained."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cql.market import DECLARATIONS

GOOD = [
    *filter(str.strip, DECLARATIONS.split(";")),
    """SELECT ticker, SUM(qty) AS volume, AVG(price) FROM trades [RANGE 60 SECONDS SLIDE 10 SECONDS]
       WHERE price > 10 GROUP BY ticker HAVING SUM(qty) > 1000 EMIT RSTREAM""",
    "SELECT DISTINCT ticker FROM trades [RANGE 5 MINUTES SLIDE 1 MINUTE LAG 5s OFFSET 2s] EMIT CHANGES",
    """SELECT a.ticker, a.price AS trade, b.price AS quote FROM trades [RANGE 30 SECONDS] a
       JOIN quotes [RANGE 10 SECONDS] b ON a.ticker = b.ticker AND a.price BETWEEN b.price - 1 AND b.price + 1""",
    """SELECT ticker FROM trades [RANGE 60s]
       EXCEPT (SELECT ticker FROM halted [RANGE 1h] UNION ALL SELECT word FROM words [NOW])""",
    """SELECT ts, ticker || '-' || 'it''s' AS "a b" FROM trades
       WHERE odd OR NOT ticker LIKE 'A%_' AND qty IN (1, -2, NULL)""",
    "SELECT CASE qty WHEN 1 THEN 'one' ELSE UPPER(ticker) END c, CAST(qty AS DOUBLE) / 1e3 d FROM trades",
    "SELECT COUNT(*), MEDIAN(qty), QUANTILE(price, 0.9) FROM trades [FROM '2026-01-31T12:00:00Z' UNTIL 1800000000000]",
    """SELECT ticker FROM trades [PARTITION BY ticker, odd ROWS 5 SLIDE 10 SECONDS]
       WHERE ts > TIMESTAMP '2026-01-31T12:00:00Z'""",
    "SELECT ticker, TOP(qty, 3) FROM trades [RANGES 4m, 2m, 1m SLIDES 2m, 1m, 1m] GROUP BY ticker",
    "SELECT AVG(qty) FROM trades [RANGES 4m, 2m SLIDES 2m, 1m CONTINUOUS HORIZON 3m WEIGHTED BY (1, 0.5)]",
    "CREATE QUERY x AS SELECT * FROM trades [ROWS 100 SLIDE 10] -- comment\n WHERE /* inside */ price IS NOT NULL",
    "EXPLAIN SELECT COUNT(DISTINCT ticker) FROM trades [TUMBLE 1 DAY]; DROP QUERY x; SEAL STREAM trades",
    "ALTER STREAM trades SET LATENESS 5 SECONDS, IDLE AFTER DEFAULT, RETAIN 1 HOUR AT MOST 64 MB",
]  # fmt: skip

GOLDEN = [
    path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[2] / "golden").glob("*/query.cql"))
]
"""The scripts of the golden cases, each with its own streams."""
