"""From rows that enter and leave windows to what changed in an answer.

passage           when each row enters and leaves
copies            how many copies each value has: selection, UNION ALL, EXCEPT
changing_groups   the groups that rows moved in
growing_groups    the groups of a landmark, which rows come into only
touched_groups    what both are made of
"""
