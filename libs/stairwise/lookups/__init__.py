"""Lookups: what is answered from the recent past of a stream without a query.

    rows of a partition ──reorder──▶ settled_rows ──▶ partition_history ──▶ signature_index: its ``structures``

statement                        a SELECT as a lookup: its window, keys, what it needs
index_shelf, index_making        which signatures have an index, which is being made, what each is worth
scan                             rows looked through in slices, apart from the partition
extent, last_rows                what a window holds of each partition, by time or by rows
partition_parts, tally, gather   a partition's part of an answer, and the parts put together
answer                           HAVING, projection, order               homes    which partitions can know a key
standing_filters                 USING LOOKUPS: lookups asked at every report
lookup_explain                   which structure answers, for EXPLAIN
"""
