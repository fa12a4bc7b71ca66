"""The local engine: rows per CPU second over twenty sliding windows, and memory over long files.

A year of minute data is 525,600 rows. Each measurement is a process of its own, and the best of three counts, since
other processes on the machine cost CPU time too (they share its caches).
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.report import PLOTS, Goal, conclude

YEAR = 525_600
START = 1_704_067_200_000
MINUTE = 60_000
WINDOWS = (
    ("1 HOUR", "10 MINUTES"),
    ("1 HOUR", "1 HOUR"),
    ("2 HOURS", "15 MINUTES"),
    ("3 HOURS", "1 HOUR"),
    ("4 HOURS", "30 MINUTES"),
    ("6 HOURS", "1 HOUR"),
    ("6 HOURS", "2 HOURS"),
    ("8 HOURS", "1 HOUR"),
    ("12 HOURS", "1 HOUR"),
    ("12 HOURS", "6 HOURS"),
    ("1 DAY", "10 MINUTES"),
    ("1 DAY", "1 HOUR"),
    ("1 DAY", "1 DAY"),
    ("2 DAYS", "1 HOUR"),
    ("3 DAYS", "6 HOURS"),
    ("7 DAYS", "1 HOUR"),
    ("7 DAYS", "1 DAY"),
    ("14 DAYS", "6 HOURS"),
    ("30 DAYS", "1 HOUR"),
    ("30 DAYS", "1 DAY"),
)
STREAM = "CREATE STREAM s (ts TIMESTAMP, price DOUBLE, qty BIGINT) TIMESTAMP BY ts LATENESS 5 MINUTES;\n"
LIST = "SELECT COUNT(*) AS n, SUM(qty) AS volume, AVG(price) AS mean, MAX(price) AS top"

SHARED, ALONE = "shared", "alone"
"""Queries of a signature together, as ever, or each by itself, to compare."""

RATE_GOAL = 200_000
GROWTH_GOAL = 1.15
START_GOAL = 2.0


@dataclass(frozen=True)
class Measured:
    rows: int
    cpu: float
    lines: int
    peak: float
    """Megabytes."""
    memory: list[tuple[int, float]]
    """Megabytes in use by bytes read."""

    @property
    def rate(self) -> float:
        return self.rows / self.cpu


def script(queries: int) -> str:
    chosen = WINDOWS[:: len(WINDOWS) // queries][:queries]
    return STREAM + "".join(f"{LIST} FROM s [RANGE {w} SLIDE {b}];\n" for w, b in chosen)


def generate(path: Path, rows: int) -> None:
    chance = random.Random(1)
    price = 100.0
    with path.open("w") as file:
        for i in range(rows):
            price += chance.uniform(-1, 1)
            file.write(f'{{"ts":{START + i * MINUTE},"price":{price:.2f},"qty":{chance.randint(1, 1000)}}}\n')


def measure(data: Path, queries: int, how: str = SHARED) -> Measured:
    """In a process of its own, so that memory and CPU time are its own too."""
    command = [sys.executable, "-m", "bench.local", "--measure", str(data), str(queries), how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return Measured(**{**found, "memory": [tuple(point) for point in found["memory"]]})


def measure_here(data: Path, queries: int, how: str) -> None:
    import pyarrow as pa

    from stairwise.cql.script import Catalogue
    from stairwise.local.driver import run_files
    from stairwise.local.output import JsonOutput

    pa.array([1])  # the first array imports pandas where it is installed: start-up, not running
    catalogue = Catalogue()
    catalogue.execute(script(queries))
    running = list(catalogue.queries.values())
    memory: list[tuple[int, float]] = []
    begin = time.process_time()
    with open(os.devnull, "wb") as nowhere:
        summary = run_files(
            catalogue.streams,
            running,
            {"s": [str(data)]},
            JsonOutput(running, nowhere),
            sharing=how == SHARED,
            progress=lambda position: memory.append((position, _megabytes())),
        )
    cpu = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = sum(counts.lines for _, counts, _ in summary.queries)
    print(json.dumps({"rows": summary.streams[0].on_time, "cpu": cpu, "lines": lines, "peak": peak, "memory": memory}))


def _megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def start_up(directory: Path) -> float:
    """CPU seconds of the whole command over three rows."""
    (directory / "small.cql").write_text(script(1))
    generate(directory / "small.jsonl", 3)
    data = f"s={directory / 'small.jsonl'}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "stairwise.cli.main", "run", str(directory / "small.cql"), "--data", data]
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def plot(rates: dict[str, dict[int, float]], one: Measured, four: Measured) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "stairwise"
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
    for how, found in rates.items():
        left.plot(list(found), [rate / 1000 for rate in found.values()], marker="o", label=how)
    left.axhline(RATE_GOAL / 1000, linestyle="--", color="grey")
    left.set(xlabel="queries", ylabel="thousand rows per CPU second", ylim=(0, None))
    left.legend()
    for name, measured in (("one year", one), ("four years", four)):
        right.plot([p / 2**20 for p, _ in measured.memory], [m for _, m in measured.memory], label=name)
    right.set(xlabel="megabytes read", ylabel="megabytes of memory", ylim=(0, None))
    right.legend()
    figure.tight_layout()
    PLOTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOTS / "local.svg", metadata={"Date": None})


def best(data: Path, queries: int, how: str = SHARED, times: int = 3) -> Measured:
    return max((measure(data, queries, how) for _ in range(times)), key=lambda measured: measured.rate)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        year, years = directory / "year.jsonl", directory / "years.jsonl"
        print("writing one and four years of minutes", file=sys.stderr)
        generate(year, YEAR)
        generate(years, 4 * YEAR)
        print("running them", file=sys.stderr)
        one, four = best(year, len(WINDOWS)), measure(years, len(WINDOWS))
        alone = best(year, len(WINDOWS), ALONE)
        rates = {
            how: {n: best(year, n, how, 1).rate for n in (1, 2, 5, 10)} | {len(WINDOWS): most.rate}
            for how, most in ((SHARED, one), (ALONE, alone))
        }
        started = min(start_up(directory) for _ in range(3))
    plot(rates, one, four)
    growth = four.peak / one.peak
    goals = [
        Goal(
            "a year of minutes, 20 sliding windows",
            f"≥ {RATE_GOAL:,} rows per CPU second",
            f"{one.rate:,.0f} ({one.cpu:.2f} s, {one.lines:,} lines)",
            one.rate >= RATE_GOAL,
        ),
        Goal(
            "memory over four years against one",
            f"≤ {GROWTH_GOAL:.2f} times",
            f"{growth:.2f} times ({one.peak:.0f} MB, {four.peak:.0f} MB)",
            growth <= GROWTH_GOAL,
        ),
        Goal("`stairwise run` over three rows", f"< {START_GOAL:.0f} CPU s", f"{started:.2f} s", started < START_GOAL),
    ]
    text = f"""
From JSON lines to JSON lines: COUNT, SUM, AVG and MAX over 20 different sliding windows of 1 hour to 30 days,
{one.lines:,} result lines for {one.rows:,} rows. Four years take {four.cpu:.1f} CPU seconds. With an operator of
its own for every query it is {alone.rate:,.0f} rows per CPU second.

![rows per CPU second by number of queries; memory by megabytes read](plots/local.svg)
"""
    return conclude("local", "The local engine", text, goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure_here(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        sys.exit(main())
