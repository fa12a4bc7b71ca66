"""`stairwise run --engine spark` prints what `--engine local` prints: some golden cases in one script, one system."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import STAIRWISE
from tests.e2e.test_golden import Renamed
from tests.golden.cases import GoldenCase, golden_cases

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(600)]

CASES = {
    "append_only_equal_times",
    "division_and_overflow",
    "emit_changes_of_groups",
    "emit_internal_join",
    "except_and_union",
    "first_last",
    "lateness_beyond",
    "levels_changes",
    "rows_equal_times",
    "table_join",
    "table_non_retroactive",
}


def run(script: Path, data: list[str], *options: str) -> tuple[bytes, str]:
    command = [*STAIRWISE, "run", str(script), *data, "--format", "jsonl", *options]
    done = subprocess.run(command, capture_output=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, done.stderr.decode()


def test_both_engines_print_the_same_lines_in_the_same_order(tmp_path: Path) -> None:
    chosen = [Renamed(case) for case in golden_cases() if case.name in CASES]
    script, data, broken = tmp_path / "all.cql", [], tmp_path / "broken.jsonl"
    script.write_text(";\n".join(statement for case in chosen for statement in case.statements))
    for case in chosen:
        data += [f"--data={case.name(stream)}={file}" for stream, file in _inputs(case.case, tmp_path)]
    local, summary = run(script, data, "--engine", "local")
    spark, said = run(script, data, "--engine", "spark", "--dlq", str(broken))
    assert spark == local
    assert spark.count(b"\n") > 40
    assert _counted(said) == _counted(summary) != []
    assert broken.read_text().count("\n") == 1


def _counted(summary: str) -> list[str]:
    """What is said of the streams: rows in, on time, late, bad."""
    return [line for line in summary.splitlines() if "rows in" in line]


def _inputs(case: GoldenCase, directory: Path) -> list[tuple[str, Path]]:
    """The files of a case, one of them with a line that is no row."""
    if case.name != "first_last":
        return list(case.inputs.items())
    ((stream, file),) = case.inputs.items()
    spoilt = directory / "spoilt.jsonl"
    spoilt.write_text('{"not": "a row"\n' + file.read_text())
    return [(stream, spoilt)]
