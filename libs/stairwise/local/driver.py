"""A script over files: read, decode, evaluate, write, until every file has ended.

trades.jsonl   ●●●●●●●●●●○○○○        next is read from the stream that is farthest behind, so that no stream
quotes.csv     ●●●●●●○○○○○○○○        waits for long in memory for another: what is held is bounded by the
                     ▲ next          windows, not by the files
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stairwise.algebra.query import Query
from stairwise.errors import ConfigError, NotFoundError
from stairwise.expressions.faults import Faults
from stairwise.local.chunks import Chunk
from stairwise.local.engine import Engine, Leap
from stairwise.local.output import LineWriter
from stairwise.local.rejects import Rejects
from stairwise.local.running import QueryCounts
from stairwise.local.sources import STDIN, FileSource
from stairwise.schema import Stream


@dataclass
class StreamSummary:
    stream: str
    rows_in: int = 0
    """All that the files held: on time, late and bad."""
    on_time: int = 0
    late: int = 0
    bad: int = 0


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    streams: list[StreamSummary]
    queries: list[tuple[Query, QueryCounts, Faults]]


class _Feed:
    """The files of one stream, one behind the other."""

    def __init__(self, stream: Stream, files: Sequence[str]) -> None:
        self.stream = stream
        self.sources = [FileSource(stream, name) for name in files]
        self.summary = StreamSummary(stream.name)
        self._chunks = self._all()

    def _all(self) -> Iterator[tuple[str, Chunk]]:
        for source in self.sources:
            for chunk in source.chunks():
                yield source.name, chunk

    def next(self) -> tuple[str, Chunk] | None:
        return next(self._chunks, None)


def run_files(
    streams: Mapping[str, Stream],
    queries: Sequence[Query],
    data: Mapping[str, Sequence[str]],
    output: LineWriter,
    *,
    partitions: int = 1,
    sharing: bool = True,
    rejects: Rejects | None = None,
    progress: Callable[[int], None] | None = None,
    tell: Callable[[Leap], None] = lambda _: None,
) -> Summary:
    """Run queries over the files of their streams. ``progress`` is told how many bytes have been read, ``tell`` of
    leaps of time that make a query show millions of lines.
    """
    rejects = rejects or Rejects(None, None)
    used = check_data(streams, queries, data)
    feeds = {name: _Feed(streams[name], data[name]) for name in used}
    engine = Engine([streams[name] for name in used], queries, partitions, sharing=sharing, tell=tell)
    open_feeds = dict(feeds)
    while open_feeds:
        name = min(open_feeds, key=engine.watermark)
        feed = open_feeds[name]
        found = feed.next()
        if found is None:
            del open_feeds[name]
            engine.seal(name)
        else:
            _take(engine, feed, *found, rejects)
        for pieces in engine.advance():
            output.write(pieces)
        if progress is not None:
            progress(sum(source.position() for f in feeds.values() for source in f.sources))
    for name, feed in feeds.items():
        counts = engine.counts(name)
        feed.summary.on_time, feed.summary.late = counts.on_time, counts.late
        feed.summary.rows_in = counts.rows + feed.summary.bad
    return Summary([feed.summary for feed in feeds.values()], engine.query_counts())


def _take(engine: Engine, feed: _Feed, file: str, chunk: Chunk, rejects: Rejects) -> None:
    feed.summary.bad += len(chunk.rejected)
    rejects.take_bad(feed.stream, file, chunk.rejected)
    rejects.take_late(feed.stream, engine.feed(feed.stream.name, chunk.rows))


def check_data(streams: Mapping[str, Stream], queries: Sequence[Query], data: Mapping[str, Sequence[str]]) -> list[str]:
    """The streams to read. Every stream that a query reads needs data, and all data needs a stream."""
    for name in data:
        if name not in streams:
            raise NotFoundError("stream", name, streams)
    for query in queries:
        for stream in query.streams:
            if stream.name not in data:
                raise ConfigError(
                    f"query {query.name} reads the stream {stream.name!r}, for which no data is given",
                    hint=f"--data {stream.name}=FILE",
                )
    if sum(file == STDIN for files in data.values() for file in files) > 1:
        raise ConfigError("stdin can be the data of one stream only", hint="put the others into files")
    return list(data)
