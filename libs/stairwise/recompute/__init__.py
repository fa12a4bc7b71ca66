"""The definition itself: the rows in scope, taken for every report. What nothing quicker evaluates runs here.

evaluation        one query: when it reports, its SELECTs put together (part)
recompute         any SELECT over any windows, from the rows that each window holds (side, cell_join)
append            FROM without a window
shared_part       a SELECT below a set operation, on the operator that queries share
"""
