"""What makes a stream of a pile of rows: decoding and validation (``rows``), their times (``times``), order and watermarks
(``sequence``)."""
