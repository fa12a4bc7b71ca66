"""Expressions over Arrow columns: SQL's NULLs, exact integers, one order of all values.

tree         fields, literals, calls, aggregates          conditions   their parts
canonical    one form for all spellings of a condition
evaluate     a tree over columns                          faults       NULLs from overflow and division by zero
functions    the catalogue of functions of a row          allowance    whether many rows may be made
arithmetic, comparison, huge, texts, instants, casts      kernels
views, ranges, codes, order   columns as numpy arrays
"""
