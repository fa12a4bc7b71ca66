"""The names of the cluster: a DNS of a page, which asks the API server and answers what pods ask.

    <service>.<namespace>.svc.cluster.local          its address, or those of its pods where it has none
    <pod>.<service>.<namespace>.svc.cluster.local    the address of one pod of a StatefulSet

Nothing else is known to it, and everything else does not exist.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

DOMAIN = ".svc.cluster.local"
FRESH = 0.5
"""For how long an answer of the API server is good, in seconds."""
HOST, ANY = 1, 255
ANSWERED, UNKNOWN = 0x8580, 0x8583

Table = dict[str, list[str]]


def addresses(services: Iterable[dict[str, Any]], endpoints: Iterable[dict[str, Any]]) -> Table:
    """Every name that there is, and its addresses."""
    table: Table = {}
    headless: dict[tuple[str, str], bool] = {}
    for service in services:
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        own = service["spec"].get("clusterIP", "None")
        headless[name, namespace] = own == "None"
        table[f"{name}.{namespace}{DOMAIN}"] = [] if own == "None" else [own]
    for each in endpoints:
        name, namespace = each["metadata"]["name"], each["metadata"]["namespace"]
        if not headless.get((name, namespace)):
            continue
        for subset in each.get("subsets") or []:
            for address in subset.get("addresses", []):
                table[f"{name}.{namespace}{DOMAIN}"].append(address["ip"])
                if "hostname" in address:
                    table[f"{address['hostname']}.{name}.{namespace}{DOMAIN}"] = [address["ip"]]
    return table


def answer(query: bytes, table: Table) -> bytes:
    """The reply to one query, for its one question."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    question = query[12 : at + 5]
    (kind,) = struct.unpack("!H", query[at + 1 : at + 3])
    known = table.get(".".join(labels))
    found = known if known and kind in (HOST, ANY) else []
    flags = UNKNOWN if known is None else ANSWERED
    head = query[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
    records = b"".join(struct.pack("!HHHIH", 0xC00C, HOST, 1, 0, 4) + socket.inet_aton(ip) for ip in found)
    return head + question + records


class Names:
    """Serves on an address until it is stopped; ``read`` gives the objects of a kind, as the API server lists them."""

    def __init__(self, address: str, read: Callable[[str], list[dict[str, Any]]]) -> None:
        self._read = read
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 53))
        self._socket.settimeout(0.2)
        self._table: Table = {}
        self._read_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                query, sender = self._socket.recvfrom(4096)
            except TimeoutError:
                continue
            if time.monotonic() - self._read_at > FRESH:
                # While the API server does not answer, what it said last is good.
                with contextlib.suppress(OSError):
                    self._table = addresses(self._read("services"), self._read("endpoints"))
                self._read_at = time.monotonic()
            self._socket.sendto(answer(query, self._table), sender)
