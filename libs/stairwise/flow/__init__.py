"""Rows that flow through windows: selection, UNION ALL and EXCEPT, and windows that count rows.

operator    the rows of all queries of a signature, prepared once
kept_rows   the published rows that windows still hold: an expansion is made again from them
expansion   one query's changes
lifetimes   one query's rows with their ends, where these are known when rows come
counted     windows that slide by rows, as windows over row numbers
"""
