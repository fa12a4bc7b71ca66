"""What operators say, and how it becomes lines.

contract     who calls an operator when, and what it answers
blocks       many reports in one piece of columns           runs        one report for a stretch of equal ones
moments      when a query is evaluated                      cells       rows by the moment that they belong to
answers      HAVING, projection, DISTINCT                   multisets   differences of bags
expansion    a query's reports to its lines: EMIT, order    emission    these lines      lines    as JSON
packing      published answers in few bytes
standing_answer, query_reports   what stands, kept up to date by what moves; a query's own reports, and keyframes
"""
