"""CQL, from text to meaning.

    text ──parser──▶ statements (ast) ──resolve──▶ typed queries (query) ──logical, rewrite──▶ plans, explained

``script`` runs whole scripts against a catalogue of streams and queries.
"""
