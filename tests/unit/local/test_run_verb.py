"""`stairwise run` from the outside: what it prints, where rows go that are not in the stream, how it fails."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from stairwise.cli.main import main

SCRIPT = """
CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts LATENESS 1 SECOND;
SELECT k, COUNT(*) AS n, SUM(10 / x) AS tens FROM s [TUMBLE 2 SECONDS] GROUP BY k;
"""
ROWS = """{"ts": 1000, "k": "a", "x": 0}
{"ts": 5000, "k": "a", "x": 2}
{"ts": 2000, "k": "late", "x": 3}
{"ts": "then", "k": "bad", "x": 3}
{"ts": 4500, "k": "b", "x": 5}
"""
LINES = [
    {"query": "q1", "time": 2000, "diff": 1, "row": {"k": "a", "n": 1, "tens": None}},
    {"query": "q1", "time": 6000, "diff": 1, "row": {"k": "a", "n": 1, "tens": 5}},
    {"query": "q1", "time": 6000, "diff": 1, "row": {"k": "b", "n": 1, "tens": 2}},
]


class Done(NamedTuple):
    """What a call of the program came to."""

    code: int
    stdout: str
    stderr: str


Program = Callable[..., Done]


@pytest.fixture
def stairwise(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program, called as from a shell but in this process: starting one takes a second."""

    def call(*arguments: str, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, *capfd.readouterr())

    return call


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "script.cql").write_text(SCRIPT)
    (tmp_path / "s.jsonl").write_text(ROWS)
    return str(tmp_path / "script.cql"), str(tmp_path / "s.jsonl")


def test_results_on_stdout_and_a_summary_on_stderr(stairwise: Program, files: tuple[str, str]) -> None:
    done = stairwise("run", files[0], "--data", f"s={files[1]}")
    assert done.code == 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == LINES
    assert done.stderr.splitlines() == [
        "s: 5 rows in, 3 on time, 1 late, 1 bad",
        "q1: 3 reports, 3 lines, 1 × division by zero",
        f"{files[1]}: 1 bad row; the first, number 4: field 'ts': expected integer milliseconds or an RFC 3339 string "
        'with its offset, got "then"',
        "  hint: --dlq FILE keeps all of them, with their reasons",
    ]


def test_rows_from_stdin(stairwise: Program, files: tuple[str, str]) -> None:
    done = stairwise("run", files[0], "--data", "s=-", "--quiet", stdin=ROWS)
    assert [json.loads(line) for line in done.stdout.splitlines()] == LINES
    assert done.stderr == ""


def test_late_and_bad_rows_go_to_their_files(stairwise: Program, files: tuple[str, str], tmp_path: Path) -> None:
    late, bad = tmp_path / "late.jsonl", tmp_path / "bad.jsonl"
    stairwise("run", files[0], "--data", f"s={files[1]}", "--late", str(late), "--dlq", str(bad))
    assert json.loads(late.read_text()) == {
        "stream": "s",
        "partition": 0,
        "watermark": 3999,
        "row": {"ts": 2000, "k": "late", "x": 3},
    }
    rejected = json.loads(bad.read_text())
    assert (rejected["number"], rejected["code"], rejected["field"]) == (4, "WRONG_TYPE", "ts")
    assert rejected["raw"] == '{"ts": "then", "k": "bad", "x": 3}'


