"""A state directory that goes away with whoever needed the system; of a start that failed, the logs stay."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stairwise.system.background import StartError


@contextmanager
def state_directory(prefix: str, *failures: type[Exception]) -> Iterator[Path]:
    """Removed at the end; but the logs stay, where they are, after a ``StartError`` or one of ``failures``."""
    made = Path(tempfile.mkdtemp(prefix=prefix))
    removed = [made]
    try:
        yield made
    except Exception as error:
        if isinstance(error, (StartError, *failures)):
            removed = [made / large for large in ("broker", "operators", "lookups")]
        raise
    finally:
        for path in removed:
            shutil.rmtree(path, ignore_errors=True)
