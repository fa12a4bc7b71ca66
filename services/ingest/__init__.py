"""Ingest: what producers publish, validated, timestamped, sequenced and written as Arrow batches, exactly once."""
