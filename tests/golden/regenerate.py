"""Write the expected lines of golden cases by the oracle: ``python -m tests.golden.regenerate [CASE ...]``.

Without names it writes those of all cases. Read what has changed before you keep it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from tests.golden.cases import GoldenCase, golden_cases
from tests.oracle import run


def regenerate(case: GoldenCase) -> bool:
    """Write the case's expected file; did it change?"""
    lines = run(case.script, case.messages)
    text = "".join(f"{json.dumps(line, ensure_ascii=False, allow_nan=False)}\n" for line in lines)
    if case.expected_file.exists() and case.expected_file.read_text(encoding="utf-8") == text:
        return False
    case.expected_file.write_text(text, encoding="utf-8")
    return True


def main(names: Sequence[str]) -> int:
    cases = {case.name: case for case in golden_cases()}
    unknown = [name for name in names if name not in cases]
    if unknown:
        print(f"no such case: {', '.join(unknown)}", file=sys.stderr)
        return 2
    changed = [name for name in names or cases if regenerate(cases[name])]
    print(f"{len(changed)} of {len(names or cases)} cases changed: {', '.join(changed) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
