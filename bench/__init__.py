"""Benchmarks: each measures what it promises, says whether the goal is met, and refreshes its part of the docs."""
