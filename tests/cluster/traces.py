"""What a cluster leaves on its machine, taken away again: chains of the packet filter, control groups, mounts."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from tests.cluster.programs import run

PROGRAMS = ("iptables", "ip6tables")
TABLES = ("filter", "nat", "mangle")
CHAINS = "KUBE-"
GROUPS = "kubepods"


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
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((m for m in mounted if m.startswith(f"{below}/")), reverse=True):
        run("umount", "--lazy", place, check=False)


def _remove(group: Path) -> None:
    try:
        group.rmdir()
    except OSError:
        return
