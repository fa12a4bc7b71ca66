"""Shared aggregation: what thousands of windows of one signature cost beside one of them.

Batches of 16,384 rows at 100,000 rows per second of event time go into shared operators, which are advanced after
each; what they publish is the stair. Rates are rows per CPU second. Loads that are compared take turns, and medians
count, since other processes on the machine cost CPU time too (they share its caches).

``make bench-sharing`` measures everything and refreshes docs/benchmarks.md; ``python -m bench.sharing NAME ...``
measures some parts only and prints what they give.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import pyarrow as pa

from bench import parts, seed_levels, seed_windows, sharing_curves, sharing_goals, sharing_mixes
from bench.parts import Part
from bench.report import conclude

CURVES = {
    "core": sharing_goals.core,
    "many": sharing_goals.many,
    "different": sharing_goals.different,
    "grouping": sharing_goals.grouping,
    "kinds": sharing_mixes.kinds,
    "ages": sharing_mixes.ages,
    "windows": sharing_curves.windows,
    "slides": sharing_curves.slides,
    "keys": sharing_curves.keys,
    "signatures": sharing_curves.signatures,
}
SEEDS = {
    "seed-times": seed_windows.times,
    "seed-memory": seed_windows.memory,
    "seed-groups": seed_windows.group_counts,
    "levels": seed_levels.experiment,
}
ALL: dict[str, Callable[[], Part]] = {**CURVES, **SEEDS}


def everything() -> int:
    return publish(dict(zip(ALL, parts.run(ALL), strict=True)))


def publish(done: Mapping[str, Part]) -> int:
    """Pictures, tables and goals of all parts into docs/, and the exit code."""
    parts.plot("sharing", [panel for name in CURVES for panel in done[name].panels])
    parts.plot("sharing-seeds", [panel for name in SEEDS for panel in done[name].panels])
    tables = [table for part in done.values() for table in part.tables]
    pictures = "![rates and memory](plots/sharing.svg)\n\n![the papers' experiments](plots/sharing-seeds.svg)"
    introduction, _, _ = (__doc__ or "").partition("\n\n``make")
    text = "\n\n".join([introduction, pictures, *tables])
    return conclude("sharing", "Shared aggregation", text, [goal for part in done.values() for goal in part.goals])


if __name__ == "__main__":
    pa.array([1])  # the first array imports pandas where it is installed: start-up, not running
    sys.exit(parts.some(ALL, sys.argv[1:]) if sys.argv[1:] else everything())
