"""The types of columns and casts by their names."""

from __future__ import annotations

from stairwise.cql import ast
from stairwise.cql.source import Source
from stairwise.errors import nearest
from stairwise.schema import Type

_COLUMN_TYPES = {t.value: t for t in Type if t is not Type.HUGEINT}
_OTHER_NAMES_OF_TYPES = {
    "INT": "BIGINT",
    "INTEGER": "BIGINT",
    "LONG": "BIGINT",
    "HUGEINT": "BIGINT",
    "SMALLINT": "BIGINT",
    "FLOAT": "DOUBLE",
    "REAL": "DOUBLE",
    "DECIMAL": "DOUBLE",
    "NUMERIC": "DOUBLE",
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "TEXT": "STRING",
    "BOOL": "BOOLEAN",
    "DATETIME": "TIMESTAMP",
    "DATE": "TIMESTAMP",
    "TIME": "TIMESTAMP",
    **dict.fromkeys(("INT2", "INT4", "INT8", "INT64", "TINYINT", "UBIGINT", "NUMBER", "SERIAL"), "BIGINT"),
    **dict.fromkeys(("FLOAT4", "FLOAT8", "FLOAT64", "MONEY"), "DOUBLE"),
    **dict.fromkeys(("BYTES", "BINARY", "VARBINARY", "UUID", "JSON", "JSONB", "NVARCHAR", "BPCHAR"), "STRING"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP_LTZ", "DATETIME2"), "TIMESTAMP"),
}


def column_type(source: Source, name: ast.Name, what: str) -> Type:
    """The type that a name means; what it is in other systems leads on."""
    word = name.text.upper()
    if word in _COLUMN_TYPES:
        return _COLUMN_TYPES[word]
    known = _OTHER_NAMES_OF_TYPES.get(word)
    raise source.error(
        name.span,
        f"there is no type {name.text!r} for {what}",
        expected=", ".join(_COLUMN_TYPES),
        hint=f"write {known}" if known else nearest(word, _COLUMN_TYPES, "type"),
    )
