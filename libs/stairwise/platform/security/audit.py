"""The audit log: who changed what, who was refused what, when. One JSON object a line.

The registry notes every statement that changed something, and every script that was refused, whatever method brought
it; servers note every call that was refused before or beside that. An entry goes to the service's log under
``stairwise.audit``, and to a file of its own where one is set. Nobody but the file's owner can read it, and it is
renamed to ``<file>.1`` when it is full, as are the older ones up to ``<file>.9``.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from stairwise.errors import ConfigError, StairwiseError
from stairwise.platform import telemetry

log = logging.getLogger("stairwise.audit")

LONGEST = 10_000
"""How many characters of a statement are kept."""
MOST_BYTES = 64 << 20
KEPT = 9
"""How large a file becomes, and how many full ones are kept."""


class Audit:
    """Writes entries; any thread may."""

    def __init__(self, path: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._file: _PrivateFile | None = None
        if path is not None:
            try:
                self._file = _PrivateFile(path, maxBytes=most_bytes, backupCount=KEPT, encoding="utf-8")
            except OSError as error:
                raise ConfigError(f"the audit log {path} cannot be written: {error.strerror}") from error

    def note(
        self, principal: str, peer: str, method: str, what: object = None, error: BaseException | None = None
    ) -> None:
        """One entry: ``what`` is the statement as it was executed; None: the call was refused before one was read."""
        entry: dict[str, Any] = {
            "principal": principal,
            "peer": peer,
            "method": method.rpartition("/")[2],
            "what": what[:LONGEST] + "…" if isinstance(what, str) and len(what) > LONGEST else what,
            "outcome": "done" if error is None else outcome(error),
        }
        if error is not None:
            entry["reason"] = error.message if isinstance(error, StairwiseError) else type(error).__name__
        log.info("audit", extra=telemetry.fields(**entry))
        if self._file is not None:
            when = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            line = json.dumps({"time": when, **entry}, ensure_ascii=False)
            self._file.handle(logging.makeLogRecord({"msg": line}))


class _PrivateFile(RotatingFileHandler):
    def emit(self, record: logging.LogRecord) -> None:
        """Several services may write to one file: what another has renamed is not written to any more."""
        if self.stream is not None and not _is_at(self.stream, self.baseFilename):
            self.stream.close()
            self.stream = self._open()
        super().emit(record)

    def _open(self) -> TextIOWrapper:
        """For the owner alone, also where the file was there before."""
        opened = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.fchmod(opened, 0o600)
        return os.fdopen(opened, "a", encoding=self.encoding)


def _is_at(stream: TextIOWrapper, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def outcome(error: BaseException) -> str:
    """How a call ended, in a word: refused, or failed through a fault of ours."""
    return f"refused: {type(error).__name__}" if isinstance(error, StairwiseError) else "failed"
