"""The whole system on one machine: broker and services as supervised processes (``stairwise up``).

```
startup ── installation   java and jars are there
        ── state.Lock     nobody else runs a system in this directory
        ── orphans        what a killed supervisor left behind is stopped
        ── layout         which parts there are, on which ports
        ── ports          every port is free, or who holds it
        ── broker         configuration written, storage formatted once
        ── zipkin         with --tracing: where spans go and are shown
supervisor ── supervised  one part's life: launch (die_with_parent, logs), health, back-off
           ── event_loop  waits for whatever comes first
           └─▶ state      DIR/system.json ──▶ part_status, shutdown, background, and the client (``state.find``)
```
It needs Linux: processes are told apart by /proc and followed by pidfd.
"""
