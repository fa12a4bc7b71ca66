"""Lookups: shared structures over the recent past of a stream, and what is answered from them without a query.

    rows of a partition ──reorder──▶ in stream order ──substreams──▶ each key's rows, numbered ──▶ structures

A structure is updated by the batch and asked by the batch; which one answers what stands on its card:

    running_intervals     R-INT       COUNT, SUM, AVG, VARIANCE: whatever can be subtracted
    base_intervals        B-INT       MIN, MAX: whatever can be combined
    landmark_intervals    L-INT       the same in constant time, for some widths
    extreme_intervals                 the one or the other, as lookups and updates make it pay
    quantile_intervals    B-INT-QNT   QUANTILE, MEDIAN
    row_index                         any other aggregate of some keys, from their own rows
    count_filter          CI-COUNT    {keys : COUNT(window) in a range}
    sum_filter            CI-SUM      {keys : SUM(window) in a range}, values that are not negative
    extreme_filter                    {keys : MAX or MIN(window) in a range}
"""
