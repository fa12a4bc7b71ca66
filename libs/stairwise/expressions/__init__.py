"""Expressions over Arrow columns, with SQL's NULL logic, never a row at a time."""
