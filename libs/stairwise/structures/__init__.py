"""Seed 004's structures over the recent past of a stream: updated by the batch and asked by the batch.

    rows of a key, numbered (substreams, rings) ──▶ structures

Which one answers what stands on its card:

    running_intervals     R-INT       COUNT, SUM, AVG, VARIANCE: whatever can be subtracted (summands)
    base_intervals        B-INT       MIN, MAX: whatever can be combined
    landmark_intervals    L-INT       the same in constant time, for some widths
    extreme_intervals                 the one or the other, as lookups and updates make it pay
    row_index                         any other aggregate of some keys, from their own rows
    count_filter          CI-COUNT    {keys : COUNT(window) in a range}
    sum_filter            CI-SUM      {keys : SUM(window) in a range}, values that are not negative
    kept_levels                       the levels of both: which are kept, how fine
    extreme_filter                    {keys : MAX or MIN(window) in a range}
"""
