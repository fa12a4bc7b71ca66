"""``python -m tests.screenshots``: the demo for some minutes, and pictures of it in docs/screenshots.

Ends with exit code 1 and their names if a panel of a dashboard has no data.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from deploy.dashboards.catalogue import DASHBOARDS
from stairwise.platform.config import SOURCE_TREE
from tests.chart.tools import find_tool
from tests.e2e.browser import find_browser, started_browser
from tests.e2e.conftest import STAIRWISE, START_WITHIN, System, has_zipkin, wait_for
from tests.e2e.prometheus import started_prometheus
from tests.e2e.test_trace import PATH
from tests.e2e.zipkin import follow, page
from tests.screenshots.plots import draw

TARGET = SOURCE_TREE / "docs" / "screenshots"
SECONDS = int(os.environ.get("SCREENSHOTS_SECONDS", "240"))
"""For how long the demo runs, from its first report on."""


def main() -> int:
    browser, prometheus = find_browser(), find_tool("prometheus")
    if browser is None or prometheus is None or not has_zipkin():
        print("needed: chromium (apt-get install chromium), Prometheus (make tools), Zipkin (make tracing)")
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever ends this, nothing is left running
    TARGET.mkdir(exist_ok=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (directory / "browser").mkdir()
        (directory / "prometheus").mkdir()
        system = stack.enter_context(started_system(directory / "system"))
        watching = stack.enter_context(started_prometheus(prometheus, system, directory / "prometheus"))
        stack.enter_context(demo(system))
        begin = time.time()
        wait_for(lambda: watching.has_data("stairwise_operators_lag"), "operators has ended a micro-batch", within=300)
        time.sleep(SECONDS)
        empty = {d.name: draw(watching, d, begin, time.time(), TARGET / f"{d.name}.png") for d in DASHBOARDS}
        take_trace(system, browser, directory / "browser")
    for name, titles in empty.items():
        print(f"{TARGET / name}.png", *(f"\n  without data: {title}" for title in titles))
    return 1 if any(empty.values()) else 0


@contextmanager
def started_system(directory: Path) -> Iterator[System]:
    system = System(directory, {**os.environ, "STAIRWISE_DIR": str(directory)})
    system.ok("up", "--detach", "--tracing", "--port-base", "0", within=START_WITHIN)
    try:
        yield system
    finally:
        system.ok("down")


@contextmanager
def demo(system: System) -> Iterator[None]:
    """The demo on the system that runs already."""
    command = [*STAIRWISE, "demo", "--dir", str(system.directory)]
    process = subprocess.Popen(command, env=system.environment, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def take_trace(system: System, browser: str, directory: Path) -> None:
    """The page of one event's trace."""
    spans = follow(system, "followed", at=int(time.time() * 1000))
    with started_browser(browser, directory) as opened:
        opened.open(f"{page(system)}traces/{spans[PATH[0]]['traceId']}")
        words = {word for step in PATH for word in step}
        wait_for(lambda: all(word in opened.text().lower() for word in words), "the page names every step")
        (TARGET / "trace.png").write_bytes(opened.picture())
    print(TARGET / "trace.png")


if __name__ == "__main__":
    sys.exit(main())
