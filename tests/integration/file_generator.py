"""Files with rows of every kind, good and bad, in the formats that `run` and `publish` read."""

from __future__ import annotations

import csv
import datetime
import io
import json
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stairwise.schema import Column, Stream, Type

FORMATS = ("jsonl", "csv", "parquet")
START = 1_700_000_000_000
_TEXTS: dict[Type, tuple[str, ...]] = {
    Type.BIGINT: ("0", "-7", "007", "9223372036854775807", "9223372036854775808", "1.5", "x", " 1", ""),
    Type.DOUBLE: ("0.1", "-0.0", "1e400", "5", "nan", "-inf", "1e-320", ".5", "half", ""),
    Type.STRING: ("a", "ü", 'say "hi"', "two\nlines", "a,b", "\u0000", "𝄞", ""),
    Type.BOOLEAN: ("true", "FALSE", "1", "0", "maybe", ""),
    Type.TIMESTAMP: (str(START), "2023-11-14T22:13:20.9999Z", "2023-11-14T22:13:20", "-1", "9" * 16, "soon", ""),
}
_JSON: dict[Type, tuple[str, ...]] = {
    Type.BIGINT: ("0", "-7", "9223372036854775807", "9223372036854775808", "1.0", '"x"', "null"),
    Type.DOUBLE: ("0.1", "-0.0", "1e300", "5", '"NaN"', '"-Infinity"', "true", "null"),
    Type.STRING: ('"a"', '"\\u0000"', '"two\\nlines"', '"ü"', "5", "null"),
    Type.BOOLEAN: ("true", "false", "1", "null"),
    Type.TIMESTAMP: (str(START), '"2023-11-14T22:13:20.9999+01:00"', '"soon"', "1.5", "9" * 16, "null"),
}
_ARROW: dict[Type, tuple[pa.DataType, ...]] = {
    Type.BIGINT: (pa.int64(), pa.int8(), pa.uint64()),
    Type.DOUBLE: (pa.float64(), pa.float32(), pa.int32(), pa.decimal128(10, 2)),
    Type.STRING: (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
    Type.BOOLEAN: (pa.bool_(),),
    Type.TIMESTAMP: (pa.int64(), pa.timestamp("ns"), pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("s"), pa.date32()),
}


def stream(chance: random.Random, name: str) -> Stream:
    """Columns of any type; about half of them NOT NULL, with a time of its own or Kafka's."""
    types = [Type.TIMESTAMP, *chance.choices(list(_TEXTS), k=chance.randrange(1, 5))]
    columns = tuple(Column(f"c {i}", type_, chance.random() < 0.5) for i, type_ in enumerate(types))
    return Stream(name, columns, "c 0" if chance.random() < 0.7 else None, partitions=1)


def file(chance: random.Random, stream: Stream, format_: str, rows: int = 40) -> bytes:
    present = [c for c in stream.columns if not c.nullable or c.name == stream.timestamp_by or chance.random() < 0.8]
    present = chance.sample(present or list(stream.columns), len(present) or len(stream.columns))
    match format_:
        case "parquet":
            return _parquet(chance, present, rows)
        case "csv":
            return _csv(chance, present, rows)
        case _:
            return _jsonl(chance, present, rows)


def _jsonl(chance: random.Random, columns: list[Column], rows: int) -> bytes:
    lines = []
    for _ in range(rows):
        held = [f"{json.dumps(c.name)}: {_pick(chance, _JSON[c.type])}" for c in columns if chance.random() < 0.95]
        line = "{" + ", ".join(held) + "}" + chance.choice(["", "\r"])
        lines.append(chance.choice(["", "no row", "[1]", "{"]) if chance.random() < 0.05 else line)
    return "\n".join(lines).encode()


def _csv(chance: random.Random, columns: list[Column], rows: int) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerow([c.name for c in columns] + ["more"])
    for _ in range(rows):
        fields = [_pick(chance, _TEXTS[c.type]) for c in columns]
        writer.writerow(fields if chance.random() < 0.05 else [*fields, "?"])
    return text.getvalue().encode()


def _parquet(chance: random.Random, columns: list[Column], rows: int) -> bytes:
    sink = pa.BufferOutputStream()
    arrays = {c.name: _array(chance, chance.choice(_ARROW[c.type]), rows) for c in columns}
    pq.write_table(pa.table(arrays), sink, row_group_size=max(1, rows // 3))
    return bytes(sink.getvalue())


def _array(chance: random.Random, type_: pa.DataType, rows: int) -> pa.Array:
    def value() -> Any:
        types = pa.types
        if chance.random() < 0.1:
            return None
        if types.is_uint64(type_):
            return chance.choice([5, 2**63 - 1, 2**63])
        if types.is_integer(type_):
            return chance.choice([1, -5, 100])
        if types.is_floating(type_):
            return chance.choice([0.1, -0.0, float("nan"), float("inf")])
        if types.is_boolean(type_):
            return chance.random() < 0.5
        if types.is_timestamp(type_) or types.is_date(type_):
            return datetime.datetime(1969, 12, 31, 23, 59, 59, chance.randrange(1_000_000))
        if types.is_decimal(type_):
            return chance.randrange(-999, 999)
        return chance.choice(["a", "ü", "two\nlines", ""])

    values = [value() for _ in range(rows)]
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return pa.array(values, pa.timestamp("us")).cast(type_, safe=False)
    if pa.types.is_dictionary(type_):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, type_)


def _pick(chance: random.Random, values: tuple[str, ...]) -> str:
    """Mostly the first ones: rows of which every value is right should not be rare."""
    return values[min(chance.randrange(len(values)), chance.randrange(len(values)), chance.randrange(len(values)))]
