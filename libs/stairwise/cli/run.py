"""`stairwise run`: a script over files, results on stdout, no services needed."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
import msgspec

from stairwise.errors import ConfigError

if TYPE_CHECKING:
    from stairwise.algebra.query import Query
    from stairwise.cql.script import Catalogue
    from stairwise.local.driver import Summary
    from stairwise.local.engine import Leap
    from stairwise.local.output import LineWriter
    from stairwise.local.rejects import Rejects

FORMATS = ("table", "jsonl", "csv", "parquet")
STDIN = "-"


def _data(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, list[str]]:
    """STREAM=FILE pairs; several files of one stream are read one behind the other."""
    files: dict[str, list[str]] = {}
    for value in values:
        stream, equals, file = value.partition("=")
        if not (stream and equals and file):
            raise click.BadParameter(f"{value!r} is not STREAM=FILE", ctx, parameter)
        files.setdefault(stream, []).append(file)
    return files


@click.command()
@click.argument("script", metavar="FILE.cql", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--data",
    metavar="STREAM=FILE",
    multiple=True,
    callback=_data,
    help="The rows of a stream or table: .jsonl, .csv or .parquet, also .gz and .zst; - is stdin, as JSON lines.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="In this process; or the whole system, started for this run and stopped after it. The lines are the same.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Split each stream as `publish` would; rows are late relative to their own partition only.",
)
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="Default: table on a terminal, jsonl in a pipe or file."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Where results go instead of stdout.")
@click.option("--late", type=click.Path(dir_okay=False), help="Where late rows go, as JSON lines.")
@click.option("--dlq", type=click.Path(dir_okay=False), help="Where bad rows go, as JSON lines with the reason.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary on stderr.")
def run(
    script: str,
    data: dict[str, list[str]],
    engine: str,
    partitions: int,
    format_: str | None,
    output: str | None,
    late: str | None,
    dlq: str | None,
    quiet: bool,
) -> None:
    """Run a script of CREATE STREAM and SELECT statements over files.

    \b
    stairwise run volumes.cql --data trades=trades.jsonl
    stairwise run volumes.cql --data trades=trades.parquet --engine spark
    zcat trades.jsonl.gz | stairwise run volumes.cql --data trades=- --format csv -o volumes.csv
    """
    if engine == "spark" and late:
        raise click.UsageError("--late is for --engine local: with Spark, late rows are in the topic late.STREAM")
    from stairwise.cql.script import Catalogue, Explained, Told
    from stairwise.local.rejects import Rejects

    catalogue = Catalogue()
    changes = catalogue.execute(_read(script))
    explained = [change for change in changes if isinstance(change, Explained)]
    for change in explained:
        _explain(change.query, catalogue.queries, beside_results=bool(data))
        if change.analyze:
            click.echo("measured: not by run; ask a running system: stairwise explain NAME --analyze", err=bool(data))
    told = [change for change in changes if isinstance(change, Told) and change.text]
    for said in told:
        click.echo(said.text, err=bool(data))
    queries = list(catalogue.queries.values())
    if not data and (explained or told or not queries):
        return
    _refuse_overwriting([script, *(file for files in data.values() for file in files)], [output, late, dlq])
    with ExitStack() as stack:
        sink = _output(stack, queries, format_, output)
        rejects = Rejects(_file(stack, late), _file(stack, dlq))
        if engine == "spark":
            summary = _run_on_spark(catalogue, queries, data, sink, rejects, partitions, quiet)
        else:
            from stairwise.local.driver import run_files

            progress = stack.enter_context(_progress(data, visible=not quiet and not _on_terminal(output)))
            summary = run_files(
                catalogue.streams,
                queries,
                data,
                sink,
                partitions=partitions,
                rejects=rejects,
                progress=progress,
                tell=_tell_once(),
            )
        sink.close()
    if not quiet:
        _print_summary(summary)
        for file, (count, first) in rejects.unkept.items():
            rows = "1 bad row" if count == 1 else f"{count:,} bad rows"
            text = f"{file}: {rows}; the first, number {first.number}: {first.message}"
            click.echo(f"{text}\n  hint: --dlq FILE keeps all of them, with their reasons", err=True)


def _run_on_spark(
    catalogue: Catalogue,
    queries: list[Query],
    data: dict[str, list[str]],
    sink: LineWriter,
    rejects: Rejects,
    partitions: int,
    quiet: bool,
) -> Summary:
    """The whole system for the time of one script. What it says goes to stderr."""
    try:
        from stairwise.cli.pipeline import run_pipeline
    except ModuleNotFoundError as error:
        hint = "pip install 'stairwise[client,ingest,windows,operators,results]', or --engine local"
        raise ConfigError(f"--engine spark needs a package that is not installed: {error.name}", hint=hint) from error
    return run_pipeline(catalogue.streams, queries, data, sink, partitions=partitions, rejects=rejects, quiet=quiet)


def _read(script: str) -> str:
    try:
        return sys.stdin.read() if script == STDIN else Path(script).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{script} is not a text in UTF-8: {error}") from error


def _explain(query: Query, queries: Mapping[str, Query], *, beside_results: bool) -> None:
    """A plan goes to stdout, unless results do."""
    from stairwise.plan.explain import explain

    click.echo(explain(query, queries), err=beside_results)


def _output(stack: ExitStack, queries: list[Query], format_: str | None, path: str | None) -> LineWriter:
    from stairwise.local.output import CsvOutput, JsonOutput, ParquetOutput
    from stairwise.local.table import TableOutput

    chosen = format_ or _default_format(path)
    file = _file(stack, path) or sys.stdout.buffer
    if chosen == "table":
        text = sys.stdout if path is None else stack.enter_context(io.TextIOWrapper(file, encoding="utf-8"))
        return TableOutput(queries, text)
    if chosen == "parquet" and path is None and sys.stdout.isatty():
        raise ConfigError("parquet is not for a terminal", hint="-o FILE.parquet")
    makers: dict[str, Callable[[list[Query], BinaryIO], LineWriter]] = {
        "jsonl": JsonOutput,
        "csv": CsvOutput,
        "parquet": ParquetOutput,
    }
    return makers[chosen](queries, file)


def _default_format(path: str | None) -> str:
    """What the file's name says; else a table on a terminal and JSON lines in a pipe."""
    if path is not None:
        suffix = Path(path).suffix.removeprefix(".")
        return suffix if suffix in ("csv", "parquet") else "jsonl"
    return "table" if sys.stdout.isatty() else "jsonl"


