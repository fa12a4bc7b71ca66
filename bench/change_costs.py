"""What operators of changes cost: with what moves, whatever windows hold.

Each case is measured in this process against a case that is known to be cheap, in CPU seconds, in turns: the best of a
few runs of each. Generating rows is not timed. On the local engine a case ends in lines, on a shard in reports as they
are published: what these cost is in the figures, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from bench.change_load import Rows, Spent, on_a_shard, on_the_local_engine
from bench.parts import Part
from bench.report import Goal
from stairwise.join.joined_rows import JoinedRows

START = 1_700_000_000_000
RUNS = 3
STREAMS = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;" for name in "ab")
TABLE = "CREATE TABLE n (ts TIMESTAMP, k STRING, x BIGINT) KEY (k) TIMESTAMP BY ts NON RETROACTIVE;"

Driver = Callable[[str, Rows], Spent]
DRIVERS: Mapping[str, Driver] = {"local": on_the_local_engine, "shard": on_a_shard}


def stream(count: int, every: int, keys: int, seed: int, values: int = 10**9) -> pa.RecordBatch:
    """Rows that are so many milliseconds apart."""
    chance = np.random.default_rng(seed)
    names = pa.array([f"key{i:05d}" for i in range(keys)]).take(pa.array(chance.integers(0, keys, count)))
    times = START + np.arange(count) * every
    return pa.RecordBatch.from_arrays(
        [pa.array(times), names, pa.array(chance.integers(0, values, count))], names=["ts", "k", "x"]
    )


def table(keys: int) -> pa.RecordBatch:
    """One update of each key, before the streams begin."""
    names = pa.array([f"key{i:05d}" for i in range(keys)])
    times = pa.array(np.full(keys, START - 1_000))
    return pa.RecordBatch.from_arrays([times, names, pa.array(np.arange(keys))], names=["ts", "k", "x"])


def script(*selects: str) -> str:
    return STREAMS + TABLE + "".join(f"CREATE QUERY q{i} AS {select};" for i, select in enumerate(selects))


def compared(name: str, driver: str, case: tuple[str, Rows], base: tuple[str, Rows], most: float, of: str) -> Goal:
    """A case beside another one, in turns."""
    runs = [(DRIVERS[driver](*case).cpu, DRIVERS[driver](*base).cpu) for _ in range(RUNS)]
    ours, theirs = (min(column) for column in zip(*runs, strict=True))
    ratio = ours / theirs
    return Goal(
        f"{name}, {driver}", f"≤ {most:g} × {of}", f"{ratio:.2f} × ({ours:.2f} of {theirs:.2f} CPU s)", ratio <= most
    )


# ── the cases ───────────────────────────────────────────────────────────────────────────────────────────────


def table_join_goals() -> list[Goal]:
    rows = stream(60_000, 10, 1_000, 1)
    window = "[RANGE 60s SLIDE 500ms]"
    joined = script(f"SELECT a.k, a.x, n.x AS y FROM a {window} JOIN n ON a.k = n.k EMIT ISTREAM")
    plain = script(f"SELECT k, x FROM a {window} EMIT ISTREAM")
    case, base = (joined, {"a": rows, "n": table(1_000)}), (plain, {"a": rows})
    return [compared("join with a NON RETROACTIVE table", d, case, base, 1.5, "the selection") for d in DRIVERS]


def counted_join_goals() -> list[Goal]:
    rows = {"a": stream(4_000, 10, 1_000, 1), "b": stream(4_000, 10, 1_000, 2)}
    select = "SELECT a.k, a.x, b.x AS y FROM a [{0}] JOIN b [{0}] ON a.k = b.k EMIT CHANGES"
    by_rows, by_time = script(select.format("ROWS 1000")), script(select.format("RANGE 10s SLIDE 10ms"))
    return [compared("join over [ROWS 1000]", d, (by_rows, rows), (by_time, rows), 2, "over a RANGE") for d in DRIVERS]


def difference_goals() -> list[Goal]:
    rows = {"a": stream(50_000, 10, 1_000, 1, 1_000), "b": stream(50_000, 10, 1_000, 2, 1_000)}
    select = "SELECT x FROM a [{0}] EXCEPT SELECT x FROM b [{0}] EMIT CHANGES"
    by_rows, by_time = script(select.format("ROWS 10000")), script(select.format("RANGE 100s SLIDE 10ms"))
    return [compared("EXCEPT over [ROWS 10000]", "local", (by_rows, rows), (by_time, rows), 2, "over a RANGE")]


def landmark_goals() -> list[Goal]:
    groups = script("SELECT k, x FROM a [FROM 0 SLIDE 10ms] GROUP BY k, x EMIT CHANGES")
    case, base = ((groups, {"a": stream(count, 10, 1_000, 1)}) for count in (8_000, 4_000))
    return [compared("changes of a landmark's groups, 8,000 rows", d, case, base, 2.4, "4,000") for d in DRIVERS]


def grouped_join_goals() -> list[Goal]:
    rows = {"a": stream(9_000, 3, 100, 1, 1_000), "b": stream(9_000, 3, 100, 2, 1_000)}
    selects = [
        f"SELECT a.k, COUNT(*) AS n, SUM(b.x) AS s FROM a [RANGE {10 - i % 5}s SLIDE 1s] JOIN b [RANGE {10 - i // 5}s"
        " SLIDE 1s] ON a.k = b.k GROUP BY a.k EMIT CHANGES"
        for i in range(15)
    ]
    case, base = (script(*selects), rows), (script(selects[0]), rows)
    return [compared("15 grouped joins of one signature", d, case, base, 2, "one") for d in DRIVERS]


def kept_rows_goal() -> Goal:
    """Joined rows that end out of order: one in a hundred stays for long."""
    chance = np.random.default_rng(1)
    kept = JoinedRows(pa.schema([("x", pa.int64())]))
    every, ends = 1_000, np.zeros(0, np.int64)
    worst = 0.0
    for now in range(0, 200 * every, every):
        life = np.where(chance.random(every) < 0.01, 50 * every, every)
        rows = pa.RecordBatch.from_arrays([pa.array(np.arange(every))], names=["x"])
        kept.add(np.full(every, now), now + life, rows)
        ends = np.append(ends[ends > now], now + life)
        kept.evict(now)
        worst = max(worst, (kept.kept - 4_096) / len(ends))
    return Goal("joined rows that are kept, beyond 4,096", "≤ 2 × those alive", f"{max(worst, 0):.2f} ×", worst <= 2)


def operator_costs() -> Part:
    """All cases, one after the other."""
    cases = (table_join_goals, counted_join_goals, difference_goals, landmark_goals, grouped_join_goals)
    return Part([*(goal for case in cases for goal in case()), kept_rows_goal()])
