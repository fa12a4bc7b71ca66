"""CQL, from text to meaning: text ──parser──▶ statements (ast) ──resolve──▶ typed queries (``algebra.query``).

``script`` runs whole scripts against a catalogue of streams and queries; ``grants`` is what they say of authority.
``shapes`` spares parsing statements that differ in digits alone.
"""
