"""The audit log: who defined what, when, and how it ended. One JSON object a line.

Every call that defines something leaves one entry, and so does every one that was refused, whatever it asked for. An
entry goes to the service's log under ``stairwise.audit``, and to a file of its own where one is set.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from stairwise.errors import ConfigError, StairwiseError
from stairwise.platform import telemetry

log = logging.getLogger("stairwise.audit")

LONGEST = 10_000
"""How many characters of a statement are kept."""


class Audit:
    """Writes entries; any thread may."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._file: int | None = None
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise ConfigError(f"the audit log {path} cannot be written: {error.strerror}") from error

    def note(
        self, principal: str, peer: str, method: str, request: Message | None = None, error: BaseException | None = None
    ) -> None:
        """One call: ``request`` None where it was refused before anybody looked at it."""
        entry: dict[str, Any] = {
            "principal": principal,
            "peer": peer,
            "method": method.rpartition("/")[2],
            "what": _shortened(MessageToDict(request, preserving_proto_field_name=True))
            if request is not None
            else None,
            "outcome": "done" if error is None else outcome(error),
        }
        if error is not None:
            entry["reason"] = error.message if isinstance(error, StairwiseError) else type(error).__name__
        log.info("audit", extra=telemetry.fields(**entry))
        if self._file is not None:
            when = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            line = json.dumps({"time": when, **entry}, ensure_ascii=False) + "\n"
            with self._lock:
                os.write(self._file, line.encode())


def outcome(error: BaseException) -> str:
    """How a call ended, in a word: refused, or failed through a fault of ours."""
    return f"refused: {type(error).__name__}" if isinstance(error, StairwiseError) else "failed"


def _shortened(said: dict[str, Any]) -> dict[str, Any]:
    return {k: v[:LONGEST] + "…" if isinstance(v, str) and len(v) > LONGEST else v for k, v in said.items()}
