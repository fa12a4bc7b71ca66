"""What a cluster leaves on its machine, taken away again: processes, mounts, control groups, rules for packets."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from itertools import product
from pathlib import Path

from tests.cluster.programs import run
from tests.e2e.conftest import wait_for

PROGRAMS = ("iptables", "ip6tables")
TABLES = ("filter", "nat", "mangle")
CHAINS = "KUBE-"
GROUPS = "kubepods"
HOLDER = b"containerd-shim"
NETWORKS = "/run/netns/cni-"
"""Where the pods' namespaces of the network are mounted."""
STORE = "/var/lib/containers/storage/overlay"
"""Where buildah keeps images. It mounts the place onto itself and leaves it so; the next one does that again."""


def remove_chains() -> None:
    """Every chain of Kubernetes, after the rules that lead there; kube-proxy's own clean-up leaves some."""
    for program, table in product(PROGRAMS, TABLES):
        rules = [line.split() for line in run(program, "-t", table, "-S", check=False).splitlines()]
        for words in rules:
            jumps = words[0] == "-A" and not words[1].startswith(CHAINS)
            if jumps and any(word.startswith(CHAINS) for word in words):
                target = words[words.index("-j") + 1]
                # What has a comment is kube-proxy's, which takes that away itself.
                run(program, "-t", table, "-D", words[1], "-j", target, check=False)
        chains = [words[1] for words in rules if words[0] == "-N" and words[1].startswith(CHAINS)]
        for option in ("-F", "-X"):
            for chain in chains:
                run(program, "-t", table, option, chain, check=False)


def remove_groups() -> None:
    """The control groups of pods that have ended, from the leaves up; one that still has a process stays."""
    for top in Path("/sys/fs/cgroup").glob(f"*/{GROUPS}"):
        for group in sorted((g for g in top.rglob("*") if g.is_dir()), reverse=True):
            _remove(group)
        _remove(top)


def remove_mounts(below: Path) -> None:
    for place in mounts(below):
        run("umount", "--lazy", place, check=False)
        if place.startswith(NETWORKS):
            Path(place).unlink(missing_ok=True)
    run("umount", STORE, check=False)  # stays where somebody uses it now


def mounts(below: Path) -> list[str]:
    """What is mounted below a directory, and the namespaces of pods; the innermost first."""
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return sorted((m for m in mounted if m.startswith((f"{below}/", NETWORKS))), reverse=True)


def end_processes(directory: Path) -> None:
    """Those of pods, and containerd's that hold them and outlive it."""
    for process in processes(directory):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    wait_for(lambda: not processes(directory), "every process has ended", within=20)


def processes(directory: Path) -> list[int]:
    found = set()
    for group in Path("/sys/fs/cgroup").glob(f"*/{GROUPS}/**/cgroup.procs"):
        with contextlib.suppress(OSError):
            found.update(map(int, group.read_text().split()))
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (place / "cmdline").read_bytes()
            if HOLDER in command and str(directory).encode() in command:
                found.add(int(place.name))
    return sorted(found)


def remove_files(*directories: Path) -> None:
    """The images and containers, gigabytes of them; logs and settings stay for who looks for a reason."""
    for directory in directories:
        if not mounts(directory.parent):
            shutil.rmtree(directory, ignore_errors=True)


def check_gone(directory: Path) -> None:
    """Fails, and says what, if something is left on the machine."""
    left = [f"mount {place}" for place in mounts(directory)]
    left += [f"process {number}" for number in processes(directory)]
    left += [f"control group {group}" for group in Path("/sys/fs/cgroup").glob(f"*/{GROUPS}")]
    for program, table in product(PROGRAMS, TABLES):
        left += [
            f"{program}: {line}" for line in run(program, "-t", table, "-S", check=False).splitlines() if CHAINS in line
        ]
    if left:
        raise RuntimeError("left on this machine: " + "; ".join(left))


def _remove(group: Path) -> None:
    try:
        group.rmdir()
    except OSError:
        return
