"""From what a query means to what runs: the only place that knows all operators.

logical, rewrite, patterns   the tree of a query, what may be moved in it, how results come and go
lowering                     from the rewritten tree to the query as it runs
signature                    what a query shares with others
shared, published, parts     which operator evaluates it, and what is published of its blocks
query_reports                the reports of a query that is the only one on its operator
distribution                 by which column its rows are spread over shards
physical                     what runs at each node of the tree
explain, tree_drawing        all that as a person reads it
"""
