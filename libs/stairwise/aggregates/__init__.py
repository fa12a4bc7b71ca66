"""Aggregates as an algebra of lift, combine and lower over Arrow columns; one family of functions per file."""
