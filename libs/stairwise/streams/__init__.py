"""What makes a stream of a pile of rows: decoding and validation (``rows``), order and watermarks (``sequence``)."""
