"""The time of a row: from what its producer counts to milliseconds, or why it cannot be.

    TIMESTAMP BY ts IN SECONDS       1700000000             2023-11-14    floored to milliseconds where it is finer
    TIMESTAMP BY ts                  1700000000000          2023-11-14
                                     1700000000             1970-01-20 ?  2023-11-14 in seconds: which was meant?
                                     1700000000000000       year 55840 ?  2023-11-14 in microseconds

A stream that names no unit counts milliseconds. Where a number is then a day of early 1970 or lies beyond the year
9999, but is a day of the years 2000 to 2099 in another unit, the row is bad and the reason asks: such a row would move
time by decades. Near the epoch that is one band, the seconds of those years: 946,684,800 to 4,102,444,799, which is 11
January to 17 February 1970. Data that counts from 0 stays below it for eleven days. Who names the unit is not asked.
Texts (RFC 3339) and Arrow's timestamps say what they are.

Every row is judged by itself, so it does not matter how rows are cut into batches.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.schema import EARLIEST, LATEST, Instant, Stream, Type, Unit, quoted
from stairwise.streams.reason_codes import Code

CENTURY_BEGINS, CENTURY_ENDS = 946_684_800, 4_102_444_800
"""The first second of the year 2000, and that of 2100."""
MILLISECONDS = Unit.MILLISECONDS

Wrong = dict[int, tuple[Code, str]]
"""By row, why its time cannot be."""

_OF_ARROW = {"s": Unit.SECONDS, "ms": Unit.MILLISECONDS, "us": Unit.MICROSECONDS, "ns": Unit.NANOSECONDS}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND, _MICROSECOND = datetime.timedelta(milliseconds=1), datetime.timedelta(microseconds=1)
_FINER = re.compile(r"\.([0-9]{6})[0-9]")


def in_milliseconds(
    stream: Stream, time: np.ndarray, is_number: np.ndarray | None = None, latest: Instant = LATEST
) -> tuple[np.ndarray, Wrong]:
    """The times of rows in milliseconds, and those that cannot be, in whose place there may be anything.

    ``is_number`` tells which of them came as numbers, None that all did; the others are milliseconds already.
    ``latest`` is the latest that may be.
    """
    if not len(time):
        return time, {}
    numbers = time
    if stream.unit is not None and stream.unit is not MILLISECONDS:
        converted = _converted(numbers, stream.unit)
        time = converted if is_number is None else np.where(is_number, converted, time)
    lowest, highest = int(time.min()), int(time.max())
    is_plain = stream.unit is not None or stream.timestamp_by is None
    if lowest >= EARLIEST and highest <= latest and (is_plain or lowest >= CENTURY_ENDS or highest < CENTURY_BEGINS):
        return time, {}
    is_possible = (time >= EARLIEST) & (time <= latest)
    if not is_plain:
        is_asked = (time >= CENTURY_BEGINS) & (time < CENTURY_ENDS)
        is_possible &= ~is_asked if is_number is None else ~(is_asked & is_number)
    wrong = {}
    for at in np.flatnonzero(~is_possible).tolist():
        came_as_number = is_number is None or bool(is_number[at])
        wrong[at] = _reason(stream, int(numbers[at]) if came_as_number else None, int(time[at]))
    return time, wrong


def of_arrow(values: pa.Array) -> pa.Array:
    """Arrow's timestamps as milliseconds; without a zone they are UTC."""
    counts = values.cast(pa.int64())
    unit = _OF_ARROW[values.type.unit]
    if unit is MILLISECONDS:
        return counts
    numbers = counts.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(_converted(numbers, unit), mask=counts.is_null().to_numpy(zero_copy_only=False))


def floored(time: datetime.datetime, text: str | None = None) -> Instant:
    """An instant in milliseconds. ``text`` is what it was read from, if that may have digits beyond microseconds:
    the reader rounds those, and an instant must not move up by them.
    """
    finer = _FINER.search(text) if text is not None else None
    if finer is not None and int(finer[1]) != time.microsecond:
        time -= _MICROSECOND
    return (time - _EPOCH) // _MILLISECOND


