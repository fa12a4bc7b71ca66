"""What `stairwise status` makes of the parts' answers and of two looks at the streams."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from services.windows.status_messages import status_to_proto
from stairwise.cli.overview import Overview, Volume, overview
from stairwise.cli.status import drawn
from stairwise.client.status import Status, StreamStatus
from stairwise.schema import DAWN
from stairwise.system.part_status import PartStatus
from stairwise.wire.failures import Failure
from stairwise.wire.stream_standing import Standing

NOON = 1_769_860_800_000
PART = PartStatus(
    part="operators",
    health="healthy",
    pid=1234567,
    uptime_seconds=3_600 * 28,
    restarts=12,
    address="127.0.0.1:65123",
    metrics="http://127.0.0.1:65223/metrics",
    lag=14_403,
    lag_seconds=None,
    reason="",
)
STREAM = StreamStatus(
    name="trades",
    rows=12_345_678,
    late=1_234_567,
    dead=42,
    watermark=NOON - 86_400_001,
    behind_ms=0,
    unread=120_000,
    untaken=14_403,
    untaken_ms=40_000,
    waits_for="",
    failed="",
    sealed=False,
)


def seen(part: PartStatus = PART, stream: StreamStatus = STREAM, absent: str = "", rows_before: int = 0) -> Overview:
    look = Status(NOON, (stream,), None, frozenset({absent}))
    before = Status(NOON - 2_000, (replace(stream, rows=stream.rows - rows_before),), None, frozenset())
    return overview([part], look, before)


def shown(look: Overview, width: int = 80) -> str:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(drawn(look))
    return captured.get()


def test_nothing_is_cut_off_at_80_columns() -> None:
    reason = "restarting: exited with code 1 after which a long explanation follows that no line of 80 columns holds"
    text = shown(seen(replace(PART, health="unhealthy", reason=reason), replace(STREAM, name="s" * 60)))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    together = "".join(text.split())
    for whole in ("127.0.0.1:65123", ":65223", "unhealthy", "1234567", "14,403", "12,345,678", "2026-01-30"):
        assert whole in together
    assert reason in " ".join(text.split())
    assert text.count("s") >= 60


def test_on_a_usual_line_address_and_figures_stay_whole() -> None:
    text = shown(seen(replace(PART, uptime_seconds=200.0)))
    (line,) = (line for line in text.splitlines() if line.startswith("operators "))
    assert line.split() == (
        ["operators", "healthy", "1234567", "3", "min", "20", "s", "12", "127.0.0.1:65123", ":65223", "14,403"]
    )


def test_a_part_that_is_long_behind_says_so_although_it_is_healthy() -> None:
    text = shown(seen())
    assert "operators: 14,403 batches behind, about 40 s" in text
    assert seen().parts[0].lag_seconds == 40.0
    assert seen().is_healthy


def test_a_part_that_is_hardly_behind_says_nothing() -> None:
    assert seen(stream=replace(STREAM, untaken_ms=1_200)).parts[0].reason == ""


def test_a_part_that_does_not_answer_is_called_behind_at_once() -> None:
    mute = seen(stream=replace(STREAM, untaken_ms=1_200), absent="operators").parts[0]
    assert mute.reason == "14,403 batches behind, about 1 s, and does not answer"


def test_ingest_is_behind_by_what_it_takes_in() -> None:
    ingest = replace(PART, part="ingest", lag=120_000)
    part = seen(ingest, rows_before=6_000).parts[0]
    assert (part.lag_seconds, part.reason) == (40.0, "120,000 messages behind, about 40 s")
    assert seen(ingest, rows_before=600_000).parts[0].reason == ""


def test_a_stream_has_its_rate_and_how_far_its_time_is_behind() -> None:
    (line,) = seen(rows_before=3_000).streams
    assert (line.rows_per_second, line.behind_clock_ms) == (1_500.0, 86_400_001)
    assert line.as_json()["stream"] == "trades"


def test_what_a_stream_waits_for_stands_below_the_table() -> None:
    text = shown(seen(stream=replace(STREAM, waits_for="partition 3: no row yet")))
    assert "trades: partition 3: no row yet\n" in text


def test_sealed_streams_are_counted_and_not_listed() -> None:
    over = replace(STREAM, sealed=True, watermark=None, unread=0, untaken=0, untaken_ms=None)
    assert "1 sealed stream with nothing left to do" in shown(seen(stream=over))
    assert "12,345,678" not in shown(seen(stream=over))


def test_what_is_not_known_of_streams_is_said() -> None:
    assert "streams are not shown: no answer" in shown(Overview((PART,), NOON, None, trouble="no answer"))


def test_queries_that_failed_are_named_with_their_reasons() -> None:
    failed = {"poison": Failure("poison@3", "it needs more than 2,147 MB", NOON), "early": Failure("s", "no", DAWN)}
    told = status_to_proto(Standing(NOON, {}), frozenset(), None, failed)
    look = Status.from_proto(told)
    whole = replace(seen(), look=look)
    assert "2 queries have FAILED" in shown(whole)
    assert "poison: it needs more than 2,147 MB" in shown(whole)
    assert whole.as_json()["failed"] == [
        {"name": "poison", "reason": "it needs more than 2,147 MB", "reported": NOON},
        {"name": "early", "reason": "no", "reported": None},
    ]


def test_a_volume_that_is_full_is_not_healthy() -> None:
    roomy, full = Volume("/data", 900_000_000, 256_000_000), Volume("/data", 3_000_000, 256_000_000)
    assert replace(seen(), volume=roomy).is_healthy
    whole = replace(seen(), volume=full)
    assert not whole.is_healthy
    assert "the volume of /data is full: 3 MB free, ingest pauses below 256 MB" in shown(whole)
    assert whole.as_json()["volume"]["full"]
