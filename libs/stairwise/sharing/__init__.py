"""Sharing: which windows nest in which (``subsumption``), and the groups that follow from it (seed 000).

pool of windows ──piggyback──▶ carriers and riders ──subsume, cover──▶ chains
                                                                         │
queries that come and go ──────────embed, revoke──────────▶ grouping ◀───┘
                                                               │
               schedule, timetable, due ◀──────────────────────┴─────────────────▶ drawing, explain
                         which windows are due at τ                      a query's group, for EXPLAIN
"""
