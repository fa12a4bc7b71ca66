"""What stage 2 hands to Spark: reports cut into messages, in frames of bearable size."""

from __future__ import annotations

import pyarrow as pa

from services.operators import pipeline, stage2
from services.operators.shard import ShardReport
from services.operators.stage2 import Bounds
from stairwise.reports.contract import Report
from stairwise.wire import topics
from stairwise.wire.message_pieces import HEADER, MessagePiece
from stairwise.wire.reports import LifeRecord, ReportHeaders, decode_report


def report(time: int, rows: int) -> ShardReport:
    batch = pa.RecordBatch.from_arrays([pa.array([f"key {n:08}" for n in range(rows)])], names=["k"])
    headers = ReportHeaders("q@1", 0, 1, time)
    return ShardReport(headers, Report("q@1", time, batch), lives={"q@1": LifeRecord(0, 0)})


def test_a_large_report_is_several_messages_in_frames_of_bearable_size(monkeypatch) -> None:
    monkeypatch.setattr(stage2, "FRAME_BYTES", 4_000)
    outgoing = [report(10, 5), report(20, 2_000), report(30, 5)]
    frames = list(stage2._frames(outgoing, Bounds(1 << 20, 1_000)))
    assert all(sum(map(len, frame["value"])) <= 5_000 for frame in frames)
    records = [record for frame in frames for record in frame.to_dict("records")]
    results = [record for record in records if record["topic"] == topics.RESULTS]
    assert len(records) - len(results) == 3
    assert [record["time"] for record in results] == ["10"] + ["20"] * (len(results) - 2) + ["30"]
    said = [MessagePiece.decode({HEADER: record[HEADER].encode()}) for record in results]
    assert said[0] is said[-1] is None
    assert [piece.number for piece in said if piece is not None] == list(range(len(results) - 2))
    whole = b"".join(record["value"] for record in results if record["time"] == "20")
    assert decode_report(outgoing[1].headers, whole).rows == outgoing[1].report.rows


def test_a_report_that_is_too_large_leaves_a_mark_and_the_others_go_out() -> None:
    (frame,) = stage2._frames([report(10, 5), report(20, 2_000), report(30, 5)], Bounds(10_000, 1_000))
    results = frame[frame["topic"] == topics.RESULTS]
    assert list(results["mark"]) == ["report", "oversized", "report"]
    assert list(results["value"])[1] == b""


def test_workers_of_a_cluster_are_told_where_our_code_and_kafka_are() -> None:
    environ = {"STAIRWISE_KAFKA_USER": "u", "OTEL_EXPORTER_OTLP_ENDPOINT": "e", "PYTHONPATH": "p", "HOME": "h"}
    told = pipeline.executor_environment("spark://master:7077", environ)
    assert told == {f"spark.executorEnv.{name}": value for name, value in environ.items() if name != "HOME"}
    assert pipeline.executor_environment("local[2]", environ) == {}
    assert pipeline.executor_environment("k8s://https://api", environ) == {}
