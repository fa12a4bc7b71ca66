"""What the results service tells about itself."""

from __future__ import annotations

from stairwise.platform.telemetry import meter

released = meter.create_counter("stairwise.results.reports", "{report}", "reports that all shards have written")
repeats = meter.create_counter("stairwise.results.repeats", "{message}", "messages that repeat a report, dropped")
updates = meter.create_counter("stairwise.results.updates", "{update}", "updates sent to subscribers")
subscriptions = meter.create_up_down_counter(
    "stairwise.results.subscriptions", "{subscription}", "subscriptions that are served now"
)
stalled = meter.create_counter(
    "stairwise.results.stalled", "{subscription}", "subscriptions that ended because their client took nothing"
)
