"""JSON objects as Python objects, whatever their fields are called.

msgspec decodes into structs, of which it skips what is not declared and checks what is, and of which a field is read
fastest. But it takes no name for a field of a struct that JSON has to escape: where a column has one (a quote, a
backslash, a control character), objects become dictionaries field by field, which costs much more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
FIELDS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""An object as its fields, each as it is written: nothing is made of what may be nested without end."""


@dataclass(frozen=True)
class ObjectField:
    name: str
    type: Any
    """What a value may be, as msgspec says it."""
    is_required: bool


@dataclass(frozen=True)
class ObjectReader:
    read: Callable[[bytes], Any]
    """One object from its text; raises what msgspec raises."""
    read_lines: Callable[[bytes], list[Any]]
    """Objects from text with one on each line."""
    values: Sequence[Callable[[list[Any]], list[Any]]]
    """For each field, what takes its values out of objects; None where one does not have it."""


def object_reader(fields: Sequence[ObjectField], *, forbid_unknown: bool) -> ObjectReader:
    is_odd = any(_ESCAPED.search(field.name) for field in fields)
    return _of_dictionaries(fields, forbid_unknown) if is_odd else _of_structs(fields, forbid_unknown)


def _of_structs(fields: Sequence[ObjectField], forbid_unknown: bool) -> ObjectReader:
    slots = [f"f{i}" for i in range(len(fields))]
    shaped: list[Any] = [
        (slot, field.type) if field.is_required else (slot, field.type | None, None)
        for slot, field in zip(slots, fields, strict=True)
    ]
    shaped.sort(key=len)  # required ones first, as a struct demands
    names = {slot: field.name for slot, field in zip(slots, fields, strict=True)}
    shape = msgspec.defstruct("Row", shaped, rename=names, gc=False, forbid_unknown_fields=forbid_unknown)
    decoder = msgspec.json.Decoder(shape)
    return ObjectReader(decoder.decode, decoder.decode_lines, [_of_slot(slot) for slot in slots])


def _of_slot(slot: str) -> Callable[[list[Any]], list[Any]]:
    """What gives one field of all structs. Written out, the lookup costs a third of what ``attrgetter`` takes."""
    values: Callable[[list[Any]], list[Any]] = eval(f"lambda structs: [struct.{slot} for struct in structs]")
    return values


def _of_dictionaries(fields: Sequence[ObjectField], forbid_unknown: bool) -> ObjectReader:
    decoders = {field.name: msgspec.json.Decoder(field.type) for field in fields}
    required = {field.name for field in fields if field.is_required}

    def read(text: bytes) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, value in FIELDS.decode(text).items():
            if name in decoders:
                is_none = bytes(value) == b"null" and name not in required
                row[name] = None if is_none else decoders[name].decode(value)
            elif forbid_unknown:
                raise msgspec.ValidationError(f"Object contains unknown field `{name}`")
        if not required <= row.keys():
            raise msgspec.ValidationError("Object missing required field")
        return row

    def read_lines(text: bytes) -> list[dict[str, Any]]:
        return [read(line) for line in text.removesuffix(b"\n").split(b"\n")]

    return ObjectReader(read, read_lines, [_of_key(field.name) for field in fields])


def _of_key(name: str) -> Callable[[list[Any]], list[Any]]:
    return lambda rows: [row.get(name) for row in rows]
