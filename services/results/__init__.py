"""The results service: subscriptions and snapshots over gRPC, out of the reports on Kafka.

```
results topic ─▶ follower ─▶ assembly ─▶ journal ─┐
                 (one thread, repeats go, (bounded,  ├─▶ feed ─▶ subscription ─▶ rendition ─▶ servicer ─▶ gRPC
                  from the    shards join  in memory) │   (no gap, (base, end,     (bytes that    (flow control,
                  tail on)                            │    no repeat) heartbeats)   are shared)     places)
results topic ─▶ history ─▶ assembly ────────────────┘
                 (a few consumers, a page at a time, for positions that the journal does not hold)
plans topic   ─▶ catalogue   which queries there are
```
"""
