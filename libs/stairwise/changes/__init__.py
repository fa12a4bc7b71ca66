"""From rows that enter and leave windows to what changed in an answer.

passage           when each row enters and leaves
copies            how many copies each value has: selection, UNION ALL, EXCEPT
changing_groups   the groups that rows moved in
touched_groups    groups and the reports at which they change
"""
