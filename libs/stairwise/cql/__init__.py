"""CQL, from text to meaning: text ──parser──▶ statements (ast) ──resolve──▶ typed queries (``algebra.query``).

``script`` runs whole scripts against a catalogue of streams and queries.
"""
