"""What makes a stream of a pile of rows: decoding and validation (``rows``, ``times``), order and watermarks
(``sequence``).
"""
