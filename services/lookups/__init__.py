"""Lookups: Faust workers that keep the recent past of each stream and answer for any window of it."""
