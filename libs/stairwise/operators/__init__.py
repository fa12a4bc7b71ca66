"""What every shared operator is made of: rows prepared once, queries that come and go.

signature     what queries must agree in to share an operator
preparation   the filter and the expressions of an input, computed once a row
roster, due   the operator's queries: from when to when each reports, which times are due
levels        what a multi-granular window asks of an operator
"""
