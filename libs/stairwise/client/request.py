"""What a client asks of the services, in its own words and as messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from stairwise.client.update import Cell
from stairwise.v1 import registry_pb2
from stairwise.v1 import results_pb2 as pb

From = Literal["latest", "earliest"] | int | bytes
"""Where to begin: a word, a time in milliseconds since the epoch, or the token of an update."""
Encoding = Literal["values", "arrow"]
"""How rows travel: as values for few rows, as Arrow for many."""
Where = Mapping[str, "Cell | Iterable[Cell]"]
"""Only rows whose columns have these values: of each column one, or any of several."""

_ENCODINGS = {"values": pb.ENCODING_UNSPECIFIED, "arrow": pb.ENCODING_ARROW}


def subscribe_request(query: str, from_: From, where: Where | None, encoding: Encoding) -> pb.SubscribeRequest:
    request = pb.SubscribeRequest(query=query, encoding=encoding_number(encoding), filter=matches(where))
    match from_:
        case "latest":
            request.latest.SetInParent()
        case "earliest":
            request.earliest.SetInParent()
        case bytes():
            request.token = from_
        case int():
            request.time_ms = from_
        case _:
            raise ValueError(f"from_ is 'latest', 'earliest', a time or a token, not {from_!r}")
    return request


def encoding_number(encoding: Encoding) -> pb.Encoding.ValueType:
    if encoding not in _ENCODINGS:
        raise ValueError(f"encoding is 'values' or 'arrow', not {encoding!r}")
    return _ENCODINGS[encoding]


def matches(where: Where | None) -> list[pb.Match]:
    """A filter as messages."""
    found = []
    for column, wanted in (where or {}).items():
        is_one = wanted is None or isinstance(wanted, bool | int | float | str)
        several: Iterable[Cell] = [wanted] if is_one else wanted  # type: ignore[list-item, assignment]
        found.append(pb.Match(column=column, values=[_value(cell) for cell in several]))
    return found


def _value(cell: Cell) -> pb.Value:
    match cell:
        case None:
            return pb.Value()
        case bool():
            return pb.Value(boolean=cell)
        case int():
            return pb.Value(integer=cell) if -(2**63) <= cell < 2**63 else pb.Value(hugeint=str(cell))
        case float():
            return pb.Value(double=cell)
        case str():
            return pb.Value(string=cell)
        case _:
            raise TypeError(f"a filter compares with None, bool, int, float and str, not with {type(cell).__name__}")


def explain_request(query: str, *, analyze: bool) -> registry_pb2.ExplainRequest:
    """Of a SELECT, or of a query by its name."""
    named = {"text": query} if " " in query.strip() else {"query": query}
    return registry_pb2.ExplainRequest(**named, analyze=analyze)
