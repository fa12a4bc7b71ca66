"""``python -m tests.cluster``: exit code 0 if a cluster can be started here; else what is missing, a line each."""

from __future__ import annotations

import sys

from tests.cluster.programs import unavailable

if __name__ == "__main__":
    problems = unavailable()
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
