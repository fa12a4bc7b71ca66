"""``python -m deploy.dashboards``: write the dashboards into the chart."""

from __future__ import annotations

import json
from pathlib import Path

from deploy.dashboards.catalogue import DASHBOARDS

TARGET = Path(__file__).resolve().parents[2] / "charts" / "stairwise" / "dashboards"


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    for dashboard in DASHBOARDS:
        (TARGET / f"{dashboard.name}.json").write_text(json.dumps(dashboard.json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
