"""Which windows nest in which, and the groups that follow from it (seed 000).

pool of windows ──piggyback──▶ carriers and riders ───subsume────▶ chains (group)
   relation: when one window rides on another                        │
queries that come and go ───────embed, revoke──────▶ grouping ◀──────┘
                                            bases, suitability: where a newcomer finds its place
                                                        │
        group_schedule, timetable: which windows are due at τ         drawing: a group as a picture
"""
