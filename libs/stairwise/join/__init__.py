"""Joins of windows: each row looks for its partners once, and a joined row carries the times that say when it shows.

links, bands, order   what joins inputs: equal values, times that are near; in which order inputs are asked
probe                 the symmetric join of time windows, with key_groups        stay    how long rows are kept
operator              one probe for all queries of a signature                   joined_rows, standing
pair_slices           joined rows that come and go together, as partials of their groups
expansion, taking     one query's joined rows: as changes, or out of a published report
whole_answers         the same as whole answers at any time, for a SELECT below a set operation
moving_join           joins over windows that count rows: every row that moves is joined
cross_product         inputs that nothing links, and how many pairs they make
explain               how partners are found, for EXPLAIN
"""
