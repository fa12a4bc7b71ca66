"""A client that can be killed at any moment: it keeps every update with its token in a file and goes on from there.

python -m tests.integration.results_client ADDRESS QUERY FILE
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

from stairwise.client import Client


def read(path: Path) -> list[dict[str, object]]:
    """The updates that were kept; half a line at the end is one that was not."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def main(address: str, query: str, path: Path) -> None:
    kept = read(path)
    whole = path.read_bytes().rpartition(b"\n") if path.exists() else (b"", b"", b"")
    start = base64.b64decode(str(kept[-1]["token"])) if kept else "earliest"
    with path.open("r+b" if path.exists() else "wb") as file, Client.connect(results=address) as client:
        file.truncate(len(whole[0]) + len(whole[1]))
        file.seek(0, os.SEEK_END)
        with client.subscribe(query, start) as subscription:  # type: ignore[arg-type]
            for update in subscription:
                line = {
                    "time": update.time,
                    "changes": [[c.diff, c.row["k"], c.row["n"]] for c in update.changes],
                    "token": base64.b64encode(update.token).decode(),
                }
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
