"""Result lines as text: one JSON object per line, the same everywhere.

    {"query": "q1", "time": 1700000060000, "diff": 1, "row": {"ticker": "AB", "volume": 1200}}

BIGINT, HUGEINT and TIMESTAMP are JSON integers; DOUBLE has its shortest form, with NaN and the infinities as
strings. Each column becomes an array of texts, and Arrow joins the arrays element by element, so that Python
touches columns and never rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.reports.emission import Emission, Emissions

_ENCODER = msgspec.json.Encoder()
_LINE_END = ord("\n")


def json_lines(query: str, emitted: Emission | Emissions, *, until: bool = False) -> pa.StringArray:
    """One text per line, each with its line end. With ``until``, lines say so behind their diff, where it is known."""
    rows = emitted.rows
    if rows.num_rows == 0:
        return pa.array([], pa.string())
    parts: list[Any] = [f'{{"query": {_quoted(query)}, "time": ', _integers(pa.array(emitted.times))]
    diffs = np.unique(emitted.diff)
    parts += [', "diff": ', str(diffs[0]) if len(diffs) == 1 else _integers(pa.array(emitted.diff))]
    if until and emitted.until is not None:
        parts += [', "until": ', _integers(pa.array(emitted.until))]
    separator = ', "row": {'
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        parts += [f"{separator}{_quoted(name)}: ", texts(column)]
        separator = ", "
    return pc.binary_join_element_wise(*parts, "}}\n", "")


def to_bytes(lines: pa.StringArray) -> bytes:
    """All lines as one text, straight from Arrow's own buffer."""
    if len(lines) == 0:
        return b""
    offsets = np.frombuffer(lines.buffers()[1], np.int32)
    start, stop = offsets[lines.offset], offsets[lines.offset + len(lines)]
    text: bytes = lines.buffers()[2].slice(start, stop - start).to_pybytes()
    return text


def line_dicts(query: str, emitted: Emission | Emissions) -> Iterator[dict[str, Any]]:
    """The same lines as Python values: what parsing their JSON would give."""
    names = emitted.rows.schema.names
    columns = [_plain(column) for column in emitted.rows.columns]
    values = zip(*columns, strict=True) if columns else iter(())
    for time, diff, row in zip(emitted.times.tolist(), emitted.diff.tolist(), values, strict=True):
        yield {"query": query, "time": time, "diff": diff, "row": dict(zip(names, row, strict=True))}


def texts(column: pa.Array) -> pa.StringArray:
    """The JSON text of every value of a column."""
    if pa.types.is_floating(column.type):
        return _doubles(column)
    if pa.types.is_string(column.type):
        encoded = column.dictionary_encode()
        return pc.fill_null(_each(encoded.dictionary.to_pylist()).take(encoded.indices), "null")
    if pa.types.is_boolean(column.type):
        return pc.fill_null(pc.if_else(column, "true", "false"), "null")
    return _integers(column)


def _integers(column: pa.Array) -> pa.StringArray:
    return pc.fill_null(pc.cast(column, pa.string()), "null")


def _doubles(column: pa.Array) -> pa.StringArray:
    """msgspec's shortest form; it would write NaN and the infinities as null, so these are spelled out."""
    written = _each(column.to_pylist())
    special = pc.fill_null(pc.invert(pc.is_finite(column)), False)
    if not pc.any(special).as_py():
        return written
    spelled = pc.if_else(pc.is_nan(column), '"NaN"', pc.if_else(pc.greater(column, 0), '"Infinity"', '"-Infinity"'))
    return pc.if_else(special, spelled, written)


def _each(values: list[Any]) -> pa.StringArray:
    """The JSON text of every value, by one call of the encoder: a JSON text never holds a line end itself."""
    written = _ENCODER.encode_lines(values)
    ends = np.flatnonzero(np.frombuffer(written, np.uint8) == _LINE_END)
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends + 1
    lines = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(written))
    return pc.utf8_slice_codeunits(lines, 0, -1)


def _plain(column: pa.Array) -> list[Any]:
    if pa.types.is_decimal(column.type):
        return [None if value is None else int(value) for value in column.to_pylist()]
    if pa.types.is_floating(column.type):
        return [_spelled(value) for value in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _spelled(value: float | None) -> float | str | None:
    if value is None or np.isfinite(value):
        return value
    return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _quoted(text: str) -> str:
    return _ENCODER.encode(text).decode()
