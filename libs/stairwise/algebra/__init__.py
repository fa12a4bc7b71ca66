"""What a query means once its text is out of the way.

query        a query with every name resolved: SELECTs under UNION ALL and EXCEPT, and what it emits
conditions   the WHERE of a join, cut at its ANDs
spelling     windows, expressions and types as a person writes them
"""
