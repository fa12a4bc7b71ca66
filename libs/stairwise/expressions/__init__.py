"""Expressions over Arrow columns: SQL's NULLs, exact integers, one order of all values.

tree         fields, literals, calls, aggregates          conditions   their parts, and the one spelling of each
evaluate     a tree over columns                          faults       NULLs from overflow and division by zero
functions    the catalogue of functions of a row          arithmetic, comparison, huge, texts, instants, casts  kernels
views, ranges, codes, order   columns as numpy arrays
"""
