"""SELECT DISTINCT over time windows: one log of most recent appearances serves every window.

appearances   values in order of their latest appearance
operator      the log of a signature, and what is new in it
expansion     one query's set, or only what changed
"""