def test_the_name_of_the_output_says_its_format(stairwise: Program, files: tuple[str, str], tmp_path: Path) -> None:
    stairwise("run", files[0], "--data", f"s={files[1]}", "-o", str(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "query,time,diff,k,n,tens"


@pytest.mark.parametrize("broken", ["script", "data", "cut"])
def test_an_error_leaves_the_output_as_it_was(
    stairwise: Program, files: tuple[str, str], tmp_path: Path, broken: str
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("before")
    data = {"script": files[1], "data": str(tmp_path / "none.jsonl"), "cut": str(tmp_path / "cut.jsonl.gz")}[broken]
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(ROWS.encode())[:-9])
    if broken == "script":
        Path(files[0]).write_text(SCRIPT + "SELECT nothing FROM s;")
    done = stairwise("run", files[0], "--data", f"s={data}", "-o", str(out))
    assert done.code != 0
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.jsonl.gz", "out.jsonl", "s.jsonl", "script.cql"]


@pytest.mark.parametrize("option", ["-o", "--late", "--dlq"])
@pytest.mark.parametrize("place", [0, 1])
def test_an_input_is_never_written(stairwise: Program, files: tuple[str, str], option: str, place: int) -> None:
    before = Path(files[place]).read_text()
    done = stairwise("run", files[0], "--data", f"s={files[1]}", option, files[place])
    assert done.code == 1
    assert "is an input of this run" in done.stderr
    assert Path(files[place]).read_text() == before


def test_a_stream_in_two_files_is_read_in_order(stairwise: Program, files: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("ts,k,x\n9000,c,1\n")
    done = stairwise("run", files[0], "--data", f"s={files[1]}", "--data", f"s={tmp_path / 'more.csv'}")
    assert json.loads(done.stdout.splitlines()[-1])["row"] == {"k": "c", "n": 1, "tens": 10}


def test_explain_prints_the_plan(stairwise: Program, files: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "explain.cql").write_text(SCRIPT + "EXPLAIN q1;")
    done = stairwise("run", str(tmp_path / "explain.cql"))
    assert done.code == 0
    assert "EMIT RSTREAM" in done.stdout


def test_a_dropped_query_does_not_run(stairwise: Program, files: tuple[str, str], tmp_path: Path) -> None:
    script = SCRIPT + "CREATE QUERY gone AS SELECT k FROM s; DROP QUERY gone; SEAL STREAM s;"
    (tmp_path / "drop.cql").write_text(script)
    done = stairwise("run", str(tmp_path / "drop.cql"), "--data", f"s={files[1]}")
    assert [json.loads(line) for line in done.stdout.splitlines()] == LINES


def test_an_altered_stream_is_run_as_it_is_declared_last(stairwise: Program, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("ts,k\n5000,a\n1000,b\n")
    query = "CREATE QUERY {0} AS SELECT COUNT(*) AS n FROM s [TUMBLE 10 SECONDS];"
    script = "CREATE STREAM s (ts TIMESTAMP, k STRING) TIMESTAMP BY ts;" + query.format("before")
    (tmp_path / "a.cql").write_text(script + "ALTER STREAM s SET LATENESS 4 SECONDS;" + query.format("after"))
    done = stairwise("run", str(tmp_path / "a.cql"), "--data", f"s={tmp_path / 's.csv'}")
    assert [json.loads(line)["row"] for line in done.stdout.splitlines()] == [{"n": 2}, {"n": 2}]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--data", "t={data}"], 1, "there is no stream 't'"),
        ([], 1, "no data is given"),
        (["--data", "s=missing.jsonl"], 1, "there is no file missing.jsonl"),
        (["--data", "nonsense"], 2, "is not STREAM=FILE"),
        (["--data", "s={data}", "--partitions", "0"], 2, "0 is not in the range"),
        (["--data", "s={data}", "--format", "xml"], 2, "'xml' is not one of"),
    ],
)
def test_errors_are_clear_and_have_their_exit_code(
    stairwise: Program, files: tuple[str, str], arguments: list[str], code: int, says: str
) -> None:
    done = stairwise("run", files[0], *(a.format(data=files[1]) for a in arguments))
    assert (done.code, done.stdout) == (code, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_statement_is_shown_with_its_place(stairwise: Program, tmp_path: Path) -> None:
    (tmp_path / "bad.cql").write_text("CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts;\nSELECT y FROM s;")
    done = stairwise("run", str(tmp_path / "bad.cql"), "--data", "s=-")
    assert done.code == 1
    assert "line 2, column 8" in done.stderr


def test_a_run_needs_no_spark_kafka_or_grpc(files: tuple[str, str]) -> None:
    program = f"""
import sys
from stairwise.cli.main import main
try:
    main(["run", {files[0]!r}, "--data", "s=" + {files[1]!r}])
except SystemExit:
    pass
print(sorted(m for m in ("pyspark", "confluent_kafka", "grpc", "faust", "google.protobuf") if m in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