def beyond_all_years(stream: Stream, rows: pa.RecordBatch) -> Iterator[tuple[int, str, str]]:
    """Rows with an instant outside the years 1 to 9999 beside their own time: row, column and reason."""
    for column in stream.columns:
        if column.type is not Type.TIMESTAMP or column.name == stream.timestamp_by:
            continue
        values = rows.column(column.name)
        bounds = pc.min_max(values)
        if not bounds["min"].is_valid or (bounds["min"].as_py() >= EARLIEST and bounds["max"].as_py() <= LATEST):
            continue
        wrong = pc.or_(pc.less(values, EARLIEST), pc.greater(values, LATEST)).fill_null(False)
        for row in np.flatnonzero(wrong.to_numpy(zero_copy_only=False)).tolist():
            shown = values[row].as_py()
            yield row, column.name, f"field {column.name!r}: {shown} milliseconds lies outside the years 1 to 9999"


def _converted(numbers: np.ndarray, unit: Unit) -> np.ndarray:
    """Numbers of a unit as milliseconds, floored; what would not fit into 64 bits stays beyond all years."""
    found: np.ndarray
    if unit is Unit.SECONDS:
        most = np.iinfo(np.int64).max // MILLISECONDS.per_second
        found = np.clip(numbers, -most, most) * MILLISECONDS.per_second
    else:
        found = np.floor_divide(numbers, unit.per_second // MILLISECONDS.per_second)
    return found


def _reason(stream: Stream, number: int | None, time: Instant) -> tuple[Code, str]:
    """Why a time cannot be; ``number`` as it came, None where it was no number."""
    field = f"field {stream.time_column!r}"
    if number is not None and stream.timestamp_by is not None and (meant := _likely_unit(number)) is not None:
        clause = f"TIMESTAMP BY {quoted(stream.timestamp_by)} IN"
        day = _EPOCH + datetime.timedelta(seconds=number // meant.per_second)
        counted = (stream.unit or MILLISECONDS).value.lower()
        as_counted = "1970" if time <= LATEST else "beyond the year 9999"
        told = f"{field}: {number} is {as_counted} in {counted}, but {day:%Y-%m-%d} in {meant.value.lower()}"
        if stream.unit is None:
            other = f", or {clause} MILLISECONDS if 1970 is meant" if time <= LATEST else ""
            return Code.UNIT, f"{told}: which unit is it? Declare {clause} {meant.value}{other}"
        return Code.OUT_OF_RANGE, f"{told}; the stream says {stream.time_clause}"
    if EARLIEST <= time <= LATEST:
        at = _EPOCH + datetime.timedelta(milliseconds=time)
        ahead = "is further ahead than the stream's FUTURE, which counts from 2100-01-01 where rows come from files"
        return Code.FUTURE, f"{field}: {at.isoformat()} {ahead}; FUTURE UNLIMITED takes every time"
    shown = f"{time} milliseconds" if number is None else f"{number} {(stream.unit or MILLISECONDS).value.lower()}"
    return Code.OUT_OF_RANGE, f"{field}: {shown} lies outside the years 1 to 9999"


def _likely_unit(number: int) -> Unit | None:
    """The unit in which a number is a day of the years 2000 to 2099."""
    fits = (u for u in Unit if CENTURY_BEGINS <= number // u.per_second < CENTURY_ENDS)
    return next(fits, None)


def latest_in_files(stream: Stream) -> Instant:
    """The latest time that a row of a file may have.

    A file has no append time, and a run over it must come out the same whenever it is started: FUTURE counts from the
    end of the century. So a sentinel of the year 9999 is refused there too.
    """
    if stream.future is None:
        return LATEST
    return min(LATEST, CENTURY_ENDS * MILLISECONDS.per_second + stream.future)