def _file(stack: ExitStack, path: str | None) -> BinaryIO | None:
    if path is None:
        return None
    try:
        return stack.enter_context(_replaced(Path(path)))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its place when everything went well: an error leaves what was there before.

    A pipe or a device is written to as it is.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        if path.exists():
            shutil.copymode(path, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _refuse_overwriting(read: Sequence[str], written: Sequence[str | None]) -> None:
    """No file is written that is read, and none twice."""
    known = {Path(name).resolve(): "an input" for name in read if name != STDIN}
    for name in written:
        if name is None or (Path(name).exists() and not Path(name).is_file()):
            continue
        path = Path(name).resolve()
        if path in known:
            raise ConfigError(f"{name} is {known[path]} of this run and cannot be written", hint="name another file")
        known[path] = "another output"


def _on_terminal(output: str | None) -> bool:
    """Do the results themselves scroll over the terminal? Then they are progress enough."""
    return output is None and sys.stdout.isatty()


@contextmanager
def _progress(data: dict[str, list[str]], *, visible: bool) -> Iterator[Callable[[int], None] | None]:
    """A progress bar over the bytes of all files, where there is somebody to see it."""
    files = [file for stream in data.values() for file in stream]
    sizes = [Path(file).stat().st_size for file in files if Path(file).is_file()]
    if not visible or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    total = sum(sizes) if len(sizes) == len(files) else None
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total)
        yield lambda position: bar.update(task, completed=position)


def _tell_once() -> Callable[[Leap], None]:
    """Says why so many lines come, of the first leap that brings millions of them."""
    told: list[Leap] = []

    def tell(leap: Leap) -> None:
        if not told:
            told.append(leap)
            run = leap.run
            click.echo(
                f"{run.query.name}: {run.lines:,} lines of equal reports follow, from {run.after} to {run.until}:"
                f" stream {leap.stream} leaps there to the row {msgspec.json.encode(leap.row).decode()}\n"
                "  if its time is not what was meant, TIMESTAMP BY ... IN SECONDS names another unit;"
                " EMIT CHANGES shows only what changes",
                err=True,
            )

    return tell


def _print_summary(summary: Summary) -> None:
    for s in summary.streams:
        click.echo(
            f"{s.stream}: {s.rows_in:,} rows in, {s.on_time:,} on time, {s.late:,} late, {s.bad:,} bad", err=True
        )
    for query, counts, faults in summary.queries:
        text = f"{query.name}: {counts.reports:,} reports, {counts.lines:,} lines"
        if faults.overflow:
            text += f", {faults.overflow:,} × overflow"
        if faults.division:
            text += f", {faults.division:,} × division by zero"
        click.echo(text, err=True)
