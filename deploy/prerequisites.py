"""Are the things there that neither pip nor Maven can fetch? Names what is missing and how to install it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys


def _version(command: list[str], pattern: str) -> int | None:
    """The major version that a command prints about itself; None where it is not there or does not run."""
    if shutil.which(command[0]) is None:
        return None
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(pattern, said.stdout + said.stderr)
    return int(found.group(1)) if said.returncode == 0 and found else None


def missing(*, with_jvm: bool) -> list[str]:
    problems = []
    if sys.version_info < (3, 11):
        problems.append(
            f"Python 3.11 or newer: this is {sys.version.split()[0]}. "
            "Install python3.11 and say which one with `make PYTHON=python3.11 ...`"
        )
    elif subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode:
        problems.append("Python's venv module. Debian and Ubuntu: apt-get install python3-venv")
    if not with_jvm:
        return problems
    java = _version(["java", "-version"], r'version "(\d+)')
    if java is None or java < 17:
        found = "none on the PATH" if java is None else f"found version {java}"
        problems.append(
            f"a JDK, version 17 or newer ({found}). Debian and Ubuntu: apt-get install openjdk-17-jdk-headless; "
            "macOS: brew install openjdk@17"
        )
    if _version(["mvn", "--version"], r"Apache Maven (\d+)") is None:
        problems.append("Maven. Debian and Ubuntu: apt-get install maven; macOS: brew install maven")
    return problems


if __name__ == "__main__":
    problems = missing(with_jvm="--without-jvm" not in sys.argv)
    for problem in problems:
        print(f"missing: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)
