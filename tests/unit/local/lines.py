"""Result lines of the local engine over messages, for comparing with the oracle's."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stairwise.cql.script import Catalogue
from stairwise.local.engine import Engine
from stairwise.local.merge import QueryLines
from stairwise.reports.lines import line_dicts
from stairwise.schema import EARLIEST
from stairwise.streams.rows import RowDecoder

Line = dict[str, Any]


def engine_lines(
    script: str,
    messages: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    chance: random.Random | None = None,
    remake: bool = False,
    partitions: int = 1,
    sharing: bool = True,
) -> list[Line]:
    """The lines of a script, with streams and batches interleaved by chance.

    ``remake`` tears operators down after every batch and makes them anew from their stores.
    """
    chance = chance or random.Random(0)
    catalogue = Catalogue()
    catalogue.execute(script)
    queries = list(catalogue.queries.values())
    engine = Engine(list(catalogue.streams.values()), queries, partitions, sharing=sharing)
    decoders = {name: RowDecoder(stream) for name, stream in catalogue.streams.items()}
    left = {name: list(messages.get(name, ())) for name in catalogue.streams}
    lines: list[Line] = []
    while left:
        name = chance.choice(sorted(left))
        count = chance.randint(1, 6)
        batch, left[name] = left[name][:count], left[name][count:]
        held_for_ever = np.full(len(batch), EARLIEST)  # as rows of a table without TIMESTAMP BY have
        decoded = decoders[name].decode([json.dumps(message).encode() for message in batch], held_for_ever)
        assert not decoded.bad
        engine.feed(name, decoded.rows)
        if not left[name]:
            del left[name]
            engine.seal(name)
        for pieces in engine.advance():
            lines += in_order([query.name for query in queries], pieces)
        if remake:
            engine.remake()
    return lines


def in_order(names: Sequence[str], pieces: Sequence[QueryLines]) -> list[Line]:
    """The lines of a piece of the output, by time and query."""
    found = [(piece.query, line) for piece in pieces for line in line_dicts(names[piece.query], piece.lines)]
    return [line for _, line in sorted(found, key=lambda entry: (entry[1]["time"], entry[0]))]
